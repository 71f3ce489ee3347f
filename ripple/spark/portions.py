"""Portions: the shares that one task reads together, of one or of several sources.

A portion is a partition with its inputs of all sources. Where a key could have records in several
partitions, one portion has all inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ripple.connectors.identity import identity_of
from ripple.connectors.locate import path_of
from ripple.core.errors import InputError
from ripple.engine.operators.division import Division
from ripple.model.pipeline.copartition import contradiction, other_keys_why
from ripple.model.pipeline.division import divided_why, undivided_why, waiting_why
from ripple.model.pipeline.topology import several_stages_why
from ripple.spark.answers import RecordedAnswers, answered
from ripple.spark.markers import marked
from ripple.spark.options import NOWHERE, Bound
from ripple.spark.run_cut import at_cut
from ripple.spark.shares import Source, check_inputs, source_at
from ripple.storage.log_uri import PREFIX
from ripple.task.arguments import sources_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    """The shares of all sources of a plan, in the order of their declarations.

    is_open: whether windows stay open at the end. Then the effects of the watermark differ: one
    process waits for all inputs, a partition for its own. are_apart: whether the markers are those
    of a cluster's partitions, which end windows each by its own inputs. answers: those that a run
    has recorded; then one task reads all inputs.
    """

    each: tuple[Source, ...]
    is_open: bool = False
    are_apart: bool = False
    answers: RecordedAnswers | None = None

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

    def with_shares(self, share_of: Callable[[Share], Share]) -> Sources:
        """Return these sources with another share in the place of each."""
        each = tuple(replace(one, shares=tuple(map(share_of, one.shares))) for one in self.each)
        return replace(self, each=each)

    def check_inputs(self, names: Iterable[str], what: str) -> None:
        """Raise InputError where a run has read inputs that these are not. what: of them."""
        check_inputs(self.shares, names, what)

    def divided_anew(self, plan: Plan) -> str | None:
        """Return why records must be repartitioned, None if they need not be or cannot be."""
        # Offsets tell the newest record of a table, and stay as they are.
        is_moved = plan.is_chain and plan.source.table is None and self.answers is None
        return self._chain_why(plan) if is_moved else None

    def portions(self, plan: Plan) -> tuple[Portion, ...]:
        """Return the portion of each task."""
        count = 1 if self.together_why(plan) else self.partitions
        return tuple(
            Portion(number, tuple(own for one in self.each for own in one.shares[number::count]))
            for number in range(count)
        )

    def together_why(self, plan: Plan) -> str | None:
        """Return why one task reads all inputs, None where it need not."""
        if len(self.shares) == len(self.each):
            return None
        if self.answers is not None:
            return "recorded answers are to the records of all inputs"
        if plan.is_chain:
            return None if plan.source.table is None else self._chain_why(plan)
        if self.partitions == 1:
            counts = _listed((one.name, str(len(one.shares))) for one in self.each)
            return f"no number but 1 divides those of their partitions: {counts}"
        known = {one.name: one.keyed_by for one in self.each}
        return (
            (self._files_why() if plan.folds else None)
            or self._contradiction(plan)
            or self._waiting_why(plan)
            or undivided_why(plan, known)
            or several_stages_why(plan)
            or other_keys_why(plan)
        )

    def _chain_why(self, plan: Plan) -> str | None:
        """Return why the inputs of a chain cannot be read apart as they are, None if they can."""
        if len(self.shares) == 1:
            return None
        (only,) = self.each
        return (
            self._files_why()
            or self._contradiction(plan)
            or divided_why(plan, only.keyed_by)
            or self._waiting_why(plan)
        )

    def _files_why(self) -> str | None:
        """Return why a source of several files cannot be read apart, None without one."""
        for one in self.each:
            if one.are_files:
                return f"{one.place} is several files, which are not divided by key"
        return None

    def _waiting_why(self, plan: Plan) -> str | None:
        """Return why effects of the watermark need all inputs, None if they do not."""
        return waiting_why(plan, is_open=self.is_open and not self.are_apart)

    def divisions(self, plan: Plan, portion: Portion) -> tuple[Division, ...]:
        """Return the partitioning by key of each source in a portion, where it is known."""
        count = self.partitions
        if count == 1 or self.divided_anew(plan) or self.together_why(plan):
            return ()
        found = []
        for one, source in zip(self.each, plan.sources, strict=True):
            # Sources meet by Kafka's hash; one alone may be divided by its writer's own.
            key = one.keyed_by or (source.key if len(self.each) > 1 else ())
            names = {share.name for share in one.shares}.intersection(portion.names)
            if key:
                found.append(Division(key, dict.fromkeys(names, portion.number), count))
        return tuple(found)

    @property
    def partitions(self) -> int:
        """The most partitions that divide the shares of each source evenly."""
        return math.gcd(*(len(one.shares) for one in self.each))

    def _contradiction(self, plan: Plan) -> str | None:
        """Return how a source is divided by other fields than the pipeline says, None if none is.

        A declared ``keyed_by`` does not help then: the writer chose the partitions.
        """
        for one, source in zip(self.each, plan.sources, strict=True):
            why = contradiction(source, one.keyed_by)
            if why is not None:
                return f"{one.place} {why}"
        return None


def sources_at(
    given: Any,
    plan: Plan,
    *,
    start: Bound = NOWHERE,
    stop: Bound = NOWHERE,
    header: bool = False,
    markers: str | None = None,
    answers: str | None = None,
    cut: str | None = None,
    files_apart: bool = False,
) -> Sources:
    """Return the shares of all sources of a plan.

    given: the URI of the one source, or one for each by its name; see ``source_at``. markers: the
    checkpoints with the markers of idle inputs. answers: the checkpoints with the answers of
    services. cut: the checkpoints with the cut of the end. files_apart: see ``source_at``. Raises
    InputError and ConnectorError, also for two sources of the same records and for ticks without
    an end, PlanError for answers to other questions, and StoreError.
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
        source_at(
            places[source.name],
            plan,
            source=source,
            start=start,
            stop=stop,
            header=header,
            files_apart=files_apart,
        )
        for source in plan.sources
    )
    if len(each) > 1:
        check_apart(each)
    return _with_recorded(Sources(each), plan, stop, markers=markers, answers=answers, cut=cut)


def _with_recorded(
    found: Sources,
    plan: Plan,
    stop: Bound,
    *,
    markers: str | None,
    answers: str | None,
    cut: str | None,
) -> Sources:
    """Return sources with what a run has recorded; the rest: see ``sources_at``."""
    if markers is not None:
        found = marked(found, markers, plan)
    if answers is not None:
        found = answered(found, answers, plan)
    if cut is not None:
        if stop != NOWHERE:
            raise InputError(f"the cut of {cut} is the end of the range: give no other (--to)")
        found = at_cut(found, cut, plan)
    for share in found.shares:
        if share.is_clock and share.end is None:
            raise InputError(
                f"source {share.name!r}: {share.place} has more ticks with each reading, so that a "
                "task that is tried again would differ: end it with --to TIME (stop=) in a replay "
                "or a validation, or a replay with --cut DIR (cut=), the folder of checkpoints of "
                "the run that has counted them"
            )
    return found


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
