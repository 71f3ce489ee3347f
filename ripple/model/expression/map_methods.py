"""Methods of maps, ``col("labels").dict``."""

from __future__ import annotations

from dataclasses import dataclass

from ripple.core.arguments import need_whole
from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr, lit
from ripple.model.expression.list_methods import PLACES_MAX


@dataclass(frozen=True, slots=True)
class DictMethods:
    """Functions of a field that is a map; null of null."""

    expr: Expr

    def get(self, key: str) -> Expr:
        """Return the value of a key; null without one."""
        return Expr("dict.get", (self.expr, lit(_key("get", key))))

    def contains(self, key: str) -> Expr:
        """Return whether there is a key."""
        return Expr("dict.contains", (self.expr, lit(_key("contains", key))))

    def len(self) -> Expr:
        """Return the number of keys."""
        return Expr("dict.len", (self.expr,))

    def keys(self) -> Keys:
        """Return the keys, in the order of their code points: ``.list.get(n)`` takes one."""
        return Keys(self.expr)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a map, in order."""

    expr: Expr

    @property
    def list(self) -> KeyMethods:
        """Their methods."""
        return KeyMethods(self)


@dataclass(frozen=True, slots=True)
class KeyMethods:
    """Functions of the keys of a map; null of null."""

    keys: Keys

    def get(self, index: int) -> Expr:
        """Return the key at a place from 0 on, or from -1 on from the end; null without one."""
        need_whole("index", index, -PLACES_MAX, most=PLACES_MAX)
        return Expr("dict.key", (self.keys.expr, lit(index)))

    def len(self) -> Expr:
        """Return the number of keys."""
        return Expr("dict.len", (self.keys.expr,))


def _key(method: str, key: object) -> str:
    if not isinstance(key, str):
        raise PlanError(f"the key of .dict.{method} must be a text, not {key!r}")
    return key
