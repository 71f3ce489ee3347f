"""The intake of a downstream task: the changes of its senders, a turn at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ripple.core.cut import is_within
from ripple.engine.edges.senders import BehindError, GapError, SupersededError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.engine.machine.follower import Follower
    from ripple.task.edges import Arrival, Upstream
    from ripple.task.report import Report
    from ripple.task.tracing import Traces
    from ripple.world.ports import Clock


class UpstreamIntake:
    """Arrivals, and the engine that takes them in; each is answered once."""

    def __init__(
        self,
        follows: Upstream[Any],
        engine: Follower,
        senders: Sequence[str],
        *,
        clock: Clock,
        turn_ms: int,
        wake: asyncio.Event,
        report: Report,
        traces: Traces | None,
    ) -> None:
        """senders: as the engine names them, by their numbers. report: counts rows taken in."""
        self._follows = follows
        self._engine = engine
        self._senders = senders
        self._clock = clock
        self._turn_ns = turn_ms * 1_000_000
        self._wake = wake
        self._report = report
        self._traces = traces
        self._arrivals: deque[Arrival] = deque()

    async def begin(self) -> None:
        """Follow all senders, each from where the engine is."""
        for sender, name in enumerate(self._senders):
            followed = self._engine.followed(name)
            if followed.cut is not None:
                self._follows.begin(sender, followed.epoch, followed.cut)
        await self._follows.find()
        self._follows.start()

    async def take_in(self) -> bool:
        """Take in arrivals, for one turn at most; return whether any was new."""
        self._arrivals.extend(self._follows.take())
        await self._follows.sync()
        is_news = False
        ends_ns = self._clock.monotonic_ns() + self._turn_ns
        while self._arrivals:
            is_news = self._take(self._arrivals.popleft()) or is_news
            if self._clock.monotonic_ns() >= ends_ns:
                self._wake.set()  # for the rest
                break
        return is_news

    async def wait(self, seconds: float | None) -> None:
        """Wait until something arrives, or a wake-up, but no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    @property
    def has_heard_all(self) -> bool:
        """Whether every sender has said something, now or before the engine was restored."""
        return all(self._engine.followed(name).cut is not None for name in self._senders)

    @property
    def is_past_lives_before(self) -> bool:
        """Whether the engine has reached, of every sender, the cut that earlier tasks may have."""
        for sender, name in enumerate(self._senders):
            end, cut = self._follows.reached_before(sender), self._engine.followed(name).cut
            if end is not None and (cut is None or not is_within(end, cut)):
                return False
        return True

    def release(self, watermark_ns: int) -> None:
        """Let senders forget final rows up to here: they are in stored checkpoints."""
        self._follows.release(watermark_ns)

    def _take(self, arrival: Arrival) -> bool:
        try:
            is_news = self._engine.follow(
                self._senders[arrival.sender], arrival.epoch, arrival.changes
            )
        except SupersededError:
            self._follows.dropped(arrival)
            return False
        except (GapError, BehindError):
            self._follows.refused(arrival)
            return False
        self._follows.applied(arrival)
        if self._traces is not None:
            self._traces.arrived(arrival.changes.traces)
        self._report.events += arrival.changes.rows.num_rows
        return is_news
