"""A remote file as a file object: of one version, a block at a time."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from ripple.connectors.files.remote.contract import BLOCK_BYTES, server_of
from ripple.connectors.files.version import changed

if TYPE_CHECKING:
    from typing import Any


class RangedFile(io.RawIOBase):
    """The bytes of a file as it was when it was opened. Not for several threads.

    Invariant: all bytes returned are of ``version``; another one is an InputError.
    """

    def __init__(self, path: str) -> None:
        """Ask for the file's first block. Raises InputError and InputAwayError."""
        self.name = path
        self._server = server_of(path)
        self._start = self._at = 0
        self._block, self.version = self._server.read(path, 0, BLOCK_BYTES)

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, up to the end of the file; return the number of bytes."""
        view, filled = memoryview(buffer).cast("B"), 0
        while filled < len(view) and self._at < self.version.size_bytes:
            part = self._part(len(view) - filled)
            view[filled : filled + len(part)] = part
            filled += len(part)
            self._at += len(part)
        return filled

    def _part(self, length: int) -> bytes:
        """Return at most ``length`` bytes from here on, and at least one."""
        inside = self._at - self._start
        if not 0 <= inside < len(self._block):
            asked = min(max(BLOCK_BYTES, length), self.version.size_bytes - self._at)
            self._block, found = self._server.read(self.name, self._at, asked)
            if found != self.version:
                raise changed(self.name, self.version, found)
            self._start, inside = self._at, 0
        return self._block[inside : inside + length]

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def seekable(self) -> bool:
        """Return that it is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go elsewhere; nothing is asked yet."""
        first = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.version.size_bytes}
        self._at = first[whence] + offset
        return self._at

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._at
