"""Discovery of a folder's new files: decisions, without I/O."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ripple.connectors.files.version import changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.connectors.files.folder.listing import DataFile
    from ripple.connectors.files.folder.taken import TakenFile

UNFINISHED = (".tmp", ".part")
"""The suffixes of temporary names, under which writers finish files before they rename them."""


class Discovery:
    """The files that polls have found, in the order of taking.

    A file that may still be written is taken once two polls have found it unchanged. is_whole: the
    files of the place appear whole, or do not change: they are taken at once.
    """

    def __init__(self, *, is_whole: bool) -> None:
        self._is_whole = is_whole
        self._seen: dict[str, DataFile] = {}
        self._ready: deque[DataFile] = deque()

    @property
    def ready(self) -> bool:
        """Whether there is a file to take."""
        return bool(self._ready)

    def see(self, listed: Sequence[DataFile], taken: Sequence[TakenFile]) -> None:
        """Take a poll's files, in order. Raises InputError for a taken file that has changed."""
        known = {one.path: one for one in taken}
        fresh: dict[str, DataFile] = {}
        for file in listed:
            was = known.get(file.path)
            if was is None:
                if not file.path.endswith(UNFINISHED):
                    fresh[file.path] = file
            elif file.version is not None and was.version != file.version:
                raise changed(file.path, was.version, file.version)
        settled = (
            file for path, file in fresh.items() if self._is_whole or self._seen.get(path) == file
        )
        self._ready = deque(settled)
        self._seen = fresh

    def next(self) -> DataFile | None:
        """Return the next file to take, None for none."""
        return self._ready.popleft() if self._ready else None
