"""Bounded retries of requests, in the thread that reads or writes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from ripple.core.errors import InputAwayError, OutputAwayError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

CONNECT_S, READ_S = 5.0, 20.0
PAUSES_S = (0.1, 0.5, 2.0)


def attempted(request: Callable[[], T]) -> T:
    """Return the result of a request, repeated after pauses while its server is away.

    Raises its other errors, after the last pause also its InputAwayError or OutputAwayError.
    """
    for pause_s in PAUSES_S:
        try:
            return request()
        except (InputAwayError, OutputAwayError):
            time.sleep(pause_s)
    return request()
