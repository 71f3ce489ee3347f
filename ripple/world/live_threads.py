"""Threads for work that would block the event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# Most of them wait for a disk, and syncs that are under way together cost it little more than one.
THREADS_MAX = 8


class Threads:
    """Threads of one owner, made when they are first needed.

    Those of the event loop's executor may all be blocked by functions of users.
    """

    def __init__(self, name: str, threads_max: int = THREADS_MAX) -> None:
        self._threads = ThreadPoolExecutor(threads_max, thread_name_prefix=name)

    def begin(self, work: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Begin work in a thread, where it ends also if nobody waits for it any more."""
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *args)
