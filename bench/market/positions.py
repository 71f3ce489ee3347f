"""Positions of accounts at average cost, without the fills that were taken back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import ripple as rp
from bench.market.data import Tables
from bench.market.query import Query, Rows
from bench.market.records import LATENESS, Fill


@rp.record
class Held:
    quantity: int
    cost: int
    realized: int
    fees: int


@dataclass
class Position:
    quantity: int = 0
    cost: int = 0
    realized: int = 0
    fees: int = 0


def _step(held: Position, fill: Fill) -> Held:
    """Add a fill, at average cost; the cost of what is closed is rounded half to even."""
    quantity, price = fill.quantity, fill.price_ticks
    held.fees += fill.fee_cents
    if held.quantity * quantity < 0:
        closed = -min(quantity, -held.quantity) if quantity > 0 else min(-quantity, held.quantity)
        part, rest = divmod(2 * held.cost * closed, 2 * held.quantity)
        above = 2 * abs(rest) - abs(2 * held.quantity)
        part += above > 0 or (above == 0 and part % 2 == 1)
        held.realized += closed * price - part
        held.cost -= part
        held.quantity -= closed
        quantity += closed
    held.quantity += quantity
    held.cost += quantity * price
    return Held(held.quantity, held.cost, held.realized, held.fees)


def _positions(_: Tables) -> rp.Pipeline:
    all_fills = rp.Pipeline("m9").source("fills", Fill)
    busts = all_fills.filter("taken-back", rp.col("busts") >= 0)
    kept = (
        all_fills.filter("made", rp.col("busts") < 0)
        .join_interval(
            "bust",
            busts,
            left_on="fill_id",
            right_on="busts",
            within=("0s", "5s"),
            how="left",
            lateness=LATENESS,
            emit="final",
        )
        .filter("kept", rp.col("fill_id_right").is_null())
    )
    held = kept.scan(
        "positions",
        key=["account", "symbol"],
        state=Position,
        step=_step,
        into=Held,
        settled=True,
    )
    return (
        held.partition("by-position", key=["account", "symbol"])
        .fold("last", **{name: rp.last(name) for name in ("quantity", "cost", "realized", "fees")})
        .sink("rows")
    )


def _plain_positions(given: dict[str, Rows]) -> Rows:
    """Return the positions by fractions, and check that cash and cost are what is realized."""
    busted = {row[8] for row in given["fills"] if row[8] >= 0}
    held: dict[tuple[str, str], list[int]] = {}
    cash: dict[tuple[str, str], int] = {}
    for row in sorted(given["fills"], key=lambda row: row[6]):
        account, symbol, quantity, price, fee, _, _, number, busts = row
        if busts >= 0 or number in busted:
            continue
        own = held.setdefault((account, symbol), [0, 0, 0, 0])
        cash[account, symbol] = cash.get((account, symbol), 0) - quantity * price
        own[3] += fee
        if own[0] * quantity < 0:
            closed = quantity if abs(quantity) <= abs(own[0]) else -own[0]
            part = round(Fraction(own[1] * -closed, own[0]))
            own[2] += -closed * price - part
            own[1] -= part
            own[0], quantity = own[0] + closed, quantity - closed
        own[0], own[1] = own[0] + quantity, own[1] + quantity * price
        assert cash[account, symbol] + own[1] == own[2]
    return [(*key, *values) for key, values in held.items()]


QUERIES = (
    Query(
        "m9",
        "positions at average cost, without busted fills",
        ("fills",),
        ("account", "symbol", "quantity", "cost", "realized", "fees"),
        _positions,
        "a5f470ff2cf91b96",
        plain=_plain_positions,
    ),
)
