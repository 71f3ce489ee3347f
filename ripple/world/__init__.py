"""The world: every effect of Ripple goes through these ports."""

from __future__ import annotations

from ripple.world.errors import (
    DiskFullError,
    DiskLockedError,
    NotALockError,
    StoreError,
    SyncFailedError,
    TlsError,
)
from ripple.world.live import LiveClock, LiveExecutor, LiveRandom, live_world
from ripple.world.live_disk import LiveDisk
from ripple.world.live_network import LiveNetwork
from ripple.world.live_watch import LiveWatch
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
    Watch,
    World,
    all_guards,
)
from ripple.world.tls import Tls

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
    "LiveWatch",
    "Lock",
    "Network",
    "NotALockError",
    "ObjectStore",
    "Random",
    "StoreError",
    "Stream",
    "SyncFailedError",
    "Tls",
    "TlsError",
    "Watch",
    "World",
    "all_guards",
    "live_world",
]
