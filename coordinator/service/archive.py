"""The coordinator's objects in the store: the assignment chain, which is the truth, and views.

Views are objects ``views/<replica>-<number>.view``. A replica that ends gracefully removes its own;
those of other replicas are removed once they have not advanced for long.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from coordinator.decisions.events import ChainRead
from coordinator.service.messages import view_from_bytes, view_to_bytes
from ripple.control.assignment import Assignment, AssignmentChain
from ripple.control.rpc.mapping import RpcError
from ripple.core.errors import LimitError
from ripple.storage.fenced import DamagedError, object_in
from ripple.world.errors import StoreError
from ripple.world.ports import Guards, all_guards

if TYPE_CHECKING:
    from coordinator.decisions.views import View
    from ripple.storage.fenced import Reading
    from ripple.world.ports import Clock, ObjectStore

VIEWS = "views/"
VIEW_BYTES_MAX = 4 << 20
GONE_AFTER_S = 600.0

_NAME = re.compile(r"views/([A-Za-z0-9_]+)-(\d{16})\.view")


class Archive:
    """The store as one replica uses it. Every method may raise RippleError, like StoreError."""

    def __init__(
        self, store: ObjectStore, clock: Clock, replica: str, *, guards: Guards = all_guards
    ) -> None:
        self._store = store
        self._clock = clock
        self._replica = replica
        self._chain = AssignmentChain(store, replica, guards=guards)
        self._written: list[str] = []  # own views, perhaps not deleted yet
        # The newest view of each replica, and when it was first seen.
        self._seen: dict[str, tuple[int, int]] = {}
        # Since when one cannot be read.
        self._unread_ns: dict[tuple[str, int], int] = {}

    async def read(self) -> ChainRead:
        """Return the chain's newest version."""
        return _read(await self._chain.newest())

    async def propose(self, version: Assignment) -> bool:
        """Add a version if it is the next one; return whether it is there, and the newest."""
        reading = await self._chain.newest()
        if version.version != reading.newest_number + 1:
            return False
        if not await self._chain.propose(reading, version):
            return False
        with suppress(StoreError):  # leftovers only take room
            await self._chain.forget(await self._chain.newest())
        return True

    async def write_view(self, view: View) -> None:
        """Put a view into the store, and delete earlier ones."""
        name, data = _name_of(view.replica, view.number), view_to_bytes(view)
        if len(data) > VIEW_BYTES_MAX:
            raise LimitError(
                f"{name} would take {len(data)} bytes, more than {VIEW_BYTES_MAX}: use fewer "
                "partitions or workers"
            )
        before = [one for one in self._written if one != name]
        self._written = [*before, name]
        await self._store.put_if_absent(name, data)
        for one in before:
            await self._store.delete(one)
            self._written.remove(one)

    async def remove_views(self) -> None:
        """Remove the own views: this replica no longer observes."""
        await self._remove(self._replica)

    async def read_views(self) -> tuple[View, ...]:
        """Return the newest views of the other replicas that have not been read yet.

        One that cannot be read is an error until it is old: it may vouch for a worker.
        """
        numbers: dict[str, int] = {}
        for name in await self._store.list(VIEWS):
            match = _NAME.fullmatch(name)
            if match and match[1] != self._replica:
                numbers[match[1]] = max(int(match[2]), numbers.get(match[1], 0))
        self._seen = {name: seen for name, seen in self._seen.items() if name in numbers}
        self._unread_ns = {
            each: ns for each, ns in self._unread_ns.items() if numbers.get(each[0]) == each[1]
        }
        found = []
        for replica, number in sorted(numbers.items()):
            if self._seen.get(replica, (0, 0))[0] == number:
                await self._remove_if_gone(replica)
                continue
            view = await self._view(replica, number)
            if view is not None:
                found.append(view)
                self._seen[replica] = (number, self._clock.monotonic_ns())
        return tuple(found)

    async def _view(self, replica: str, number: int) -> View | None:
        """Return a view, None if it was removed meanwhile: there is a newer one, or it was old."""
        try:
            name = _name_of(replica, number)
            data = await object_in(self._store, name, length_max=VIEW_BYTES_MAX)
            return None if data is None else view_from_bytes(data)
        except (RpcError, DamagedError):
            since_ns = self._unread_ns.setdefault((replica, number), self._clock.monotonic_ns())
            if not self._is_old(since_ns):
                raise
            await self._tidy(replica)
            return None

    async def _remove_if_gone(self, replica: str) -> None:
        if self._is_old(self._seen[replica][1]):
            await self._tidy(replica)

    async def _tidy(self, replica: str) -> None:
        """Remove another replica's views; a failed deletion does not prevent reading."""
        with suppress(StoreError):
            await self._remove(replica)

    def _is_old(self, since_ns: int) -> bool:
        return self._clock.monotonic_ns() - since_ns > GONE_AFTER_S * 1e9

    async def _remove(self, replica: str) -> None:
        for name in await self._store.list(f"{VIEWS}{replica}-"):
            await self._store.delete(name)


def _read(reading: Reading[Assignment]) -> ChainRead:
    entry = reading.entry
    return ChainRead(entry.content if entry is not None else None, reading.newest_number)


def _name_of(replica: str, number: int) -> str:
    return f"{VIEWS}{replica}-{number:016d}.view"
