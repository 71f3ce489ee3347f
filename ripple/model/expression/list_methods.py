"""Methods of lists, ``col("tags").list``; the names are Polars'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ripple.core.arguments import need_whole
from ripple.model.expression.expr import Expr, lit

PLACES_MAX = 1 << 31  # the largest place in a list


@dataclass(frozen=True, slots=True)
class ListMethods:
    """Functions of a field that is a list; null of null."""

    expr: Expr

    def len(self) -> Expr:
        """Return the number of items."""
        return Expr("list.len", (self.expr,))

    def get(self, index: int) -> Expr:
        """Return the item at a place from 0 on, or from -1 on from the end; null without one."""
        need_whole("index", index, -PLACES_MAX, most=PLACES_MAX)
        return Expr("list.get", (self.expr, lit(index)))

    def contains(self, item: Any) -> Expr:
        """Tell whether an item equals ``item``, an expression or a constant of the item's type."""
        return Expr("list.contains", (self.expr, item if isinstance(item, Expr) else lit(item)))

    def min(self) -> Expr:
        """Return the smallest item; null without one. NaN is above every other number."""
        return Expr("list.min", (self.expr,))

    def max(self) -> Expr:
        """Return the largest item; null without one."""
        return Expr("list.max", (self.expr,))

    def sum(self) -> Expr:
        """Return the sum of numbers or decimals: exact, floats rounded once; 0 without items.

        A sum of integers or decimals that has no room fails its row.
        """
        return Expr("list.sum", (self.expr,))
