"""Events as the partitions of a log that a simulated cluster reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.errors import PlanError, SchemaError
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.input_names import source_of
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.columns import records_of
from ripple.model.window.watermark import END
from ripple.testing.check import Marker, one_by_one
from ripple.testing.crash.source import CrashSource
from ripple.testing.written import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.testing.check import Happening

INPUTS = 12  # many numbers of partitions divide them
FURTHER = 8  # of each source after the first: other topics may have other numbers


def spread(
    plan: Plan, events: Iterable[Happening], inputs: Sequence[str] | None = None
) -> CrashSource:
    """Return the input of a cluster: events by their key in partitions of logs, which all end.

    inputs: the partitions, where each event comes with its own; by default there are ``INPUTS`` of
    the first source and ``FURTHER`` of others, and a marker is in all of its source. Raises
    PlanError for a computed key, whose partition is unknown here, and InputError for an event
    that names none of several sources.
    """
    listed: list[Happening] = []
    if inputs is not None:
        names = tuple(inputs)
        listed += one_by_one_with_input(plan, events, names[0])
    else:
        of_source = {
            source.name: [f"{source.name}/{at}" for at in range(FURTHER if rank else INPUTS)]
            for rank, source in enumerate(plan.sources)
        }
        names = tuple(name for own in of_source.values() for name in own)
        alone = plan.sources[0].name if len(plan.sources) == 1 else None
        for given, one in read(plan, one_by_one(events, alone)):
            source = source_of(plan, given)
            own = of_source[source.name]
            if isinstance(one, Marker):
                listed += [Marker(each, one.watermark_ns) for each in own]
            else:
                listed.append((own[_number_of(plan, source, one, len(listed), len(own))], one))
    ended = [name for name in names if source_of(plan, name).idle_ns is None]  # others fall silent
    marks = (_newest_ns(plan, listed), END) if _goes_by_time(plan) else (END,)
    ends = [Marker(each, mark_ns) for mark_ns in marks for each in ended]
    return CrashSource(plan, [*listed, *ends], names)


def _goes_by_time(plan: Plan) -> bool:
    """Return whether a result depends on how far in time the inputs of a partition have come.

    Their end is no time for keys with ttl=, and for timers.
    """
    timed = (scan.ttl_ns is not None or getattr(scan, "timers", ()) for scan in plan.scans)
    return any(timed) or any(fold.expiry is not None for fold in plan.folds)


def _newest_ns(plan: Plan, listed: Iterable[Happening]) -> int:
    """Return the greatest time of events."""
    times = {source.name: source.time_field for source in plan.sources}
    found = [0]
    for one in listed:
        if isinstance(one, tuple):
            name, event = one
            found.append(event.get(times[source_of(plan, name).name]) or 0)
    return max(found)


def one_by_one_with_input(plan: Plan, events: Iterable[Happening], source: str) -> list[Happening]:
    """Return events and markers, each with its input; ``source`` where none is named."""
    return [
        one if isinstance(one, Marker) else (name, one)
        for name, one in read(plan, one_by_one(events, source))
    ]


def _number_of(
    plan: Plan, source: SourceSpec, event: Mapping[str, Any], before: int, count: int
) -> int:
    key = source.key or stages_of(plan)[0].key
    if not key:
        return before % count
    if not set(key) <= {member.name for member in source.fields}:
        raise PlanError(
            f"cluster_test: {plan.name!r} is keyed by {', '.join(key)}, which events of "
            f"{source.name!r} do not have: declare .source(..., key=...), or give inputs= and "
            "with each event the one that it is in"
        )
    try:
        records = records_of([event], source.fields)
        return int(partition_numbers(records, key, count)[0])
    except SchemaError:
        return 0  # without a key it is a dead letter in any partition
