"""Stop a cluster that ``up`` runs in a folder, gracefully, as Ctrl+C there does.

Its state stays in the folder, and the next ``up`` resumes from there.
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ripple.cli.lib.exits import say
from ripple.cli.lib.number_options import positive
from ripple.cli.lib.path_options import a_place
from ripple.core.errors import InputError
from ripple.world import LiveDisk
from ripple.world.errors import DiskLockedError

if TYPE_CHECKING:
    import argparse

    from ripple.world.ports import Lock

PROGRAM = "ripple"
LOCK = "up.lock"
# Workers take up to 30 s to stop gracefully, and coordinators stop after them.
TIMEOUT_S = 60
LOOK_S = 0.1

_HOLDER = re.compile(r"ripple cluster up, process (\d+)")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--dir", type=a_place, required=True, metavar="DIR", help="the cluster's folder"
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help="time limit (%(default)s)",
    )


def held(folder: str) -> Lock:
    """Lock a cluster's folder, as the process that ``down`` stops.

    Raises DiskLockedError if a cluster runs there.
    """
    return LiveDisk(folder).lock(LOCK, f"ripple cluster up, process {os.getpid()}")


def check_free(folder: str) -> None:
    """Raise DiskLockedError if a cluster runs in the folder; creates nothing."""
    if Path(folder, LOCK).exists():
        held(folder).release()


def run(options: argparse.Namespace) -> int:
    """Stop the cluster, and wait for it; return the exit code.

    Raises InputError if no cluster runs, or if it does not stop.
    """
    stop(options.dir, options.timeout)
    say(f"{PROGRAM}: the cluster in {options.dir} has stopped")
    return 0


def is_running(folder: str) -> bool:
    """Return whether a cluster runs in a folder."""
    return _process(folder) is not None


def has_ended(folder: str) -> bool:
    """Return whether a cluster ran in a folder, and does no longer."""
    return Path(folder, LOCK).exists() and not is_running(folder)


def stop(folder: str, timeout_s: float) -> None:
    """Stop the cluster of a folder, and wait for it. Raises InputError as ``run``."""
    process = _process(folder)
    if process is None:
        raise InputError(f"no cluster runs in {folder}{_others(folder)}")
    os.kill(process, signal.SIGTERM)
    ends_s = time.monotonic() + timeout_s
    while _process(folder) == process:
        if time.monotonic() > ends_s:
            raise InputError(
                f"the cluster in {folder}, process {process}, has not stopped within "
                f"{timeout_s:g} s: it is still stopping"
            )
        time.sleep(LOOK_S)


def _others(folder: str) -> str:
    """Return a hint to later generations that run below a folder, or ""."""
    found = [str(one.parent) for one in sorted(Path(folder).glob(f"g*/{LOCK}"))]
    running = [one for one in found if _process(one) is not None]
    return f"; a later generation runs in {', '.join(running)}" if running else ""


def _process(folder: str) -> int | None:
    """Return the process that holds a folder's lock, None without one."""
    if not Path(folder, LOCK).exists():
        return None
    try:
        LiveDisk(folder, make=False).lock(LOCK, "ripple cluster down").release()
    except DiskLockedError as error:
        found = _HOLDER.fullmatch(error.holder)
        return None if found is None else int(found[1])
    return None
