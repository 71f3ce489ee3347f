"""A folder of the real file system as a disk."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ripple.core.errors import LimitError
from ripple.world import paths
from ripple.world.errors import DiskFullError, DiskLockedError, NotALockError, SyncFailedError
from ripple.world.live_watch import LOOK_S, LiveWatch
from ripple.world.permissions import make_like

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HOLDER_BYTES_MAX = 1024
LOCK_MARK = "ripple lock: "
# Texts that versions without the mark have left when they were killed.
_FORMER_LOCK = re.compile(
    r"output '.*' of pipeline '.*'|ripple (run|log append|dead-letter retry), process \d+ on .*|"
    "a (life|retry|run|writer)|another run|the creation of a topic"
)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class LiveDisk:
    """The files below ``root``, which is made if it is absent, unless ``make`` is False.

    ``look_s`` is the interval of polling a folder that the system cannot watch.
    """

    def __init__(
        self, root: str | os.PathLike[str], *, make: bool = True, look_s: float = LOOK_S
    ) -> None:
        self.root = Path(root).absolute()
        self._look_s = look_s
        if make:
            _make_folder(self.root, self.root)

    def open(
        self, path: str, *, create: bool = False, exclusive: bool = False, like: str = ""
    ) -> LiveFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        if create or exclusive:
            flags |= os.O_CREAT
        if exclusive:
            flags |= os.O_EXCL
        real = self._real(path)
        with _room(real):
            if exclusive and like:
                return LiveFile(make_like(real, flags, self._real(like), 0o644), str(real))
            return LiveFile(os.open(real, flags, 0o644), str(real))

    def open_to_read(self, path: str) -> LiveFile:
        real = self._real(path)
        descriptor = os.open(real, os.O_RDONLY | os.O_CLOEXEC)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):  # which the system would say without a name
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(real))
        return LiveFile(descriptor, str(real))

    def read_bytes(self, path: str, *, length_max: int) -> bytes:
        with self._real(path).open("rb") as file:
            # One byte more than allowed distinguishes a file that is too long from one that fits.
            data = file.read(length_max + 1)
        if len(data) > length_max:
            raise LimitError(f"{self._real(path)} is longer than {length_max} bytes")
        return data

    def list(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._real(folder)))
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        return self._real(path).exists()

    def make_folder(self, folder: str) -> None:
        real = self._real(folder)
        with _room(real):
            for part in _make_folder(real, self.root):
                _sync_folder(part.parent)

    def rename(self, source: str, target: str) -> None:
        with _room(self._real(target)):
            self._real(source).replace(self._real(target))

    def link_absent(self, source: str, target: str) -> bool:
        try:
            with _room(self._real(target)):
                os.link(self._real(source), self._real(target), follow_symlinks=False)
        except FileExistsError:
            return False
        return True

    def remove(self, path: str) -> None:
        self._real(path).unlink()

    def remove_folder(self, folder: str) -> None:
        self._real(folder).rmdir()

    def sync_folder(self, folder: str) -> None:
        try:
            _sync_folder(self._real(folder))
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise SyncFailedError(str(self._real(folder)), error.strerror or str(error)) from error

    def lock(self, path: str, holder: str) -> LiveLock:
        real = self._real(path)
        while True:
            descriptor = _open_lock(real)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not _is_lock(_text_in(descriptor)):
                    raise NotALockError(str(real), "a user's own file")
            except BlockingIOError:
                present = _text_in(descriptor).removeprefix(LOCK_MARK)
                os.close(descriptor)
                # The holder writes its name just after it has the lock.
                present = present or "a process that has just started"
                raise DiskLockedError(str(real), present) from None
            except BaseException:
                os.close(descriptor)
                raise
            if _is_at(descriptor, real):
                break
            # The one who held it has removed the file: others would lock another one.
            os.close(descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{LOCK_MARK}{holder}".encode()[:HOLDER_BYTES_MAX], 0)
        return LiveLock(descriptor)

    def watch(self, folders: Sequence[str]) -> LiveWatch:
        return LiveWatch([os.fspath(self._real(folder)) for folder in folders], self._look_s)

    def free_bytes(self) -> int:
        state = os.statvfs(self.root)
        return state.f_bavail * state.f_frsize

    def _real(self, path: str) -> Path:
        return self.root.joinpath(*paths.parts(path))


class LiveFile:
    """A file descriptor, which it owns."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path
        self._sync_failed = ""

    def append(self, data: bytes | memoryview) -> None:
        self._check_synced()
        rest = memoryview(data).cast("B")
        with _room(self._path):
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def read(self, offset: int, length: int) -> bytes:
        data = os.pread(self._descriptor, length, offset)
        # The system may return less than there is, for one reason or another.
        while 0 < len(data) < length:
            more = os.pread(self._descriptor, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def is_named(self) -> bool:
        return _is_at(self._descriptor, Path(self._path))

    def truncate(self, size: int) -> None:
        if size > self.size():
            raise ValueError(f"{self._path}: cannot be cut to {size} bytes, it has {self.size()}")
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        self._check_synced()
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._sync_failed = error.strerror or str(error)
            raise SyncFailedError(self._path, self._sync_failed) from error

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _check_synced(self) -> None:
        if self._sync_failed:
            raise SyncFailedError(self._path, self._sync_failed)


class LiveLock:
    """A lock on an open file, which has its name still when the lock is taken."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.ftruncate(descriptor, 0)
            os.close(descriptor)


@contextmanager
def _room(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM and not isinstance(error, DiskFullError):
            raise DiskFullError(str(path)) from error
        raise


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def _open_lock(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with _room(path):
            descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotALockError(str(path), "a symbolic link") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotALockError(str(path), "a pipe or a device")
    return descriptor


def _text_in(descriptor: int) -> str:
    return os.pread(descriptor, HOLDER_BYTES_MAX, 0).decode(errors="replace")


def _is_lock(text: str) -> bool:
    return not text or text.startswith(LOCK_MARK) or bool(_FORMER_LOCK.fullmatch(text))


def _make_folder(folder: Path, root: Path) -> list[Path]:
    """Make a folder and those above it; return the created ones, the uppermost first.

    They are for this user alone: there are records in them, and keys. One within another one that
    is below ``root`` is as open as that one, which its user may have opened to others.
    """
    made = [part for part in (folder, *folder.parents) if not part.exists()][::-1]
    for part in made:
        is_within = root in part.parents and part.parent != root
        mode = stat.S_IMODE(part.parent.stat().st_mode) & 0o777 if is_within else 0o700
        part.mkdir(mode, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    return made


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
