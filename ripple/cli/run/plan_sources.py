"""How a cluster divides the records of given sources, for people.

It depends on the inputs, so it is not in the text of a plan, which workers compare.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any

from ripple.cli.lib.output_forms import many
from ripple.connectors.inputs import keyed_by, keyed_by_source
from ripple.connectors.locate import open_inputs, sources_by_name
from ripple.model.pipeline.division import divided_into, divided_why
from ripple.model.pipeline.new_division import NewDivision
from ripple.model.pipeline.repartitioned import anew_text, need_division, repartitioned_into
from ripple.model.pipeline.stages import key_of
from ripple.task.endpoints import check_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ripple.connectors.inputs import Inputs
    from ripple.model.pipeline.plan import Plan

    Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """How the partitions of a cluster read a source.

    partitions: of its input. divided_by: its dividing fields, () for none, None if unknown.
    anew_by: the fields of its repartitioning, None if it is read directly.
    In JSON ``others`` has the folds with fields of their own.
    """

    source: str
    partitions: int
    divided_by: Key | None
    anew_by: NewDivision | None

    def as_values(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "source": self.source,
            "partitions": self.partitions,
            "divided_by": None if self.divided_by is None else list(self.divided_by),
            "anew_by": None if self.anew_by is None else list(self.anew_by.by),
            "others": {} if self.anew_by is None else dict(self.anew_by.others),
        }

    def __str__(self) -> str:
        of = many(self.partitions, "partition")
        if self.divided_by is None:
            known = f"the fields that divide its {of} are unknown"
        else:
            known = f"its {of} are divided by {', '.join(self.divided_by) or 'nothing'}"
        if self.anew_by is not None:
            return f"{anew_text(self.source, self.anew_by)}: {known}"
        if self.partitions == 1:
            return f"{self.source} is read directly, from its one partition"
        return f"{self.source} is read directly: {known}"


@dataclass(frozen=True, slots=True)
class Readings:
    """How the partitions of the first stage read each source. partitions: their number."""

    partitions: int
    sources: tuple[Reading, ...]

    @property
    def divides(self) -> bool:
        """Whether records of a source are repartitioned."""
        return any(one.anew_by is not None for one in self.sources)

    def as_values(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"partitions": self.partitions, "sources": [one.as_values() for one in self.sources]}


def readings(plan: Plan, given: Sequence[str]) -> Readings:
    """Return how the partitions of a new cluster read each source.

    given: ``[SOURCE=]URI`` of each. Raises InputError and PlanError as a new cluster does.
    """
    places = sources_by_name(plan, given)
    opened = {
        one.name: open_inputs(places[one.name], plan, 1, follow=False, source=one)
        for one in plan.sources
    }
    try:
        check_keys(plan, places, opened)
        return _readings(plan, opened)
    finally:
        asyncio.run(_close(opened.values()))


def _readings(plan: Plan, opened: Mapping[str, Inputs]) -> Readings:
    counts = {name: len(each.names) for name, each in opened.items()}
    whole = gcd(*counts.values())
    anew = need_division(plan, "a cluster", keyed_by_source(opened), is_one=whole == 1)
    direct = [count for name, count in counts.items() if name not in anew]
    partitions = repartitioned_into(plan, anew) or gcd(*direct)
    first = plan.sources[0].name
    if divided_why(plan, keyed_by(opened[first])) is not None:
        anew, partitions = {first: NewDivision(key_of(plan.folds[0]))}, divided_into(plan)
    found = {name: keyed_by(each) for name, each in opened.items()}
    return Readings(
        partitions,
        tuple(
            Reading(name, counts[name], found[name] or one.key or found[name], anew.get(name))
            for one in plan.sources
            for name in (one.name,)
        ),
    )


async def _close(opened: Iterable[Inputs]) -> None:
    for each in opened:
        await each.close()
