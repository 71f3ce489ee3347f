"""What is given as text: options of a data source, by name, and places.

Executors work in folders of their own, so what they are sent has no relative path in it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.connectors.registry import find
from ripple.core.arguments import shown
from ripple.core.errors import InputError
from ripple.model.window.instant import instant_ns
from ripple.storage.log_uri import LogUri
from ripple.storage.store.s3_settings import is_s3

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import TypeAlias

    from ripple.connectors.registry import UseName
    from ripple.storage.log import Topic

    Place: TypeAlias = "int | str | Mapping[int, int] | Bound | None"

# Records that a task takes in at once, unless somebody says otherwise.
BATCH_ROWS = 1 << 16
_DIGITS_MAX = 19


def checked(
    given: Mapping[str, str], known: Collection[str], needed: Collection[str], whose: str
) -> dict[str, str]:
    """Return the options by their names in lower case.

    Raises InputError naming the first that is not known, or that is needed and not there.
    """
    options = {name.lower(): text for name, text in given.items()}
    for name in options:
        if name not in known:
            listed = ", ".join(known)
            raise InputError(f"{whose} has no option {shown(name)}: there are {listed}")
    for name in needed:
        if not options.get(name):
            raise InputError(f'{whose} needs the option {name!r}: .option("{name}", ...)')
    return options


def whole_number(text: str, what: str) -> int:
    """Read a number, 0 or more; raises InputError."""
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        raise InputError(f"{what} must be a whole number, not {shown(text)}")
    return int(text)


def numbers(text: str, what: str) -> tuple[int, ...]:
    """Read numbers with commas between them; raises InputError."""
    return tuple(whole_number(part.strip(), what) for part in text.split(","))


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a range of each partition begins, or ends: at an offset, or by event time.

    offset: of all partitions. by_partition: of some of them; the others are not bounded.
    time_ns: the first record of that event time or later.
    """

    offset: int | None = None
    by_partition: Mapping[int, int] | None = None
    time_ns: int | None = None

    @classmethod
    def parse(cls, text: str, what: str) -> Bound:
        """Read ``17``, ``0=17,1=20`` or a time such as ``2024-02-26T14:30:00Z``.

        A time without a zone is UTC; see ``instant_ns``. Raises InputError.
        """
        text = text.strip()
        if "=" in text:
            pairs = [part.partition("=") for part in text.split(",")]
            found = {
                whole_number(number.strip(), what): whole_number(offset.strip(), what)
                for number, _, offset in pairs
            }
            return cls(by_partition=found)
        if text.isascii() and text.isdigit():
            return cls(offset=whole_number(text, what))
        try:
            return cls(time_ns=instant_ns(text))
        except ValueError:
            raise InputError(
                f"{what} must be an offset, offsets by partition (0=17,1=20) or a time "
                f"(2024-02-26T14:30:00.000000001Z, or 1708957800000000001ns), not {shown(text)}"
            ) from None

    @classmethod
    def of(cls, place: Place) -> Bound:
        """Return a bound as Python's callers give it. Raises InputError."""
        if place is None:
            return NOWHERE
        if isinstance(place, Bound):
            return place
        if isinstance(place, Mapping):
            return cls(by_partition=dict(place))
        if isinstance(place, bool) or not isinstance(place, (int, str)):
            raise InputError(f"a range begins and ends at an offset or a time, not {place!r}")
        return cls(offset=place) if isinstance(place, int) else cls.parse(place, "a bound")

    def at(self, partition: int) -> int | None:
        """Return the offset at which it is in a partition; None where it is by time, or nowhere."""
        if self.by_partition is not None:
            return self.by_partition.get(partition)
        return self.offset


NOWHERE = Bound()


def absolute(place: str, use: UseName) -> str:
    """Return a place that is the same from every folder."""
    found = find(place, use)
    if found.connector.path_of is None or not place.endswith(found.path):
        return place
    return f"{place[: len(place) - len(found.path)]}{os.path.abspath(found.path)}"


def absolute_topic(place: str, topic: Topic) -> str:
    """Return the path of a topic, found at a place, that is the same from every folder."""
    return os.path.abspath(f"{LogUri.parse(place).folder}/{topic.path}")


def absolute_store(place: str) -> str:
    """Return a store of checkpoints that is the same from every folder.

    Raises InputError for what is neither a folder nor ``s3://bucket/prefix``.
    """
    if is_s3(place):
        return place
    if not place or "://" in place:
        raise InputError(f"{shown(place)} is neither a folder nor s3://bucket/prefix")
    return os.path.abspath(place)
