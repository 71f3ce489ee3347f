"""URIs of event logs: ``log:DIR/TOPIC`` or ``log:DIR/TOPIC/PARTITION``.

Outside the log's package, so that parsing a URI does not import the log.
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
        """Parse a URI, with or without ``log:``. A number at the end is a partition.

        Raises InputError for anything else, and for ``..`` after a name: the topic would be in
        another folder than it seems.
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
        """Parse the URI of a topic with all its partitions. Raises InputError for any other."""
        if not text.startswith(PREFIX):
            raise InputError(f"{text!r} is not of the form {WHOLE_FORM}")
        place = cls.parse(text)
        if place.partition is not None:
            topic = f"{PREFIX}{place.folder}/{place.topic}"
            raise InputError(f"{text} is one partition: name the topic, {topic}")
        return place


def path_of(text: str) -> str:
    """Return the topic's folder, the part after ``log:``; raises as ``LogUri.parse`` does."""
    place = LogUri.parse(f"{PREFIX}{text}")
    return str(PurePath(place.folder, place.topic))


def is_number(name: str) -> bool:
    """Return whether the last part of a URI names a partition."""
    return name.isascii() and name.isdigit() and len(name) <= _DIGITS_MAX
