"""Columns of the results of a user's step, where its values are stored as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.engine.kernels.state_call import column_of
from ripple.model.expression.bound import Values
from ripple.model.pipeline.nodes import type_of
from ripple.model.schema.types import Bool, Float, Int, Int64, String, bare_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.schema.types import Field, FieldType

_PYTHON: dict[type, type] = {Float: float, Int: int, Int64: int, Bool: bool, String: str}


def plain_kind(of: FieldType) -> type | None:
    """Return the Python type of values that need no conversion."""
    return _PYTHON.get(type(bare_type(of)))


def plain_column(made: Sequence[tuple[Any, ...]], at: int, field: Field) -> Any:
    """Return a field of results, at this place in each; None if its values need a look."""
    kind = plain_kind(type_of(field))
    found = None if kind is None else column_of(made, at, kind)
    if found is None:
        return None
    return pa.array(found[0], pa.string()) if kind is str else Values(*found)
