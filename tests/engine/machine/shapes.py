"""Pipelines of every shape, and what they are fed."""

from __future__ import annotations

import itertools

import ripple.model.window as rw
from ripple.engine.machine import Engine
from ripple.testing import Follower
from tests.engine.machine.trades import Row, batch_of
from tests.examples import EXAMPLES

ASSIGNERS = [rw.Tumbling(50), rw.Sliding(60, 25), rw.Session(30)]
TRIGGERS = [rw.OnWatermark(), rw.OnEveryElement(), rw.OnInterval(35), rw.OnCount(3)]
SHAPES = [(None, None), *itertools.product(ASSIGNERS, TRIGGERS)]
# All assigners and all triggers, and not each with each: where a test is about something else.
SOME = slice(None, None, 3 if EXAMPLES == 1 else 1)
IDS = ["running" if a is None else f"{type(a).__name__}-{type(t).__name__}" for a, t in SHAPES]


def feed(engine: Engine, follower: Follower, events: list[Row], size: int) -> None:
    start = engine.cut["trades"]
    for at in range(start, len(events), size):
        part = events[at : at + size]
        engine.apply("trades", batch_of(part), at + len(part))
        follower.follow(engine.stabilize())
        engine.check_invariants()
