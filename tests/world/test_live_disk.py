from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ripple.world import (
    DiskFullError,
    DiskLockedError,
    LiveDisk,
    NotALockError,
    SyncFailedError,
    live_watch,
    permissions,
)
from ripple.world.replacing import replace
from tests.patience import PATIENCE_S
from tests.world.disk_contract import DiskContract, grow


@pytest.fixture
def disk(tmp_path: Path) -> LiveDisk:
    return LiveDisk(tmp_path / "root")


@pytest.fixture(autouse=True)
def _told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at a folder of which the system tells."""
    monkeypatch.setattr(live_watch, "BACKSTOP_S", 2 * PATIENCE_S)


class TestLiveDisk(DiskContract):
    pass


async def test_watch_tells_of_another_process(disk: LiveDisk) -> None:
    disk.make_folder("x")
    with closing(disk.watch(["x"])) as watch:
        for _ in range(3):
            waiting = asyncio.create_task(watch.changed())
            await asyncio.sleep(0.01)
            code = "import sys; open(sys.argv[1], 'a').write('more')"
            path = disk.root / "x" / "a"
            other = await asyncio.create_subprocess_exec(sys.executable, "-c", code, path)
            await waiting
            await other.wait()


@pytest.mark.parametrize("why", ["no such system", "no folder"])
async def test_folder_that_cannot_be_watched_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "no such system":
        monkeypatch.setattr(live_watch, "_system", object)
    disk = LiveDisk(tmp_path, look_s=0.02)
    loop = asyncio.get_running_loop()
    with closing(disk.watch(["x"])) as watch:
        began_s = loop.time()
        for _ in range(3):
            await watch.changed()
        assert loop.time() - began_s >= 0.05
        disk.make_folder("x")
        grow(disk, "x/a")
        await watch.changed()
        watch.wake()
        await watch.changed()


def test_lock_of_a_killed_process_is_free(disk: LiveDisk) -> None:
    program = (
        "import sys; from ripple.world import LiveDisk; "
        f"lock = LiveDisk({str(disk.root)!r}).lock('lock', 'process 7'); "
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(DiskLockedError, match="process 7"):
            disk.lock("lock", "we")
        other.kill()
        other.wait()
    disk.lock("lock", "we").release()


def test_lock_is_of_the_file_that_has_the_name(
    disk: LiveDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder removes the file and lets go while somebody else has just opened it."""
    held = disk.lock("lock", "the first")
    opens = os.open
    opened = []

    def slow(path: object, *rest: int) -> int:
        descriptor = opens(path, *rest)  # type: ignore[arg-type]
        opened.append(descriptor)
        if len(opened) == 1:
            disk.remove("lock")
            held.release()
        return descriptor

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", slow)
        disk.lock("lock", "the second")
    assert len(opened) == 2
    with pytest.raises(DiskLockedError, match="the second"):
        disk.lock("lock", "the third")


def test_no_space_left_is_a_full_disk(disk: LiveDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = disk.open("a", create=True)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskFullError, match="a") as caught:
        file.append(b"1")
    assert caught.value.errno == errno.ENOSPC
    file.close()


