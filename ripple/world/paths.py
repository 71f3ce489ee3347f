"""Paths of a disk: relative, "/"-separated, never leaving the root."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1024)
def parts(path: str) -> tuple[str, ...]:
    """Split a path; ``""`` is the root, ``()``. Raises ValueError for one that could leave it."""
    if not path:
        return ()
    names = tuple(path.split("/"))
    if any(name in ("", ".", "..") or "\0" in name for name in names):
        raise ValueError(f"{path!r} is no path within a disk: names separated by single slashes")
    return names


def folder_of(path: str) -> str:
    """Return the folder that holds ``path``."""
    return path.rpartition("/")[0]
