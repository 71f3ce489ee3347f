"""The files that the tasks read, the same each time, and the right rows, in plain Python."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

TRADES, CLICKS, FILLS, EVENTS = 20_000, 5_000, 2_000, 10_000
SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
BEGIN = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)
BEFORE_SUMMER = datetime(2026, 3, 8, 4, 0, tzinfo=UTC)  # two local hours before the clocks change
NEW_YORK = ZoneInfo("America/New_York")
Row = tuple[str | float, ...]


def write(folder: Path) -> dict[str, list[Row]]:
    """Write all files; return the rows of each task, sorted."""
    trades, clicks = _trades(Random(1)), _clicks(Random(2))
    fills, quotes, events = _fills(Random(3)), _quotes(Random(4)), _events(Random(5))
    _write_csv(folder / "trades.csv", "symbol,venue,price,size,at_ns", trades)
    lines = (
        {"user": {"id": user}, "page": page, "at": at.isoformat()} for user, page, at in clicks
    )
    (folder / "clicks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    _write_csv(folder / "fills.csv", "account,symbol,quantity,price,at_ns", fills)
    _write_csv(folder / "quotes.csv", "symbol,bid,at_ns", quotes)
    texts = [(id_, user, f"{at:%Y-%m-%dT%H:%M:%SZ}") for id_, user, at in events]
    _write_csv(folder / "events.csv", "event,user,at", texts)
    return {
        "a": sorted(_bars(trades)),
        "b": sorted(_alerts(trades)),
        "c": sorted(_sessions(clicks)),
        "d": sorted(_positions(fills, quotes)),
        "e": sorted(_users(events)),
    }


def _write_csv(path: Path, heading: str, rows: Iterable[Iterable[object]]) -> None:
    with path.open("w", newline="") as file:
        file.write(f"{heading}\n")
        csv.writer(file, lineterminator="\n").writerows(rows)


def _ns(at: datetime) -> int:
    return round(at.timestamp() * 1_000) * 1_000_000


def _trades(chance: Random) -> list[tuple[str, str, float, int, int]]:
    at, found = _ns(BEGIN), []
    for _ in range(TRADES):
        at += chance.randrange(1, 900) * 1_000_000
        price = round(100 + chance.gauss(0, 1) + 8 * (chance.random() < 0.01), 2)
        symbol, venue = chance.choice(["AIG", "BAC", "IBM"]), chance.choice(["ARCX", "XNAS"])
        found.append((symbol, venue, price, chance.randrange(1, 900), at))
    return found


def _clicks(chance: Random) -> list[tuple[str, str, datetime]]:
    """Return clicks, some after a longer pause, with the clock of New York."""
    at, found = BEGIN, []
    for _ in range(CLICKS):
        at += timedelta(milliseconds=chance.randrange(1_000, 30_000))
        user = f"u{int(chance.paretovariate(0.6)) % 60}"
        found.append((user, chance.choice(["/", "/buy"]), at.astimezone(NEW_YORK)))
    return found


def _fills(chance: Random) -> list[tuple[str, str, int, float, int]]:
    at, found = _ns(BEGIN), []
    for _ in range(FILLS):
        at += chance.randrange(1, 5) * SECOND_NS
        symbol, quantity = chance.choice(["AIG", "BAC"]), chance.choice([-100, -50, 50, 100])
        account = f"a{chance.randrange(20)}"
        found.append((account, symbol, quantity, 100 + chance.randrange(64) / 64, at))
    return found


def _quotes(chance: Random) -> list[tuple[str, float, int]]:
    at, found = _ns(BEGIN), []
    for _ in range(FILLS):
        at += chance.randrange(1, 5) * SECOND_NS
        found.append((chance.choice(["AIG", "BAC"]), 100 + chance.randrange(64) / 64, at))
    return found


def _events(chance: Random) -> list[tuple[str, str, datetime]]:
    """Return events over the night in which the clocks go forward, each third one twice."""
    at, found = BEFORE_SUMMER, []
    for number in range(EVENTS):
        at += timedelta(seconds=chance.randrange(1, 6))
        event = (f"e{number}", f"u{chance.randrange(400)}", at)
        found += [event] * (1 + (number % 3 == 0))
    return found


def _bars(trades: list[tuple[str, str, float, int, int]]) -> list[Row]:
    """Return bars of a minute: symbol, venue, start, open, high, low, close, volume, vwap."""
    bars: defaultdict[tuple[str, str, int], list[tuple[float, int]]] = defaultdict(list)
    for symbol, venue, price, size, at in trades:
        bars[symbol, venue, at // MINUTE_NS * MINUTE_NS].append((price, size))
    rows: list[Row] = []
    for key, within in bars.items():
        prices, volume = [price for price, _ in within], sum(size for _, size in within)
        vwap = math.fsum(price * size for price, size in within) / volume
        ends = (prices[0], max(prices), min(prices), prices[-1])
        rows.append((*key, *ends, float(volume), vwap))
    return rows


def _alerts(trades: list[tuple[str, str, float, int, int]]) -> list[Row]:
    """Return the windows of 5 min, each minute, with a last price over 2 deviations off."""
    windows: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for symbol, _, price, _, at in trades:
        last = at // MINUTE_NS * MINUTE_NS
        for start in range(last - 4 * MINUTE_NS, last + 1, MINUTE_NS):
            windows[symbol, start].append(price)
    rows: list[Row] = []
    for (symbol, start), prices in windows.items():
        mean = math.fsum(prices) / len(prices)
        spread = math.fsum((price - mean) ** 2 for price in prices)
        if len(prices) > 1 and spread:
            score = (prices[-1] - mean) / math.sqrt(spread / (len(prices) - 1))
            if abs(score) > 2:
                rows.append((symbol, start, score))
    return rows


def _sessions(clicks: list[tuple[str, str, datetime]]) -> list[Row]:
    """Return sessions that end after 10 minutes without a click: user, start, clicks."""
    begun: dict[str, list[int]] = {}
    rows: list[Row] = []
    for user, _, at in clicks:
        now = _ns(at)
        start, last, count = begun.get(user, (now, now, 0))
        if now - last > 10 * MINUTE_NS:
            rows.append((user, start, float(count)))
            start, count = now, 0
        begun[user] = [start, now, count + 1]
    return rows + [(user, start, float(count)) for user, (start, _, count) in begun.items()]


def _positions(
    fills: list[tuple[str, str, int, float, int]], quotes: list[tuple[str, float, int]]
) -> list[Row]:
    """Return the position and the profit at the newest bid: account, symbol, quantity, profit."""
    newest = {symbol: bid for symbol, bid, _ in quotes}
    sums: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for account, symbol, quantity, price, _ in fills:
        sums[account, symbol][0] += quantity
        sums[account, symbol][1] += quantity * price
    return [
        (*key, quantity, quantity * newest[key[1]] - cost) for key, (quantity, cost) in sums.items()
    ]


def _users(events: list[tuple[str, str, datetime]]) -> list[Row]:
    """Return, by local hour in New York, its users and its events, each id once."""
    seen = {id_: (user, at) for id_, user, at in events}
    hours: defaultdict[str, list[str]] = defaultdict(list)
    for user, at in seen.values():
        hours[f"{at.astimezone(NEW_YORK):%Y-%m-%d %H}"].append(user)
    return [(hour, float(len(set(users))), float(len(users))) for hour, users in hours.items()]
