"""How long calls take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

QUICK = os.environ.get("RIPPLE_BENCH_QUICK") == "1"
ROUNDS = 5 if QUICK else 25
SECONDS_PER_ROUND = 0.002


def in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, float]:
    """Return the best seconds of each call.

    The calls take turns, so that a busy moment of the machine hits all of them alike. Short ones
    are repeated within a turn.
    """
    loops = {name: _loops(call) for name, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            best[name] = min(best[name], _elapsed(call, loops[name]) / loops[name])
    return best


def cpu_in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the least processor seconds of each call, with the calls in turns as above."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            started = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - started)
    return best


def _loops(call: Callable[[], Any]) -> int:
    loops = 1
    while _elapsed(call, loops) < SECONDS_PER_ROUND:
        loops *= 2
    return loops


def _elapsed(call: Callable[[], Any], loops: int) -> float:
    started = time.perf_counter()
    for _ in range(loops):
        call()
    return time.perf_counter() - started
