"""Opens folders of Parquet files for restarted runs."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from ripple.connectors.files.parquet.parts import LOCK, PartsSink, examine
from ripple.connectors.files.text.cut_record import Owner
from ripple.core.errors import OutputError
from ripple.core.row_ops import OP
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from ripple.connectors.connector import Writing


def continue_parts(path: str, writing: Writing) -> PartsSink:
    """Return the sink of a folder of Parquet files; raises as PartsSink does."""
    disk, folder, owner, columns = _parts(path, writing)
    return PartsSink(disk, folder, owner, columns, name=path)


def look_at_parts(path: str, writing: Writing) -> int:
    """Raise as ``continue_parts`` does, with nothing changed; no owner of a folder has an epoch."""
    disk, folder, owner, columns = _parts(path, writing)
    examine(disk, folder, owner, columns, path)
    owner.check_lock(disk, folder + LOCK)
    return 0


def _parts(path: str, writing: Writing) -> tuple[LiveDisk, str, Owner, tuple[str, ...]]:
    """Return the disk, the name of the folder on it, its owner, and its columns."""
    output, place = writing.output, PurePath(path)
    disk = LiveDisk(place.parent, make=False)
    if not disk.exists(""):
        raise OutputError(f"cannot write {path}: there is no folder {place.parent}")
    ops = () if output.is_stream else (OP,)
    columns = (*ops, *(member.name for member in output.fields))
    return disk, place.name, Owner(writing.plan.name, output.name), columns
