"""Files that a command writes at its end: looked at before it begins."""

from __future__ import annotations

import os

from ripple.core.errors import OutputError


def check_files(*paths: str | None) -> None:
    """Raise OutputError if a file of the end, hours later perhaps, could not be written."""
    for path in paths:
        if path is None:
            continue
        folder = os.path.dirname(path) or "."
        if os.path.isdir(path):
            raise OutputError(f"cannot write {path}: it is a folder")
        if not os.path.isdir(folder):
            raise OutputError(f"cannot write {path}: there is no folder {folder}")
        if not os.access(path if os.path.exists(path) else folder, os.W_OK):
            raise OutputError(f"cannot write {path}: permission denied")
