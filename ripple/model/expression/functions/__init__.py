"""The functions of expressions: an entry each, found by name.

function    an entry: operands, result, compiled form, plain Python twin
formula     functions as formulas of the machine's operations; numbers: those of numbers
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripple.model.expression.functions.function import Function


def find(name: str) -> Function:
    """Return the entry of a function; raises KeyError."""
    from ripple.model.expression.functions.numbers import NUMBERS  # noqa: PLC0415

    return NUMBERS[name]
