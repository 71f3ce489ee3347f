"""The world: every effect of Ripple goes through these ports.

Modules that do I/O are imported at first use: pure code needs the ports alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.lazy import imported

if TYPE_CHECKING:
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


if not TYPE_CHECKING:
    __getattr__ = imported(__name__, _HOME_OF)
