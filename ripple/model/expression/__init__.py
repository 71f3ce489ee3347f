"""Column expressions: built from names and operators, checked once, evaluated in bulk.

expr        users' expressions; typed: checked; bound: evaluated, texts by Arrow (text)
functions   an entry for each function beside the operators
compile     numbers and bools as straight-line code, which program runs, compiled
"""

from __future__ import annotations

from ripple.model.expression.expr import (
    Expr,
    Operand,
    Scalar,
    as_column,
    as_operand,
    coalesce,
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
    "coalesce",
    "col",
    "greatest",
    "least",
    "lit",
    "when",
]
