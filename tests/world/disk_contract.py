"""The contract of disks; each form of the disk runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing

import pytest

from ripple.core.errors import LimitError
from ripple.world import Disk, DiskLockedError, NotALockError
from ripple.world.replacing import replace


def grow(disk: Disk, path: str) -> None:
    file = disk.open(path, create=True)
    file.append(b"more")
    file.close()


def cut(disk: Disk, path: str) -> None:
    file = disk.open(path)
    file.truncate(0)
    file.close()


# What somebody does in the folder "x", where a file "x/a" is.
HAPPENINGS: dict[str, Callable[[Disk], object]] = {
    "a file is made": lambda disk: disk.open("x/b", create=True).close(),
    "a file grows": lambda disk: grow(disk, "x/a"),
    "a file is cut": lambda disk: cut(disk, "x/a"),
    "a file comes by renaming": lambda disk: disk.rename("elsewhere", "x/a"),
    "a file goes by renaming": lambda disk: disk.rename("x/a", "elsewhere"),
    "a file gets a name": lambda disk: disk.link_absent("elsewhere", "x/b"),
    "a file is removed": lambda disk: disk.remove("x/a"),
}


class DiskContract:
    """Subclasses give the fixture ``disk``: an empty one."""

    def test_a_file_knows_whether_its_name_leads_to_it(self, disk: Disk) -> None:
        disk.make_folder("x")
        grow(disk, "x/b")
        file = disk.open("x/a", create=True)
        assert file.is_named()
        disk.rename("x/a", "x/c")
        assert not file.is_named()
        disk.rename("x/b", "x/a")
        assert not file.is_named()
        disk.rename("x/c", "x/a")
        assert file.is_named()
        disk.remove("x/a")
        assert not file.is_named()
        file.close()

    @pytest.mark.parametrize("happening", HAPPENINGS.values(), ids=HAPPENINGS)
    async def test_watch_tells_whatever_happens_to_the_files_of_a_folder(
        self, disk: Disk, happening: Callable[[Disk], object]
    ) -> None:
        disk.make_folder("x")
        grow(disk, "x/a")
        grow(disk, "elsewhere")
        with closing(disk.watch(["x"])) as watch:
            waiting = asyncio.create_task(watch.changed())
            await asyncio.sleep(0.01)
            assert not waiting.done()
            happening(disk)
            await waiting

    async def test_watch_has_noted_what_came_before_anybody_waits(self, disk: Disk) -> None:
        disk.make_folder("x")
        with closing(disk.watch(["x"])) as watch:
            grow(disk, "x/a")
            await watch.changed()
            waiting = asyncio.create_task(watch.changed())
            await asyncio.sleep(0.01)
            assert not waiting.done()
            waiting.cancel()
            await asyncio.wait([waiting])
            grow(disk, "x/a")
            await watch.changed()

    async def test_watch_of_several_folders_tells_of_each_and_of_no_other(self, disk: Disk) -> None:
        for folder in ("x", "y", "z"):
            disk.make_folder(folder)
        with closing(disk.watch(["x", "y"])) as watch:
            for folder in ("x", "y"):
                waiting = asyncio.create_task(watch.changed())
                grow(disk, "z/a")
                await asyncio.sleep(0.01)
                assert not waiting.done()
                grow(disk, f"{folder}/a")
                await waiting

    async def test_watch_of_a_folder_that_is_made_and_made_again_tells_what_is_in_it(
        self, disk: Disk
    ) -> None:
        with closing(disk.watch(["x"])) as watch:
            for _ in range(2):
                disk.make_folder("x")
                grow(disk, "x/a")
                await watch.changed()
                disk.remove("x/a")
                await watch.changed()
                disk.remove_folder("x")

    async def test_watch_is_woken_by_its_owner_even_before_he_waits(self, disk: Disk) -> None:
        disk.make_folder("x")
        with closing(disk.watch(["x"])) as watch:
            watch.wake()
            await watch.changed()
            waiting = asyncio.create_task(watch.changed())
            await asyncio.sleep(0.01)
            assert not waiting.done()
            watch.wake()
            await waiting
        watch.close()

    def test_appended_bytes_read_back(self, disk: Disk) -> None:
        file = disk.open("a", create=True)
        file.append(b"hello ")
        file.append(memoryview(b"world"))
        assert file.size() == 11
        assert file.read(0, 100) == b"hello world"
        assert file.read(6, 3) == b"wor"
        assert file.read(11, 5) == b""
        assert file.read(20, 5) == b""
        file.close()
        file.close()
        assert disk.read_bytes("a", length_max=11) == b"hello world"

    def test_existing_file_opens_and_grows(self, disk: Disk) -> None:
        first = disk.open("a", create=True)
        first.append(b"1")
        second = disk.open("a", create=True)
        second.append(b"2")
        assert first.read(0, 9) == b"12"
        first.append(b"3")
        assert second.read(0, 9) == b"123"
        first.close()
        second.close()

    def test_absent_file_is_not_found(self, disk: Disk) -> None:
        for act in (
            lambda: disk.open("a"),
            lambda: disk.open_to_read("a"),
            lambda: disk.read_bytes("a", length_max=1),
            lambda: disk.remove("a"),
            lambda: disk.rename("a", "b"),
            lambda: disk.link_absent("a", "b"),
            lambda: disk.open("folder/a", create=True),
            lambda: disk.sync_folder("folder"),
        ):
            with pytest.raises(FileNotFoundError):
                act()
        assert disk.list("folder") == []
        assert not disk.exists("a")

    def test_file_opened_to_read_grows_and_syncs_but_is_not_written(self, disk: Disk) -> None:
        written = disk.open("a", create=True)
        written.append(b"1")
        read = disk.open_to_read("a")
        written.append(b"2")
        assert (read.read(0, 9), read.size()) == (b"12", 2)
        read.sync()
        for act in (lambda: read.append(b"3"), lambda: read.truncate(0)):
            with pytest.raises(OSError, match="Errno"):
                act()
        assert disk.read_bytes("a", length_max=9) == b"12"
        read.close()
        written.close()

    def test_exclusive_open_makes_once(self, disk: Disk) -> None:
        disk.open("a", exclusive=True).close()
        with pytest.raises(FileExistsError):
            disk.open("a", exclusive=True)

    def test_long_file_is_not_read_whole(self, disk: Disk) -> None:
        file = disk.open("a", create=True)
        file.append(b"123")
        file.close()
        with pytest.raises(LimitError, match="a is longer than 2 bytes"):
            disk.read_bytes("a", length_max=2)

    def test_folder_lists_names_sorted(self, disk: Disk) -> None:
        disk.make_folder("x/y")
        disk.make_folder("x/y")
        for name in ("x/b", "x/a", "x/y/c"):
            disk.open(name, create=True).close()
        assert disk.list("x") == ["a", "b", "y"]
        assert disk.list("") == ["x"]
        assert disk.exists("x/y")
        disk.sync_folder("x")
        disk.sync_folder("")

    def test_folder_goes_when_nothing_is_in_it(self, disk: Disk) -> None:
        disk.make_folder("x/y")
        disk.open("x/y/a", create=True).close()
        for folder in ("x", "x/y"):
            with pytest.raises(OSError, match="not empty"):
                disk.remove_folder(folder)
        disk.remove("x/y/a")
        disk.remove_folder("x/y")
        assert disk.list("x") == []
        with pytest.raises(FileNotFoundError):
            disk.remove_folder("x/y")
        disk.make_folder("x/y")

    def test_rename_replaces(self, disk: Disk) -> None:
        for name in ("a", "b"):
            file = disk.open(name, create=True)
            file.append(name.encode())
            file.close()
        disk.rename("a", "b")
        assert disk.list("") == ["b"]
        assert disk.read_bytes("b", length_max=9) == b"a"

    def test_link_is_put_if_absent(self, disk: Disk) -> None:
        for name in ("a", "b"):
            file = disk.open(name, create=True)
            file.append(name.encode())
            file.close()
        assert disk.link_absent("a", "c")
        assert not disk.link_absent("b", "c")
        disk.remove("a")
        assert disk.read_bytes("c", length_max=9) == b"a"

    def test_removed_file_stays_readable_where_open(self, disk: Disk) -> None:
        file = disk.open("a", create=True)
        file.append(b"1")
        disk.remove("a")
        assert file.read(0, 1) == b"1"
        assert disk.list("") == []
        file.close()

    def test_truncate_cuts_and_appends_go_on(self, disk: Disk) -> None:
        file = disk.open("a", create=True)
        file.append(b"123456")
        file.truncate(2)
        file.append(b"x")
        file.sync()
        assert file.read(0, 9) == b"12x"
        with pytest.raises(ValueError, match="cut to 9"):
            file.truncate(9)
        file.close()

    def test_lock_names_its_holder(self, disk: Disk) -> None:
        lock = disk.lock("lock", "the first")
        with pytest.raises(DiskLockedError, match="held by the first") as caught:
            disk.lock("lock", "the second")
        assert caught.value.holder == "the first"
        lock.release()
        lock.release()
        disk.lock("lock", "the third").release()

    def test_lock_whose_file_is_removed_is_free_for_the_next(self, disk: Disk) -> None:
        lock = disk.lock("lock", "the first")
        disk.remove("lock")
        lock.release()
        lock = disk.lock("lock", "the second")
        assert disk.exists("lock")
        with pytest.raises(DiskLockedError, match="held by the second"):
            disk.lock("lock", "the third")
        lock.release()

    @pytest.mark.parametrize("path", ["/a", "../a", "a/../b", "a//b", "a/", ".", "a\0"])
    def test_path_out_of_the_root_is_refused(self, disk: Disk, path: str) -> None:
        with pytest.raises(ValueError, match="no path within a disk"):
            disk.open(path, create=True)

    def test_free_bytes_is_positive(self, disk: Disk) -> None:
        assert disk.free_bytes() > 0

    def test_file_that_no_lock_has_made_is_left_alone(self, disk: Disk) -> None:
        file = disk.open("lock", create=True)
        file.append(b"mine")
        file.close()
        with pytest.raises(NotALockError, match="is a user's own file, not a lock: move it away"):
            disk.lock("lock", "the first")
        assert disk.read_bytes("lock", length_max=9) == b"mine"
        disk.rename("lock", "elsewhere")
        disk.lock("lock", "the first").release()

    def test_file_replaced_as_a_whole_is_new_despite_leftovers(self, disk: Disk) -> None:
        for data in (b"old", b"", b"newer"):
            left = disk.open("a.tmp", create=True)
            left.append(b"left by a crash")
            left.close()
            replace(disk, "a", data)
            assert disk.read_bytes("a", length_max=9) == data
            assert disk.list("") == ["a"]
