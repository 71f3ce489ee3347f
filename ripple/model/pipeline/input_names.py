"""The source of an input, by its name: SOURCE or SOURCE/PARTITION where there are several.

So inputs of two sources never have the same name, in cuts, checkpoints and dead letters. Names of
inputs of a pipeline with one source are free. A partition with recorded markers has one input more,
of no source: the log of its markers; and one with asks the log of its answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan

_MARKERS = "ripple.markers/"
_ANSWERS = "ripple.answers/"


def inputs_by_source(plan: Plan, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the inputs of each source, by its name, in the order given.

    Raises InputError for an input of no source, and for a source without inputs.
    """
    found: dict[str, list[str]] = {source.name: [] for source in plan.sources}
    for name in names:
        found[source_of(plan, name).name].append(name)
    for source, inputs in found.items():
        if not inputs:
            raise InputError(
                f"source {source!r} has no input: pipeline {plan.name!r} reads {plan.source_names}"
            )
    return {source: tuple(inputs) for source, inputs in found.items()}


def source_of(plan: Plan, name: str) -> SourceSpec:
    """Return the source of an input. Raises InputError."""
    if len(plan.sources) == 1:
        return plan.sources[0]
    of = name.partition("/")[0]
    for source in plan.sources:
        if source.name == of:
            return source
    raise InputError(
        f"input {name!r} is of no source: pipeline {plan.name!r} reads {plan.source_names}, and an "
        "input is called as its source, or SOURCE/PARTITION"
    )


def markers_of(partition: int) -> str:
    """Return the name of the input that is a partition's log of markers."""
    return f"{_MARKERS}{partition}"


def is_markers(name: str) -> bool:
    """Return whether an input is a log of markers."""
    return name.startswith(_MARKERS)


def answers_of(partition: int | str) -> str:
    """Return the name of a partition's log of answers, as an input."""
    return f"{_ANSWERS}{partition}"


def is_answers(name: str) -> bool:
    """Return whether an input is a log of answers."""
    return name.startswith(_ANSWERS)


def of_sources(names: Iterable[str]) -> tuple[str, ...]:
    """Return the inputs of sources: all but the logs of markers and of answers."""
    return tuple(name for name in names if not is_markers(name) and not is_answers(name))
