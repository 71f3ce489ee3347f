"""The outputs of a partition in groups that commit together, by their URIs."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ripple.connectors.commit_group import Groups, SinkGroup
from ripple.connectors.connector import Grouping
from ripple.connectors.installed import load
from ripple.connectors.locate import check_takes, look_at, open_sink, read_back_at
from ripple.connectors.registry import find

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ripple.connectors.commit_group import ReadableGroup
    from ripple.connectors.connector import Carried, Part
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import Executor


def commit_interval_ns(places: Iterable[Any]) -> int:
    """Return the default commit interval of outputs with these URIs, or objects."""
    uses = [find(place, "continued_sink").use for place in places if isinstance(place, str)]
    return min((use.commit_interval_ms for use in uses), default=1000) * 1_000_000


def group_at(
    places: Mapping[str, Any],
    plan: Plan,
    executor: Executor,
    *,
    source: str | None = None,
    epoch: int | None = None,
    part: Part | None = None,
    stage: int | str | None = 0,
    carried: Carried | None = None,
    waits: bool = True,
    divided_by: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> ReadableGroup:
    """Return the outputs of a partition by their URIs, which a restarted run continues, or objects.

    Files and logs are committed each by itself, and before outputs that are committed together.
    source: the place that is read. epoch, part: as ``open_sink`` takes them; stage, carried,
    waits, divided_by: see Grouping. Raises OutputError and ConnectorError.
    """
    sinks: dict[str, Any] = {}
    groups: dict[str, dict[str, str]] = {}
    openers = {}
    for output, place in places.items():
        found = find(place, "continued_sink") if isinstance(place, str) else None
        if found is not None and found.use.is_group:
            check_takes(found.use, place, plan.output(output))
            groups.setdefault(found.connector.scheme, {})[output] = found.path
            openers[found.connector.scheme] = found
        else:
            sinks[output] = place
    carrier = None if carried is None else find(carried.place, "continued_sink")
    if carrier is not None:
        groups.setdefault(carrier.connector.scheme, {})
        openers[carrier.connector.scheme] = carrier
    alone = SinkGroup(
        {
            name: partial(open_sink, place, plan, name, continues=True, epoch=epoch, part=part)
            for name, place in sinks.items()
        },
        executor,
        looks=[
            look
            for name, place in sinks.items()
            if isinstance(place, str)
            and (look := look_at(place, plan, name, epoch=epoch, part=part)) is not None
        ],
        reads={
            name: read
            for name, place in sinks.items()
            if isinstance(place, str)
            and (read := read_back_at(place, plan, name, part=part)) is not None
        },
        waits=waits,
    )
    if not groups:
        return alone
    together: list[ReadableGroup] = []
    for scheme, paths in groups.items():
        connector, use = openers[scheme].connector, openers[scheme].use
        carries = carrier is not None and carrier.connector.scheme == scheme
        lanes = carried if carries else None
        asked = Grouping(plan, part, stage, source, lanes, waits, divided_by)
        together.append(load(scheme, connector.package, use.opens)(paths, asked))
    return Groups([alone, *together]) if sinks or len(together) > 1 else together[0]
