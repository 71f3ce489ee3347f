"""Portions: the shares that one task reads together, of one or of several sources.

A portion is a partition with its inputs of all sources. Where a key could have records in several
partitions, one portion has all inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.connectors.identity import identity_of
from ripple.connectors.locate import path_of
from ripple.core.errors import InputError
from ripple.engine.operators.division import Division
from ripple.model.pipeline.input_names import source_of
from ripple.model.pipeline.plan import FlatMap, Map
from ripple.model.pipeline.topology import (
    divided_why,
    several_stages_why,
    undivided_why,
    waiting_why,
)
from ripple.model.window import watermark
from ripple.spark.options import BATCH_ROWS, NOWHERE, Bound
from ripple.spark.shares import Source, source_at
from ripple.storage.log_uri import PREFIX
from ripple.task.arguments import sources_of
from ripple.task.next_source import Reading, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ripple.engine.machine import Engine
    from ripple.model.batch import Batch, Marker
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.shares import Share


@dataclass(frozen=True, slots=True)
class Portion:
    """Shares that one task reads, into one engine. number: of its partition."""

    number: int
    shares: tuple[Share, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its inputs, source by source."""
        return tuple(share.name for share in self.shares)

    @property
    def start(self) -> dict[str, int]:
        """The offset at which each input begins."""
        return {share.name: share.first for share in self.shares}

    @property
    def rows(self) -> int | None:
        """How many offsets it has, None where that is not known."""
        return rows_of(self.shares)


@dataclass(frozen=True, slots=True)
class Sources:
    """The shares of all sources of a plan, in the order of their declarations."""

    each: tuple[Source, ...]

    @property
    def shares(self) -> tuple[Share, ...]:
        """The shares of all, source by source."""
        return tuple(share for one in self.each for share in one.shares)

    @property
    def rows(self) -> int | None:
        """How many offsets they have, None where that is not known."""
        return rows_of(self.shares)

    @property
    def place(self) -> str:
        """The URIs, for people."""
        return ", ".join(one.place for one in self.each)

    def divided_anew(self, plan: Plan) -> str | None:
        """Return why records must be repartitioned, None if they need not be or cannot be."""
        if not plan.is_chain or len(self.shares) == 1:
            return None
        (only,) = self.each
        return (
            "files are not divided by key" if only.are_files else divided_why(plan, only.keyed_by)
        )

    def portions(self, plan: Plan) -> tuple[Portion, ...]:
        """Return what each task reads."""
        count = 1 if self.together_why(plan) else self.partitions
        return tuple(
            Portion(number, tuple(own for one in self.each for own in one.shares[number::count]))
            for number in range(count)
        )

    def together_why(self, plan: Plan) -> str | None:
        """Return why one task reads all inputs, None where it need not."""
        if plan.is_chain or len(self.shares) == len(self.each):
            return None
        if self.partitions == 1:
            counts = _listed((one.name, str(len(one.shares))) for one in self.each)
            return f"no number but 1 divides those of their partitions: {counts}"
        waits = waiting_why(plan)
        if waits is not None or not plan.folds:
            return waits
        for one in self.each:
            if one.are_files:
                return f"{one.place} is several files, which are not divided by key"
        if len(self.each) == 1:
            known = {self.each[0].name: self.each[0].keyed_by}
            return undivided_why(plan, known) or several_stages_why(plan)
        return self._unlike_why(plan)

    def division(self, plan: Plan, portion: Portion) -> Division | None:
        """Return the partitioning by key in a portion, None where it is unknown."""
        count = self.partitions
        key = self.each[0].keyed_by if len(self.each) == 1 else self._key(plan)
        if not key or count == 1 or self.divided_anew(plan) or self.together_why(plan):
            return None
        return Division(key, dict.fromkeys(portion.names, portion.number), count)

    @property
    def partitions(self) -> int:
        """The most partitions that divide the shares of each source evenly."""
        return math.gcd(*(len(one.shares) for one in self.each))

    def _keys(self, plan: Plan) -> dict[str, tuple[str, ...]]:
        """Return the fields that divide each source, as it says or else as the plan does."""
        pairs = zip(self.each, plan.sources, strict=True)
        return {one.name: one.keyed_by or source.key for one, source in pairs}

    def _key(self, plan: Plan) -> tuple[str, ...]:
        """Return the fields that divide all sources alike, () where none do."""
        first, *others = self._keys(plan).values()
        return first if all(key == first for key in others) else ()

    def _unlike_why(self, plan: Plan) -> str | None:
        """Return why records of one key may be in different partitions of several sources."""
        key = self._key(plan)
        if not key:
            keys = self._keys(plan).items()
            by = _listed((name, f"by {', '.join(one) or 'nothing'}") for name, one in keys)
            return f"its sources are not divided by the same fields: {by}"
        first, *others = [
            {field.name: field.type for field in source.fields if field.name in key}
            for source in plan.sources
        ]
        if any(kinds != first for kinds in others):
            return f"the types of {', '.join(key)} differ between its sources"
        for fold in plan.folds:
            names = [field.name for field in fold.key]
            if not set(key) <= set(names):
                return (
                    f"its sources are divided by {', '.join(key)}, and {fold.name} needs all of "
                    f"one {', '.join(names) or 'total'}"
                )
        steps = [*plan.steps, *(step for fold in plan.folds for step in fold.steps)]
        maps = [step.name for step in steps if isinstance(step, Map | FlatMap)]
        return f"{maps[0]} may make other keys" if maps else None


