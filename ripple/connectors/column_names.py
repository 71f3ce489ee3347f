"""Hints at the column that is meant, where a source has none of a field's name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIKE = 0.8


def meant(name: str, found: Iterable[str]) -> str:
    """Return a hint at a column with other capitals, separators or a letter more; or ""."""
    columns = {_folded(one): one for one in found}
    near = get_close_matches(_folded(name), columns, n=1, cutoff=_LIKE)
    if not near:
        return ""
    return (
        f" (is it {columns[near[0]]!r}? Give the field that name, or rename the column: of a file "
        "by through:FILE.toml, docs/connectors.md)"
    )


def _folded(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
