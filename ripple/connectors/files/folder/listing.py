"""Which files a folder or a pattern stands for, and in which order."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from glob import escape, has_magic
from itertools import takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes

from ripple.connectors.files.names import FILES_MAX, HIDDEN
from ripple.connectors.files.remote.address import is_remote
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.files.version import Version

Names: TypeAlias = tuple[str, ...]

_HIVE = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)=(.*)", re.DOTALL)
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class DataFile(NamedTuple):
    """A file, and the fields that its folders name, as ``day=2026-01-31`` does; None: no value.

    version: where a poll has it.
    """

    path: str
    fields: tuple[tuple[str, str | None], ...]
    version: Version | None = None


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
    """Return the files at a place; raises as ``files_now``, and where there is none."""
    found = files_now(place)
    if not found:
        raise InputError(f"there are no files at {place}")
    return found


def files_now(place: str) -> list[DataFile]:
    """Return the files of a folder, with those in its folders, or of a pattern, ordered by name.

    Names are compared part by part, by code point; hidden files, and names that begin with ``_``,
    are left out. In a pattern ``**`` stands for any folders, without links to folders. Raises
    InputError for a place that is not there, with too many files or with a link to nothing, or that
    cannot be read.
    """
    if is_remote(place):
        # slow to import, and of an extra
        from ripple.connectors.files.remote.listing import found_at  # noqa: PLC0415

        return [data_file(path)._replace(version=version) for path, version in found_at(place)]
    if is_pattern(place):
        root = _root(place)
        parts = PurePath(place).parts[len(PurePath(root).parts) :]
    elif os.path.isdir(place):
        root, parts = place, ("**",)
    elif os.path.lexists(place):
        return [data_file(place)]
    else:
        raise InputError(f"cannot read the files at {place}: there are none")
    found = {*_Walk(place).files(root, (), (*parts, "*") if parts[-1] == "**" else parts)}
    return [data_file(os.path.join(root, *names)) for names in sorted(found)]


class _Walk:
    """Looks through folders, at most FILES_MAX files and folders in all."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._seen = 0

    def files(self, root: str, names: Names, pattern: Names) -> Iterator[Names]:
        """Yield the names below ``root`` that lead to files of a pattern. names: of this folder."""
        first, *rest = pattern
        if first == "**":
            yield from self.files(root, names, tuple(rest))
        for entry in self._entries(os.path.join(root, *names), was_found=bool(names)):
            if entry.name.startswith(HIDDEN):
                continue
            below = (*names, entry.name)
            if first == "**":
                if entry.is_dir(follow_symlinks=False):
                    yield from self.files(root, below, pattern)
            elif fnmatchcase(entry.name, first):
                if rest and entry.is_dir():
                    yield from self.files(root, below, tuple(rest))
                elif not rest and entry.is_file():
                    yield below
                elif not rest and not os.path.exists(entry.path):
                    raise InputError(
                        f"cannot read {entry.path}: it is a link to a file that is not there"
                    )

    def _entries(self, folder: str, *, was_found: bool) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._seen += 1
                    if self._seen > FILES_MAX:
                        raise InputError(
                            f"{self._place} has over {FILES_MAX:,} files and folders: read some of "
                            "them by a pattern"
                        )
                    yield entry
        except OSError as error:
            if was_found and isinstance(error, FileNotFoundError):
                return  # it was removed since
            raise InputError(f"cannot read {folder}: {error.strerror}") from error


def data_file(path: str) -> DataFile:
    """Return a file with the fields that the folders of its path name.

    Raises InputError for a value that is no text, and for a field that two folders name.
    """
    named: dict[str, str | None] = {}
    for found in filter(None, map(_HIVE.fullmatch, PurePath(path).parts[:-1])):
        name, value = found.groups()
        if name in named:
            raise InputError(f"{path}: two of its folders name {name!r}")
        try:
            text = unquote_to_bytes(os.fsencode(value)).decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: the name of its folder is not valid UTF-8") from error
        named[name] = None if value == _NO_VALUE else text
    return DataFile(path, tuple(named.items()))
