"""Reads one object of a store, completely or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import LimitError
from ripple.storage.fenced.errors import DamagedError
from ripple.world.errors import UnreadableError

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore


async def object_in(store: ObjectStore, name: str, *, length_max: int) -> bytes | None:
    """Return an object, None if there is none.

    Raises DamagedError for an object that is too long, or unreadable although the store answers:
    readers treat it as corrupt. Raises StoreError when the store itself fails.
    """
    try:
        return await store.get(name, length_max=length_max)
    except LimitError as error:
        raise DamagedError(f"{name} is damaged: {error}") from error
    except UnreadableError as error:
        raise DamagedError(str(error)) from error
