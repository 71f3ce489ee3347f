"""The topic that is meant by a path at which there is none."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripple.world.ports import Disk

_LOOKED_AT = 1000  # names of a folder, so that one with millions delays no error


def hint(disk: Disk, path: str) -> str:
    """Return a hint at the first topic in ``path``, or one beside it of almost its name; or ""."""
    from difflib import get_close_matches  # noqa: PLC0415 - only errors say it

    folder, slash, name = path.rpartition("/")
    with suppress(OSError):
        inside = (f"{path}/{one}" for one in islice(disk.list(path), _LOOKED_AT))
        names = list(islice(disk.list(folder), _LOOKED_AT))
        beside = (f"{folder}{slash}{one}" for one in get_close_matches(name, names))
        for found in (*inside, *beside):
            if found != path and disk.exists(f"{found}/topic"):
                return f". Did you mean {found}?"
    return ""
