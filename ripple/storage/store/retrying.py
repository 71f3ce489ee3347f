"""Retries around an object store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from ripple.storage.store.errors import StoreRefusedError
from ripple.world.errors import StoreError, UnreadableError
from ripple.world.pauses import doubling, jittered
from ripple.world.ports import Clock, ObjectStore, Random

T = TypeVar("T")

STOP_LOOK_S = 1.0  # between two checks of ``stop``


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """The retry policy: attempts, the seconds for one and for all of them, the first pause.

    Each pause is twice as long as the previous one, up to a maximum. A request's time grows with
    its size, at a least rate in bytes per second.
    """

    attempts_max: int = 5
    attempt_s: float = 30.0
    deadline_s: float = 60.0
    pause_s: float = 0.1
    pause_s_max: float = 30.0
    bytes_per_s_min: int = 1 << 20


_PATIENT = RetrySettings()


class RetryingStore:
    """Repeats failed calls with exponential, jittered back-off, until a deadline.

    A put that is repeated after a lost reply may return False although it succeeded; a caller that
    needs to know compares the stored object. The StoreError of the last attempt is raised, with
    ``done`` None if any attempt's outcome is unknown. A rejected request (StoreRefusedError) is not
    repeated, nor is the read of an unreadable object (UnreadableError). A delete is repeated at
    most as the default policy says: it is never urgent.
    """

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        random: Random,
        settings: RetrySettings | None = None,
        *,
        failed: Callable[[str], None] = lambda _: None,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        """Retry as ``settings`` say.

        failed: called with each failed attempt. stop: returns whether to give up; called after each
        attempt and during pauses.
        """
        self._store = store
        self._clock = clock
        self._random = random
        self.settings = settings or RetrySettings()
        self._failed = failed
        self._stop = stop

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        """Store an object unless the name is taken; see the class for repeated puts."""
        return await self._repeat(
            lambda: self._store.put_if_absent(name, data), f"put {name}", len(data)
        )

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        """Return an object, None if there is none."""
        return await self._repeat(
            lambda: self._store.get(name, length_max=length_max), f"get {name}", length_max
        )

    async def list(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted."""
        return await self._repeat(lambda: self._store.list(prefix), f"list {prefix}".rstrip())

    async def delete(self, name: str) -> None:
        """Delete an object."""
        limits = _PATIENT if self.settings.deadline_s > _PATIENT.deadline_s else self.settings
        await self._repeat(lambda: self._store.delete(name), f"delete {name}", settings=limits)

    async def _repeat(
        self,
        call: Callable[[], Awaitable[T]],
        what: str,
        length_bytes: int = 0,
        *,
        settings: RetrySettings | None = None,
    ) -> T:
        settings = settings or self.settings
        attempt_s = settings.attempt_s + length_bytes / settings.bytes_per_s_min
        ends_ns = self._clock.monotonic_ns() + int(settings.deadline_s * 1e9)
        unknown = False
        attempt = 1
        pauses_s = doubling(settings.pause_s, settings.pause_s_max)
        last: Exception
        while True:
            try:
                async with asyncio.timeout(attempt_s):
                    return await call()
            except TimeoutError as error:
                unknown, last = True, error
                reason = f"no answer in {attempt_s:.3g} s"
            except (StoreRefusedError, UnreadableError):
                raise
            except StoreError as error:
                unknown, last = unknown or error.done is None, error
                reason = str(error)
            self._failed(f"{what}: {reason}")
            pause_s = jittered(next(pauses_s), self._random)
            late = self._clock.monotonic_ns() + int(pause_s * 1e9) >= ends_ns
            if attempt == settings.attempts_max or late or self._is_stopped():
                raise StoreError(
                    f"{what}: gave up after {attempt} attempts: {reason}",
                    done=None if unknown else False,
                ) from last
            await self._pause(pause_s)
            attempt += 1

    def _is_stopped(self) -> bool:
        return self._stop is not None and self._stop()

    async def _pause(self, pause_s: float) -> None:
        if self._stop is None:
            await self._clock.sleep(pause_s)
            return
        while pause_s > 0 and not self._is_stopped():
            await self._clock.sleep(min(pause_s, STOP_LOOK_S))
            pause_s -= STOP_LOOK_S
