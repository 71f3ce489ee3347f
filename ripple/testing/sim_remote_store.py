"""The store as a machine sees it: behind a network."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from ripple.testing.sim_chance import Chance
from ripple.testing.sim_effects import Crash
from ripple.testing.sim_paths import Track
from ripple.testing.sim_store import DELAY_MS_MAX, SLOW_SECONDS, SimStore
from ripple.world.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.testing.sim_effects import Effects
    from ripple.testing.sim_paths import Paths

T = TypeVar("T")

NAME = "store"
TIMEOUT_SECONDS = 20.0


class SimRemoteStore(SimStore):
    """The objects of ``store`` for one process on a machine.

    A request that is on its way is carried out whatever becomes of its sender, also long after the
    sender gave up: TCP has sent it again.
    """

    def __init__(self, paths: Paths, machine: str, effects: Effects, store: SimStore) -> None:
        super().__init__(effects)
        self.removed = store.removed
        self._chance = Chance(paths.chance.below(1 << 62), machine, "store")
        self._objects = store._objects
        self._paths = paths
        self._machine = machine

    async def _call(self, name: str, subject: str, act: Callable[[], T]) -> T:
        replied: asyncio.Future[T | StoreError] = asyncio.get_running_loop().create_future()
        track = Track(self._machine, NAME)
        self._paths.carry(track, lambda: self._serve(name, subject, act, replied))
        self._paths.stall(track, self._chance.below(DELAY_MS_MAX) / 1000)
        try:
            answer = await asyncio.wait_for(replied, TIMEOUT_SECONDS)
        except TimeoutError:
            done = False if name == "store_read" else None
            raise StoreError(f"{name} {subject}: no answer (simulated)", done=done) from None
        if isinstance(answer, StoreError):
            raise answer
        return answer

    def _serve(
        self,
        name: str,
        subject: str,
        act: Callable[[], T],
        replied: asyncio.Future[T | StoreError],
    ) -> None:
        """Do in the store what a request says."""
        if self.effects.crash is not None:
            act()
            return
        answer: T | StoreError
        slow = False
        try:
            answer, slow = self._strike(name, subject, act)
        except StoreError as error:
            answer = error
        except Crash:
            return  # its sender is dead

        def reply() -> None:
            if not replied.done():
                replied.set_result(answer)

        back = Track(NAME, self._machine)
        self._paths.carry(back, reply)
        if slow:
            self._paths.stall(back, SLOW_SECONDS)
