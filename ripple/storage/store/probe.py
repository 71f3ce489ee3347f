"""Tests the guarantee on which everything rests: of several puts of a name, the first wins.

Many S3-compatible stores lack it: they accept the condition and store all the same, or do not check
it atomically, so that concurrent puts all win.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.storage.store.errors import UnsafeStoreError
from ripple.world.errors import StoreError

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore, Random

RACERS = 8
NONCE_BYTES = 16
_LATE = "{where} does not list an object right after its put: use a store or a version that does"


async def probe(store: ObjectStore, random: Random, where: str) -> None:
    """Put the same name several times, check the result, and clean up.

    where: the store's name in errors. Raises UnsafeStoreError, and StoreError if the outcome is
    unknown.
    """
    name = f"probe/{random.bytes(NONCE_BYTES).hex()}.probe"
    racers = [f"{number}".encode() * NONCE_BYTES for number in range(RACERS)]
    try:
        won = await asyncio.gather(*(store.put_if_absent(name, racer) for racer in racers))
        held = await store.get(name, length_max=NONCE_BYTES)
        again = await store.put_if_absent(name, b"again")
        kept = await store.get(name, length_max=NONCE_BYTES)
        listed = await store.list(name)
    except StoreError:
        with suppress(StoreError):  # the first error is reported
            await store.delete(name)
        raise
    await store.delete(name)
    if held is None or kept is None:
        raise UnsafeStoreError(_LATE.format(where=where))
    if again or sum(won) > 1 or held != kept or (any(won) and held != racers[won.index(True)]):
        raise UnsafeStoreError(
            f"{where} lets a second put replace the first (If-None-Match: * does not hold there), "
            "so that two owners of a partition could both believe that they are the only one: take "
            "a store or a version that keeps to it"
        )
    if listed != [name]:
        raise UnsafeStoreError(_LATE.format(where=where))
