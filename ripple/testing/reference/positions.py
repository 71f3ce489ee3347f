"""Positions of fills one by one, in fractions: each lot with its own price."""

from __future__ import annotations

import decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import Decimal, Logical, WideDecimal, bare_type
from ripple.testing.reference.steps import RefusedRow, given_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.pipeline.nodes import PositionScan
    from ripple.model.schema.types import FieldType
    from ripple.testing.reference.steps import Row

_NOTHING = Fraction()


def positioned(
    node: PositionScan, before: Mapping[str, Any], row: Row
) -> tuple[dict[str, Any], Row | None]:
    """Return the state after a fill, and the row that is made of it; raises RefusedRow.

    before: the state, {} for a new one.
    """
    of = node.position
    assert of is not None, "it is bound"
    given = given_of(row, of.reads)
    if of.busted is not None and given[of.busted.name]:
        return dict(before), None
    numbers = [given[one.name] for one in (of.quantity, of.price, of.fee) if one is not None]
    if None in numbers:
        raise RefusedRow(node.name, "a fill lacks a number")
    fill, price, *fees = map(Fraction, numbers)
    state = {"held": _NOTHING, "cost": _NOTHING, "lots": [], **before}
    if of.method == "average":
        gain = _at_average(state, fill, price, of.money)
    else:
        gain = _by_lots(state, fill, price, 0 if of.method == "fifo" else -1)
        if len(state["lots"]) > of.lots:
            raise RefusedRow(node.name, "there would be too many lots")
    values = {
        "quantity": state["held"],
        "cost": state["cost"],
        "realized": before.get("realized", _NOTHING) + gain,
        "gain": gain,
        "cash": before.get("cash", _NOTHING) - fill * price,
        "fees": before.get("fees", _NOTHING) + sum(fees, _NOTHING),
    }
    made = {one.name: _stored(node, values[one.name], one.type) for one in node.schema.fields}
    return state | values, made | {name: row[name] for name in node.kept}


def _at_average(state: dict[str, Any], fill: Fraction, price: Fraction, money: FieldType) -> Any:
    """Change quantity and cost; return the profit."""
    held, cost, gain = state["held"], state["cost"], _NOTHING
    if held and fill and (held > 0) != (fill > 0):
        closed = -fill if abs(fill) < abs(held) else held
        unit = 10 ** (money.scale if isinstance(money, (Decimal, WideDecimal)) else 0)
        part = Fraction(round(cost * closed / held * unit), unit)  # half to even
        gain = closed * price - part
        held, cost, fill = held - closed, cost - part, fill + closed
    state["held"], state["cost"] = held + fill, cost + fill * price
    return gain


def _by_lots(state: dict[str, Any], fill: Fraction, price: Fraction, at: int) -> Any:
    """Change the lots, of which that ``at`` an end goes first; return the profit."""
    lots, gain = list(state["lots"]), _NOTHING
    while fill and lots and (lots[at][0] > 0) != (fill > 0):
        quantity, paid = lots.pop(at)
        closed = -fill if abs(fill) < abs(quantity) else quantity
        gain += closed * (price - paid)
        fill += closed
        if quantity != closed:
            lots.insert(0 if at == 0 else len(lots), (quantity - closed, paid))
    if fill:
        lots.append((fill, price))
    state["lots"] = lots
    state["held"] = sum((quantity for quantity, _ in lots), _NOTHING)
    state["cost"] = sum((quantity * paid for quantity, paid in lots), _NOTHING)
    return gain


def _stored(node: PositionScan, value: Fraction, of: FieldType) -> Any:
    kind = bare_type(of)
    number = int(value) if -(2**63) < value < 2**63 else None
    if isinstance(kind, Logical):
        with decimal.localcontext(prec=200):
            quotient = decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)
        number = rule_of(kind).number(quotient)
    if number is None:
        raise RefusedRow(node.name, f"{value} does not fit")
    return number
