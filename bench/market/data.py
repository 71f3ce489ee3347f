"""Events of a market from a seed: integers by splitmix64, so the same bytes with any NumPy.

Prices are in ticks of 0.01, times in nanoseconds, and rows in the order of arrival: of a thousand
some are up to five seconds late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

Tables: TypeAlias = dict[str, pa.Table]

ROWS, SYMBOLS, LATE_PER_MILLE = 200_000, 100, 20
BEGIN_NS = 1_772_980_200_000_000_000  # 2026-03-08 14:30 UTC, a day on which New York changes clocks
SECOND_NS, DAY_NS = 10**9, 86_400 * 10**9
LATE_NS = 5 * SECOND_NS
HALTS, RATES, ACCOUNTS = 20, 2_000, 5
CURRENCIES = ("USD", "EUR", "JPY")
BOOKS_MAX = 20

_STEP, _STREAM = np.uint64(0x9E3779B97F4A7C15), 0xD1342543DE82EF95
_MIX = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


def bits(stream: int, at: Ints) -> npt.NDArray[np.uint64]:
    """Return 64 bits of each place of a stream, by splitmix64 (Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        z = (at.astype(np.uint64) + np.uint64(1)) * _STEP + np.uint64(stream) * np.uint64(_STREAM)
        for shift, factor in _MIX:
            z = (z ^ (z >> np.uint64(shift))) * factor
        return z ^ (z >> np.uint64(31))


def below(stream: int, at: Ints, limit: int) -> Ints:
    """Return integers from 0 to below a limit."""
    return (bits(stream, at) % np.uint64(limit)).astype(np.int64)


def tables(rows: int = ROWS, symbols: int = SYMBOLS, late: int = LATE_PER_MILLE) -> Tables:
    """Return all tables. late: how many of a thousand rows are late."""
    trades = _trades(rows, symbols, late)
    last_ns = BEGIN_NS + int(np.cumsum(below(3, np.arange(rows), 20_000_000))[-1])
    return {
        "trades": trades,
        "trades_twice": _with_duplicates(trades),
        "quotes": _quotes(rows, symbols, late),
        "fills": _fills(rows // 10, symbols, late),
        "rates": _rates(last_ns),
        "splits": _splits(symbols // 5, last_ns),
        "halts": _halts(symbols, last_ns),
        "book": _book(rows, min(symbols, BOOKS_MAX)),
    }


def _names(symbols: Ints) -> pa.Array:
    return pa.array([f"S{symbol:04d}" for symbol in symbols.tolist()])


def _arrivals(stream: int, times_ns: Ints, late: int) -> Ints:
    """Return the rows in the order in which they arrive."""
    at = np.arange(len(times_ns))
    delay_ns = np.where(below(stream, at, 1_000) < late, below(stream + 1, at, LATE_NS), 0)
    return np.argsort(times_ns + delay_ns, kind="stable")


def _walk(stream: int, symbols: Ints, count: int) -> Ints:
    """Return a price of each row: a walk of its symbol, in ticks, at least 100."""
    steps = below(stream, np.arange(len(symbols)), 7) - 3
    prices = np.empty(len(symbols), np.int64)
    for symbol in range(count):
        own = np.flatnonzero(symbols == symbol)
        prices[own] = 10_000 + 100 * symbol + np.cumsum(steps[own])
    return np.maximum(prices, 100)


def _trades(rows: int, count: int, late: int) -> pa.Table:
    at = np.arange(rows)
    symbols = np.minimum(below(1, at, count), below(2, at, count))  # the first ones trade more
    times_ns = BEGIN_NS + np.cumsum(below(3, at, 20_000_000))
    is_block, is_unsigned = below(6, at, 50) == 0, below(8, at, 40) == 0
    sides = np.where(is_unsigned, 0, 1 - 2 * below(7, at, 2))
    order = _arrivals(9, times_ns, late)
    return pa.table(
        {
            "symbol": _names(symbols[order]),
            "price_ticks": _walk(4, symbols, count)[order],
            "size": (1 + below(5, at, 500) * (1 + 9 * is_block))[order],
            "side": sides[order],
            "timestamp_ns": times_ns[order],
            "trade_id": order.astype(np.int64),
        }
    )


def _with_duplicates(trades: pa.Table) -> pa.Table:
    """Return the trades with one of 200 a second time, three rows later."""
    at = np.arange(len(trades))
    again = (np.flatnonzero(below(11, at, 200) == 0) + 3).clip(0, len(trades) - 1)
    return trades.take(pa.array(np.sort(np.concatenate((at, again)))))


def _quotes(rows: int, count: int, late: int) -> pa.Table:
    """Return quotes at whole milliseconds, so that several have one time."""
    at = np.arange(rows)
    symbols, spread = below(20, at, count), 1 + below(23, at, 3)
    times_ns = BEGIN_NS + np.cumsum(below(21, at, 20_000_000)) // 1_000_000 * 1_000_000
    middle = _walk(22, symbols, count)
    order = _arrivals(24, times_ns, late)
    return pa.table(
        {
            "symbol": _names(symbols[order]),
            "bid_ticks": (middle - spread)[order],
            "bid_size": (1 + below(25, at, 100))[order],
            "ask_ticks": (middle + spread)[order],
            "ask_size": (1 + below(26, at, 100))[order],
            "timestamp_ns": times_ns[order],
        }
    )


def _fills(rows: int, count: int, late: int) -> pa.Table:
    """Return fills, and one of a hundred again as a bust, which names it."""
    at = np.arange(rows)
    symbols = below(30, at, count)
    times_ns = BEGIN_NS + np.cumsum(below(31, at, 200_000_000))
    busted = np.flatnonzero(below(35, at, 100) == 0)
    made = pa.table(
        {
            "account": pa.array([f"A{one}" for one in below(32, at, ACCOUNTS).tolist()]),
            "symbol": _names(symbols),
            "quantity": (1 + below(33, at, 200)) * (1 - 2 * below(34, at, 2)),
            "price_ticks": _walk(36, symbols, rows),
            "fee_cents": below(37, at, 100),
            "currency": pa.array([CURRENCIES[one] for one in (symbols % 3).tolist()]),
            "timestamp_ns": times_ns,
            "fill_id": at,
            "busts": np.full(rows, -1),
        }
    )
    given = {
        "timestamp_ns": times_ns[busted] + 1 + below(38, busted, 4_000_000_000),
        "fill_id": rows + np.arange(len(busted)),
        "busts": busted,
    }
    busts = made.take(pa.array(busted))
    for name, column in given.items():
        busts = busts.set_column(busts.schema.get_field_index(name), name, pa.array(column))
    both = pa.concat_tables([made, busts])
    return both.take(pa.array(_arrivals(39, both["timestamp_ns"].to_numpy(), late)))


def _rates(last_ns: int) -> pa.Table:
    at = np.arange(RATES)
    is_euro = at % 2 == 0
    rates = np.where(is_euro, 1_100_000, 6_700) + below(40, at, 500) * np.where(is_euro, 20, 1)
    return pa.table(
        {
            "pair": pa.array([("EURUSD", "JPYUSD")[one] for one in (at % 2).tolist()]),
            "rate_micro": rates,
            "timestamp_ns": BEGIN_NS + at * (last_ns - BEGIN_NS) // RATES,
        }
    )


def _splits(count: int, last_ns: int) -> pa.Table:
    at = np.arange(count)
    return pa.table(
        {
            "symbol": _names(at * 5),
            "numerator": 2 + below(50, at, 2),
            "denominator": np.full(count, 1),
            "effective_ns": BEGIN_NS + below(51, at, last_ns - BEGIN_NS),
            "known_ns": BEGIN_NS - DAY_NS * (1 + below(52, at, 30)),
        }
    )


def _halts(count: int, last_ns: int) -> pa.Table:
    at = np.arange(HALTS)
    from_ns = BEGIN_NS + below(55, at, last_ns - BEGIN_NS)
    return pa.table(
        {
            "symbol": _names(below(56, at, count)),
            "from_ns": from_ns,
            "to_ns": from_ns + 5 * SECOND_NS + below(57, at, 60 * SECOND_NS),
        }
    )


def _book(rows: int, count: int) -> pa.Table:
    """Return messages by order: added, taken off in part or whole, or replaced.

    A message other than an addition is about an order that is in the book.
    """
    at = np.arange(rows)
    a, b, c, d, e = (bits(60 + stream, at).tolist() for stream in range(5))
    live: list[list[int]] = [[] for _ in range(count)]
    orders: dict[int, tuple[str, int, int]] = {}
    sequences = [0] * count
    columns: list[list[object]] = [[], [], [], [], [], [], []]
    for i in range(rows):
        symbol, kind = a[i] % count, b[i] % 100
        middle = 10_000 + 100 * symbol + c[i] % 9 - 4
        own = live[symbol]
        sequences[symbol] += 1
        if kind < 42 or not own:
            number, action = len(orders) + 1, "A"
            side, away = ("B", -1) if d[i] & 1 else ("A", 1)
            price, size = middle + away * (1 + e[i] % 20), 1 + d[i] % 50
            orders[number] = side, price, size
            own.append(number)
        else:
            place = d[i] % len(own)
            number = own[place]
            side, price, left = orders[number]
            if kind < 80:
                action, is_whole = "C", kind < 76 or left == 1
                size = left if is_whole else 1 + e[i] % (left - 1)
                orders[number] = side, price, left - size
                if size == left:
                    own[place] = own[-1]
                    own.pop()
            else:
                action, size, price = "M", 1 + e[i] % 50, price + (e[i] >> 8) % 3 - 1
                orders[number] = side, price, size
        values = symbol, action, side, number, price, size, sequences[symbol]
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    symbols, actions, sides, *numbers = columns
    names = ("order_id", "price_ticks", "size", "sequence")
    return pa.table(
        {
            "symbol": _names(np.array(symbols, np.int64)),
            "action": pa.array(actions),
            "side": pa.array(sides),
            **{name: pa.array(one, pa.int64()) for name, one in zip(names, numbers, strict=True)},
            "timestamp_ns": BEGIN_NS + np.cumsum(below(65, at, 2_000_000)),
        }
    )
