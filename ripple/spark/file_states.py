"""The files of a replay, as they were when it was made: a later reading finds the same ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.connectors.files.csv.dialect import divided
from ripple.connectors.files.folder.listing import files_now
from ripple.connectors.files.remote.address import is_remote
from ripple.connectors.registry import find, innermost
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.spark.portions import Sources


@dataclass(frozen=True, slots=True)
class FileStates:
    """Sizes and times of change of files, by path. Those of servers are none of them."""

    states: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, sources: Sources) -> FileStates:
        """Look at the files of all sources. Raises InputError where one cannot be read."""
        states = {}
        for path in _paths(sources):
            try:
                found = os.stat(path)
            except OSError as error:
                raise InputError(f"cannot read {path}: {error.strerror}") from error
            states[path] = (found.st_size, found.st_mtime_ns)
        return cls(states)

    def check_unchanged(self, now: FileStates) -> None:
        """Raise InputError for the first file that differs from what it was."""
        for path in sorted(self.states.keys() | now.states.keys()):
            before, after = self.states.get(path), now.states.get(path)
            if before != after:
                what = "is new" if before is None else "is gone" if after is None else "has changed"
                raise InputError(
                    f"{path} {what} since the replay was made, and each reading has the same "
                    "files: make another Replay for those of now"
                )


def _paths(sources: Sources) -> Iterator[str]:
    for share in sources.shares:
        if share.partition is not None:
            continue
        found = find(innermost(share.place), "source")
        path, _ = divided(found.path)
        if found.connector.path_of is not None and not is_remote(path):
            yield from (file.path for file in files_now(path))
