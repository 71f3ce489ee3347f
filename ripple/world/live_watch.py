"""What happens in folders of the real file system, as the system tells it: Linux's inotify."""

from __future__ import annotations

import asyncio
import os
import struct
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# How often a folder is looked at that the system does not watch: it has no inotify, or no more of
# it to give, or there is no such folder yet.
LOOK_S = 0.05
# The same for a folder that it does watch: it may be another machine that writes to it, of which no
# system tells.
BACKSTOP_S = 1.0

_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_READ_BYTES = 1 << 16
_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS = 0x400, 0x800, 0x1000000
_GONE = _DELETE_SELF | _MOVE_SELF | 0x8000  # the last: the system watches no more
_WANTED = (
    _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
) | _ONLY_FOLDERS


class LiveWatch:
    """A watch of folders, by their real paths.

    Without inotify ``changed`` returns every ``look_s``.
    """

    def __init__(self, folders: Sequence[str], look_s: float = LOOK_S) -> None:
        self._look_s = look_s
        self._descriptor = _open()
        self._unwatched = list(folders)
        self._watched: dict[int, str] = {}
        self._is_woken = False
        self._waiting: asyncio.Future[None] | None = None
        self._add()

    async def changed(self) -> None:
        if not self._take():
            await self._wait()
            self._take()
        self._is_woken = False

    def wake(self) -> None:
        self._is_woken = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        if self._descriptor >= 0:
            loop.add_reader(self._descriptor, self.wake)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_s if self._unwatched else BACKSTOP_S):
                    await self._waiting
        finally:
            self._waiting = None
            if self._descriptor >= 0:
                loop.remove_reader(self._descriptor)

    def _take(self) -> bool:
        """Take what was noted; return whether there was anything."""
        found = self._is_woken
        for number, mask in self._events():
            found = True
            if mask & _GONE and number in self._watched:
                self._unwatched.append(self._watched.pop(number))
                _remove(self._descriptor, number)
        return self._add() or found

    def _events(self) -> Iterator[tuple[int, int]]:
        while self._descriptor >= 0:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                yield number, mask

    def _add(self) -> bool:
        """Watch the folders that are there by now; return whether there are any new ones."""
        if self._descriptor < 0 or not self._unwatched:
            return False
        before, self._unwatched = self._unwatched, []
        for folder in before:
            number = _add(self._descriptor, folder)
            if number < 0:
                self._unwatched.append(folder)
            else:
                self._watched[number] = folder
        return len(self._unwatched) < len(before)


@cache
def _system() -> Any:
    """Return the C library."""
    import ctypes  # noqa: PLC0415 - only those who wait need it

    return ctypes.CDLL(None)


def _open() -> int:
    """Return a descriptor, -1 where there is none to be had."""
    try:
        return int(_system().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    except (AttributeError, OSError, TypeError):  # of another system
        return -1


def _add(descriptor: int, folder: str) -> int:
    """Return the number of the watch, -1 if there is no such folder or no watch to be had."""
    return int(_system().inotify_add_watch(descriptor, os.fsencode(folder), _WANTED))


def _remove(descriptor: int, number: int) -> None:
    _system().inotify_rm_watch(descriptor, number)
