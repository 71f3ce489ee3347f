"""Targets of bytes: a file that appears only when it is complete, or an open stream."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from itertools import count
from typing import Protocol

from ripple.core.errors import OutputError

STANDARD_OUTPUT = "-"
WHOLE = "appears whole or not at all"
STAYS = "rows are written as they come, and stay"
AGAIN = "lines since the last checkpoint may be repeated after a restart"


class ClosedPipeError(OutputError):
    """The reader of a pipe went away; nothing is wrong, and nothing more is wanted."""


class Target(Protocol):
    """Takes bytes in order; the calls are those of a Sink that records no cut.

    promise: to its readers, in words.
    """

    name: str
    promise: str

    def write(self, data: bytes | memoryview) -> int:
        """Write all of ``data`` and return its length."""
        ...

    def commit(self) -> None:
        """Make the written bytes visible and durable. Raises OutputError."""
        ...

    def close(self) -> None:
        """Release the target; without a commit, leave nothing half-written where possible."""
        ...


def open_target(path: str | os.PathLike[str]) -> Target:
    """Open ``path`` for writing; ``-`` is standard output.

    An existing path that is no regular file (a device, a named pipe) is written directly, and so
    is the target of ``/dev/stdout``. ``s3://BUCKET/PATH`` is an object. Raises OutputError when it
    cannot be opened, and for a file of a durable run.
    """
    from ripple.connectors.standard import descriptor_of  # noqa: PLC0415 - not where help is shown

    name = os.fspath(path)
    if "://" in name and (target := _remote_target(name)) is not None:
        return target
    if name == STANDARD_OUTPUT:
        return StreamTarget(os.dup(1), "standard output")
    standard = descriptor_of(name)
    if standard is not None:
        try:
            return StreamTarget(os.dup(standard), name)
        except OSError as error:
            raise _failure(name, error) from error
    try:
        kind = os.stat(name).st_mode
    except OSError:
        kind = stat.S_IFREG
    if stat.S_ISREG(kind):
        _check_not_continued(name)
        return _FileTarget(name)
    if stat.S_ISDIR(kind):
        raise OutputError(f"cannot write {name}: it is a directory")
    try:
        return StreamTarget(os.open(name, os.O_WRONLY | os.O_CLOEXEC), name)
    except OSError as error:
        raise _failure(name, error) from error


def _remote_target(name: str) -> Target | None:
    """Return the target of an address, None for a path. Raises OutputError."""
    # not where help is shown
    from ripple.connectors.files.remote.address import check_written, is_remote  # noqa: PLC0415

    if not is_remote(name):
        return None
    check_written(name)
    from ripple.connectors.files.remote.s3_writing import ObjectTarget  # noqa: PLC0415 - an extra

    return ObjectTarget(name)


def _check_not_continued(name: str) -> None:
    try:
        os.stat(f"{name}.cut")
    except OSError:
        return
    raise OutputError(
        f"cannot replace {name}: {name}.cut says that a pipeline continues it; name another file, "
        "or remove both"
    )


class StreamTarget:
    """A file descriptor that is written through at once, and closed at the end."""

    promise = AGAIN

    def __init__(self, file: int, name: str) -> None:
        self.name = name
        self._file: int | None = file

    def write(self, data: bytes | memoryview) -> int:
        """Write all of ``data`` at once."""
        assert self._file is not None, "written after the end"
        return _write_all(self._file, data, self.name)

    def commit(self) -> None:
        """Do nothing: writes are immediate."""

    def close(self) -> None:
        """Close the stream: written bytes cannot be taken back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class _FileTarget:
    """A file written under a temporary name in the same folder and renamed by the commit.

    Until then ``path`` is unchanged; afterwards it is complete and on disk, with the permissions of
    the file before. Through a symbolic link the file that it points to is replaced.
    """

    promise = WHOLE

    def __init__(self, path: str) -> None:
        self.name = path
        self._path = os.path.realpath(path)
        self._folder, base = os.path.split(self._path)
        from ripple.world.permissions import make_like  # noqa: PLC0415 - slow to import

        self._file: int | None = None
        for number in count():
            self._temporary = os.path.join(self._folder, f".{base}.{os.getpid()}-{number}.partial")
            try:
                self._file = make_like(self._temporary, os.O_WRONLY, self._path, 0o666)
            except FileExistsError:
                continue
            except OSError as error:
                raise _failure(path, error) from error
            break

    def write(self, data: bytes | memoryview) -> int:
        assert self._file is not None, "written after the end"
        return _write_all(self._file, data, self.name)

    def commit(self) -> None:
        assert self._file is not None, "committed twice"
        from ripple.world.permissions import take_over  # noqa: PLC0415 - slow to import

        try:
            take_over(self._file, self._path)  # they may have changed since
            os.fsync(self._file)
            os.close(self._file)
            self._file = None
            os.replace(self._temporary, self._path)
            # The new name is durable only once the folder is.
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            self.close()
            raise _failure(self.name, error) from error

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        # Renamed already, or the folder is gone: nothing is half-written either way.
        with suppress(OSError):
            os.unlink(self._temporary)


def _write_all(file: int, data: bytes | memoryview, name: str) -> int:
    length = data.nbytes if isinstance(data, memoryview) else len(data)
    try:
        written = os.write(file, data)
        if written < length:
            rest = memoryview(data).cast("B")
            while written < length:
                written += os.write(file, rest[written:])
    except BrokenPipeError as error:
        raise ClosedPipeError(f"{name} was closed by its reader") from error
    except OSError as error:
        raise _failure(name, error) from error
    return length


def _failure(name: str, error: OSError) -> OutputError:
    return OutputError(f"cannot write {name}: {error.strerror}")
