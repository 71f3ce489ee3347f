"""Answers are recorded before they count: crashes at any effect, replays, and other questions."""

from __future__ import annotations

import asyncio
import random
from itertools import count
from typing import Any

import ripple as rp
from ripple.testing import CrashScenario, crash_test, explore
from tests.engine.machine.ticks import Tick
from tests.examples import EXAMPLES, SCATTERED

calls = count()


@rp.record(version=1)
class Grade:
    """An answer that is never the same."""

    grade: int


async def grade(tick: Any) -> dict[str, int]:
    number = next(calls)
    await asyncio.sleep(number * 7 % 5 / 100)
    if tick.size == 3 and number % 2:
        raise ConnectionError
    return {"grade": number}


def asked(**kept: Any) -> rp.Pipeline:
    begun = rp.Pipeline("asked").source("ticks", Tick, out_of_order="2ns")
    graded = begun.ask("grade", grade, into=Grade, retries=0, concurrency=3, **kept)
    by = graded.partition("by-symbol", key="symbol")
    sums = by.window("window", rp.Tumbling("10ns"), lateness="5ns").fold(
        "sums", graded=rp.sum("grade"), n=rp.count(), last=rp.last("grade")
    )
    counts = begun.partition("all", key="symbol").fold("counts", n=rp.count())
    return graded.sink("graded").also(sums.sink("out")).also(counts.sink("counted"))


INPUTS = ("ticks/0", "ticks/1")


def events(length: int, seed: int = 0) -> list[Any]:
    draw, clock_ns, made = random.Random(seed), 0, []
    for _ in range(length):
        clock_ns += draw.choice((0, 1, 3, 8))
        row = {
            "symbol": draw.choice(["AA", "BB"]),
            "price": 1.0,
            "size": draw.choice([1, 2, 3]),
            "venue": None,
            "timestamp_ns": clock_ns + draw.choice((0, 0, 0, -1, -4, -20)),
        }
        made.append((draw.choice(INPUTS), row))
    return made


scenario = CrashScenario(asked(), events(8), inputs=INPUTS)


def test_a_crash_at_any_effect_around_answers_is_not_told() -> None:
    report = crash_test(scenario, enumerated=(2,), seeds=(), pairs=0, every=SCATTERED)
    assert report.lives > report.runs > 5


def test_answers_survive_random_faults() -> None:
    explore(scenario, seeds=range(4 * EXAMPLES))
