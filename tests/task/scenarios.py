"""Pipelines of every shape, whose lives are crashed."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import ripple.model.aggregate as ra
from ripple.model.expression import col
from ripple.model.window import Assigner, OnWatermark, Session, Sliding, Trigger, Tumbling
from ripple.testing import CrashScenario, Marker
from tests.engine.machine.ticks import TRIGGERS, Tick, keyed
from tests.on_demand import on_demand

if TYPE_CHECKING:
    from ripple.model.pipeline.builder import Pipeline
    from ripple.testing import SimWorld

NANOSECONDS = (0, 1, 3, 8, 20)
LATE = (0, 0, 0, -2, -40, -90)


def events(count: int, seed: int = 0) -> list[Any]:
    """Ticks of three symbols, some late and some too late; two markers."""
    draw = random.Random(seed)
    clock_ns, made = 0, []
    for _ in range(count):
        clock_ns += draw.choice(NANOSECONDS)
        made.append(
            {
                "symbol": draw.choice(["AA", "BB", "C"]),
                "price": draw.choice([1.0, 0.1, 2.5, float("nan"), None]),
                "size": draw.choice([1, 2, 3]),
                "venue": draw.choice(["X", None]),
                "timestamp_ns": clock_ns + draw.choice(LATE),
            }
        )
    made.insert(count // 2, Marker("ticks", clock_ns // 2))
    return [*made, Marker("ticks", clock_ns + 60)]


def refusing(pipeline: Pipeline) -> Pipeline:
    """Refuse a tick of C with a price, as a function of a user may."""

    def checked(row: Any) -> Any:
        if row.symbol == "C" and row.price is not None:
            raise ValueError("no price was expected")
        return row

    return pipeline.map("checked", checked, into=Tick)


def dividing(pipeline: Pipeline) -> Pipeline:
    """Compute what cannot be computed for rows of two ticks."""
    return pipeline.derive("each", share=col("best") // (col("n") - 2))


def pipeline(
    assigner: Assigner | None = None,
    trigger: Trigger | None = None,
    before: Any = None,
    after: Any = lambda sums: sums,
) -> Pipeline:
    """Return a pipeline with a fold by symbol and a fold over its rows, each with an output."""
    line = keyed(assigner, trigger, lateness=30, before=before)
    return (
        after(line.fold("sums", n=ra.count(), total=ra.sum("price"), best=ra.max("size")))
        .partition("all", key=())
        .fold("over-all", rows=ra.count(), total=ra.sum("total"))
        .sink("rows", of="sums")
        .sink("totals", of="over-all")
    )


ASSIGNERS = (Tumbling(50), Sliding(60, 25), Session(30))
SHAPES = [(None, None), *itertools.product(ASSIGNERS, TRIGGERS)]
EVENTS = events(16)


def of_two_inputs() -> CrashScenario:
    """Two partitions of a log; their sessions grow together, so that rows are removed."""
    happened = [
        *(
            ("ab"[at % 3 == 0], event)
            for at, event in enumerate(events(20))
            if not isinstance(event, Marker)
        ),
        Marker("a", 300),
        Marker("b", 300),
    ]
    return CrashScenario(pipeline(Session(30), OnWatermark()), happened, inputs=("a", "b"))


class AnyShape:
    """The shapes in turn, by the seed: every arrangement of each within 416 seeds in a row."""

    def __init__(self, after: Any = lambda sums: sums) -> None:
        self._made: dict[int, CrashScenario] = {}
        self._after = after

    async def __call__(self, world: SimWorld, seed: int) -> None:
        await self._of(seed)(world, seed)

    def check(self, world: SimWorld, seed: int) -> None:
        self._of(seed).check(world, seed)

    def _of(self, seed: int) -> CrashScenario:
        at = seed // 16 % len(SHAPES)
        if at not in self._made:
            self._made[at] = CrashScenario(pipeline(*SHAPES[at], after=self._after), EVENTS)
        return self._made[at]


any_shape = AnyShape()
any_shape_dividing = AnyShape(dividing)
# Each runs undisturbed when it is made.
__getattr__ = on_demand(
    globals(),
    running=lambda: CrashScenario(pipeline(), EVENTS),
    # For a crash at every effect: a refused record, two commits, a checkpoint, and little else.
    short=lambda: CrashScenario(pipeline(Tumbling(50), before=refusing), events(6)),
    refused=lambda: CrashScenario(pipeline(Tumbling(50), before=refusing), EVENTS),
    two_inputs=of_two_inputs,
)
