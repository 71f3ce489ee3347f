"""The world: every effect of Ripple goes through these ports.

Modules that do I/O are imported at first use: pure code needs the ports alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.lazy import imported

if TYPE_CHECKING:
    from ripple.world.errors import DiskFullError as DiskFullError
    from ripple.world.errors import DiskLockedError as DiskLockedError
    from ripple.world.errors import NotALockError as NotALockError
    from ripple.world.errors import StoreError as StoreError
    from ripple.world.errors import SyncFailedError as SyncFailedError
    from ripple.world.errors import TlsError as TlsError
    from ripple.world.live import LiveClock as LiveClock
    from ripple.world.live import LiveExecutor as LiveExecutor
    from ripple.world.live import LiveRandom as LiveRandom
    from ripple.world.live import live_world as live_world
    from ripple.world.live_disk import LiveDisk as LiveDisk
    from ripple.world.live_network import LiveNetwork as LiveNetwork
    from ripple.world.live_watch import LiveWatch as LiveWatch
    from ripple.world.ports import Clock as Clock
    from ripple.world.ports import Disk as Disk
    from ripple.world.ports import Executor as Executor
    from ripple.world.ports import File as File
    from ripple.world.ports import Guards as Guards
    from ripple.world.ports import Listener as Listener
    from ripple.world.ports import Lock as Lock
    from ripple.world.ports import Network as Network
    from ripple.world.ports import ObjectStore as ObjectStore
    from ripple.world.ports import Random as Random
    from ripple.world.ports import Stream as Stream
    from ripple.world.ports import Watch as Watch
    from ripple.world.ports import World as World
    from ripple.world.ports import all_guards as all_guards
    from ripple.world.tls import Tls as Tls

_NAMES_BY_HOME = {
    "ripple.world.errors": (
        "DiskFullError",
        "DiskLockedError",
        "NotALockError",
        "StoreError",
        "SyncFailedError",
        "TlsError",
    ),
    "ripple.world.live": (
        "LiveClock",
        "LiveExecutor",
        "LiveRandom",
        "live_world",
    ),
    "ripple.world.live_disk": ("LiveDisk",),
    "ripple.world.live_network": ("LiveNetwork",),
    "ripple.world.live_watch": ("LiveWatch",),
    "ripple.world.ports": (
        "Clock",
        "Disk",
        "Executor",
        "File",
        "Guards",
        "Listener",
        "Lock",
        "Network",
        "ObjectStore",
        "Random",
        "Stream",
        "Watch",
        "World",
        "all_guards",
    ),
    "ripple.world.tls": ("Tls",),
}
_HOME_OF = {name: home for home, names in _NAMES_BY_HOME.items() for name in names}
__all__ = [name for names in _NAMES_BY_HOME.values() for name in names]


if not TYPE_CHECKING:
    __getattr__ = imported(__name__, _HOME_OF)
