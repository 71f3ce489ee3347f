"""Row predicates: ``price > 100 and symbol == 'AAPL'``.

Fields, numbers, texts, ``true`` and ``false``; ``+ - * /``; comparisons, ``in``; ``and or not``;
parentheses. There are no function calls.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTH_MAX = 4096
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COMPUTED: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_WORDS = {"true": True, "false": False}


def where_of(text: str) -> Callable[[pa.Table], pa.Table]:
    """Return a filter that keeps the rows for which an expression is true, not null.

    Raises InputError for an invalid expression; the filter does for unknown fields and for wrong
    types.
    """
    if len(text) > LENGTH_MAX:
        raise InputError(f"an expression of {len(text)} characters: {LENGTH_MAX} at most")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        expression = _of(tree.body)
    except (SyntaxError, ValueError, RecursionError, TypeError) as error:
        raise InputError(f"{text!r} is not an expression: {error}") from error
    if not isinstance(expression, pc.Expression):
        raise InputError(f"{text!r} refers to no field")

    def kept(rows: pa.Table) -> pa.Table:
        try:
            return rows.filter(expression)
        except pa.ArrowException as error:
            names = ", ".join(rows.schema.names)
            raise InputError(f"{text!r} does not fit rows of {names}: {error}") from error

    return kept


def _of(node: ast.expr) -> Any:
    match node:
        case ast.Name(id=name):
            return _WORDS[name] if name in _WORDS else pc.field(name)
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ~_as_expression(_of(operand))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _of(operand)
            return pc.negate(value) if isinstance(value, pc.Expression) else -value
        case ast.BoolOp(op=op, values=values):
            joined = _as_expression(_of(values[0]))
            for more in values[1:]:
                other = _as_expression(_of(more))
                joined = joined & other if isinstance(op, ast.And) else joined | other
            return joined
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED:
            return _COMPUTED[type(op)](_of(left), _of(right))
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _compared(left, ops, others)
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is not supported")


def _compared(left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr]) -> Any:
    joined: Any = None
    for op, right in zip(ops, others, strict=True):
        if isinstance(op, ast.In) and isinstance(right, ast.Tuple | ast.List | ast.Set):
            one = _as_expression(_of(left)).isin([_of(item) for item in right.elts])
        elif type(op) in _COMPARED:
            one = _COMPARED[type(op)](_of(left), _of(right))
        else:
            raise ValueError(f"{ast.unparse(right)!r} cannot be compared like this")
        joined = one if joined is None else joined & one
        left = right
    return joined


def _as_expression(value: Any) -> pc.Expression:
    return value if isinstance(value, pc.Expression) else pc.scalar(value)
