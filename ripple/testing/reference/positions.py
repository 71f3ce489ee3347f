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

    from ripple.model.pipeline.waiting_nodes import PositionScan
    from ripple.model.running.position import BoundPosition
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
    state = {"held": _NOTHING, "cost": _NOTHING, "lots": [], **before}
    is_split = bool(of.split) and given[of.split[0].name] is not None
    numbers = [given[one.name] for one in (of.quantity, of.price, of.fee) if one is not None]
    if is_split:
        new, old = (given[one.name] for one in of.split)
        numbers = [0, *(number or 0 for number in numbers[1:])]
        if old is None or new <= 0 or old <= 0:
            raise RefusedRow(node.name, "it is no ratio")
    if None in numbers:
        raise RefusedRow(node.name, "a fill lacks a number")
    fill, price, *fees = map(Fraction, numbers)
    lieu = _NOTHING
    if is_split:
        lieu, gain = _split(of, state, Fraction(new, old), given[of.price.name])
        if lieu is None:
            raise RefusedRow(node.name, "what remains has no price")
    elif of.method == "average":
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
        "cash": before.get("cash", _NOTHING) - fill * price + lieu,
        "fees": before.get("fees", _NOTHING) + sum(fees, _NOTHING),
    }
    made = {one.name: _stored(node, values[one.name], one.type) for one in node.schema.fields}
    return state | values, made | {name: row[name] for name in node.kept}


def _split(of: BoundPosition, state: dict[str, Any], ratio: Fraction, price: Any) -> Any:
    """Change quantity, cost and lots; return the cash for the rest, and the profit.

    No cash where there is no price for it.
    """
    sign = -1 if state["held"] < 0 else 1
    after = abs(state["held"]) * ratio
    whole = _down(after, of.quantity.type)
    rest = after - whole
    if rest and price is None:
        return None, _NOTHING
    lieu = sign * _even(rest * Fraction(price or 0), of.money)
    if of.method == "average":
        part = _even(state["cost"] * rest / after, of.money) if rest else _NOTHING
        state["held"], state["cost"] = sign * whole, state["cost"] - part
        return lieu, lieu - part
    # The end that is sold comes first.
    lots = [[abs(lot) * ratio, lot * paid] for lot, paid in state["lots"]]
    lots = lots if of.method == "fifo" else lots[::-1]
    part, left = _NOTHING, rest
    for lot in lots:
        sold = min(left, lot[0])
        share = _even(lot[1] * sold / lot[0], of.money)
        lot[0], lot[1], left, part = lot[0] - sold, lot[1] - share, left - sold, part + share
    kept: list[tuple[Fraction, Fraction]] = []
    total, over = _NOTHING, _NOTHING
    for size, cost in reversed(lots):
        count = _down(total + size, of.quantity.type) - _down(total, of.quantity.type)
        total, over = total + size, over + cost
        if count:
            kept.append((sign * count, over / (sign * count)))
            over = _NOTHING
    state["lots"] = kept[::-1] if of.method == "fifo" else kept
    state["held"], state["cost"] = sign * whole, state["cost"] - part
    return lieu, lieu - part


def _unit(of: FieldType) -> int:
    kind = bare_type(of)
    return int(10 ** (kind.scale if isinstance(kind, (Decimal, WideDecimal)) else 0))


def _down(value: Fraction, of: FieldType) -> Fraction:
    return Fraction(int(value * _unit(of)), _unit(of))


def _even(value: Fraction, of: FieldType) -> Fraction:
    return Fraction(round(value * _unit(of)), _unit(of))


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
