"""One key's change: Set, Patch, Remove or Final. Absolute, so applying twice is applying once."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Literal, TypeAlias, TypeVar

V = TypeVar("V")


class Absent(Enum):
    """The value of a key that a table lacks. Not None: None may be a value."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: typing.Final[Literal[Absent.ABSENT]] = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class FieldSet:
    """The field ``name`` now holds ``value``."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class FieldRemove:
    """The optional field ``name`` is now absent."""

    name: str


@dataclass(frozen=True, slots=True)
class MapSet:
    """The entry ``key`` of a map value now holds ``value``."""

    key: Any
    value: Any


@dataclass(frozen=True, slots=True)
class MapRemove:
    """The entry ``key`` of a map value is now absent."""

    key: Any


PatchOp: TypeAlias = FieldSet | FieldRemove | MapSet | MapRemove


@dataclass(frozen=True, slots=True)
class Set(Generic[V]):
    """The whole value is now ``value``."""

    value: V


@dataclass(frozen=True, slots=True)
class Patch:
    """Some fields or entries changed; the rest stays.

    Operations take effect in order. The empty patch is the identity: it changes nothing, at a
    key that is absent as well.
    """

    ops: tuple[PatchOp, ...] = ()


@dataclass(frozen=True, slots=True)
class Remove:
    """The key is gone. Removing an absent key changes nothing."""


@dataclass(frozen=True, slots=True)
class Final(Generic[V]):
    """The whole value is ``value``, will never change again, and leaves the table.

    It is the last delta of its key: a receiver that keeps final rows takes it from here.
    """

    value: V


Delta: TypeAlias = Set[V] | Patch | Remove | Final[V]
