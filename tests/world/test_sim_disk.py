from __future__ import annotations

import pytest

from ripple.testing import Fault, SimDisk
from ripple.testing.sim.effects import Crash, Effects, Trace
from ripple.testing.sim.faults import SALT_KEPT, SALT_LOST, Planned
from ripple.world import DiskFullError, SyncFailedError
from tests.world.disk_contract import DiskContract


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk()


class TestSimDisk(DiskContract):
    pass


def struck(*faults: Fault) -> SimDisk:
    return SimDisk(effects(*faults))


def effects(*faults: Fault) -> Effects:
    return Effects(0, Planned(faults), Trace())


def found(disk: SimDisk, salt: int) -> SimDisk:
    return disk.after_power_cut(effects(), salt)


def write(disk: SimDisk, path: str, data: bytes, *, sync: bool) -> None:
    file = disk.open(path, create=True)
    file.append(data)
    if sync:
        file.sync()
    file.close()


def test_synced_file_in_synced_folder_survives_every_power_cut(disk: SimDisk) -> None:
    write(disk, "a", b"x" * 300, sync=True)
    disk.sync_folder("")
    for salt in range(100):
        assert found(disk, salt).read_bytes("a", length_max=300) == b"x" * 300


def test_unsynced_data_is_lost_kept_or_torn(disk: SimDisk) -> None:
    write(disk, "a", b"x" * 100, sync=True)
    disk.sync_folder("")
    write(disk, "a", b"y" * 200, sync=False)
    outcomes = {found(disk, salt).read_bytes("a", length_max=300) for salt in range(200)}
    assert found(disk, SALT_LOST).read_bytes("a", length_max=300) == b"x" * 100
    assert found(disk, SALT_KEPT).read_bytes("a", length_max=300) == b"x" * 100 + b"y" * 200
    assert all(outcome.startswith(b"x" * 100) for outcome in outcomes)
    assert any(100 < len(outcome) < 300 for outcome in outcomes)
    assert any(b"\0" in outcome for outcome in outcomes)


def test_unsynced_names_survive_in_any_subset(disk: SimDisk) -> None:
    for name in "abc":
        write(disk, name, b"1", sync=True)
    outcomes = {"".join(found(disk, salt).list("")) for salt in range(300)}
    assert outcomes == {"", "a", "b", "c", "ab", "ac", "bc", "abc"}


def test_rename_is_one_step(disk: SimDisk) -> None:
    write(disk, "a", b"old", sync=True)
    write(disk, "b", b"new", sync=True)
    disk.sync_folder("")
    disk.rename("b", "a")
    for salt in range(50):
        after = found(disk, salt)
        assert (after.list(""), after.read_bytes("a", length_max=9)) in (
            (["a", "b"], b"old"),
            (["a"], b"new"),
        )


def test_sync_of_one_folder_leaves_others(disk: SimDisk) -> None:
    disk.make_folder("x")
    disk.make_folder("y")
    write(disk, "x/a", b"1", sync=True)
    write(disk, "y/a", b"1", sync=True)
    disk.sync_folder("x")
    after = found(disk, SALT_LOST)
    assert (after.list("x"), after.list("y")) == (["a"], [])


def test_rename_between_folders_is_synced_with_either(disk: SimDisk) -> None:
    for folder in ("x", "y"):
        disk.make_folder(folder)
    write(disk, "x/a", b"1", sync=True)
    disk.rename("x/a", "y/a")
    disk.sync_folder("y")
    after = found(disk, SALT_LOST)
    assert (after.list("x"), after.list("y")) == ([], ["a"])


def test_killed_process_leaves_what_it_wrote(disk: SimDisk) -> None:
    write(disk, "a", b"1", sync=False)
    disk.lock("lock", "the dead")
    after = disk.after_exit(effects())
    assert after.read_bytes("a", length_max=1) == b"1"
    after.lock("lock", "the living").release()
    # ... and is as volatile as before.
    assert found(after, SALT_LOST).list("") == []


def test_two_names_of_a_file_stay_one_file_after_a_power_cut(disk: SimDisk) -> None:
    write(disk, "a", b"1", sync=True)
    assert disk.link_absent("a", "b")
    disk.sync_folder("")
    after = found(disk, SALT_LOST)
    file = after.open("a")
    file.append(b"2")
    assert after.read_bytes("b", length_max=2) == b"12"


def test_dead_process_has_no_more_effects() -> None:
    disk = struck(Fault(0, 2, "kill_torn", 3))
    file = disk.open("a", create=True)
    try:
        with pytest.raises(Crash):
            file.append(b"x" * 50)
    finally:
        with pytest.raises(Crash):
            disk.remove("a")
    assert len(disk.after_exit(effects()).read_bytes("a", length_max=50)) < 50


def test_full_disk_takes_what_fits() -> None:
    disk = SimDisk()
    disk.capacity_bytes = 10
    file = disk.open("a", create=True)
    file.append(b"1234567")
    with pytest.raises(DiskFullError):
        file.append(b"89abcd")
    assert file.size() == 10
    assert disk.free_bytes() == 0
    file.truncate(7)
    file.append(b"89a")
    assert file.read(0, 99) == b"123456789a"


def test_failed_sync_drops_pages_and_takes_no_more_appends() -> None:
    outcomes = set()
    for salt in range(50):
        disk = struck(Fault(0, 4, "sync_failed", salt))
        file = disk.open("a", create=True)
        disk.sync_folder("")
        file.append(b"x" * 200)
        with pytest.raises(SyncFailedError):
            file.sync()
        with pytest.raises(SyncFailedError):
            file.append(b"y")
        with pytest.raises(SyncFailedError):
            file.sync()
        assert file.read(0, 200) == b"x" * 200
        # Another handle's sync says that all is well: the pages look clean.
        disk.open("a").sync()
        outcomes.add(found(disk, SALT_LOST).read_bytes("a", length_max=200))
    assert len(outcomes) > 5


def test_flipped_bit_is_there_for_good(disk: SimDisk) -> None:
    write(disk, "a", b"\0\0", sync=True)
    disk.sync_folder("")
    disk.flip_bit("a", 9)
    assert disk.read_bytes("a", length_max=2) == b"\0\x02"
    assert found(disk, SALT_LOST).read_bytes("a", length_max=2) == b"\0\x02"
