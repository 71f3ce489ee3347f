"""Headings of files that were read as records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.batch import Rejected

_DELIMITERS = re.compile(r"[,;|\t]")


class Headings:
    """Whether a rejected record looks like a heading: like most names of a source's fields.

    is_seen: whether one of those did that were looked at.
    """

    def __init__(self, names: Iterable[Iterable[str]]) -> None:
        """Take the names of the fields of each source; none where headings are read as such."""
        self._names = [*map(frozenset, names)]
        self.is_seen = False

    def look(self, record: Rejected) -> bool:
        """Return whether the record does."""
        text = record.raw.decode(errors="replace")
        words = {word.strip(" \"'") for word in _DELIMITERS.split(text)}
        does = any(len(fields & words) > len(fields) // 2 for fields in self._names)
        self.is_seen |= does
        return does
