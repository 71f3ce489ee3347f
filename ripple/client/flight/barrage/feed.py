"""Ticking tables: an output has one subscription, shared by all its subscribers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ripple.client.flight.barrage.rows import Rows
from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.reader import check_reads, readable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pyarrow as pa

    from ripple.client.flight.barrage.batches import Update
    from ripple.client.outputs import Observer, OutputSubscription
    from ripple.world.ports import Clock

HEARD_S = 10.0
IDLE_S = 60.0


class Feed:
    """One output: its table, and the listeners for changes."""

    def __init__(self, seen: OutputSubscription) -> None:
        self.output = seen.name
        self._wakes: dict[asyncio.Event, None] = {}
        self.users = 0
        self.used_ns = 0
        self.shared: dict[Any, Update] = {}  # updates shared by subscribers, at the present stamp
        self._rows: Rows | None = None
        self._seen = seen
        self._taking = asyncio.create_task(self._take())

    @property
    def rows(self) -> Rows:
        """The table, once all partitions have sent their rows."""
        assert self._rows is not None
        return self._rows

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self.rows.schema

    async def heard(self, timeout_s: float) -> None:
        """Wait for the rows of all partitions. Raises FlightError."""
        wake = asyncio.Event()
        try:
            async with self.waking(wake), asyncio.timeout(timeout_s):
                while self._seen.missing or self._rows is None:
                    self.check()
                    wake.clear()
                    await wake.wait()
        except TimeoutError:
            missing = self._seen.missing
            raise FlightError(
                Why.AWAY,
                f"output {self.output!r}: {len(missing)} of {self._seen.partitions} partitions "
                f"did not answer within {timeout_s:g} s, {missing[0] if missing else 0} first",
            ) from None

    @asynccontextmanager
    async def waking(self, wake: asyncio.Event) -> AsyncIterator[None]:
        """Set ``wake`` on every change, inside this context."""
        self._wakes[wake] = None
        try:
            yield
        finally:
            del self._wakes[wake]

    @property
    def is_over(self) -> bool:
        """Whether the subscription has ended."""
        return self._taking.done()

    def check(self) -> None:
        """Raise the error that ended the subscription, if any."""
        if self._taking.done():
            self._taking.result()

    async def end(self) -> None:
        """End the subscription."""
        self._taking.cancel()
        await asyncio.wait([self._taking])

    async def _take(self) -> None:
        try:
            while True:
                changes = await self._seen.changes()
                if self._rows is None:
                    assert self._seen.layout is not None
                    self._rows = Rows(self._seen.layout)
                for change in changes:
                    if change.dropped is not None:
                        self._rows.apply(change.partition, change.dropped)
                    self._rows.apply(change.partition, change.rows)
                self.shared.clear()
                self._wake()
        finally:
            self._wake()

    def _wake(self) -> None:
        for wake in self._wakes:
            wake.set()


class Feeds:
    """The outputs of a running cluster. A subscription ends after ``idle_s`` without use."""

    def __init__(
        self, observer: Observer, clock: Clock, *, heard_s: float = HEARD_S, idle_s: float = IDLE_S
    ) -> None:
        """Use an observer of its own: an observer has one subscription to an output."""
        self._observer = observer
        self._clock = clock
        self._heard_s = heard_s
        self._idle_s = idle_s
        self._feeds: dict[str, Feed] = {}
        self._following = asyncio.Lock()

    async def names(self) -> list[str]:
        """Return the names of readable outputs. Raises FlightError if none is available."""
        try:
            return readable(await self._observer.known(self._heard_s))
        except ConnectionError as error:
            raise FlightError(Why.AWAY, str(error)) from error

    @asynccontextmanager
    async def using(self, output: str) -> AsyncIterator[Feed]:
        """Subscribe to an output. Raises FlightError."""
        check_reads(output)
        names = await self.names()
        if output not in names:
            known = ", ".join(names) or "none"
            raise FlightError(Why.UNKNOWN, f"no output {output!r}: there are {known}")
        async with self._following:
            feed = self._feeds.get(output)
            if feed is not None and feed.is_over:  # its users were told of the end
                self._forget(output)
                feed = None
            if feed is None:
                seen = await self._observer.follow(output, self._heard_s)
                feed = self._feeds[output] = Feed(seen)
            feed.users += 1
        try:
            await feed.heard(self._heard_s)
            yield feed
        finally:
            feed.users -= 1
            feed.used_ns = self._clock.monotonic_ns()

    async def rest(self) -> None:
        """End idle subscriptions, for ever."""
        while True:
            await self._clock.sleep(self._idle_s / 4)
            before_ns = self._clock.monotonic_ns() - int(self._idle_s * 1e9)
            async with self._following:
                for output, feed in list(self._feeds.items()):
                    if not feed.users and feed.used_ns < before_ns:
                        await self._leave(output)

    async def close(self) -> None:
        """End all subscriptions."""
        for output in list(self._feeds):
            await self._leave(output)

    async def _leave(self, output: str) -> None:
        await self._forget(output).end()

    def _forget(self, output: str) -> Feed:
        self._observer.leave(output)
        return self._feeds.pop(output)
