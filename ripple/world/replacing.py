"""A small file replaced as a whole: a crash leaves the old one or the new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.world.paths import folder_of

if TYPE_CHECKING:
    from ripple.world.ports import Disk, File


def replace(
    disk: Disk, path: str, data: bytes, *, syncs_data: bool = True, syncs_name: bool = True
) -> None:
    """Make ``data`` the contents of ``path``, durably; the file before stays if that fails.

    It keeps its permissions. One process at a time. syncs_data, syncs_name: off for tests of the
    tests. Raises OSError.
    """
    temporary = f"{path}.tmp"
    file = open_anew(disk, temporary, like=path)
    try:
        file.append(data)
        if syncs_data:
            file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    if syncs_name:
        disk.sync_folder(folder_of(path))


def open_anew(disk: Disk, path: str, *, like: str) -> File:
    """Make an empty file in place of a crash's remains, with like's permissions.

    A symbolic link is replaced itself, not its target.
    """
    try:
        return disk.open(path, exclusive=True, like=like)
    except FileExistsError:
        disk.remove(path)
        return disk.open(path, exclusive=True, like=like)
