"""Functions of lists, over whole columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.typed import Kind

LIST = ((Kind.OTHER,),)
ARROW = {
    Kind.FLOAT: pa.float64(),
    Kind.INT: pa.int64(),
    Kind.BOOL: pa.bool_(),
    Kind.TEXT: pa.string(),
}


def name_of_get(kind: Kind) -> str:
    """Return the name of the function that takes an item of a kind."""
    return f"list.get.{kind.name.lower()}"


def _lengths(lists: Any) -> Any:
    return pc.list_value_length(lists).cast(pa.int64())


def _item(kind: Kind) -> Function:
    def items(lists: Any, index: int) -> Any:
        starts = np.asarray(lists.offsets).astype(np.int64)  # places may be beyond 32 bits
        lengths = np.diff(starts)
        at = index if index >= 0 else lengths + index
        missing = (at < 0) | (at >= lengths) | np.asarray(lists.is_null())
        places = np.where(missing, 0, starts[:-1] + at)
        return lists.values.take(pa.array(places, mask=missing)).cast(ARROW[kind])

    def plain(value: list[Any], index: int) -> Any:
        return value[index] if -len(value) <= index < len(value) else None

    return Function(name_of_get(kind), LIST, kind, plain, columns=items, may_be_null=True)


LISTS = table(
    Function("list.len", LIST, Kind.INT, len, columns=_lengths),
    *(_item(kind) for kind in ARROW),
)
