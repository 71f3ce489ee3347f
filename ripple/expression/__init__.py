"""Column expressions: built from names and operators, checked once, evaluated in bulk."""

from __future__ import annotations

from ripple.expression.expr import (
    Expr,
    Operand,
    Scalar,
    as_column,
    as_operand,
    col,
    greatest,
    least,
    lit,
    when,
)

__all__ = [
    "Expr",
    "Operand",
    "Scalar",
    "as_column",
    "as_operand",
    "col",
    "greatest",
    "least",
    "lit",
    "when",
]
