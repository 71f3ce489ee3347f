"""The packets of a task's engine for the next stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.engine.machine.router import Router
from ripple.model.pipeline.division import divided_into
from ripple.model.pipeline.topology import stages_of
from ripple.spark import packets
from ripple.spark.options import BATCH_ROWS
from ripple.spark.packets import Packet, packets_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.engine.machine.partition import Partition
    from ripple.model.pipeline.plan import Plan

# Batches after which a sender yields its changes for the next stage, where rows become final.
BATCHES_BETWEEN_SENDS = 16


class PacketOutput:
    """Yields an engine's changes for the next stage; nothing without one."""

    def __init__(self, engine: Partition, stage: int, number: int, *, often: bool) -> None:
        """Send to ``stage``. often: whether the buffered changes grow with the input."""
        self._engine = engine
        self._stage = stage
        self._number = number
        self._often = often
        self._batches = self._turn = 0
        engine.send_as_log()

    def batch(self) -> Iterator[Packet]:
        """Yield the buffered changes if it is time to."""
        self._batches += 1
        if self._often and self._batches % BATCHES_BETWEEN_SENDS == 0:
            yield from self.all()

    def all(self) -> Iterator[Packet]:
        """Yield the buffered changes."""
        for target, changes in enumerate(self._engine.outgoing()):
            since = None if changes.since is None else dict(changes.since)
            about = {
                "since": since,
                "cut": dict(changes.cut),
                "watermark_ns": changes.watermark_ns,
            }
            packet = Packet(
                packets.EDGE, "", self._stage, target, self._turn, self._number, about=about
            )
            yield from packets_of(changes.rows, packet)
        self._turn += 1


class DividedOutput:
    """Yields a router's records for the partitions of the first stage."""

    def __init__(self, engine: Router, number: int) -> None:
        self._engine = engine
        self._number = number
        self._given = 0

    def batch(self) -> Iterator[Packet]:
        """Yield the records of a batch, for each partition that has some."""
        yield from self._take(whole=False)

    def all(self) -> Iterator[Packet]:
        """Yield the end of the input for all partitions."""
        yield from self._take(whole=True)

    def _take(self, *, whole: bool) -> Iterator[Packet]:
        ((name, end),) = self._engine.cut.items()
        targets = range(divided_into(self._engine.plan))  # it has one input
        for target, changes in self._engine.outgoing_to(targets).items():
            if not changes.rows.num_rows and not whole:
                continue
            about = {"cut": end, "watermark_ns": changes.watermark_ns}
            # Inputs are merged; the packets of one are ordered by their pieces.
            packet = Packet(
                packets.DIVIDED,
                name,
                0,
                target,
                end // BATCH_ROWS,
                self._number,
                self._given,
                about,
            )
            yield from packets_of(changes.rows, packet)
        self._given += 1 + BATCH_ROWS // packets.BODY_ROWS_MAX


class _NoOutput:
    def batch(self) -> Iterator[Packet]:
        return iter(())

    all = batch


def packet_output_of(
    plan: Plan, engine: Partition, number: int
) -> PacketOutput | DividedOutput | _NoOutput:
    """Return the sender of an engine, by its next stage."""
    if isinstance(engine, Router):
        return DividedOutput(engine, number)
    stage = engine.stage
    if stage is None or stage + 1 == len(stages_of(plan)):
        return _NoOutput()
    often = plan.frees(plan.folds[0])
    return PacketOutput(engine, stage + 1, number, often=often)
