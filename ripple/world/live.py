"""The live world: this machine's clocks, chance, a folder as disk, TCP."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING

from ripple.world.live_disk import LiveDisk
from ripple.world.live_network import LiveNetwork
from ripple.world.ports import World

if TYPE_CHECKING:
    import os

    from ripple.world.ports import ObjectStore


class LiveClock:
    """The operating system's clocks."""

    def now_ns(self) -> int:
        return time.time_ns()

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class LiveRandom:
    """The operating system's chance, fit for names that nobody must guess."""

    def below(self, n: int) -> int:
        return secrets.randbelow(n)

    def bytes(self, n: int) -> bytes:
        return secrets.token_bytes(n)


def live_world(root: str | os.PathLike[str], *, store: ObjectStore | None = None) -> World:
    """Return the real world with the folder ``root``, made if absent, as its disk."""
    return World(
        clock=LiveClock(),
        random=LiveRandom(),
        disk=LiveDisk(root),
        network=LiveNetwork(),
        store=store,
    )