def sources_at(
    given: Any,
    plan: Plan,
    *,
    start: Bound = NOWHERE,
    stop: Bound = NOWHERE,
    header: bool = False,
) -> Sources:
    """Return the shares of all sources of a plan.

    given: the URI of the one source, or one for each by its name; see ``source_at``. Raises
    InputError and ConnectorError, also for two sources of the same records.
    """
    places = sources_of(plan, given)
    if len(plan.sources) > 1:
        for bound in (start, stop):
            if bound.offset is not None or bound.by_partition is not None:
                raise InputError(
                    f"a range of the sources {plan.source_names} begins and ends at a time: an "
                    "offset is one of a single source"
                )
    each = tuple(
        source_at(places[source.name], plan, source=source, start=start, stop=stop, header=header)
        for source in plan.sources
    )
    if len(each) > 1:
        check_apart(each)
    return Sources(each)


def entries_in_time(
    plan: Plan,
    shares: Sequence[Share],
    engine: Engine,
    batch_rows: int = BATCH_ROWS,
    *,
    until: Mapping[str, int] | None = None,
    closes: bool = False,
) -> Iterator[tuple[str, Batch | Marker]]:
    """Yield entries of inputs from an engine's cut on: next is the input with the lowest watermark.

    The caller applies each to the engine before it asks for the next. until: the cut to end at, by
    default the ends of the shares. closes: whether an input that has ended holds no window open
    any longer. Raises InputError, as ``Share.entries`` does.
    """
    is_timed = [source_of(plan, share.name).time_field is not None for share in shares]
    cut = engine.cut
    left = {
        share.name: share.entries(
            plan,
            batch_rows,
            since=cut[share.name],
            until=None if until is None else until[share.name],
        )
        for share in shares
    }
    names = [share.name for share in shares]
    while left:
        name = _next(names, is_timed, engine, left, batch_rows)
        entry = next(left[name], None)
        if entry is not None:
            yield name, entry
            continue
        del left[name]
        if closes and left:
            engine.advance(name, watermark.END, engine.cut[name])


def _next(
    names: Sequence[str],
    is_timed: Sequence[bool],
    engine: Engine,
    left: Mapping[str, object],
    batch_rows: int,
) -> str:
    """Return the input to read next, of those that are left."""
    if len(left) == 1:
        return next(iter(left))
    cut, marks_ns = engine.cut, engine.watermarks_ns
    readings = [
        Reading(rank, timed, marks_ns[name], cut[name] // batch_rows)
        for rank, (name, timed) in enumerate(zip(names, is_timed, strict=True))
    ]
    return next(names[rank] for rank in in_order(readings) if names[rank] in left)


def rows_of(shares: Iterable[Share]) -> int | None:
    """Return how many offsets shares have together, None where that is not known."""
    known = [share.rows for share in shares]
    return None if None in known else sum(rows for rows in known if rows is not None)


def check_apart(sources: Iterable[Source]) -> None:
    """Raise InputError where two sources read the same records."""
    read: dict[tuple[str, int | None], str] = {}
    for source in sources:
        keys = [(identity_of(place, "source"), number) for place, number in _places(source)]
        for key in keys:
            if key in read:
                raise InputError(
                    f"sources {read[key]!r} and {source.name!r} read the same records, of "
                    f"{source.place}: give one source two branches instead"
                )
        read |= dict.fromkeys(keys, source.name)


def _places(source: Source) -> list[tuple[str, int | None]]:
    """Return the places that tell which records a source reads: partitions, files or a topic."""
    if not source.are_files and source.shares[0].partition is None:
        return [(source.place, None)]
    return [
        (place, share.partition)
        for share in source.shares
        for place in [share.place if share.partition is None else f"{PREFIX}{share.place}"]
        if path_of(place, "source") is not None
    ]


def _listed(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {text}" for name, text in pairs)
