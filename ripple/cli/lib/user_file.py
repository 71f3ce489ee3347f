"""The user's Python file, for commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ripple.cli.lib.exits import EXIT_FAILURE, say
from ripple.model.pipeline import file

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan


def load_plan(place: str) -> Plan:
    """Return the plan of the pipeline at ``FILE.py[:NAME]``, as ``pipeline.file.load_plan`` does.

    If the file raises, print its mistake, and exit.
    """
    with _own_errors():
        return file.load_plan(place)


def load_sources(place: str) -> tuple[SourceSpec, ...]:
    """Return the sources of the pipeline at ``FILE.py[:NAME]``, which may end without a sink.

    If the file raises, print its mistake, and exit.
    """
    with _own_errors():
        return file.load_sources(place)


@contextmanager
def _own_errors() -> Iterator[None]:
    try:
        yield
    except file.PipelineFileError as error:
        say(f"{error}\n{error.marked}".rstrip())
        raise SystemExit(EXIT_FAILURE) from error
