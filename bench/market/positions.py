"""Positions of accounts, at average cost and by FIFO, without the fills that were taken back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Literal, TypeAlias

import ripple as rp
from bench.market.data import Tables
from bench.market.query import Query, Rows
from bench.market.records import LATENESS, Fill

Lots: TypeAlias = deque[list[int]]
"""Of a position, each with its quantity and price; at average cost one, with all of the cost."""


def _positions(method: Literal["average", "fifo"], _: Tables) -> rp.Pipeline:
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
    step = rp.Position("quantity", "price_ticks", method=method, fee="fee_cents")
    held = kept.scan("positions", key=["account", "symbol"], step=step, settled=True)
    return (
        held.partition("by-position", key=["account", "symbol"])
        .fold("last", **{name: rp.last(name) for name in ("quantity", "cost", "realized", "fees")})
        .sink("rows")
    )


def _average(lots: Lots, closed: int, price: int) -> int:
    """Close so much of the only lot; return the profit."""
    quantity, cost = lots[0]
    part = round(Fraction(cost * -closed, quantity))
    lots[0] = [quantity + closed, cost - part]
    return -closed * price - part


def _fifo(lots: Lots, closed: int, price: int) -> int:
    """Close so much of the oldest lots; return the profit."""
    profit = 0
    while closed:
        quantity, paid = lots[0]
        part = -quantity if abs(quantity) < abs(closed) else closed
        profit += -part * (price - paid)
        closed -= part
        lots[0][0] += part
        if not lots[0][0]:
            lots.popleft()
    return profit


def _plain(close: Callable[[Lots, int, int], int], given: dict[str, Rows]) -> Rows:
    """Return the positions of all fills, and check that cash and cost add up to the profit."""
    busted = {row[8] for row in given["fills"] if row[8] >= 0}
    held: dict[tuple[str, str], Lots] = {}
    sums: dict[tuple[str, str], list[int]] = {}
    is_average = close is _average
    for row in sorted(given["fills"], key=lambda row: row[6]):
        account, symbol, quantity, price, fee, _, _, number, busts = row
        if busts >= 0 or number in busted:
            continue
        lots = held.setdefault((account, symbol), deque())
        own = sums.setdefault((account, symbol), [0, 0, 0, 0, 0])
        own[3], own[4] = own[3] + fee, own[4] - quantity * price
        before = sum(lot[0] for lot in lots)
        if before * quantity < 0:
            closed = quantity if abs(quantity) <= abs(before) else -before
            own[2] += close(lots, closed, price)
            quantity -= closed
        if quantity and is_average and lots:
            lots[0] = [lots[0][0] + quantity, lots[0][1] + quantity * price]
        elif quantity:
            lots.append([quantity, quantity * price if is_average else price])
        own[0] = sum(lot[0] for lot in lots)
        own[1] = sum(one if is_average else count * one for count, one in lots)
        assert own[4] + own[1] == own[2]
    return [(*key, *values[:4]) for key, values in sums.items()]


COLUMNS = ("account", "symbol", "quantity", "cost", "realized", "fees")
QUERIES = (
    Query(
        "m9",
        "positions at average cost, without busted fills",
        ("fills",),
        COLUMNS,
        partial(_positions, "average"),
        "a5f470ff2cf91b96",
        plain=partial(_plain, _average),
    ),
    Query(
        "m9b",
        "the same by FIFO",
        ("fills",),
        COLUMNS,
        partial(_positions, "fifo"),
        "d9d1628a2fe97b72",
        plain=partial(_plain, _fifo),
    ),
)
