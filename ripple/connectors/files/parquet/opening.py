"""Opens folders of Parquet files for restarted runs."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from ripple.connectors.files.parquet.parts import LOCK, PartsSink, examine
from ripple.connectors.files.remote.address import check_written, is_remote
from ripple.connectors.files.text.cut_record import Owner
from ripple.core.errors import OutputError
from ripple.core.row_ops import OP
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from ripple.connectors.connector import Writing
    from ripple.connectors.contract import Commit, Sink


def continue_parts(path: str, writing: Writing) -> Sink:
    """Return the sink of a folder of Parquet files; raises as PartsSink and ObjectsSink do."""
    if is_remote(path):
        from ripple.connectors.files.parquet.objects import ObjectsSink  # noqa: PLC0415 - an extra

        return ObjectsSink(*_objects(path, writing))
    disk, folder, owner, columns = _parts(path, writing)
    return PartsSink(disk, folder, owner, columns, name=path)


def look_at_parts(path: str, writing: Writing) -> int:
    """Raise as ``continue_parts`` does, with nothing changed; no owner of a folder has an epoch."""
    if is_remote(path):
        reached_parts(path, writing)
        return 0
    disk, folder, owner, columns = _parts(path, writing)
    examine(disk, folder, owner, columns, path)
    owner.check_lock(disk, folder + LOCK)
    return 0


def reached_parts(path: str, writing: Writing) -> Commit | None:
    """Return the last commit of a folder, None without one; raises as ``continue_parts`` does."""
    if is_remote(path):
        from ripple.connectors.files.parquet import objects  # noqa: PLC0415 - of an extra

        last = objects.examine(*_objects(path, writing))
        return None if last is None else last.record.reached
    disk, folder, owner, columns = _parts(path, writing)
    record, _ = examine(disk, folder, owner, columns, path)
    return None if record is None else record.reached


def _parts(path: str, writing: Writing) -> tuple[LiveDisk, str, Owner, tuple[str, ...]]:
    """Return the disk, the name of the folder on it, its owner, and its columns."""
    output, place = writing.output, PurePath(path)
    disk = LiveDisk(place.parent, make=False)
    if not disk.exists(""):
        raise OutputError(f"cannot write {path}: there is no folder {place.parent}")
    return disk, place.name, Owner(writing.plan.name, output.name), _columns(writing)


def _objects(path: str, writing: Writing) -> tuple[str, Owner, tuple[str, ...]]:
    """Return the address of a folder in S3, its owner, and its columns."""
    check_written(path)
    return path.rstrip("/"), Owner(writing.plan.name, writing.output.name), _columns(writing)


def _columns(writing: Writing) -> tuple[str, ...]:
    ops = () if writing.output.is_stream else (OP,)
    return (*ops, *(member.name for member in writing.output.fields))
