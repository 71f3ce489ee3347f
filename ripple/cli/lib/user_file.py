"""The user's Python file, for commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.lib.exits import EXIT_FAILURE, say
from ripple.model.pipeline import file
from ripple.model.pipeline.file import FILE_HELP, NAME_DEFAULT
from ripple.model.pipeline.topology import need_chain

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan

__all__ = ["FILE_HELP", "NAME_DEFAULT", "load_chain", "load_plan"]


def load_plan(place: str) -> Plan:
    """Return the plan of the pipeline at ``FILE.py[:NAME]``, as ``pipeline.file.load_plan`` does.

    If the file raises, print the traceback of its own frames, and exit.
    """
    try:
        return file.load_plan(place)
    except file.PipelineFileError as error:
        say(str(error))
        raise SystemExit(EXIT_FAILURE) from error


def load_chain(place: str, where: str) -> Plan:
    """Return the plan as ``load_plan``; raises PlanError for one that ``where`` cannot compute."""
    plan = load_plan(place)
    need_chain(plan, where)
    return plan
