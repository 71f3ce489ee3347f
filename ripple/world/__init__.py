"""The world: every effect of Ripple goes through these ports."""

from __future__ import annotations

from ripple.world.errors import (
    DiskFullError,
    DiskLockedError,
    NotALockError,
    StoreError,
    SyncFailedError,
)
from ripple.world.live import LiveClock, LiveExecutor, LiveRandom, live_world
from ripple.world.live_disk import LiveDisk
from ripple.world.live_network import LiveNetwork
from ripple.world.ports import (
    Clock,
    Disk,
    Executor,
    File,
    Guards,
    Listener,
    Lock,
    Network,
    ObjectStore,
    Random,
    Stream,
    World,
    all_guards,
)

__all__ = [
    "Clock",
    "Disk",
    "DiskFullError",
    "DiskLockedError",
    "Executor",
    "File",
    "Guards",
    "Listener",
    "LiveClock",
    "LiveDisk",
    "LiveExecutor",
    "LiveNetwork",
    "LiveRandom",
    "Lock",
    "Network",
    "NotALockError",
    "ObjectStore",
    "Random",
    "StoreError",
    "Stream",
    "SyncFailedError",
    "World",
    "all_guards",
    "live_world",
]
