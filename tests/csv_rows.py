"""The rows of CSV files as outputs write them: behind the names of their columns."""

from __future__ import annotations

from pathlib import Path


def text_of(path: Path) -> str:
    """Return the lines of the rows. An empty file has no names, and no row."""
    return path.read_text().partition("\n")[2]


def lines_of(path: Path) -> list[str]:
    """Return the rows, one a line."""
    return text_of(path).splitlines()
