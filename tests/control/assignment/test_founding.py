"""A cluster is founded once, and its store belongs to it."""

from __future__ import annotations

import pytest

from ripple.control.assignment import AssignmentError
from ripple.control.assignment.founding import NAME, found, founded, key_of
from ripple.storage.store.memory import MemoryStore
from ripple.world import LiveRandom


async def test_second_coordinator_joins_the_founded_cluster() -> None:
    store = MemoryStore()
    assert await founded(store) is None
    first = await found(store, "prod", LiveRandom())
    assert await found(store, "prod", LiveRandom()) == first
    assert await key_of(store) == first.key
    assert len(first.key) == 32
    assert first.key.hex() not in repr(first)


async def test_another_clusters_store_is_refused_and_named() -> None:
    store = MemoryStore()
    await found(store, "ripple", LiveRandom())
    with pytest.raises(AssignmentError, match="cluster ripple: give --cluster ripple"):
        await found(store, "second", LiveRandom())


async def test_no_key_and_a_damaged_one_are_said() -> None:
    store = MemoryStore()
    with pytest.raises(AssignmentError, match="no cluster's key yet"):
        await key_of(store)
    await store.put_if_absent(NAME, b'{"name": "prod", "key": "12"}')
    with pytest.raises(AssignmentError, match="damaged: delete it"):
        await key_of(store)
