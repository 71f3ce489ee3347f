"""Fuzzes the compiled batch path: ``make fuzz``, or this module with --help.

Lines that were plain and then spoiled are read in every way there is; disordered, broken and
extreme events go through pipelines drawn at random, which are held to the reference interpreter.
Under ``make sanitize`` every access of these loops is watched as well.

A failure prints its seed and round; ``--seed N --round N`` plays it once more.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

import ripple as rp
from ripple.connectors.files.csv.format import TRADES
from ripple.testing import check_pipeline
from tests.connectors.test_plain_lines import (
    ONE_INTEGER,
    ONE_NUMBER,
    OPTIONAL,
    assert_all_ways_agree,
)
from tests.engine.machine.ticks import (
    AGGREGATES,
    ASSIGNERS,
    EXTREME_TIMES,
    HUGE_SIZES,
    NASTY,
    SIZES,
    TOTALS,
    TRIGGERS,
    CheckedTick,
    Tick,
    keyed,
)

FORMATS = (TRADES, OPTIONAL, ONE_NUMBER, ONE_INTEGER)
BYTES = b',"\r\n\x00\x1f\x7f\x80\xff#-+.eE0 19aN'


# --- lines ------------------------------------------------------------------------------------


def _number(rng: random.Random) -> str:
    whole = rng.randrange(10 ** rng.randrange(1, 21))
    sign = rng.choice(("", "", "", "-"))
    if rng.random() < 0.5:
        return f"{sign}{whole}"
    return f"{sign}{whole}.{rng.randrange(10 ** rng.randrange(1, 18))}"


def _line(rng: random.Random) -> str:
    text = "".join(rng.choices("SYMabc019 _", k=rng.choice((0, 1, 5, 8, 15, 16, 17, 33, 90))))
    fields = [text, *(_number(rng) for _ in range(3)), rng.choice(("true", "XNAS", "0", ""))]
    return ",".join(
        fields[: rng.choice((1, 4, 5, 5, 5, 5))] + [_number(rng)] * (rng.random() < 0.3)
    )


def play_lines(rng: random.Random) -> None:
    """Read spoiled lines in every way."""
    plain = "".join(_line(rng) + rng.choice(("\n", "\n", "\n", "\r\n")) for _ in range(40))
    data = bytearray(plain.encode())
    for _ in range(rng.choice((0, 1, 3, 20))):
        data[rng.randrange(len(data))] = rng.choice((rng.randrange(256), rng.choice(BYTES)))
    if rng.random() < 0.3:
        del data[rng.randrange(len(data)) :]
    assert_all_ways_agree(bytes(data), rng.choice(FORMATS), rng.randrange(1, 3000))


# --- events -----------------------------------------------------------------------------------


def _events(rng: random.Random, count: int) -> list[dict[str, Any]]:
    sizes = rng.choice((SIZES, HUGE_SIZES))
    symbols = [
        "AA",
        "BB",
        "C",
        "a longer name than fits",
        *(f"S{n}" for n in range(rng.choice((1, 90)))),
    ]
    clock, events = 0, []
    for _ in range(count):
        clock += rng.choice((0, 0, 0, 1, 3, 8, 20, 70))
        time_ns = clock + rng.choice((0, 0, 0, 0, -2, -9, -25, -150, 40))
        odd = rng.random()
        events.append(
            {
                "symbol": None if odd < 0.01 else rng.choice(symbols),
                "price": rng.choice((*NASTY, 2.5, 3.25, None))
                if odd < 0.3
                else rng.uniform(1, 500),
                "size": None if 0.3 < odd < 0.31 else rng.choice(sizes),
                "venue": rng.choice(("X", "Y", None)),
                "timestamp_ns": rng.choice(EXTREME_TIMES) if 0.4 < odd < 0.405 else time_ns,
            }
        )
    return events


def play_events(rng: random.Random) -> None:
    """Hold a pipeline drawn at random to the reference interpreter."""
    assigner = rng.choice((None, None, *ASSIGNERS))
    trigger = None if assigner is None else rng.choice(TRIGGERS)
    of = rng.choice((Tick, Tick, CheckedTick))
    inputs = ["n", "total", "volume", "mean", "vwap", "low", "high", "deviation"]
    others = [name for name in AGGREGATES if name not in inputs]
    chosen = {*inputs, *rng.sample(others, rng.randrange(4))}
    pipeline = keyed(assigner, trigger, of=of)
    if rng.random() < 0.3:
        pipeline = _filtered(rng, assigner, trigger, of)
    pipeline = pipeline.fold(
        "rows", **{name: AGGREGATES[name] for name in AGGREGATES if name in chosen}
    )
    if rng.random() < 0.6:
        totals = rng.sample(sorted(TOTALS), rng.randrange(1, len(TOTALS) + 1))
        pipeline = pipeline.partition("again", key=rng.choice(((), "n"))).fold(
            "totals", **{name: TOTALS[name] for name in totals}
        )
    events = _events(rng, rng.choice((5, 40, 150)))
    check_pipeline(pipeline.sink("out"), events, restarts=[rng.randrange(1, len(events) + 1)])


def _filtered(rng: random.Random, assigner: Any, trigger: Any, of: type) -> rp.Pipeline:
    steps = (
        rp.Pipeline("ticks").source("ticks", of, out_of_order=20).filter("some", rp.col("size") > 1)
    )
    grouped = steps.partition("by-symbol", key=rng.choice(("symbol", ("symbol", "size"))))
    return (
        grouped if assigner is None else grouped.window("w", assigner, trigger=trigger, lateness=60)
    )


# --- rounds -----------------------------------------------------------------------------------


def play_round(seed: int, number: int) -> None:
    """Play one round, the same for the same numbers."""
    rng = random.Random(f"{seed}/{number}")
    (play_events if number % 8 == 0 else play_lines)(rng)


def main() -> int:
    parser = argparse.ArgumentParser(description="Feed the batch path what nobody thought of.")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--round", type=int, help="play only this round of the seed")
    options = parser.parse_args()
    sys.stdout.write(f"seed {options.seed}\n")
    sys.stdout.flush()
    if options.round is not None:
        play_round(options.seed, options.round)
        return 0
    until = time.monotonic() + options.seconds
    number = 0
    while time.monotonic() < until:
        try:
            play_round(options.seed, number)
        except Exception:
            sys.stderr.write(f"repeat with: --seed {options.seed} --round {number}\n")
            raise
        number += 1
    sys.stdout.write(f"{number} rounds, nothing found\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
