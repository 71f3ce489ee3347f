"""Which files a folder or a pattern stands for, and in which order."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from glob import escape, glob, has_magic
from itertools import takewhile
from pathlib import PurePath
from typing import NamedTuple
from urllib.parse import unquote

from ripple.core.errors import InputError

FILES_MAX = 100_000
_HIVE = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)=(.*)", re.DOTALL)
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# The first bytes of names of files that are not data: markers of success, checksums, half files.
_HIDDEN = ("_", ".")


class DataFile(NamedTuple):
    """A file, and the fields that its folders name, as ``day=2026-01-31`` does; None: no value."""

    path: str
    fields: tuple[tuple[str, str | None], ...]


def is_pattern(text: str) -> bool:
    """Return whether a path has ``*``, ``?`` or ``[``, and is no file of this name."""
    return has_magic(text) and not os.path.lexists(text)


def folder_at(place: str) -> str | None:
    """Return a place that is a folder, None for a pattern: others may write beside its files."""
    return None if is_pattern(place) else place


def may_match(place: str, path: str) -> bool:
    """Return whether the files of a pattern may include a path; ``*`` then stands for any text."""
    return is_pattern(place) and fnmatchcase(
        os.path.realpath(path), _real(place).replace("**/", "*")
    )


def _root(pattern: str) -> str:
    """Return the folder that all files of a pattern are in."""
    plain = takewhile(lambda part: not has_magic(part), PurePath(pattern).parts[:-1])
    return str(PurePath(*plain))


def _real(pattern: str) -> str:
    root = _root(pattern)
    return os.path.join(escape(os.path.realpath(root)), os.path.relpath(pattern, root))


def files_at(place: str) -> list[DataFile]:
    """Return the files of a folder, with those in its folders, or of a pattern, ordered by name.

    Names are compared part by part, by code point; hidden files, and names that begin with ``_``,
    are left out. In a pattern ``**`` stands for any folders. Raises InputError for a place without
    files, with too many, or that cannot be read.
    """
    if not is_pattern(place) and not os.path.isdir(place):
        if not os.path.lexists(place):
            raise InputError(f"cannot read the files at {place}: there are none")
        return [DataFile(place, ())]
    pattern, root = (
        (place, _root(place)) if is_pattern(place) else (os.path.join(escape(place), "**"), place)
    )
    found: list[tuple[tuple[str, ...], str]] = []
    for path in glob(pattern, recursive=True):  # which leaves out names that begin with a dot
        parts = PurePath(os.path.relpath(path, root)).parts
        if any(part.startswith(_HIDDEN) for part in parts) or not os.path.isfile(path):
            continue
        found.append((parts, path))
        if len(found) > FILES_MAX:
            raise InputError(f"{place} has over {FILES_MAX} files: read some of them by a pattern")
    if not found:
        raise InputError(f"there are no files at {place}")
    return [DataFile(path, _fields(parts[:-1])) for parts, path in sorted(found)]


def _fields(folders: tuple[str, ...]) -> tuple[tuple[str, str | None], ...]:
    named = [found for folder in folders if (found := _HIVE.fullmatch(folder))]
    return tuple(
        (found[1], None if found[2] == _NO_VALUE else unquote(found[2])) for found in named
    )
