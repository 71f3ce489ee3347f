"""The user's Python file, for commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ripple.cli.lib.exits import EXIT_FAILURE, say
from ripple.model.pipeline import file
from ripple.model.pipeline.file import FILE_HELP, NAME_DEFAULT
from ripple.model.pipeline.topology import need_chain, need_no_idle

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan, SourceSpec

__all__ = ["FILE_HELP", "NAME_DEFAULT", "load_chain", "load_plan", "load_sources"]

_BUT_REPLAYS = "Spark, but for a replay,"


def load_plan(place: str) -> Plan:
    """Return the plan of the pipeline at ``FILE.py[:NAME]``, as ``pipeline.file.load_plan`` does.

    If the file raises, print the traceback of its frames, and exit.
    """
    with _own_errors():
        return file.load_plan(place)


def load_sources(place: str) -> tuple[SourceSpec, ...]:
    """Return the sources of the pipeline at ``FILE.py[:NAME]``, which may end without a sink.

    If the file raises, print the traceback of its frames, and exit.
    """
    with _own_errors():
        return file.load_sources(place)


def load_chain(place: str) -> Plan:
    """Return the plan as ``load_plan``, for Spark.

    Raises PlanError unless it is a chain of one source: replays alone take others.
    """
    plan = load_plan(place)
    need_no_idle(plan, "Spark")
    plan.need_one_source(_BUT_REPLAYS)
    need_chain(plan, _BUT_REPLAYS)
    return plan


@contextmanager
def _own_errors() -> Iterator[None]:
    try:
        yield
    except file.PipelineFileError as error:
        say(str(error))
        raise SystemExit(EXIT_FAILURE) from error
