"""Expressions over columns, beside the plain reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ripple.model.expression import Expr
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.logical.fields import stored_type
from ripple.model.schema.types import Field, FieldType, Schema, bare_type
from ripple.testing.reference.expressions import Failed, evaluate


def equals_reference(
    expr: Expr,
    rows: Sequence[Mapping[str, Any]],
    fields: Mapping[str, FieldType],
    kinds: Mapping[str, Any],
) -> None:
    """Assert that each row has the reference's value or failure. rows: of stored values."""
    given = [Field(name, stored_type(bare_type(fields[name])), optional=True) for name in rows[0]]
    types = to_arrow(Schema("rows", tuple(given)))
    columns = {one.name: pa.array([row[one.name] for row in rows], one.type) for one in types}
    found = expr.bind(fields).evaluate(columns, len(rows))
    array = found.values
    values = array.to_pylist() if isinstance(array, pa.Array) else array.tolist()
    for at, row in enumerate(rows):
        expected = evaluate(expr, row, kinds)
        if isinstance(expected, Failed):
            assert found.failed.get(at, "none").startswith(expected.reason), (expr, row, expected)
        else:
            seen = None if found.valid is not None and not found.valid[at] else values[at]
            assert (seen, type(seen)) == (expected, type(expected)), (expr, row)
