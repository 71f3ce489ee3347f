"""The cluster that a coordinator belongs to, by its store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.assignment.founding import found
from ripple.core.credentials import Credentials
from ripple.storage.store import RetryingStore
from ripple.world.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.world.ports import World

PAUSE_S = 5.0  # after the store's own retries, with growing pauses


class ClusterIdentity:
    """Finds the store's cluster, or founds it; nothing is proposed to another cluster's store."""

    def __init__(self, world: World, name: str, say: Callable[[str], None]) -> None:
        """Read nothing yet. name: that the cluster should have."""
        self._world = world
        self._name = name
        self._say = say
        self._credentials: Credentials | None = None
        self.mark = ""  # its public identity, once the store was read

    def credential(self) -> str:
        """Return the credential for output subscriptions, "" before the store was read."""
        if self._credentials is None:
            return ""
        return self._credentials.of_reader(self._world.clock.now_ns() // 1_000_000_000)

    async def begin(self) -> None:
        """Wait until the store is read. Raises AssignmentError if its cluster is another one."""
        assert self._world.store is not None
        clock = self._world.clock
        store = RetryingStore(self._world.store, clock, self._world.random)
        while self._credentials is None:
            try:
                there = await found(store, self._name, self._world.random)
            except StoreError as error:
                self._say(f"which cluster the store is of cannot be read: {error}")
                await clock.sleep(PAUSE_S)
            else:
                self._credentials, self.mark = Credentials(there.key), there.mark
