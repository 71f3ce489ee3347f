"""The reader of the present call, and the outputs that it may read.

A context variable: outputs are read far below the handlers of calls, by two protocols and by SQL.
A task that a call starts has its reader. A handler that names no reader reads nothing.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from ripple.client.flight.errors import FlightError, Why
from ripple.core.access import NOBODY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.core.access import Known

_READER: ContextVar[Known] = ContextVar("reader", default=NOBODY)


def read_as(known: Known) -> None:
    """Let the present call read as this caller."""
    _READER.set(known)


def readable(outputs: Iterable[str]) -> list[str]:
    """Return those of the outputs that the reader may read."""
    known = _READER.get()
    return [output for output in outputs if known.reads(output)]


def check_reads(output: str) -> None:
    """Raise FlightError unless the reader may read an output, whether there is one or not."""
    known = _READER.get()
    if not known.reads(output):
        raise FlightError(
            Why.FORBIDDEN,
            f"{known.name} is {known.role.value}, and may not read the output {output!r}: "
            f"[guest.outputs] in the file of roles names {', '.join(sorted(known.outputs))}",
        )
