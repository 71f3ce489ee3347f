"""Column expressions: built from names and operators, checked once, evaluated in bulk.

expr        users' expressions, with text_methods and time_methods; typed: checked
decimal_rules  how decimals become integers; logical_rules: dates and times; logical_constants
bound       evaluated: numbers by the machine, texts and functions over columns (columns)
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
    concat_str,
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
    "concat_str",
    "greatest",
    "least",
    "lit",
    "when",
]
