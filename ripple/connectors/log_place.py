"""Places in an event log, as users write them: ``log:DIR/TOPIC`` or ``log:DIR/TOPIC/PARTITION``."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

PREFIX = "log:"
FORM = "log:DIR/TOPIC[/PARTITION]"

_DIGITS_MAX = 6


class LogPlace(NamedTuple):
    """A folder of topics, a topic in it, and its partition if one was named."""

    folder: str
    topic: str
    partition: int | None

    @classmethod
    def parse(cls, text: str) -> LogPlace | None:
        """Return the place, None if the text is none. A number at the end is a partition."""
        path = PurePath(text.removeprefix(PREFIX))
        partition = None
        last = path.name
        if path.parent.name and last.isascii() and last.isdigit() and len(last) <= _DIGITS_MAX:
            path, partition = path.parent, int(last)
        if path.name in ("", ".."):
            return None
        return cls(str(path.parent), path.name, partition)
