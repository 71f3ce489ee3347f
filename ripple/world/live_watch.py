"""Watches of folders of the real file system: Linux's inotify."""

from __future__ import annotations

import asyncio
import os
import struct
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# How often a folder is looked at that the system does not watch: it has no inotify, or no more of
# it to give, or there is no such folder yet.
LOOK_S = 0.05
# The same for a folder that it does watch: another machine may write to it, which no system
# reports.
BACKSTOP_S = 1.0

_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_READ_BYTES = 1 << 16
_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS = 0x400, 0x800, 0x1000000
_OVERFLOW = 0x4000  # more has happened than the system notes
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
        self._instance: _Instance | None = _Instance.present()
        self._unwatched = list(folders)
        self._is_noted = False
        self._waiting: asyncio.Future[None] | None = None
        self._instance.join(self)
        self._add()

    async def changed(self) -> None:
        if not self._take():
            await self._wait()
            self._take()
        self._is_noted = False

    def wake(self) -> None:
        self._is_noted = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def close(self) -> None:
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.leave(self)

    def gone(self, folder: str) -> None:
        """Take that the system watches a folder no more."""
        self._unwatched.append(folder)

    async def _wait(self) -> None:
        instance = self._instance
        self._waiting = asyncio.get_running_loop().create_future()
        if instance is not None:
            instance.begin_waiting()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_s if self._unwatched else BACKSTOP_S):
                    await self._waiting
        finally:
            self._waiting = None
            if instance is not None:
                instance.end_waiting()

    def _take(self) -> bool:
        """Take noted changes; return whether there were any."""
        if self._instance is not None:
            self._instance.read()
        return self._add() or self._is_noted

    def _add(self) -> bool:
        """Watch the folders that are there by now; return whether there are any new ones."""
        if self._instance is None or not self._unwatched:
            return False
        before = self._unwatched
        self._unwatched = [folder for folder in before if not self._instance.add(self, folder)]
        return len(self._unwatched) < len(before)


class _Instance:
    """The system's events of folders for the watches of one event loop.

    They have one instance in common, of which a user has few. It exists while one of them does; a
    reader notifies all watches that an event concerns.
    """

    _by_loop: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, _Instance]] = (
        WeakKeyDictionary()
    )

    def __init__(self) -> None:
        self._descriptor = _open()
        self._watches: set[LiveWatch] = set()
        self._watched: dict[int, dict[LiveWatch, str]] = {}  # watches of each folder, by number
        self._waiting = 0

    @classmethod
    def present(cls) -> _Instance:
        """Return that of the running loop, or one of its own where none runs."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return cls()
        found = cls._by_loop.get(loop)
        if found is None or not found._watches:
            found = cls._by_loop[loop] = cls()
        return found

    def join(self, watch: LiveWatch) -> None:
        self._watches.add(watch)

    def leave(self, watch: LiveWatch) -> None:
        self._watches.discard(watch)
        for number, watches in list(self._watched.items()):
            if watches.pop(watch, None) is not None and not watches:
                del self._watched[number]
                _remove(self._descriptor, number)
        if not self._watches and self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def add(self, watch: LiveWatch, folder: str) -> bool:
        """Watch a folder; return False if there is no such folder or no watch to be had."""
        number = _add(self._descriptor, folder) if self._descriptor >= 0 else -1
        if number >= 0:
            self._watched.setdefault(number, {})[watch] = folder
        return number >= 0

    def begin_waiting(self) -> None:
        self._waiting += 1
        if self._waiting == 1 and self._descriptor >= 0:
            asyncio.get_running_loop().add_reader(self._descriptor, self.read)

    def end_waiting(self) -> None:
        self._waiting -= 1
        if not self._waiting and self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)

    def read(self) -> None:
        """Notify the watches of noted events."""
        for number, mask in self._events():
            watches = self._watched.get(number, {})
            if mask & _GONE and watches:
                for watch, folder in watches.items():
                    watch.gone(folder)
                del self._watched[number]
                _remove(self._descriptor, number)
            for watch in list(self._watches if mask & _OVERFLOW else watches):
                watch.wake()

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
