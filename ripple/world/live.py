"""The live world: this machine's clocks, chance, a folder as disk, TCP."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from ripple.world.live_disk import LiveDisk
from ripple.world.live_network import LiveNetwork
from ripple.world.live_threads import THREADS_MAX, Threads
from ripple.world.ports import World
from ripple.world.together import to_its_end

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from ripple.world.control import Control
    from ripple.world.ports import ObjectStore

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class LiveClock:
    """The operating system's clocks."""

    def now_ns(self) -> int:
        return time.time_ns()

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class LiveRandom:
    """The operating system's chance, fit for names that must not be guessed."""

    def below(self, n: int) -> int:
        return secrets.randbelow(n)

    def bytes(self, n: int) -> bytes:
        return secrets.token_bytes(n)


class LiveExecutor:
    """Threads, at most ``threads_max`` of them, made when they are first needed."""

    def __init__(self, threads_max: int = THREADS_MAX) -> None:
        self._threads = Threads("ripple", threads_max)

    async def run(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        return await to_its_end(self._threads.begin(work, *args))


def live_world(
    root: str | os.PathLike[str],
    *,
    store: ObjectStore | None = None,
    control: Control | None = None,
) -> World:
    """Return the real world with the folder ``root``, made if absent, as its disk."""
    return World(
        clock=LiveClock(),
        random=LiveRandom(),
        disk=LiveDisk(root),
        network=LiveNetwork(),
        control=control,
        store=store,
        executor=LiveExecutor(),
    )
