"""End a cluster that ``up`` runs in a folder, in good order, as Ctrl+C there does.

What it has computed is kept in the folder, and the next ``up`` goes on from there.
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
# Workers take up to 30 s to end in good order, and coordinators end after them.
TIMEOUT_S = 60
LOOK_S = 0.1

_HOLDER = re.compile(r"ripple cluster up, process (\d+)")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--dir", type=a_place, required=True, metavar="DIR", help="that up was given"
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help="how long it may take (%(default)s)",
    )


def held(folder: str) -> Lock:
    """Hold the folder of a cluster, as the process that ``down`` ends.

    Raises DiskLockedError where a cluster runs there.
    """
    return LiveDisk(folder).lock(LOCK, f"ripple cluster up, process {os.getpid()}")


def check_free(folder: str) -> None:
    """Raise DiskLockedError where a cluster runs; nothing is made where none does."""
    if Path(folder, LOCK).exists():
        held(folder).release()


def run(options: argparse.Namespace) -> int:
    """Let it end, and wait for that; return the exit code.

    Raises InputError where no cluster runs, or where it does not end.
    """
    folder = options.dir
    process = _process(folder)
    if process is None:
        raise InputError(f"no cluster runs in {folder}")
    os.kill(process, signal.SIGTERM)
    ends_s = time.monotonic() + options.timeout
    while _process(folder) == process:
        if time.monotonic() > ends_s:
            raise InputError(
                f"the cluster in {folder}, process {process}, has not ended within "
                f"{options.timeout} s: it goes on ending"
            )
        time.sleep(LOOK_S)
    say(f"{PROGRAM}: the cluster in {folder} has ended")
    return 0


def _process(folder: str) -> int | None:
    """Return the process that holds a folder, None if none does."""
    if not Path(folder, LOCK).exists():
        return None
    try:
        LiveDisk(folder, make=False).lock(LOCK, "ripple cluster down").release()
    except DiskLockedError as error:
        found = _HOLDER.fullmatch(error.holder)
        return None if found is None else int(found[1])
    return None
