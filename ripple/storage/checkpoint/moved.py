"""The record that a pipeline's state has left a store, and where it went."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ripple.storage.checkpoint.origin import folder_of
from ripple.storage.fenced import DamagedError, object_in

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore

NAME = "moved.json"
BYTES_MAX = 1 << 16


async def moved_to(store: ObjectStore, pipeline: str) -> str | None:
    """Return the store to which the state has moved, None if it is here. Raises StoreError.

    DamagedError for a record that says nothing.
    """
    name = f"{folder_of(pipeline)}{NAME}"
    data = await object_in(store, name, length_max=BYTES_MAX)
    if data is None:
        return None
    try:
        return str(json.loads(data)["to"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{name} is damaged: remove it if the state was not moved") from error


async def leave(store: ObjectStore, pipeline: str, to: str) -> str:
    """Record that the state moves to ``to``; return where it moves, which was recorded first."""
    await store.put_if_absent(f"{folder_of(pipeline)}{NAME}", json.dumps({"to": to}).encode())
    return await moved_to(store, pipeline) or to
