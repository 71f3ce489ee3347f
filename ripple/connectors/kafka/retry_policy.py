"""Repeats requests to brokers until they are done, and reports waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.core.errors import OutputError
from ripple.core.events import CommitWaits, EventListener, no_listener
from ripple.world.broker import AnotherTopicError, BrokerError, NoTopicError, TooLargeError
from ripple.world.pauses import doubling

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.world.ports import Clock

# Less than the minute after which the broker ends a transaction by itself.
ATTEMPT_S = 30.0
PATIENCE_S = 180.0
PAUSE_S, PAUSE_S_MAX = 0.02, 2.0
EMIT_FIRST_S, EMIT_INTERVAL_S = 5.0, 30.0  # when a wait is reported first, and then how often


class RetryPolicy:
    """Repeats idempotent requests, with growing pauses, for a limited time."""

    def __init__(
        self,
        clock: Clock,
        where: str,
        failed: Callable[[BrokerError | TimeoutError], Awaitable[None]],
        *,
        waits: bool = True,
    ) -> None:
        """Take a function that is called before another attempt, or the end, as ``failed``.

        where: the brokers, for people. waits: whether there is another attempt.
        """
        self._clock = clock
        self._where = where
        self._failed = failed
        self._waits = waits
        self.emit: EventListener = no_listener

    async def surely(
        self,
        what: str,
        act: Callable[[], Awaitable[None]],
        patience_s: float = PATIENCE_S,
        *,
        rows: int = 0,
    ) -> None:
        """Do something until it is done. rows: that wait for it.

        Raises OutputError where to go on would not help, or has not for too long.
        """
        began_ns = self._clock.monotonic_ns()
        until_ns = began_ns + int(patience_s * 1e9)
        pauses_s, emit_at_s = doubling(PAUSE_S, PAUSE_S_MAX), EMIT_FIRST_S
        while True:
            try:
                async with asyncio.timeout(ATTEMPT_S):
                    await act()
                return
            except (TooLargeError, NoTopicError, AnotherTopicError) as error:
                raise OutputError(f"cannot {what} {self._where}: {error}") from error
            except (BrokerError, TimeoutError) as error:
                await self._failed(error)
                why = str(error) or f"no answer within {ATTEMPT_S:.0f} s"
                waited_s = (self._clock.monotonic_ns() - began_ns) / 1e9
                if waited_s >= emit_at_s:
                    emit_at_s = waited_s + EMIT_INTERVAL_S
                    self.emit(CommitWaits(waited_s, rows, f"{self._where}: {why}"))
                if not self._waits:
                    raise OutputError(f"cannot {what} {self._where}: {why}") from error
                if self._clock.monotonic_ns() >= until_ns:
                    raise OutputError(
                        f"cannot {what} {self._where}, for {patience_s:.0f} s now: {why}. What was "
                        "committed stays; start again once the brokers answer"
                    ) from error
            await self._clock.sleep(next(pauses_s))
