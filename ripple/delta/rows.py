"""One key's change: Set, Patch or Remove. Always absolute, so applying twice is applying once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

V = TypeVar("V")


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
    """Some fields or entries changed; the rest stays."""

    ops: tuple[PatchOp, ...]


@dataclass(frozen=True, slots=True)
class Remove:
    """The key is gone."""


Delta: TypeAlias = Set[V] | Patch | Remove
