"""An output's changes as records of a topic, and the rows of such records.

A record's key is that of its row: the fold's key, and the start of the window if there is one,
encoded by ``ripple.model.keys.partitioner.key_bytes``, so that compaction retains the newest of
each row. A Remove is a tombstone. The partition is Kafka's own choice for that key. An event has
the sink's key, if there is one; without keys all events of a writer are in one partition, in order.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.connectors.kafka.row_values import row_values
from ripple.core.row_ops import OP, OP_NAMES, OP_REMOVE, OP_SET
from ripple.model.keys.partitioner import in_order, key_bytes, numbers_of
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.logical.columns import stored_columns
from ripple.model.schema.logical.fields import stored_fields
from ripple.model.schema.types import Bool, Float, Schema, String
from ripple.world.broker import Records

if TYPE_CHECKING:
    from ripple.connectors.kafka.row_values import RowValues
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan


class Rows:
    """Encodes the changes of one output as records.

    name: of the topic, for errors. values: of records; JSON without. has_keys: whether records have
    one.
    """

    def __init__(
        self, plan: Plan, output: Output, name: str, values: RowValues | None = None
    ) -> None:
        self._fields = output.key if output.is_stream else plan.key_of(output)
        self.has_keys = bool(output.key) or not output.is_stream
        self.key = tuple(member.name for member in self._fields)
        self._types = (
            to_arrow(Schema("keys", stored_fields(self._fields))).types if self.key else []
        )
        self._values = values or row_values("json", output, name)

    def of(self, changes: pa.RecordBatch, timestamp_ms: int) -> Records:
        """Return one record for each change. Raises OutputError for a text that is not UTF-8."""
        rows = changes.num_rows
        times = np.full(rows, timestamp_ms, np.int64)
        return Records(self._keys(changes), self._values.values(changes), times)

    def _keys(self, changes: pa.RecordBatch) -> pa.Array:
        if not self.has_keys:
            return pa.nulls(changes.num_rows, pa.binary())
        if not self.key:  # one total
            return pa.array([b""] * changes.num_rows, pa.binary())
        return key_bytes(stored_columns(changes, self._fields), self.key)

    def back(self, records: Records) -> pa.RecordBatch:
        """Return the keys of such records with ``op`` as text: set, or removed."""
        is_set = records.values.is_valid().to_numpy(zero_copy_only=False)
        names = np.where(is_set, OP_NAMES[OP_SET], OP_NAMES[OP_REMOVE])
        columns: dict[str, pa.Array] = {OP: pa.array(names, pa.string())}
        parts = [self._parts(key) for key in records.keys.to_pylist()]
        for at, (member, wanted) in enumerate(zip(self._fields, self._types, strict=True)):
            read = _READS.get(type(member.type), _integer)
            columns[member.name] = pa.array([read(part[at]) for part in parts], wanted)
        return pa.record_batch(columns)

    def _parts(self, key: bytes) -> list[bytes]:
        if len(self.key) <= 1:
            return [key]
        parts, at = [], 0
        while at < len(key):
            (length,) = struct.unpack_from(">i", key, at)
            parts.append(key[at + 4 : at + 4 + length])
            at += 4 + length
        return parts


def divided(records: Records, partitions: int, writer: int = 0) -> list[tuple[int, Records]]:
    """Return (partition, its records in their order), ascending, without empty ones.

    Either all have keys or none has. writer: the number of the writer of records without keys.
    """
    if not len(records):
        return []
    if partitions == 1 or records.keys.null_count:
        return [(writer % partitions, records)]
    order, parts = in_order(numbers_of(records.keys, partitions))
    keys, values = (column.take(pa.array(order)) for column in (records.keys, records.values))
    times, headers = records.timestamps_ms[order], records.headers
    if headers is not None:
        headers = tuple(headers[row] for row in order)
    return [
        (
            number,
            Records(
                keys.slice(at, n),
                values.slice(at, n),
                times[at : at + n],
                None if headers is None else headers[at : at + n],
            ),
        )
        for number, at, n in parts
    ]


def joined(parts: list[Records]) -> Records:
    """Return records concatenated."""
    if len(parts) == 1:
        return parts[0]
    headers = None
    if any(part.headers is not None for part in parts):
        headers = tuple(one for part in parts for one in part.headers or ((),) * len(part))
    return Records(
        pa.concat_arrays([part.keys for part in parts]),
        pa.concat_arrays([part.values for part in parts]),
        np.concatenate([part.timestamps_ms for part in parts]),
        headers,
    )


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


_READS: dict[type, Any] = {
    String: lambda data: data.decode(),
    Float: lambda data: struct.unpack(">d", data)[0],
    Bool: lambda data: data != b"\0",
}
