"""The event loop of long-running processes: uvloop's where it is installed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

try:
    import uvloop
except ModuleNotFoundError:  # not available everywhere, and nothing depends on it
    _new: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    _new = uvloop.new_event_loop

T = TypeVar("T")


def run(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end, like ``asyncio.run``."""
    with asyncio.Runner(loop_factory=_new) as runner:
        return runner.run(work)
