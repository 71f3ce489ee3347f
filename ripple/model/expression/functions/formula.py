"""Parts of formulas: checked trees of the machine's operations on operands of the right kinds."""

from __future__ import annotations

from ripple.model.expression.typed import Kind, Literal, Typed


def whole(value: int) -> Typed:
    """Return a constant integer."""
    return Typed("lit", Kind.INT, nullable=False, value=Literal(value))


def real(value: float) -> Typed:
    """Return a constant float."""
    return Typed("lit", Kind.FLOAT, nullable=False, value=Literal(value))


def arithmetic(operation: str, left: Typed, right: Typed | int) -> Typed:
    """Return + - * // or % of two operands of the same kind."""
    other = whole(right) if isinstance(right, int) else right
    return Typed(operation, left.kind, left.nullable or other.nullable, (left, other))


def comparison(operation: str, left: Typed, right: Typed) -> Typed:
    """Return a test of two numbers."""
    return Typed(operation, Kind.BOOL, left.nullable or right.nullable, (left, right))


def choice(condition: Typed, chosen: Typed, other: Typed) -> Typed:
    """Return ``chosen`` where the condition is true, else ``other``, of the same kind."""
    nullable = chosen.nullable or other.nullable
    return Typed("when", chosen.kind, nullable, (condition, chosen, other))


def converted(truth: Typed, kind: Kind) -> Typed:
    """Return a bool as 0 or 1 of a kind of numbers."""
    name = "float" if kind is Kind.FLOAT else "int"
    return Typed(name, kind, truth.nullable, (truth,))
