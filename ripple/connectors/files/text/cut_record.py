"""The cut record of a sink, in a small file next to its data.

Two lines: a JSON object, and ``crc32c`` with the checksum of that line in hexadecimal. The file is
replaced as a whole, after its data are durable.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.connectors.contract import Commit
from ripple.core.codec.crc import crc32c
from ripple.core.compact_cut import loaded, stored
from ripple.core.errors import LimitError, OutputError
from ripple.world.ports import all_guards
from ripple.world.replacing import replace

if TYPE_CHECKING:
    from ripple.world.ports import Disk, Guards

FORMAT = 2  # 1 of cuts with few inputs, which any version reads
RECORD_BYTES_MAX = 64 << 20


class Owner(NamedTuple):
    """The pipeline and output of a file."""

    pipeline: str
    output: str

    def __str__(self) -> str:
        return f"output {self.output!r} of pipeline {self.pipeline!r}"

    def check_lock(self, disk: Disk, path: str) -> None:
        """Raise DiskLockedError if another process has the lock at ``path``; make none."""
        if disk.exists(path):
            disk.lock(path, str(self)).release()


@dataclass(frozen=True, slots=True)
class CutRecord:
    """The durable state of an output.

    columns: of the data, by name. reached: None before the first commit. end: the length of a file
    in bytes, the next offset of a log, or the number of a folder's commit, from 1. crc: CRC-32C of
    a file's first ``end`` bytes, or of the header of a log's last frame before ``end``.
    """

    owner: Owner
    columns: tuple[str, ...]
    reached: Commit | None = None
    end: int = 0
    crc: int = 0

    def check_owner(self, owner: Owner, name: str) -> None:
        """Raise OutputError if the data are of another output."""
        if self.owner != owner:
            raise OutputError(f"{name} belongs to {self.owner}, not to {owner}: choose another URI")

    def check_columns(self, columns: tuple[str, ...], name: str, kind: str) -> None:
        """Raise OutputError if the data have other columns. kind: the noun of the way out."""
        if self.columns != columns:
            raise OutputError(
                f"{name} has the columns {', '.join(self.columns)}, but the output has "
                f"{', '.join(columns)}: name another {kind}"
            )


def read(disk: Disk, path: str, *, way_out: str = "restore it from a copy") -> CutRecord | None:
    """Return the record at ``path``, None if there is none; raises OutputError if it is damaged.

    way_out: for the error, if there is no copy.
    """
    try:
        data = disk.read_bytes(path, length_max=RECORD_BYTES_MAX)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise OutputError(
            f"{path} is no record of a cut: a folder stands there; {way_out}"
        ) from None
    except LimitError as error:
        raise OutputError(f"{path} is no record of a cut: {error}; {way_out}") from error
    line, _, checksum = data.partition(b"\n")
    if checksum != _checksum(line):
        raise OutputError(f"{path} is damaged: it does not have its checksum; {way_out}")
    held: dict[str, Any] = json.loads(line)
    version = held.pop("format")
    if version > FORMAT:
        raise OutputError(
            f"{path} has format {version}, this version of Ripple reads up to {FORMAT}: upgrade it"
        )
    return CutRecord(
        Owner(held["pipeline"], held["output"]),
        tuple(held["columns"]),
        from_json(held["reached"]),
        held["end"],
        held["crc32c"],
    )


def write(
    disk: Disk,
    path: str,
    record: CutRecord,
    guards: Guards = all_guards,
    *,
    may_be_older: bool = False,
) -> None:
    """Replace the record at ``path``, durably; the one before stays if that fails.

    may_be_older: whether a crash of the machine may bring back the previous record, which saves
    a sync. Raises LimitError for a record that ``read`` would refuse, and OSError.
    """
    reached = to_json(record.reached)
    is_short = reached is not None and isinstance(reached["cut"], str)
    line = json.dumps(
        {
            "format": FORMAT if is_short else 1,
            "pipeline": record.owner.pipeline,
            "output": record.owner.output,
            "columns": record.columns,
            "reached": reached,
            "end": record.end,
            "crc32c": record.crc,
        },
        sort_keys=True,
    ).encode()
    data = line + b"\n" + _checksum(line)
    if len(data) > RECORD_BYTES_MAX:
        raise LimitError(
            f"{path} would take {len(data)} bytes, more than {RECORD_BYTES_MAX}: use fewer "
            "partitions"
        )
    replace(
        disk,
        path,
        data,
        syncs_data=guards("record_sync"),
        syncs_name=not may_be_older and guards("record_name_sync"),
    )


def to_json(commit: Commit | None) -> dict[str, Any] | None:
    """Return a commit as JSON can hold it."""
    return None if commit is None else {"cut": stored(commit.cut), "digest": commit.digest}


def from_json(held: dict[str, Any] | None) -> Commit | None:
    """Return the argument of ``to_json``."""
    return None if held is None else Commit(loaded(held["cut"]), held["digest"])


def _checksum(line: bytes) -> bytes:
    return f"crc32c {crc32c(line):08x}\n".encode()
