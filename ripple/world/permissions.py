"""Permissions of a file, kept when another file takes its place."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_like(path: str | Path, flags: int, like: str | Path, otherwise: int) -> int:
    """Make a file with the permissions of another one, and return its descriptor.

    otherwise: the mode, less the umask, where nothing is at ``like``. At no moment is the new file
    open to more people. Raises OSError as ``os.open``.
    """
    flags |= os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    kept = _status(like)
    descriptor = os.open(path, flags, otherwise if kept is None else 0o600)
    if kept is not None:
        _give(descriptor, kept)
    return descriptor


def take_over(descriptor: int, path: str | Path) -> None:
    """Give an open file the permissions of the one at ``path``, if there is one."""
    kept = _status(path)
    if kept is not None:
        _give(descriptor, kept)


def _status(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _give(descriptor: int, kept: os.stat_result) -> None:
    """Give the mode, and owner and group as far as this process may."""
    mode = stat.S_IMODE(kept.st_mode) & 0o777
    for owner in (kept.st_uid, -1):
        with suppress(OSError):
            os.fchown(descriptor, owner, kept.st_gid)
            break
    if os.fstat(descriptor).st_gid != kept.st_gid:
        # The rights of one group are not for another one, beyond those of all users.
        mode &= ~0o070 | (mode & 0o007) << 3
    with suppress(OSError):  # some file systems have no modes
        os.fchmod(descriptor, mode)
