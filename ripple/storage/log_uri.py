"""Places in an event log, as users write them: ``log:DIR/TOPIC`` or ``log:DIR/TOPIC/PARTITION``.

Beside the log and not in it: whoever tells places apart need not import what reads and writes logs.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from ripple.core.errors import InputError

PREFIX = "log:"
FORM = "log:DIR/TOPIC[/PARTITION]"
WHOLE_FORM = "log:DIR/TOPIC"

_DIGITS_MAX = 6


class LogUri(NamedTuple):
    """A folder of topics, a topic in it, and its partition if one was named."""

    folder: str
    topic: str
    partition: int | None

    @classmethod
    def parse(cls, text: str) -> LogUri:
        """Return the place, with or without ``log:`` before it. A number at the end is a partition.

        Raises InputError for what is none, and for ``..`` behind a name: what looks like a topic in
        one folder would be one somewhere else.
        """
        path = PurePath(text.removeprefix(PREFIX))
        named = [part for part in path.parts if part != path.anchor]
        while named and named[0] == "..":
            del named[0]
        if ".." in named:
            raise InputError(
                f"{text!r} leads out of {named[0]!r} again by '..': name the folder itself"
            )
        partition = None
        if len(named) > 1 and is_number(named[-1]):
            path, partition = path.parent, int(named.pop())
        if not named:
            raise InputError(f"cannot tell which log {text!r} is: it must be {FORM}")
        return cls(str(path.parent), path.name, partition)

    @classmethod
    def whole(cls, text: str) -> LogUri:
        """Return the place of a topic with all its partitions. Raises InputError for others."""
        if not text.startswith(PREFIX):
            raise InputError(f"{text!r} is not of the form {WHOLE_FORM}")
        place = cls.parse(text)
        if place.partition is not None:
            topic = f"{PREFIX}{place.folder}/{place.topic}"
            raise InputError(f"{text} is one partition: name the topic, {topic}")
        return place


def path_of(text: str) -> str:
    """Return the folder of the topic behind ``log:``; raises as ``LogUri.parse`` does."""
    place = LogUri.parse(f"{PREFIX}{text}")
    return str(PurePath(place.folder, place.topic))


def is_number(name: str) -> bool:
    """Return whether a name at the end of a place is that of a partition."""
    return name.isascii() and name.isdigit() and len(name) <= _DIGITS_MAX
