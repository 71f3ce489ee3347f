"""The identity of a cluster in its store: its name, and the key that authenticates its processes.

Written once, by the first coordinator.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.control.assignment.errors import AssignmentError

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore, Random

NAME = "cluster/founded.json"
KEY_BYTES = 32
LENGTH_MAX = 4096


@dataclass(frozen=True, slots=True)
class Founded:
    """A cluster; its key is a secret and never shown."""

    name: str
    key: bytes

    @property
    def mark(self) -> str:
        """Public identity of the cluster; it reveals nothing of the key."""
        return f"{self.name} {hashlib.blake2b(self.key, digest_size=8, person=b'mark').hexdigest()}"

    def __repr__(self) -> str:
        """Leave the key out."""
        return f"Founded({self.name!r})"


async def found(store: ObjectStore, name: str, random: Random) -> Founded:
    """Return the cluster of a store; found it as ``name`` if there is none.

    Raises AssignmentError if it has another name, StoreError.
    """
    there = await founded(store)
    if there is None:
        said = json.dumps({"name": name, "key": random.bytes(KEY_BYTES).hex()})
        await store.put_if_absent(NAME, said.encode())
        there = await founded(store)
    if there is None:
        raise AssignmentError(f"{NAME} was put into the store, and is not there")
    if there.name != name:
        raise AssignmentError(
            f"the store is that of cluster {there.name}: give --cluster {there.name}, or another "
            "store"
        )
    return there


async def founded(store: ObjectStore) -> Founded | None:
    """Return the cluster of a store, None if it was not founded.

    Raises AssignmentError if it cannot be read, StoreError.
    """
    data = await store.get(NAME, length_max=LENGTH_MAX)
    if data is None:
        return None
    try:
        said = json.loads(data)
        there = Founded(str(said["name"]), bytes.fromhex(said["key"]))
    except (ValueError, KeyError, TypeError):
        there = Founded("", b"")
    if len(there.key) != KEY_BYTES:
        raise AssignmentError(
            f"{NAME} in the store is damaged: delete it, start the coordinators again, then workers"
        )
    return there


async def key_of(store: ObjectStore) -> bytes:
    """Return the key of a store's cluster. Raises AssignmentError for none, StoreError."""
    there = await founded(store)
    if there is None:
        raise AssignmentError("the store has no cluster's key yet: are its coordinators older?")
    return there.key
