"""Object stores behind one contract, :class:`ripple.world.ports.ObjectStore`."""

from __future__ import annotations

from ripple.store.disk import DiskStore
from ripple.store.errors import StoreRefusedError, UnsafeStoreError
from ripple.store.memory import MemoryStore
from ripple.store.retrying import RetryingStore, RetrySettings
from ripple.store.timed import StoreCall, TimedStore

__all__ = [
    "DiskStore",
    "MemoryStore",
    "RetrySettings",
    "RetryingStore",
    "StoreCall",
    "StoreRefusedError",
    "TimedStore",
    "UnsafeStoreError",
]
