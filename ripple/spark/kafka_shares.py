"""Partitions of a topic of Kafka as shares, read by tasks with our own reader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.connectors.inputs import TimedInputs, keyed_by
from ripple.connectors.locate import open_inputs
from ripple.core.errors import InputError
from ripple.spark.options import BATCH_ROWS

if TYPE_CHECKING:
    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.options import Bound

PREFIX = "kafka:"


def one_of(place: str, partition: int) -> str:
    """Return the URI of one partition of a topic."""
    return f"{place}{'&' if '?' in place else '?'}partition={partition}"


def ranges_at(
    place: str, plan: Plan, source: SourceSpec, start: Bound, stop: Bound
) -> tuple[list[tuple[str, str, int, int]], tuple[str, ...] | None]:
    """Return name, URI, first offset and end of each partition, and the partitioning key.

    The end is the present one by default. A time is that of the records in the topic, in
    milliseconds, set by producers or brokers. Raises InputError if the range is missing or was
    removed.
    """
    inputs = open_inputs(place, plan, BATCH_ROWS, follow=False, source=source)
    names = inputs.names
    firsts, ends, begins, stops = asyncio.run(_bounds(inputs, start, stop))
    found = []
    for number, name in enumerate(names):
        one = place if len(names) == 1 else one_of(place, number)
        begin = start.at(number) or begins.get(name, 0)
        until = stop.at(number)
        until = stops.get(name, ends[name]) if until is None else until
        if begin < firsts[name]:
            raise InputError(
                f"{one} begins at offset {firsts[name]}: earlier records were removed, and "
                f"{begin} was requested; give a start"
            )
        for asked in (begin, until):
            if asked > ends[name]:
                raise InputError(f"{one} ends at offset {ends[name]}, and {asked} was requested")
        found.append((name, one, begin, max(begin, until)))
    return found, keyed_by(inputs)


async def _bounds(inputs: Inputs, start: Bound, stop: Bound) -> tuple[Cut, Cut, Cut, Cut]:
    """Return first offsets and ends, and the bounds of the range."""
    try:
        firsts, ends = await inputs.bounds()
        begins, stops = [await _at_time(inputs, bound, ends) for bound in (start, stop)]
        return firsts, ends, begins, stops
    finally:
        await inputs.close()


async def _at_time(inputs: Inputs, bound: Bound, ends: Cut) -> Cut:
    if bound.time_ns is None:
        return {}
    time_ms = max(-(-bound.time_ns // 1_000_000), 0)
    assert isinstance(inputs, TimedInputs), "of a topic of Kafka"
    found = await inputs.since(time_ms)
    return {name: min(at, ends[name]) for name, at in found.items()}
