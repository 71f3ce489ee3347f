from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ripple.world import DiskFullError, DiskLockedError, LiveDisk, SyncFailedError
from tests.world.disk_contract import DiskContract


@pytest.fixture
def disk(tmp_path: Path) -> LiveDisk:
    return LiveDisk(tmp_path / "root")


class TestLiveDisk(DiskContract):
    pass


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
