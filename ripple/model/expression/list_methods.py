"""Methods of lists, ``col("tags").list``; the names are Polars'."""

from __future__ import annotations

from dataclasses import dataclass

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
