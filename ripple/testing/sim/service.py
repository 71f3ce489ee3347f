"""Requests of a simulated process to a service that outlives it, beyond the network."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, cast

from ripple.core.errors import RippleError
from ripple.testing.sim.effects import Crash
from ripple.testing.sim.paths import Track

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.testing.sim.paths import Paths

T = TypeVar("T")

TIMEOUT_SECONDS = 20.0


class NoReplyError(Exception):
    """Raised by a service that does not answer: its caller waits until its patience ends."""


class SimService:
    """The way of one process on ``machine`` to the service that the network calls ``name``.

    A request on its way is carried out even after the end of its sender, also long after the sender
    gave up: TCP has sent it again.
    """

    def __init__(self, paths: Paths, machine: str, name: str) -> None:
        self.paths = paths
        self._machine = machine
        self._name = name

    async def ask(self, serve: Callable[[], tuple[T, float]], *, late_seconds: float = 0.0) -> T:
        """Call ``serve`` where the service is; return its result, or raise its error.

        It returns with its answer by how much that is late; ``late_seconds`` is how late the
        request is. Raises TimeoutError when there is no answer.
        """
        replied: asyncio.Future[tuple[T | None, Exception | None]]
        loop = asyncio.get_running_loop()
        replied = loop.create_future()
        there, back = Track(self._machine, self._name), Track(self._name, self._machine)

        def arrive() -> None:
            seconds = 0.0
            reply: tuple[T | None, Exception | None]
            try:
                answer, seconds = serve()
                reply = answer, None
            except (Crash, NoReplyError):
                return
            except RippleError as error:
                reply = None, error
            self.paths.carry(back, lambda: _settle(replied, reply), late_seconds=seconds)

        self.paths.carry(there, arrive, late_seconds=late_seconds)
        patience = loop.call_later(TIMEOUT_SECONDS, _settle, replied, (None, TimeoutError()))
        try:
            answered, error = await replied
        finally:
            patience.cancel()
        if error is not None:
            raise error
        return cast("T", answered)

    def notify(self, act: Callable[[], None]) -> None:
        """Send a notification of the service to the process."""
        self.paths.carry(Track(self._name, self._machine), act)


def _settle(replied: asyncio.Future[T], reply: T) -> None:
    if not replied.done():
        replied.set_result(reply)
