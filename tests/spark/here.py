"""A replay without Spark: the jobs one after the other, and what Spark would do between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from ripple.model.pipeline.plan import Plan
from ripple.spark import packets
from ripple.spark.fold import laid_out
from ripple.spark.gather import Gather
from ripple.spark.packets import Packet, packets_in
from ripple.spark.parcel import Parcel
from ripple.spark.portions import Sources
from ripple.spark.report import Report
from ripple.spark.task_results import WantedResults


def replayed(
    parcel: Parcel, plan: Plan, sources: Sources, *, closes: bool = True
) -> tuple[Report, dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """Return the report, the rows of each output, sorted, and the letters."""
    wanted = WantedResults(tuple(output.name for output in plan.outputs), closes=closes)
    jobs, gathers = laid_out(parcel, plan, sources, wanted)
    found = _passed(packet for job in jobs for packet in job.run())
    for gather in gathers:
        found = _passed(_gathered(gather, plan, found))
    rows: dict[str, list[dict[str, Any]]] = {output.name: [] for output in plan.outputs}
    letters = []
    for packet in found:
        if packet.kind == packets.ROWS:
            rows[packet.name] += packet.rows().to_pylist()
        elif packet.kind == packets.LETTERS:
            letters += packet.rows().to_pylist()
    reports = [packet.about for packet in found if packet.kind == packets.REPORT]
    for listed in rows.values():
        listed.sort(key=repr)
    return Report.of(plan, reports), rows, letters


def _passed(given: Iterable[Packet]) -> list[Packet]:
    """Return packets as they come out of Spark."""
    batches = [packet.as_batch() for packet in given]
    return list(packets_in(pa.Table.from_batches(batches, packets.SCHEMA).to_batches()))


def _gathered(gather: Gather, plan: Plan, given: list[Packet]) -> Iterable[Packet]:
    parts: defaultdict[int, list[Packet]] = defaultdict(list)
    for packet in given:
        is_ours = packet.kind == gather.takes
        parts[(packet.target if is_ours else packet.sender) % 3].append(packet)
    for part in parts.values():
        part.sort(key=lambda one: (one.kind, one.target, one.turn, one.sender, one.piece))
        yield from gather.run(part)
