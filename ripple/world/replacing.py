"""A small file replaced as a whole: what a crash leaves is the old one or the new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.world.paths import folder_of

if TYPE_CHECKING:
    from ripple.world.ports import Disk


def replace(
    disk: Disk, path: str, data: bytes, *, syncs_data: bool = True, syncs_name: bool = True
) -> None:
    """Make ``data`` the contents of ``path``, durably; the file before stays if that fails.

    One process at a time. syncs_data, syncs_name: off for tests of the tests. Raises OSError.
    """
    temporary = f"{path}.tmp"
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.append(data)
        if syncs_data:
            file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    if syncs_name:
        disk.sync_folder(folder_of(path))
