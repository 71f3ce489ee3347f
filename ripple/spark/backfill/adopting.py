"""An engine over the history of one partition, and the checkpoint made of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.connectors.dead_letter import letter_of
from ripple.core.causes import Causes
from ripple.engine.machine import Engine
from ripple.engine.machine.graph_engine import GraphEngine
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.batch import Batch
from ripple.model.pipeline.input_names import source_of
from ripple.spark import packets
from ripple.spark.backfill.history import (
    HISTORY,
    IDENTITY,
    INPUT,
    LETTERS_MAX,
    PARTITION,
    SIDE,
    TIME,
    columns_of,
)
from ripple.spark.backfill.seam import BROKEN, Seam, Side
from ripple.spark.packets import Packet
from ripple.spark.settled_heap import settle_heap
from ripple.storage.checkpoint.format import encode, fields_of
from ripple.storage.checkpoint.origin import HISTORY_EPOCH
from ripple.task.drive import Drive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ripple.engine.machine.inputs import Input
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.backfill.live import Live
    from ripple.spark.backfill.shelf import Shelf
    from ripple.spark.parcel import Parcel

_BEFORE_ALL = 1 << 62


class HistoryEngine(Engine):
    """An engine for events that precede those of the live log.

    Of two events of one time, the one with the higher offset is later (DESIGN: ties). The log's
    offsets begin anywhere, so offsets of history are below all of them.
    """

    def _order(self, given: Input, offsets: Any) -> Any:
        return super()._order(given, offsets) - _BEFORE_ALL


class HistoryGraphEngine(GraphEngine):
    """The same for a plan with branches or several sources."""

    def _prepare(self, plan: Plan, inputs: Sequence[str] | None, start: Mapping[str, int]) -> None:
        super()._prepare(plan, inputs, start)
        for port in self._ports.values():
            port.precede()
            for name in port.inputs:
                self._inputs[name].offset_max = port.offset_max


@dataclass(frozen=True, slots=True)
class Adopting:
    """Makes the checkpoints of partitions from sorted records; see ``history``.

    keeps: whether to store them, if there are no objections.
    """

    parcel: Parcel
    live: Live
    shelf: Shelf
    is_identity: bool
    keeps: bool = True

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a packet for each partition."""
        for partition, pieces in groupby(_pieces(batches), key=lambda piece: piece[0]):
            part = self.part(partition, (rows for _, rows in pieces))
            yield Packet(packets.REPORT, sender=partition, about=part).as_batch()
        settle_heap()

    def part(self, partition: int, pieces: Iterable[pa.RecordBatch]) -> dict[str, Any]:
        """Return the report of a partition, and store its checkpoint. Raises as an engine does."""
        return _Adoption(self, partition).of(pieces)


class _Adoption:
    def __init__(self, how: Adopting, partition: int) -> None:
        self._how = how
        self._number = partition
        self._plan = how.parcel.plan()
        live = how.live
        self._inputs = live.inputs_of(partition)
        names = [one.name for one in self._inputs]
        kind = HistoryEngine if self._plan.is_chain else HistoryGraphEngine
        self._engine: Engine = kind(self._plan, partition, names)
        self._drive = Drive(self._engine)
        sides = [
            Side(
                one.name,
                None if one.first_ns is None else one.first_ns + late_ns,
                is_written=one.end > 0 and source.table is None,
            )
            for one in self._inputs
            for source in [source_of(self._plan, one.name)]
            for late_ns in [source.out_of_order_ns]
        ]
        self._seam = Seam(sides, is_identity=how.is_identity)
        self._causes = Causes()
        self._letters: list[dict[str, Any]] = []
        self._schemas = {
            source.name: pa.schema(arrow_fields(source.fields)) for source in self._plan.sources
        }

    def of(self, pieces: Iterable[pa.RecordBatch]) -> dict[str, Any]:
        for rows in pieces:
            self._take(rows)
        sides = [side.as_dict() for side in self._seam.end()]
        engine, how = self._engine, self._how
        self._drive.stabilize()
        part = {
            "partition": self._number,
            "inputs": [
                {**side, "offset": one.begins}
                for side, one in zip(sides, self._inputs, strict=True)
            ],
            "counters": engine.counters.as_dict(),
            "watermarks_ns": dict(engine.snapshot().watermarks_ns),
            "digests": dict(engine.digests),
            "refused": dict(self._causes),
            "letters": self._letters,
        }
        if any(side["verdict"] == BROKEN for side in sides):
            return part
        checkpoint, files = self._checkpoint()
        part["checkpoint"] = fields_of(checkpoint)
        if how.keeps:
            asyncio.run(how.shelf.put_files(files))
            asyncio.run(how.shelf.put(name_of(self._number), part))
        return part

    def _take(self, rows: pa.RecordBatch) -> None:
        inputs, times_ns, sides, hashes = (
            np.asarray(rows.column(name), np.int64) for name in (INPUT, TIME, SIDE, IDENTITY)
        )
        at = inputs // self._how.live.partitions
        self._seam.take(at, times_ns, hashes, sides)
        taken = rows.filter(pa.array(sides == HISTORY)) if sides.any() else rows
        at = at[sides == HISTORY]
        for number in np.unique(at).tolist():
            name = self._inputs[number].name
            own = taken if len(self._inputs) == 1 else taken.filter(pa.array(at == number))
            own = self._records(own, source_of(self._plan, name).name)
            next_offset = self._engine.cut[name] + own.num_rows
            for bad in self._drive.apply(name, Batch(own, next_offset)):
                self._causes.add(bad.cause)
                if len(self._letters) < LETTERS_MAX:
                    self._letters.append(letter_of(name, bad))
        self._drive.stabilize()

    def _records(self, rows: pa.RecordBatch, source: str) -> pa.RecordBatch:
        schema = self._schemas[source]
        names = [name for name, (of, _) in columns_of(self._plan).items() if of == source]
        columns = [
            rows.column(name).cast(one.type) for name, one in zip(names, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _checkpoint(self) -> tuple[Any, dict[str, bytearray]]:
        how, live = self._how, self._how.live
        snapshot = self._engine.snapshot()
        notes = live.notes_of(self._number, how.shelf.backfill)
        cut = {one.name: one.begins for one in self._inputs}
        snapshot = replace(snapshot, cut=cut, notes={**snapshot.notes, **notes})
        name = f"{HISTORY_EPOCH:010d}-{how.shelf.backfill}"
        prefix = f"{how.shelf.folder}{self._number:05d}/"
        return encode(snapshot, name, HISTORY_EPOCH, live.until_ns, prefix)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield slices of one partition each."""
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = np.asarray(batch.column(PARTITION))
        starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
        for start, end in zip(starts, np.r_[starts[1:], batch.num_rows], strict=True):
            yield int(numbers[start]), batch.slice(int(start), int(end - start))


def name_of(partition: int) -> str:
    """Return the object name of a partition's report."""
    return f"partition-{partition:05d}.json"
