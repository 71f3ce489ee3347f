"""Bounds of messages between processes, as marks of the types of fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from ripple.control.assignment.member import SLOTS_MAX, TEXT_LENGTH_MAX, TEXTS_MAX, check_id
from ripple.control.assignment.version import PARTITIONS_MAX

# Of versions and other growing numbers: the integers that JSON holds everywhere.
NUMBER_MAX = 2**53
REASON_LENGTH_MAX = 4096  # of reasons, for people


@dataclass(frozen=True, slots=True)
class AtMost:
    """A number from 0 to ``limit``, or a text or a list that is no longer.

    Reading checks that. Writing sees to it: a text is cut at ``cut``, and a number clamped if
    ``clamps``; an integer is by reading, too: far is far, however far.
    """

    limit: float
    cut: int | None = None
    clamps: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """A value that ``check`` accepts, when it is read; it raises RippleError."""

    check: Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value that travels as bytes."""

    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]


Name: TypeAlias = Annotated[str, AtMost(TEXT_LENGTH_MAX)]
Names: TypeAlias = Annotated[tuple[tuple[Name, Name], ...], AtMost(TEXTS_MAX)]
Counts: TypeAlias = Annotated[tuple[tuple[Name, int], ...], AtMost(TEXTS_MAX)]
Reason: TypeAlias = Annotated[str, AtMost(REASON_LENGTH_MAX, cut=REASON_LENGTH_MAX)]
Share: TypeAlias = Annotated[float, AtMost(1, clamps=True)]
Partition: TypeAlias = Annotated[int, AtMost(PARTITIONS_MAX - 1)]
Slot: TypeAlias = Annotated[int, AtMost(SLOTS_MAX - 1)]
Growing: TypeAlias = Annotated[int, AtMost(NUMBER_MAX, clamps=True)]
WorkerId: TypeAlias = Annotated[str, Checked(check_id)]
Who: TypeAlias = tuple[WorkerId, int]  # a worker's id and incarnation
