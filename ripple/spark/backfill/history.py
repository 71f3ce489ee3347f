"""Reading for a backfill: records of history and of the live log, with their partitions.

Both are sorted together by (partition, event time, input, file, row), by Spark, which spills to
disk. A record is a row of its fields after those of OWN; with several sources, each of them has
columns of its own, which are null in rows of the others.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.dead_letter import letter_of
from ripple.core.causes import Causes
from ripple.core.errors import InputError
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.batch import Batch
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.input_names import source_of
from ripple.model.row_identity import identities_of
from ripple.model.window import watermark
from ripple.spark import packets
from ripple.spark.backfill.shelf import Shelf
from ripple.spark.options import BATCH_ROWS
from ripple.spark.packets import Packet, packets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.backfill.live import Live
    from ripple.spark.parcel import Parcel
    from ripple.spark.portions import Sources
    from ripple.spark.progress import Reporter
    from ripple.spark.shares import Share

HISTORY, BEFORE, BEHIND = 0, 1, 2
"""Sides: history, and the live log before and after the live cut."""

PARTITION, INPUT, TIME, SIDE, FILE, ROW, IDENTITY = (
    f"ripple_{name}"
    for name in ("partition", "input", "time_ns", "side", "file", "row", "identity")
)
OWN = pa.schema(
    [
        pa.field(PARTITION, pa.int32()),
        pa.field(INPUT, pa.int32()),
        pa.field(TIME, pa.int64()),
        pa.field(SIDE, pa.int32()),
        pa.field(FILE, pa.int32()),
        pa.field(ROW, pa.int64()),
        pa.field(IDENTITY, pa.int64()),
    ]
)
ORDER = (PARTITION, TIME, INPUT, FILE, ROW)
LETTERS_MAX = 1 << 14


@dataclass(frozen=True, slots=True)
class Reading:
    """A share of one side, up to the end of history.

    file: its number among all of both sides. identity: the fields that identify a record. known:
    partitions that are already done. shelf: for notes on files of history.
    """

    parcel: Parcel
    share: Share
    file: int
    side: int
    live: Live
    identity: tuple[str, ...]
    known: frozenset[int]
    shelf: Shelf | None = None
    reporter: Reporter | None = None

    def run(self) -> Iterator[Packet]:
        """Yield records with their partitions."""
        plan = self.parcel.plan()
        seen = Seen(self.share.place)
        for entry in self.share.entries(plan, BATCH_ROWS):
            if isinstance(entry, Batch):
                rows = self._placed(plan, entry, seen)
                if rows.num_rows:
                    yield from packets_of(rows, Packet(packets.ROWS, sender=self.file))
            self._report_progress(entry.next_offset)
        if self.shelf is not None and self.side == HISTORY:
            asyncio.run(self.shelf.put(name_of(self.file), seen.as_dict()))
        self._report_progress(self.share.end, last=True)

    def _placed(self, plan: Plan, batch: Batch, seen: Seen) -> pa.RecordBatch:
        """Return the rows of a batch that are part of history, or must be compared with it."""
        records, live = batch.records, self.live
        source = source_of(plan, self.share.name)
        times_ns = times_of(source, records)
        within = times_ns < live.until_ns
        if self.side == BEFORE and not within.all():
            at = int(batch.offsets()[np.argmin(within)])
            raise InputError(
                f"{self.share.place}: the record at offset {at} is of the end of history or later, "
                f"and before offset {self.share.end}, from where on the broker has timestamps of "
                "that time: a record must not be dated before its event"
            )
        seen.take(batch, times_ns[~within])
        rows = placed(
            plan, batch, source, live, side=self.side, file=self.file, identity=self.identity
        )
        return rows.filter(chosen_in(rows, live, self.known))

    def _report_progress(self, done: int | None, *, last: bool = False) -> None:
        if self.reporter is not None and done is not None:
            total = self.share.rows
            fraction = (done - self.share.first) / total if total else float(last)
            self.reporter.send(done - self.share.first, fraction, last=last)


def placed(
    plan: Plan,
    batch: Batch,
    source: SourceSpec,
    live: Live,
    *,
    side: int,
    file: int,
    identity: Sequence[str],
) -> pa.RecordBatch:
    """Return the records of a batch as rows, with their partitions; see ``schema_of``."""
    records, count = batch.records, batch.records.num_rows
    inputs = inputs_of(records, live, source.name)
    own = [
        inputs % live.partitions,
        inputs,
        times_of(source, records),
        np.full(count, side, np.int32),
        np.full(count, file, np.int32),
        batch.offsets(),
        identities_of(records, identity),
    ]
    columns = [pa.array(values, field.type) for values, field in zip(own, OWN, strict=True)]
    schema = schema_of(plan)
    for name, (of, field) in columns_of(plan).items():
        kind = schema.field(name).type
        is_own = of == source.name
        columns.append(records.column(field).cast(kind) if is_own else pa.nulls(count, kind))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def chosen_in(rows: pa.RecordBatch, live: Live, known: frozenset[int]) -> pa.Array:
    """Return a mask of rows before the end of history, of unknown partitions."""
    within = np.asarray(rows.column(TIME)) < live.until_ns
    return pa.array(within & ~np.isin(np.asarray(rows.column(PARTITION)), sorted(known)))


def readings_of(
    parcel: Parcel,
    history: Sources,
    live: Live,
    identity: Sequence[str],
    known: frozenset[int],
    *,
    first_file: int = 0,
    shelf: Shelf | None = None,
    reporter: Reporter | None = None,
) -> list[Reading]:
    """Return the jobs that read both sides, the files of history first; see ``Reading``.

    identity: fields, () for all of them. first_file: its number.
    """
    plan = parcel.plan()

    def names(share: Share) -> tuple[str, ...]:
        return tuple(identity or (one.name for one in source_of(plan, share.name).fields))

    found = [
        Reading(
            parcel,
            share,
            file,
            HISTORY,
            live,
            names(share),
            known,
            shelf,
            None if reporter is None else reporter.of(file),
        )
        for file, share in enumerate(history.shares, first_file)
    ]
    for rank, one in enumerate(live.inputs):
        if source_of(plan, one.name).table is not None:
            continue
        for side, first, end in (
            (BEFORE, one.first, one.begins),
            (BEHIND, one.begins, one.end),  # with late records
        ):
            if first < end:
                share = one.share(rank, first, end)
                found.append(
                    Reading(parcel, share, first + len(found), side, live, names(share), known)
                )
    return found


class Seen:
    """Counts of a file of history: rows, rows at or after history's end, and rejected ones."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._rows = self._beyond = 0
        self._beyond_ns: int | None = None
        self._causes = Causes()
        self._letters: list[dict[str, Any]] = []

    def take(self, batch: Batch, beyond_ns: npt.NDArray[np.int64]) -> None:
        """Count a batch. beyond_ns: the times of its records at or after history's end."""
        self._rows += batch.records.num_rows - len(beyond_ns)
        self._beyond += len(beyond_ns)
        if len(beyond_ns):
            first_ns = int(beyond_ns.min())
            known_ns = self._beyond_ns
            self._beyond_ns = first_ns if known_ns is None else min(first_ns, known_ns)
        for bad in batch.rejected:
            self._causes.add(bad.cause)
            if len(self._letters) < LETTERS_MAX:
                self._letters.append(letter_of(self._place, bad))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON fields. letters: the first LETTERS_MAX."""
        return {
            "place": self._place,
            "rows": self._rows,
            "beyond": self._beyond,
            "beyond_ns": self._beyond_ns,
            "refused": dict(self._causes),
            "letters": self._letters,
        }


def name_of(file: int) -> str:
    """Return the object name of a file's counts."""
    return f"file-{file:05d}.json"


