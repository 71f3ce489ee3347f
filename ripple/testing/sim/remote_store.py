"""The store as a machine sees it: over a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ripple.testing.sim.chance import Chance
from ripple.testing.sim.service import SimService
from ripple.testing.sim.store import DELAY_MS_MAX, SLOW_SECONDS, SimStore
from ripple.world.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.testing.sim.effects import Effects
    from ripple.testing.sim.paths import Paths

T = TypeVar("T")


class SimRemoteStore(SimStore):
    """The objects of ``store`` for one process on a machine; its calls travel."""

    def __init__(self, paths: Paths, machine: str, effects: Effects, store: SimStore) -> None:
        super().__init__(effects)
        self.removed = store.removed
        self._chance = Chance(paths.chance.below(1 << 62), machine, "store")
        self._objects = store._objects
        self._service = SimService(paths, machine, "store")

    async def _call(self, name: str, subject: str, act: Callable[[], T]) -> T:
        def serve() -> tuple[T, float]:
            if self.effects.crash is not None:
                return act(), 0.0  # it was on its way when its sender died
            answer, slow = self._strike(name, subject, act)
            return answer, SLOW_SECONDS if slow else 0.0

        late_seconds = self._chance.below(DELAY_MS_MAX) / 1000
        try:
            return await self._service.ask(serve, late_seconds=late_seconds)
        except TimeoutError:
            done = False if name == "store_read" else None
            raise StoreError(f"{name} {subject}: no answer (simulated)", done=done) from None
