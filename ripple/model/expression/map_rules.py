"""The type rules of maps: functions of their stored texts, and no operators."""

from __future__ import annotations

from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr
from ripple.model.expression.functions import find
from ripple.model.expression.functions.maps import name_of_get
from ripple.model.expression.typed import Kind, Typed, kind_of, plain_value, text_test


def map_typed(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    """Return an operation on a map; raises PlanError where there is none, and for no map."""
    value, *rest = args
    options = tuple(map(plain_value, rest)) if expr.operation.startswith("dict.") else ()
    if value.kind is not Kind.MAP and expr.operation.startswith("dict."):
        raise PlanError(f"{expr!r} takes a field that is a map, such as labels: dict[str, str]")
    text = value.args[0] if value.kind is Kind.MAP else value
    match expr.operation:
        case "is_null":
            return text_test("is_null", (text,))
        case "cast" if expr.value == "str":
            return text
        case "dict.get":
            return find(name_of_get(kind_of(value.value)[0])).typed((text,), options)
        case "dict.len" | "dict.contains" | "dict.key":
            return find(expr.operation).typed((text,), options)
    raise PlanError(
        f"{expr!r} takes no map: use .dict.get('key'), .dict.contains('key'), .dict.len(),"
        " .dict.keys(), .is_null() or, as a text of JSON, .cast(str)"
    )
