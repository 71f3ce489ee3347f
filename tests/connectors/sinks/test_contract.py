"""What every sink that records its cut promises, on a simulated disk (live.

Tests/connectors/contract).
"""

from __future__ import annotations

from functools import partial

import pytest

from ripple.connectors.contract import Commit
from ripple.core.errors import OutputError
from ripple.testing.sim.disk import SimDisk
from ripple.world import Disk, DiskFullError, DiskLockedError
from tests.connectors.sinks.kit import (
    CUTS,
    KINDS,
    Kind,
    changes,
    contents,
    number_after,
    reached,
    rewrite,
    world_of,
    write,
)


@pytest.fixture
def disk() -> Disk:
    return SimDisk()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def test_nothing_is_committed_at_first(kind: Kind, disk: Disk) -> None:
    sink = kind.open(world_of(disk))
    assert (sink.committed, sink.unfinished, sink.cut_off_bytes) == (None, None, 0)
    assert sink.records_cut
    assert "each cut once" in sink.promise
    sink.close()
    sink.close()


@pytest.mark.parametrize("stop", range(CUTS + 1))
def test_restart_resumes_after_the_last_commit(kind: Kind, disk: Disk, stop: int) -> None:
    write(kind.open(world_of(disk)), 0, stop)
    sink = kind.open(world_of(disk))
    assert sink.committed == (reached(stop - 1) if stop else None)
    assert sink.unfinished is None
    write(sink, stop, CUTS)
    assert kind.read(disk) == kind.expected()
    assert kind.read_committed(disk) == kind.expected()


@pytest.mark.parametrize("stop", range(CUTS + 1))
def test_uncommitted_changes_are_not_written_twice(kind: Kind, disk: Disk, stop: int) -> None:
    write(kind.open(world_of(disk)), 0, stop, commit_every=3)
    assert kind.read(disk) == kind.expected(stop)
    sink = kind.open(world_of(disk))
    again = number_after(sink.committed)
    assert stop - stop % 3 <= again <= stop
    write(sink, again, CUTS)
    assert kind.read(disk) == kind.expected()


def test_commit_without_changes_is_remembered(kind: Kind, disk: Disk) -> None:
    sink = kind.open(world_of(disk))
    write(sink, 0, 2)  # the second one has no changes
    before = kind.read(disk)
    again = kind.open(world_of(disk))
    assert again.committed == reached(1)
    later = Commit({"trades": 99}, "f")
    again.write(changes(1), later)
    again.commit(later)
    again.close()
    final = kind.open(world_of(disk))
    assert final.committed == later
    final.close()
    assert kind.read(disk) == before


def test_error_of_a_second_writer_names_the_first(kind: Kind, disk: Disk) -> None:
    sink = kind.open(world_of(disk))
    with pytest.raises(DiskLockedError, match="held by output 'out' of pipeline 'vwap'"):
        kind.open(world_of(disk))
    sink.close()
    kind.open(world_of(disk)).close()


def test_disk_that_was_full_is_tried_again(kind: Kind) -> None:
    disk = SimDisk()
    sink = kind.open(world_of(disk))
    failures = 0
    for number in range(CUTS):
        for call in (
            partial(sink.write, changes(number), reached(number)),
            partial(sink.commit, reached(number)),
        ):
            # A limit that is not the disk's first one, so that bytes are counted.
            room = (1 << 40) - 1
            disk.capacity_bytes = room
            disk.capacity_bytes = room - disk.free_bytes() + 20
            try:
                call()
            except DiskFullError:
                failures += 1
                disk.capacity_bytes = room
                call()
    sink.close()
    assert failures > CUTS
    assert kind.read(disk) == kind.expected()


def test_damaged_record_is_refused(kind: Kind, disk: Disk) -> None:
    write(kind.open(world_of(disk)), 0, 3)
    name = "out.cut" if disk.exists("out.cut") else "out/0/output.cut"
    data = disk.read_bytes(name, length_max=10_000)
    for wrong in (b"", data[:-3], data.replace(b"vwap", b"vwop"), data + b"x"):
        rewrite(disk, name, wrong)
        found = contents(disk)
        way_out = "remove both to start over" if name == "out.cut" else "remove it to resume from"
        with pytest.raises(OutputError, match=rf"cut is damaged: .* {way_out}"):
            kind.open(world_of(disk))
        assert contents(disk) == found
    rewrite(disk, name, data)
    write(kind.open(world_of(disk)), 3, CUTS)
    assert kind.read(disk) == kind.expected()


def test_way_out_of_a_damaged_record_works(kind: Kind, disk: Disk) -> None:
    write(kind.open(world_of(disk)), 0, 3)
    is_file = disk.exists("out.cut")
    rewrite(disk, "out.cut" if is_file else "out/0/output.cut", b"")
    for name in ("out.cut", "out") if is_file else ("out/0/output.cut",):
        disk.remove(name)
    write(kind.open(world_of(disk)), 0 if is_file else 3, CUTS)
    assert kind.read(disk) == kind.expected()
