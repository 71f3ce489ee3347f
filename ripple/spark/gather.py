"""Partitions of a later stage, folded from the packets of earlier tasks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.engine.machine.waiting_rows import OFFSET, WATERMARK
from ripple.model.batch import Batch
from ripple.model.pipeline.division import divided_into
from ripple.model.pipeline.topology import stages_of
from ripple.spark import packets
from ripple.spark.packet_output import packet_output_of
from ripple.spark.packets import packets_in
from ripple.spark.settled_heap import settle_heap
from ripple.spark.task_results import Results
from ripple.task.drive import Drive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ripple.model.pipeline.plan import Plan
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.task_results import WantedResults


@dataclass(frozen=True, slots=True)
class Gather:
    """Partitions of a stage, each from its packets; packets of other stages pass through.

    stage: 0 for repartitioned records. senders: the names of the inputs, or the number of
    partitions of the stage before.
    """

    parcel: Parcel
    stage: int
    senders: tuple[str, ...]
    wanted: WantedResults

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take packets in the order of kind, target, turn, sender and piece."""
        for packet in self.run(packets_in(batches)):
            yield packet.as_batch()
        settle_heap()

    def targets(self, plan: Plan) -> int:
        """Return the stage's number of partitions."""
        if self.stage == 0:
            return divided_into(plan)
        count = stages_of(plan)[self.stage].partitions
        assert count is not None
        return count

    @property
    def takes(self) -> str:
        """The kind of its packets."""
        return packets.EDGE if self.stage else packets.DIVIDED

    def run(self, given: Iterable[Packet]) -> Iterator[Packet]:
        """Yield the packets of its partitions."""
        for target, found in groupby(given, key=self._target):
            if target is None:
                yield from found
            elif self.stage:
                yield from self._follow(target, found)
            else:
                yield from self._fold(target, found)

    def _target(self, packet: Packet) -> int | None:
        is_ours = (packet.kind, packet.stage) == (self.takes, self.stage)
        return packet.target if is_ours else None

    def _fold(self, target: int, given: Iterable[Packet]) -> Iterator[Packet]:
        plan = self.parcel.plan()
        staged = len(stages_of(plan)) > 1
        engine = Engine(plan, target, self.senders, staged=staged, finals=True)
        drive, giving = Drive(engine), Results(plan, engine, self.wanted, target)
        sending = packet_output_of(plan, engine, target)
        for packet in given:
            giving.refuse(packet.name, drive.apply(packet.name, divided_batch(packet, plan)))
            yield from giving.changed(drive.stabilize())
            yield from sending.batch()
        if self.wanted.closes:
            yield from giving.changed(drive.close())
        yield from sending.all()
        yield from giving.end()

    def _follow(self, target: int, given: Iterable[Packet]) -> Iterator[Packet]:
        plan = self.parcel.plan()
        follower = Follower(plan, self.stage, self.senders, target, finals=True)
        giving = Results(plan, follower, self.wanted, target)
        sending = packet_output_of(plan, follower, target)
        for _, turn in groupby(given, key=lambda packet: packet.turn):
            for sender, changes in _changes(turn):
                follower.follow(str(sender), 0, changes)
            yield from giving.changed(follower.stabilize())
            yield from sending.batch()
        yield from sending.all()
        yield from giving.end()


def divided_batch(packet: Packet, plan: Plan) -> Batch:
    """Return repartitioned records as a batch, at their own offsets."""
    rows = packet.rows()
    offsets = rows.column(OFFSET).to_numpy()
    records = rows.select([one.name for one in plan.source.fields])
    if packet.about["whole"]:
        end, watermark_ns = packet.about["cut"], packet.about["watermark_ns"]
    else:
        end, watermark_ns = int(offsets[-1]) + 1, rows.column(WATERMARK)[-1].as_py()
    return Batch(records, end, (), offsets, watermark_ns)


def _changes(given: Iterable[Packet]) -> Iterator[tuple[int, EdgeChanges]]:
    for sender, pieces in groupby(given, key=lambda packet: packet.sender):
        found = list(pieces)
        rows = found[0].rows() if len(found) == 1 else pa.concat_batches([p.rows() for p in found])
        about = found[0].about
        yield sender, EdgeChanges(about["since"], about["cut"], about["watermark_ns"], rows)
