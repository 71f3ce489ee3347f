"""One snapshot a tick, shared by all viewers; none without viewers.

A slow viewer skips snapshots, and delays nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.client.dashboard.history import History
from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from ripple.client.dashboard.contract import Shown, Values
    from ripple.world.ports import Clock

TICK_S = 1.0
# The numbers of charts; of ages the greatest.
KEPT = {
    "rate_in": False,
    "rate_out": False,
    "lag_s": True,
    "lag_median_s": True,
    "commit_age_s": True,
}


class Ticks:
    """The snapshots."""

    def __init__(self, shown: Shown, clock: Clock, *, tick_s: float = TICK_S) -> None:
        self._shown = shown
        self._clock = clock
        self._tick_s = tick_s
        self._viewers = 0
        self._running: asyncio.Task[None] | None = None
        self._newest = b""
        self._number = 0
        self._turned = asyncio.Event()
        self._history = History(KEPT)

    @property
    def viewers(self) -> int:
        """The number of viewers."""
        return self._viewers

    @property
    def number(self) -> int:
        """The number of snapshots made."""
        return self._number

    @property
    def history(self) -> dict[str, object]:
        """The history of charts."""
        return {"names": self._history.names, "rows": self._history.rows}

    async def watch(self) -> AsyncGenerator[bytes, None]:
        """Yield the newest snapshot, as JSON, and later ones, as the viewer takes them."""
        self._viewers += 1
        if self._running is None:
            self._newest = b""  # the first viewer after a while must not get an old one
            self._running = asyncio.ensure_future(self._run())
        seen = 0
        try:
            while True:
                if self._newest and seen != self._number:
                    seen = self._number
                    yield self._newest
                else:
                    turned = self._turned
                    await turned.wait()
        finally:
            self._viewers -= 1
            if not self._viewers and self._running is not None:
                self._running.cancel()
                self._running = None

    async def close(self) -> None:
        """Stop."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running

    async def _run(self) -> None:
        while True:
            began_ns = self._clock.monotonic_ns()
            await self._tick()
            took_s = (self._clock.monotonic_ns() - began_ns) / 1e9
            await self._clock.sleep(max(0.05, self._tick_s - took_s))

    async def _tick(self) -> None:
        try:
            found = await self._shown.snapshot()
        except RippleError as error:
            found = {"error": str(error)}
        self._number += 1
        found |= {"number": self._number, "time_ms": self._clock.now_ns() // 1_000_000}
        self._keep(found)
        self._newest = json.dumps(found, separators=(",", ":")).encode()
        self._turned.set()
        self._turned = asyncio.Event()

    def _keep(self, found: Values) -> None:
        totals = found.get("totals")
        if totals is not None:
            self._history.add(found["time_ms"], totals)
