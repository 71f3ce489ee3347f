"""The files of the end-to-end benchmark, written and checked in processes of their own.

``python -m bench.trade_files write FILE EVENTS SYMBOLS`` and ``... check FILE OURS THEIRS``.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

from bench.trades import blocks
from ripple.connectors.contract import NOWHERE
from ripple.connectors.files.text.sink import TextSink
from ripple.connectors.target import open_target

SAMPLE = 5


def write(path: str, events: int, symbols: int) -> None:
    sink = TextSink(open_target(path))
    for block in blocks(events, symbols):
        sink.write(block, NOWHERE)
    sink.commit(NOWHERE)
    sink.close()


def check(path: str, ours: str, theirs: str) -> None:
    """Compare last rows: all of them with a peer's, a sample with sums that nothing rounded."""
    found, expected = _last_rows(ours), _last_rows(theirs)
    assert found.keys() == expected.keys(), (len(found), len(expected))
    for key, (vwap, *counts) in found.items():
        other, *others = expected[key]
        assert counts == others, key
        assert abs(float(vwap) - float(other)) <= 1e-4 + 1e-9, (key, vwap, other)
    if all(len(key) == 1 for key in found):
        sample = random.Random(1).sample(sorted(found), SAMPLE)
        for key, exact in _exact({symbol for (symbol,) in sample}, path).items():
            assert found[(key,)][0] == f"{exact:.4f}", (key, exact)


def _last_rows(path: str) -> dict[tuple[str, ...], list[str]]:
    rows = {}
    with Path(path).open() as file:
        for line in file:
            *key, vwap, volume, count = line.rstrip("\n").split(",")
            rows[tuple(key)] = [vwap, volume, count]
    return rows


def _exact(symbols: set[str], path: str) -> dict[str, float]:
    notional: defaultdict[str, Fraction] = defaultdict(Fraction)
    volume: defaultdict[str, int] = defaultdict(int)
    with Path(path).open() as file:
        for line in file:
            symbol, price, size, _, _ = line.split(",")
            if symbol in symbols:
                notional[symbol] += Fraction(float(price) * int(size))
                volume[symbol] += int(size)
    return {symbol: float(notional[symbol] / volume[symbol]) for symbol in symbols}


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        check(*sys.argv[2:])
