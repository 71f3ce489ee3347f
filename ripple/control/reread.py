"""Files that may be replaced while a process runs: reread when they have changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Generic, TypeVar

from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Reread(Generic[T]):
    """The content of a file. An invalid change is reported, and the last valid content stays."""

    def __init__(self, path: str, read: Callable[[str], T]) -> None:
        """Read the file. read: parses it; raises RippleError, as this call then does."""
        self.warn: Callable[[str], None] = lambda _: None
        self._path = path
        self._read = read
        self._seen = _state(path)
        self._value = read(path)

    def __call__(self) -> T:
        """Return the present content."""
        state = _state(self._path)
        if state != self._seen:
            self._seen = state
            try:
                self._value = self._read(self._path)
            except RippleError as error:
                self.warn(f"{error}: the last valid content stays in use")
        return self._value


def _state(path: str) -> tuple[int, int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
