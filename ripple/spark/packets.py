"""Packets, the results of tasks: a few columns for sorting, and a body of rows or text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROWS, LETTERS, REPORT, EDGE, DIVIDED, FINDING = (
    "rows",
    "letters",
    "report",
    "edge",
    "divided",
    "finding",
)
BODY_ROWS_MAX = 1 << 17
"""Rows per body: Spark holds a cell in one piece."""

SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("stage", pa.int32(), nullable=False),
        pa.field("target", pa.int32(), nullable=False),
        pa.field("turn", pa.int64(), nullable=False),
        pa.field("sender", pa.int32(), nullable=False),
        pa.field("piece", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("about", pa.string(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
    ]
)
LETTER = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("line_number", pa.int64()),
        pa.field("file", pa.string()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("raw", pa.binary(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Packet:
    """One result of a task.

    kind: ROWS of output ``name``, LETTERS (dead letters), a REPORT, changes over an EDGE into
    ``stage``, records DIVIDED anew (repartitioned), or a FINDING of a check. target: its partition
    of the next stage. turn, sender, piece: its order among those of its target. about: further
    fields, as JSON. body: rows as an Arrow stream.
    """

    kind: str
    name: str = ""
    stage: int = 0
    target: int = 0
    turn: int = 0
    sender: int = 0
    piece: int = 0
    about: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""

    def rows(self) -> pa.RecordBatch:
        """Return the rows of the body."""
        return loads(self.body)

    def as_batch(self) -> pa.RecordBatch:
        """Return the packet as a Spark row."""
        values = {name: getattr(self, name) for name in SCHEMA.names}
        values["about"] = json.dumps(dict(self.about))
        return pa.RecordBatch.from_arrays(
            [pa.array([values[one.name]], one.type) for one in SCHEMA], schema=SCHEMA
        )

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Packet:
        """Return the packet of a Spark row."""
        held = {name: row[name] for name in SCHEMA.names}
        return cls(**{**held, "about": json.loads(held["about"]), "body": bytes(held["body"])})


def packets_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
    """Yield the packets of Spark's batches."""
    for batch in batches:
        for at in range(batch.num_rows):
            yield Packet.of({name: batch.column(name)[at].as_py() for name in SCHEMA.names})


def packets_of(rows: pa.RecordBatch | pa.Table, packet: Packet) -> Iterator[Packet]:
    """Yield rows in one or more packets like ``packet``, numbered from its piece on.

    The last one's ``about`` has ``whole``.
    """
    if isinstance(rows, pa.Table):
        batches = rows.combine_chunks().to_batches()
        rows = batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)
    count = max(1, -(-rows.num_rows // BODY_ROWS_MAX))
    for piece in range(count):
        part = rows.slice(piece * BODY_ROWS_MAX, BODY_ROWS_MAX)
        about = {**packet.about, "whole": piece == count - 1}
        yield Packet(
            packet.kind,
            packet.name,
            packet.stage,
            packet.target,
            packet.turn,
            packet.sender,
            packet.piece + piece,
            about,
            dumps(part),
        )


def dumps(rows: pa.RecordBatch) -> bytes:
    """Return rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def loads(body: bytes) -> pa.RecordBatch:
    """Return the rows of a body."""
    with pa.ipc.open_stream(body) as reader:
        return reader.read_next_batch()
