"""A watch of folders of a simulated disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.world.paths import folder_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class SimWatch:
    """Notes the effects on files of these folders, as long as it is among ``watches``."""

    def __init__(self, watches: list[SimWatch], folders: Sequence[str]) -> None:
        self._watches = watches
        self._folders = frozenset(folders)
        self._noted = asyncio.Event()
        watches.append(self)

    def note(self, subject: str) -> None:
        """Note an effect; the words of ``subject`` that are paths name the files it changes."""
        if any(folder_of(word) in self._folders for word in subject.split(" ")):
            self.wake()

    async def changed(self) -> None:
        await self._noted.wait()
        self._noted.clear()

    def wake(self) -> None:
        self._noted.set()

    def close(self) -> None:
        if self in self._watches:
            self._watches.remove(self)
