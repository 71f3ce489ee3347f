"""Parsing of options of data sources, bounds of ranges, and paths.

Executors work in folders of their own, so paths sent to them are absolute.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.connectors.files.remote.address import is_remote
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

# Records that a task applies at once by default.
BATCH_ROWS = 1 << 16
_DIGITS_MAX = 19


def checked(
    given: Mapping[str, str], known: Collection[str], needed: Collection[str], whose: str
) -> dict[str, str]:
    """Return the options by their names in lower case.

    Raises InputError naming the first unknown or missing one.
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


def whole_at_least_1(value: object, what: str) -> int:
    """Return a number of at least 1; raises InputError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{what}= is a whole number from 1 on, not {shown(value)}")
    return value


def numbers(text: str, what: str) -> tuple[int, ...]:
    """Read numbers with commas between them; raises InputError."""
    return tuple(whole_number(part.strip(), what) for part in text.split(","))


def names(text: str, what: str) -> tuple[str, ...]:
    """Read names with commas between them; raises InputError."""
    found = tuple(part.strip() for part in text.split(","))
    if not all(found) or len(set(found)) < len(found):
        raise InputError(f"{what} has names, each once, as in symbol,price, not {shown(text)}")
    return found


def yes_or_no(text: str, what: str) -> bool:
    """Read ``true`` or ``false``; raises InputError."""
    if text.lower() not in ("true", "false"):
        raise InputError(f"{what} must be true or false, not {shown(text)}")
    return text.lower() == "true"


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of a range in each partition: an offset, or an event time.

    offset: for all partitions. by_partition: for some of them; the others are unbounded. time_ns:
    the first record at or after that event time.
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
        """Return a bound from a Python value. Raises InputError."""
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
        """Return the bound's offset in a partition; None by time, or unbounded."""
        if self.by_partition is not None:
            return self.by_partition.get(partition)
        return self.offset


NOWHERE = Bound()


def absolute(place: str, use: UseName) -> str:
    """Return a URI without relative paths."""
    found = find(place, use)
    is_path = found.connector.path_of is not None and not is_remote(found.path)
    if not is_path or not place.endswith(found.path):
        return place
    return f"{place[: len(place) - len(found.path)]}{os.path.abspath(found.path)}"


def absolute_topic(place: str, topic: Topic) -> str:
    """Return the absolute path of a topic."""
    return os.path.abspath(f"{LogUri.parse(place).folder}/{topic.path}")


def absolute_store(place: str) -> str:
    """Return the absolute location of a store of checkpoints.

    Raises InputError unless it is a folder or ``s3://bucket/prefix``.
    """
    if is_s3(place):
        return place
    if not place or "://" in place:
        raise InputError(f"{shown(place)} is neither a folder nor s3://bucket/prefix")
    return os.path.abspath(place)