def test_failed_sync_is_never_retried(disk: LiveDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = disk.open("a", create=True)

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(SyncFailedError, match="Input/output error"):
            file.sync()
    # The system would now answer that all is well.
    with pytest.raises(SyncFailedError):
        file.sync()
    with pytest.raises(SyncFailedError):
        file.append(b"1")
    file.close()


def test_lock_does_not_follow_a_link_nor_take_what_is_no_file(disk: LiveDisk) -> None:
    mine = disk.root.parent / "mine"
    mine.write_text("important")
    for name, target in (("lock", mine), ("dangling", disk.root / "nothing")):
        (disk.root / name).symlink_to(target)
        with pytest.raises(NotALockError, match="is a symbolic link, not a lock"):
            disk.lock(name, "we")
    assert mine.read_text() == "important"
    assert not (disk.root / "nothing").exists()
    os.mkfifo(disk.root / "pipe")
    with pytest.raises(NotALockError, match="is a pipe or a device"):
        disk.lock("pipe", "we")
    (disk.root / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        disk.lock("folder", "we")


@pytest.mark.parametrize(
    "left",
    [
        "",
        "ripple lock: process 7",
        # Older versions wrote the holder alone.
        "output 'o' of pipeline 'p'",
        "ripple run, process 7 on here",
        "a run",
    ],
)
def test_lock_that_a_killed_process_has_left_is_taken(disk: LiveDisk, left: str) -> None:
    (disk.root / "lock").write_text(left)
    lock = disk.lock("lock", "the living")
    with pytest.raises(DiskLockedError) as caught:
        disk.lock("lock", "another")
    assert caught.value.holder == "the living"
    lock.release()
    assert (disk.root / "lock").read_text() == ""


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640, 0o666])
def test_replaced_file_keeps_its_permissions_from_the_first_byte_on(
    disk: LiveDisk, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = disk.root / "record"
    replace(disk, "record", b"one")
    path.chmod(mode)
    seen: list[int] = []
    write = os.write

    def watched(descriptor: int, data: bytes) -> int:
        seen.append(os.fstat(descriptor).st_mode & 0o777)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", watched)
    replace(disk, "record", b"two")
    assert seen == [mode]
    assert path.stat().st_mode & 0o777 == mode
    assert path.read_bytes() == b"two"


def test_leftover_of_a_replacement_is_not_followed_if_it_is_a_link(disk: LiveDisk) -> None:
    mine = disk.root.parent / "mine"
    mine.write_text("important")
    (disk.root / "record.tmp").symlink_to(mine)
    replace(disk, "record", b"one")
    assert mine.read_text() == "important"
    assert (disk.root / "record").read_bytes() == b"one"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_replaced_file_keeps_its_owner_and_group(disk: LiveDisk) -> None:
    path = disk.root / "record"
    replace(disk, "record", b"one")
    os.chown(path, 1234, 5678)
    path.chmod(0o640)
    replace(disk, "record", b"two")
    status = path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 5678, 0o640)


def test_rights_of_a_group_do_not_pass_to_another_group(
    disk: LiveDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = disk.root / "record"
    path.write_bytes(b"one")
    path.chmod(0o674)
    kept = os.stat_result([*path.stat()[:5], 5678, *path.stat()[6:]])

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refused)
    monkeypatch.setattr(permissions, "_status", lambda _: kept)
    replace(disk, "record", b"two")
    assert path.stat().st_mode & 0o777 == 0o644


async def test_watches_of_one_loop_have_one_instance_of_the_system(disk: LiveDisk) -> None:
    def instances() -> int:
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return sum("inotify" in os.readlink(one) for one in links if os.path.islink(one))

    for name in ("x", "y"):
        disk.make_folder(name)
    before = instances()
    with closing(disk.watch(["x"])) as one, closing(disk.watch(["x", "y"])) as both:
        assert instances() == before + 1
        waiting = [asyncio.create_task(each.changed()) for each in (one, both)]
        await asyncio.sleep(0)
        disk.open("x/new", create=True).close()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*waiting)
        one.close()
        disk.open("y/new", create=True).close()
        async with asyncio.timeout(PATIENCE_S):
            await both.changed()
    assert instances() == before


def test_folders_are_for_their_user_alone_unless_opened_to_others(tmp_path: Path) -> None:
    disk = LiveDisk(tmp_path / "state")
    disk.make_folder("ledger/1")

    def mode(name: str) -> int:
        return (disk.root / name).stat().st_mode & 0o777

    assert [mode(name) for name in ("", "ledger", "ledger/1")] == [0o700] * 3
    (disk.root / "ledger").chmod(0o750)
    disk.make_folder("ledger/2")
    disk.make_folder("assign")
    assert (mode("ledger/2"), mode("assign")) == (0o750, 0o700)
