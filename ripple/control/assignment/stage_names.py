"""Names of the stages of an assignment, and which of them reads a source."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from ripple.control.assignment.version import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DIVIDING = "repartition"
"""The stage that divides the records of a chain's source anew."""

_PREFIX = f"{DIVIDING}-"


def dividing(source: str) -> str:
    """Return the name of the stage that divides the records of one of several sources anew."""
    return f"{_PREFIX}{source}"


def records_of(source: str) -> str:
    """Return the name, in a code, of the fields that divide a source's records anew."""
    return f"records {source}"


def divided_in(stage: str) -> str | None:
    """Return the source whose records a stage divides anew, None for another stage."""
    return stage.removeprefix(_PREFIX) if stage.startswith(_PREFIX) else None


def divides(stage: str) -> bool:
    """Return whether a stage divides records anew: it has no outputs, and is not in the plan."""
    return stage == DIVIDING or divided_in(stage) is not None


def reading(stages: Sequence[Stage], source: str) -> Stage:
    """Return the stage that reads a source: its repartitioning stage, or else the first."""
    own = next((one for one in stages if one.name == dividing(source)), None)
    return own or asked(stages)


def asked(stages: Sequence[Stage]) -> Stage:
    """Return the stage whose number of partitions coordinators are asked for."""
    return next((one for one in stages if divided_in(one.name) is None), stages[0])


def counted(
    stages: Iterable[tuple[str, int]], partitions: int, inputs: Mapping[str, int]
) -> tuple[Stage, ...]:
    """Return the stages of a new cluster; those without a number get so many partitions.

    A stage that divides a source has as many of them as divide those of the source.
    """
    found = []
    for name, count in stages:
        source = divided_in(name)
        own = partitions if source is None else gcd(partitions, inputs.get(source, 0))
        found.append(Stage(name, count or own))
    return tuple(found)
