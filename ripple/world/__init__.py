"""The world: every effect of Ripple goes through these ports."""

from __future__ import annotations

from ripple.world.errors import DiskFullError, DiskLockedError, StoreError, SyncFailedError
from ripple.world.live import LiveClock, LiveRandom, live_world
from ripple.world.live_disk import LiveDisk
from ripple.world.live_network import LiveNetwork
from ripple.world.ports import (
    Clock,
    Disk,
    File,
    Listener,
    Lock,
    Network,
    ObjectStore,
    Random,
    Stream,
    World,
)

__all__ = [
    "Clock",
    "Disk",
    "DiskFullError",
    "DiskLockedError",
    "File",
    "Listener",
    "LiveClock",
    "LiveDisk",
    "LiveNetwork",
    "LiveRandom",
    "Lock",
    "Network",
    "ObjectStore",
    "Random",
    "StoreError",
    "Stream",
    "SyncFailedError",
    "World",
    "live_world",
]
