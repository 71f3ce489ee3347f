"""Errors of the outside: disk, network, store."""

from __future__ import annotations

import errno

from ripple.core.errors import RippleError


class _NamedError(RippleError, OSError):
    """Of a file or an address, in our words: they come before no number of the system's."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class DiskFullError(_NamedError):
    """The disk has no room, or a quota is used up."""

    def __init__(self, path: str) -> None:
        super().__init__(
            errno.ENOSPC, "no space left: free some, or give Ripple another disk", path
        )


class SyncFailedError(_NamedError):
    """The system could not make a file durable; unsynced bytes are lost or not."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(errno.EIO, f"cannot be made durable ({reason}): check the disk", path)


class DiskLockedError(_NamedError):
    """Another process, or another part of this one, holds the lock; ``holder`` names it."""

    def __init__(self, path: str, holder: str) -> None:
        self.holder = holder
        super().__init__(errno.EWOULDBLOCK, f"is held by {holder}: stop that one first", path)


class NotALockError(_NamedError):
    """The path of a lock is taken by another kind of file; it was left as it is."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(
            errno.EEXIST, f"is {what}, not a lock: move it away, or write elsewhere", path
        )


class TlsError(_NamedError):
    """A certificate, a key or a peer does not fit; names the file or the address, never a key."""

    def __init__(self, subject: str, reason: str) -> None:
        super().__init__(errno.EPROTO, reason, subject)


# Of one file, not of its disk: rights, or another kind of file under its name.
_OF_ONE_FILE = {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}


def is_of_one_file(error: OSError) -> bool:
    """Return whether an error is of the file that was asked for, and not of its disk.

    Such a file is as good as damaged for its reader.
    """
    return error.errno in _OF_ONE_FILE


class StoreError(RippleError):
    """The object store did not answer as it should.

    ``done`` is False when nothing was changed, None when that is unknown (the reply was lost).
    """

    def __init__(self, message: str, *, done: bool | None) -> None:
        self.done = done
        super().__init__(message)


class UnreadableError(StoreError):
    """One object is there and cannot be read, however often it is asked for; the store answers."""

    def __init__(self, message: str) -> None:
        super().__init__(message, done=False)
