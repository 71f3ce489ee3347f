"""Order books of ``.scan``: messages a second of one core, beside a book of dicts in plain Python.

Before a time counts, the levels are compared: after each of the first messages with the plain book,
and after some of all messages with a query of DuckDB in which no message follows another.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import ripple as rp
from bench.row import Row
from bench.timing import QUICK, cpu_in_turns
from ripple.engine.machine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ripple.model.pipeline.plan import Plan

MESSAGES = 100_000 if QUICK else 1_000_000
COMPARED = 5_000
CUTS = 20
BOOKS = 20
ROUNDS = 3 if QUICK else 5
LATE_NS = 10**9

Levels = dict[tuple[int, str, int], tuple[int, int]]
"""By book, side and price the size and the number of orders."""


@rp.record(version=1)
class Message:
    book: int
    action: str
    side: str
    order_id: int
    price: int
    size: int
    sequence: int
    at_ns: rp.Timestamp


SOURCE = rp.Pipeline("books").source("messages", Message)


def measure() -> list[Row]:
    arrived, by_order = _messages()
    _compare(arrived, by_order)
    by_level = _by_level(by_order)
    levels_arrived = by_level.take(arrived)
    told = by_order.take(arrived)
    calls: dict[str, Callable[[], Any]] = {"plain": partial(_plain_tops, by_order)}
    for what, messages, more in (
        ("by order, the best level", told, {"order": "order_id"}),
        ("by order, the 10 best levels", told, {"order": "order_id", "depth": 10}),
        ("by order, rows of 10 levels", told, {"order": "order_id", "depth": 10, "show": "levels"}),
        ("by level, the best level", levels_arrived, {}),
    ):
        for size in (1_000, 16_384):
            calls[f"{what}, batches of {size:,}"] = partial(_ripple, _plan(**more), messages, size)
    best = cpu_in_turns(calls, ROUNDS)
    peer = MESSAGES / best.pop("plain")
    versus = "dicts in Python"
    return [Row(what, MESSAGES / took, "messages/s", versus, peer) for what, took in best.items()]


def _plan(**more: Any) -> Plan:
    book = rp.OrderBook(action="action", sequence="sequence", rule="dense", begins="empty", **more)
    scan = SOURCE.scan("book", "book", step=book, settled=True, lateness=LATE_NS)
    return scan.sink("out").plan()


def _messages() -> tuple[pa.Array, pa.Table]:
    """Return the order of arrival, 1 % late, and messages in the order of their time."""
    rng = np.random.default_rng(7)
    chance = rng.random((MESSAGES, 3))
    books, steps = rng.integers(0, BOOKS, MESSAGES), rng.integers(1, 21, MESSAGES)
    sizes = rng.integers(1, 51, MESSAGES)
    live: list[list[int]] = [[] for _ in range(BOOKS)]
    orders: dict[int, tuple[str, int, int]] = {}
    rows = []
    for number, (book, (kind, which, side)) in enumerate(
        zip(books.tolist(), chance.tolist(), strict=True)
    ):
        own, size = live[book], int(sizes[number])
        if kind < 0.42 or not own:
            text, step = ("B", -int(steps[number])) if side < 0.5 else ("A", int(steps[number]))
            orders[number] = text, 10_000 + step, size
            own.append(number)
            rows.append((book, "A", text, number, 10_000 + step, size))
            continue
        at = int(which * len(own))
        order = own[at]
        text, price, left = orders[order]
        if kind < 0.8:
            cut = left if side < 0.9 else max(1, left // 2)
            rows.append((book, "C", text, order, price, cut))
            orders[order] = text, price, left - cut
            if cut == left:
                own[at] = own[-1]
                own.pop()
            continue
        orders[order] = text, price + number % 3 - 1, size
        rows.append((book, "M", *orders[order][:1], order, *orders[order][1:]))
    names = ("book", "action", "side", "order_id", "price", "size")
    columns = {
        name: pa.array(part) for name, part in zip(names, zip(*rows, strict=True), strict=True)
    }
    at_ns = np.arange(MESSAGES) * 100_000 + LATE_NS
    came = at_ns + (rng.random(MESSAGES) < 0.01) * rng.integers(0, LATE_NS, MESSAGES)
    sequence = np.zeros(MESSAGES, np.int64)
    for book in range(BOOKS):
        own_rows = np.flatnonzero(books == book)
        sequence[own_rows] = np.arange(len(own_rows))
    table = pa.table({**columns, "sequence": sequence, "at_ns": at_ns})
    return pa.array(np.argsort(came, kind="stable")), table


def _by_level(by_order: pa.Table) -> pa.Table:
    """Return for each message one that sets a level, as large as after it."""
    sizes: dict[tuple[int, str, int], int] = {}
    rows = []
    for book, side, price, change in _changes(by_order):
        place = book, side, price
        sizes[place] = sizes.get(place, 0) + change[-1][1]
        rows.append((side, price, sizes[place]))
    sides, prices, left = zip(*rows, strict=True)
    told = {"action": ["S"] * len(rows), "side": sides, "price": prices, "size": left}
    return pa.table({name: told.get(name, by_order.column(name)) for name in by_order.column_names})


def _changes(messages: pa.Table) -> Iterator[tuple[int, str, int, list[tuple[int, int, int]]]]:
    """Yield per message its book and side, a price, and changes (price, size, orders) of levels."""
    orders: dict[int, list[Any]] = {}
    columns = (messages.column(name).to_pylist() for name in Message.__annotations__)
    for book, action, side, order, at, size, *_ in zip(*columns, strict=True):
        changes, price = [], at
        if action == "C":
            _, old, left = orders[order]
            gone = size >= left
            changes.append((old, -min(size, left), -gone))
            orders[order][2] -= size
            price = old
            if gone:
                del orders[order]
        else:
            if action == "M":
                _, old, left = orders[order]
                changes.append((old, -left, -1))
            orders[order] = [side, price, size]
            changes.append((price, size, 1))
        yield book, side, price, changes


def _plain_tops(messages: pa.Table) -> int:
    """Return the number of changes of best levels, by dicts that are searched for the best."""
    sides: dict[tuple[int, str], dict[int, list[int]]] = {}
    best: dict[tuple[int, str], tuple[int, int] | None] = {}
    count = 0
    for book, side, _, changes in _changes(messages):
        levels = sides.setdefault((book, side), {})
        for price, size, orders in changes:
            level = levels.setdefault(price, [0, 0])
            level[0] += size
            level[1] += orders
            if not level[1]:
                del levels[price]
        found = None
        if levels:
            top = max(levels) if side == "B" else min(levels)
            found = top, levels[top][0]
        if best.get((book, side)) != found:
            best[book, side] = found
            count += 1
    return count


def _ripple(plan: Plan, messages: pa.Table, size: int) -> list[pa.RecordBatch]:
    engine, offset, found = Engine(plan), 0, []
    for batch in messages.combine_chunks().to_batches(max_chunksize=size):
        offset += batch.num_rows
        engine.apply("messages", batch, offset)
        found.append(engine.stabilize().outputs["out"])
    engine.close()
    found.append(engine.stabilize().outputs["out"])
    return found


def _compare(arrived: pa.Array, by_order: pa.Table) -> None:
    """Raise AssertionError for levels that differ."""
    plan = _plan(order="order_id", show="levels", depth=1_000)
    rows = iter(_rows(_ripple(plan, by_order.take(arrived), 16_384)))
    row = next(rows, None)
    held: Levels = {}
    plain: Levels = {}
    cuts = set(np.linspace(COMPARED, MESSAGES, CUTS).astype(int).tolist())
    times = by_order.column("at_ns").to_pylist()
    for number, (book, side, _, changes) in enumerate(_changes(by_order), 1):
        for price, size, orders in changes:
            before = plain.get((book, side, price), (0, 0))
            plain[book, side, price] = before[0] + size, before[1] + orders
            if not plain[book, side, price][1]:
                del plain[book, side, price]
        while row is not None and row["at_ns"] == times[number - 1]:
            place = row["book"], row["side"], row["price"]
            held[place] = row["size"], row["orders"]
            if not row["size"]:
                del held[place]
            row = next(rows, None)
        if number <= COMPARED or number in cuts:
            assert held == plain, f"other levels after message {number} than the plain book's"
        if number in cuts:
            assert held == _duckdb(by_order.slice(0, number)), (
                f"other levels than DuckDB's: {number}"
            )
    assert row is None, "a row without a message"


def _rows(batches: list[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _duckdb(messages: pa.Table) -> Levels:
    """Return the levels after messages: an order has its newest size, less its cancels."""
    import duckdb  # noqa: PLC0415 - of the extra bench

    with duckdb.connect() as connection:
        connection.register("told", messages)
        found = connection.sql("""
            with last as (
                select order_id, max(at_ns) at_ns from told where action in ('A', 'M') group by 1
            ), gone as (
                select told.order_id, sum(told.size) size from told join last using (order_id)
                where action = 'C' and told.at_ns > last.at_ns group by 1
            ), resting as (
                select told.*, told.size - coalesce(gone.size, 0) rest
                from told join last using (order_id, at_ns) left join gone using (order_id)
            )
            select book, side, price, sum(rest)::bigint, count(*) from resting where rest > 0
            group by all
        """).fetchall()
    return {tuple(place): (size, orders) for *place, size, orders in found}  # type: ignore[misc]
