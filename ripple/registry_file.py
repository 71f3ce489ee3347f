"""A schema registry kept in a file: the one place where schemas meet a disk.

What is on disk is always one whole registry: a new one is written beside the old, flushed to the
disk, and renamed over it. A file that cannot be understood is reported and left as it is.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ripple.schema import registry as document
from ripple.schema.registry import Registry, RegistryError
from ripple.world.permissions import make_like

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def load(path: str | os.PathLike[str]) -> Registry:
    """Return the registry in a file, an empty one if there is no such file.

    Raises :class:`ripple.schema.registry.RegistryError` if the file cannot be read, is longer than
    ``DOCUMENT_BYTES_MAX``, or is not a whole registry.
    """
    try:
        with Path(path).open("rb") as file:
            # One byte more than allowed tells a file that is too long from one that just fits.
            data = file.read(document.DOCUMENT_BYTES_MAX + 1)
        return document.loads(data.decode())
    except FileNotFoundError:
        return Registry()
    except OSError as error:
        raise RegistryError(f"{path} cannot be read: {error.strerror}") from error
    except (RegistryError, UnicodeDecodeError) as error:
        raise RegistryError(
            f"{path} is no usable schema registry and was left as it is ({error}): "
            "restore it from a copy, or move it away to start an empty one"
        ) from error


def update(path: str | os.PathLike[str], change: Callable[[Registry], Registry]) -> Registry:
    """Replace the registry in a file by ``change`` of it, and return the new one.

    Updates of several processes happen one after the other. If ``change`` raises, the file stays.
    Raises :class:`ripple.schema.registry.RegistryError` as :func:`load` does, or if the file cannot
    be written.
    """
    try:
        with _locked(Path(path)):
            before = load(path)
            after = change(before)
            if after is not before:
                _replace(Path(path), document.dumps(after).encode())
            return after
    except OSError as error:
        raise RegistryError(
            f"{path} cannot be written: {error.filename or path}: {error.strerror}; its folder "
            "must be there and writable, for a lock and for the new file"
        ) from error


def _replace(path: Path, data: bytes) -> None:
    # The lock is held, so nobody else uses this name; a crash leaves it for the next update.
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)
    with os.fdopen(make_like(beside, os.O_WRONLY, path, 0o666), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    # The new name is durable once its directory is.
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    # Nothing is written to it, whatever it is.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(path.with_name(f"{path.name}.lock"), flags, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
