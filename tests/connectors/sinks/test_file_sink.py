"""Files and their cut records: which are resumed, and which are never touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripple.connectors.contract import Commit
from ripple.connectors.files.text import cut_record
from ripple.connectors.files.text.cut_record import CutRecord, Owner
from ripple.connectors.files.text.file import FileSink
from ripple.connectors.files.text.sink import TextFormat
from ripple.core.errors import OutputError
from ripple.world import LiveDisk, NotALockError
from tests.connectors.sinks.kit import (
    CUTS,
    KINDS,
    OWNER,
    changes,
    contents,
    reached,
    rewrite,
    world_of,
    write,
)

CSV = KINDS["csv"]


@pytest.fixture
def disk(tmp_path: Path) -> LiveDisk:
    return LiveDisk(tmp_path)


def test_uncommitted_tail_is_cut_off_and_reported(disk: LiveDisk) -> None:
    sink = CSV.open(world_of(disk))
    sink.write(changes(0), reached(0))
    sink.commit(reached(0))
    committed = CSV.read(disk)
    sink.write(changes(3), reached(3))
    sink.close()
    tail = len(CSV.read(disk)) - len(committed)
    assert tail > 0
    again = CSV.open(world_of(disk))
    assert (again.cut_off_bytes, again.committed) == (tail, reached(0))
    assert CSV.read(disk) == committed
    again.close()


def test_reader_stops_at_the_length_in_the_record(disk: LiveDisk) -> None:
    write(CSV.open(world_of(disk)), 0, 5, commit_every=2)
    assert CSV.read_committed(disk) == CSV.expected(4) != CSV.read(disk)


def test_header_is_there_once(disk: LiveDisk) -> None:
    write(CSV.open(world_of(disk)), 0, 1, commit_every=2)  # cut off again with all the rest
    for number in range(CUTS):
        write(CSV.open(world_of(disk)), number, number + 1)
    assert CSV.read(disk).splitlines().count(b"symbol,total") == 1
    assert CSV.read(disk).startswith(b"symbol,total\nS0,0\n")


def test_file_of_a_user_is_left_alone(disk: LiveDisk) -> None:
    rewrite(disk, "out", b"my own\n")
    with pytest.raises(OutputError, match=r"out exists, but out\.cut.*does not: name another file"):
        CSV.open(world_of(disk))
    assert disk.list("") == ["out"]
    assert CSV.read(disk) == b"my own\n"


def test_lock_file_does_not_count_as_a_users_file(disk: LiveDisk) -> None:
    rewrite(disk, "out.lock", b"my own\n")
    with pytest.raises(NotALockError, match="is a user's own file, not a lock"):
        CSV.open(world_of(disk))
    (disk.root / "important").write_bytes(b"important")
    (disk.root / "out.lock").unlink()
    (disk.root / "out.lock").symlink_to("important")
    with pytest.raises(NotALockError, match="is a symbolic link, not a lock"):
        CSV.open(world_of(disk))
    assert disk.list("") == ["important", "out.lock"]
    assert (disk.root / "important").read_bytes() == b"important"


def test_record_keeps_its_permissions(disk: LiveDisk) -> None:
    write(CSV.open(world_of(disk)), 0, 1)
    (disk.root / "out.cut").chmod(0o600)
    (disk.root / "out").chmod(0o640)
    write(CSV.open(world_of(disk)), 1, 3)
    modes = [(disk.root / name).stat().st_mode & 0o777 for name in ("out.cut", "out")]
    assert modes == [0o600, 0o640]


def grown(data: bytes) -> bytes:
    return data + b"S9,9\n"


def shortened(data: bytes) -> bytes:
    return data[:-1]


def changed(data: bytes) -> bytes:
    return data[:20] + bytes([data[20] ^ 1]) + data[21:]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            shortened,
            r"has \d+ bytes, but \d+ were committed: restore it, or remove it and out\.cut",
        ),
        (changed, r"was changed within the \d+ bytes that were committed"),
        (lambda data: changed(grown(data)), "was changed within"),
    ],
)
def test_damaged_file_is_refused(
    disk: LiveDisk, damage: Callable[[bytes], bytes], words: str
) -> None:
    write(CSV.open(world_of(disk)), 0, 3)
    rewrite(disk, "out", damage(CSV.read(disk)))
    before = contents(disk)
    with pytest.raises(OutputError, match=words):
        CSV.open(world_of(disk))
    assert contents(disk) == before


def test_file_that_is_gone_is_missed(disk: LiveDisk) -> None:
    write(CSV.open(world_of(disk)), 0, 3)
    disk.remove("out")
    before = contents(disk)
    with pytest.raises(OutputError, match=r"out is gone, but out\.cut says that it had"):
        CSV.open(world_of(disk))
    assert contents(disk) == before
    disk.remove("out.cut")
    write(CSV.open(world_of(disk)), 0, CUTS)
    assert CSV.read(disk) == CSV.expected()


def opened(disk: LiveDisk, *, owner: Owner = OWNER, columns: tuple[str, ...] = ()) -> FileSink:
    return FileSink(disk, "out", TextFormat(), owner, columns or ("symbol", "total"))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"owner": Owner("ohlc", "out")}, "belongs to output 'out' of pipeline 'vwap', not to"),
        ({"owner": Owner("vwap", "all")}, "not to output 'all' of pipeline 'vwap'"),
        ({"columns": ("symbol",)}, "has the columns symbol, total, but the output has symbol:"),
    ],
)
def test_file_of_another_output_is_refused(
    disk: LiveDisk, other: dict[str, Any], words: str
) -> None:
    write(opened(disk), 0, 3)
    before = contents(disk)
    with pytest.raises(OutputError, match=words):
        opened(disk, **other)
    assert contents(disk) == before


def test_a_cut_of_many_inputs_has_another_format(disk: LiveDisk) -> None:
    many = Commit({f"x/{number}": number for number in range(17)}, "d")
    cut_record.write(disk, "out.cut", CutRecord(OWNER, ("a",), many, 7, 9))
    assert b'"format": 2' in disk.read_bytes("out.cut", length_max=1000)
    assert cut_record.read(disk, "out.cut") == CutRecord(OWNER, ("a",), many, 7, 9)


def test_record_of_a_later_release_is_refused(disk: LiveDisk) -> None:
    assert cut_record.FORMAT == 2
    cut_record.write(disk, "out.cut", CutRecord(OWNER, ("a",), Commit({"x": 1}, "d"), 7, 9))
    assert cut_record.read(disk, "out.cut") == CutRecord(OWNER, ("a",), Commit({"x": 1}, "d"), 7, 9)
    line = disk.read_bytes("out.cut", length_max=1000).splitlines()[0]
    later = line.replace(b'"format": 1', b'"format": 3')
    rewrite(disk, "out.cut", later + b"\n" + f"crc32c {cut_record.crc32c(later):08x}\n".encode())
    with pytest.raises(OutputError, match=r"has format 3, .* reads up to 2: upgrade it"):
        cut_record.read(disk, "out.cut")


def test_closed_sink_takes_no_more(disk: LiveDisk) -> None:
    sink = CSV.open(world_of(disk))
    sink.close()
    with pytest.raises(OutputError, match="it was closed: open it again"):
        sink.write(changes(0), reached(0))


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced", "cut", "grown"])
def test_removing_the_output_ends_the_run(disk: LiveDisk, how: str) -> None:
    sink = CSV.open(world_of(disk))
    write_one(sink, 0)
    record = (disk.root / "out.cut").read_bytes()
    {
        "removed": lambda: disk.remove("out"),
        "renamed": lambda: disk.rename("out", "out.1"),
        "replaced": lambda: (disk.rename("out", "out.1"), rewrite(disk, "out", b"")),
        "cut": lambda: (disk.root / "out").write_bytes(b""),
        "grown": lambda: rewrite(disk, "out", CSV.read(disk) + b"more"),
    }[how]()
    sink.write(changes(1), reached(1))
    with pytest.raises(
        OutputError, match=r"out .*(removed or renamed|another process has changed it)"
    ):
        sink.commit(reached(1))
    sink.close()
    assert (disk.root / "out.cut").read_bytes() == record
    if how in ("renamed", "replaced"):
        disk.rename("out.1", "out")
        write(CSV.open(world_of(disk)), 1, 5)
        assert CSV.read(disk) == CSV.expected(5)


def write_one(sink: FileSink, number: int) -> None:
    sink.write(changes(number), reached(number))
    sink.commit(reached(number))
