"""A trade written to the pipe of ``ripple run``, until its row with its quote can be read."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

import ripple as rp
from bench.timing import QUICK

SYMBOLS = 100
QUOTES = 10_000
TRADES = 300 if QUICK else 2_000
WARM = 100
PAUSE_S = 0.001  # so that each trade comes alone
STEP_NS = 1_000_000
WITHIN_S = 60


@rp.record(version=1)
class Trade:
    symbol: str
    trade: int
    price: float
    at_ns: rp.Timestamp


@rp.record(version=1)
class Quote:
    symbol: str
    bid: float
    ask: float
    at_ns: rp.Timestamp


market = rp.Pipeline("market")
trades, quotes = market.source("trades", Trade), market.source("quotes", Quote)
pipeline = trades.join_asof("at-quote", quotes, on="symbol", lateness=0, emit="eager").sink("out")


def took_us() -> list[float]:
    """Return what each trade takes, in microseconds of the clock."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "quotes.jsonl"
        file.write_text("".join(map(_quote, range(QUOTES))))
        command = [sys.executable, "-m", "ripple.cli.main", "run", f"{__file__}:pipeline", "-q"]
        command += ["--source", "trades=jsonl:/dev/stdin", "--source", f"quotes={file}"]
        command += ["--sink", "out=jsonl:/dev/stdout"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            row: dict[str, Any] = {}
            took, number, began = [], 0, time.monotonic()
            # Until all quotes are read: from then on a row has its quote at once.
            while number < SYMBOLS or row["bid"] != _bid(number - 1):
                assert time.monotonic() < began + WITHIN_S, "no trade has its quote"
                _, row = _asked(process.stdin, process.stdout, number)
                number += 1
            for at in range(number, number + WARM + TRADES):
                seconds, row = _asked(process.stdin, process.stdout, at)
                took.append(seconds * 1e6)
                assert row["bid"] == _bid(at), row
                time.sleep(PAUSE_S)
            process.stdin.close()
            process.stdout.read()
    return took[WARM:]


def _asked(trades: IO[bytes], rows: IO[bytes], number: int) -> tuple[float, dict[str, Any]]:
    """Write a trade; return the seconds until its row, and that. Corrections are passed over."""
    line = _trade(number)
    started = time.perf_counter()
    trades.write(line)
    while True:
        answer = rows.readline()
        seconds = time.perf_counter() - started
        row = json.loads(answer)
        if row["trade"] == number:
            return seconds, row


def _bid(number: int) -> float:
    return float(QUOTES - SYMBOLS + number % SYMBOLS)


def _quote(number: int) -> str:
    return (
        json.dumps(
            {
                "symbol": f"S{number % SYMBOLS}",
                "bid": float(number),
                "ask": number + 1.0,
                "at_ns": number * STEP_NS,
            }
        )
        + "\n"
    )


def _trade(number: int) -> bytes:
    trade = {
        "symbol": f"S{number % SYMBOLS}",
        "trade": number,
        "price": 1.5,
        "at_ns": (QUOTES + number) * STEP_NS,
    }
    return json.dumps(trade).encode() + b"\n"
