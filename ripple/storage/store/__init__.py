"""Object stores behind one contract, :class:`ripple.world.ports.ObjectStore`.

opening     by URI; probe: tests the guarantee that the first put wins
disk, memory, s3    the stores; s3_settings, s3_errors
retrying, cached, counted    wrappers of any store
"""

from __future__ import annotations

from ripple.storage.store.counted import CountedStore
from ripple.storage.store.disk import DiskStore
from ripple.storage.store.errors import StoreRefusedError, UnsafeStoreError
from ripple.storage.store.memory import MemoryStore
from ripple.storage.store.retrying import RetryingStore, RetrySettings

__all__ = [
    "CountedStore",
    "DiskStore",
    "MemoryStore",
    "RetrySettings",
    "RetryingStore",
    "StoreRefusedError",
    "UnsafeStoreError",
]