def columns_of(plan: Plan) -> dict[str, tuple[str, str]]:
    """Return the source and the field of each column of a row after those of OWN."""
    if len(plan.sources) == 1:
        return {field.name: (plan.source.name, field.name) for field in plan.source.fields}
    return {
        f"ripple_{rank}_{field.name}": (source.name, field.name)
        for rank, source in enumerate(plan.sources)
        for field in source.fields
    }


def schema_of(plan: Plan) -> pa.Schema:
    """Return the columns of a row."""
    if len(plan.sources) == 1:
        return pa.schema([*OWN, *arrow_fields(plan.source.fields)])
    kinds = {
        (source.name, field.name): field.type
        for source in plan.sources
        for field in arrow_fields(source.fields)
    }
    return pa.schema([*OWN, *((name, kinds[of]) for name, of in columns_of(plan).items())])


def times_of(source: SourceSpec, records: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return the event time of each record."""
    assert source.time_field is not None
    column = records.column(source.time_field)
    # A record without a time is rejected by the engine first.
    return np.asarray(pc.fill_null(column, watermark.NONE), np.int64)


def inputs_of(records: pa.RecordBatch, live: Live, name: str) -> npt.NDArray[np.int32]:
    """Return the number of the live input that each record of a source belongs to."""
    source, first = live.source_of(name)
    count = len(source.inputs)
    if count == 1:
        return np.full(records.num_rows, first, np.int32)
    assert source.key is not None, "that of a table alone may be unknown"
    return partition_numbers(records, source.key, count) + np.int32(first)
