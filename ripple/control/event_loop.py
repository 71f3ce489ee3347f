"""The event loop of processes that work for long: uvloop's where it is installed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

try:
    import uvloop
except ModuleNotFoundError:  # it is not made for every system, and nothing depends on it
    _new: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    _new = uvloop.new_event_loop

T = TypeVar("T")


def run(work: Coroutine[object, object, T]) -> T:
    """Run to its end what a process is for, as ``asyncio.run`` does."""
    with asyncio.Runner(loop_factory=_new) as runner:
        return runner.run(work)
