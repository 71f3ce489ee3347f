"""Records that are divided anew give what one engine makes of the whole input."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine.machine import Engine
from ripple.engine.machine.router import Router
from ripple.engine.machine.waiting_rows import OFFSET, WATERMARK
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.expression import col
from ripple.model.pipeline.division import divided_into
from ripple.model.pipeline.plan import Plan
from ripple.model.window import Session, Sliding, Tumbling
from tests.engine.machine.ticks import AGGREGATES, keyed, ticks
from tests.examples import EXAMPLES, SAMPLED

NAMES = ("ticks/0", "ticks/1", "ticks/2")
AGGREGATED = {
    name: AGGREGATES[name] for name in ("n", "total", "high", "opened", "closed", "mid", "best")
}


def grouped(line: Any) -> Any:
    return line.filter("some", col("size") != 2).derive("more", group=col("size") % 5)


def plan_of(assigner: Any, by: Any) -> Plan:
    line = keyed(assigner, None, lateness=20, before=grouped, by=by)
    above = line.fold("rows", **AGGREGATED).partition("all", key=()).fold("sum", n=AGGREGATES["n"])
    return above.sink("out", of="rows").sink("total", of="sum").plan()


PLANS = {
    "running": plan_of(None, "group"),
    "tumbling": plan_of(Tumbling(50), ("symbol", "group")),
    "sliding": plan_of(Sliding(60, 25), "group"),
    "sessions": plan_of(Session(30), "symbol"),
}


class Divided:
    """Senders of all inputs, and engines of the first stage that have what these give."""

    def __init__(self, plan: Plan, events: dict[str, list[Any]], random: Random) -> None:
        self.plan, self.events, self.random = plan, events, random
        self.schema = pa.schema(arrow_fields(plan.source.fields))
        shares = [NAMES[:1], NAMES[1:]] if random.random() < 0.5 else [NAMES]
        self.routers = [Router(plan, at, names) for at, names in enumerate(shares)]
        self.receivers = [Engine(plan, at, NAMES) for at in range(divided_into(plan))]

    def read(self, router: Router, name: str) -> None:
        offset = router.cut[name]
        some = self.events[name][offset : offset + self.random.choice([1, 2, 7, 100])]
        if some:
            router.apply(name, self.batch(some), offset + len(some))

    def batch(self, events: list[Any]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(events, self.schema)

    def give(self, at: int) -> None:
        """Let a sender commit, and receivers take that in pieces."""
        router = self.routers[at]
        router.stabilize()
        given = router.outgoing_to(range(len(router.cut) * len(self.receivers)))
        if self.random.random() < 0.3:
            self.routers[at] = router = Router.restore(self.plan, router.snapshot())
        for target, changes in given.items():
            name = list(router.cut)[target // len(self.receivers)]
            self.take(self.receivers[target % len(self.receivers)], name, changes)

    def take(self, receiver: Engine, name: str, changes: Any) -> None:
        offsets = changes.rows.column(OFFSET).to_numpy()
        behind = changes.rows.column(WATERMARK).to_numpy()
        rows = changes.rows.select(self.schema.names)
        at = 0
        while at < len(offsets):
            end = at + self.random.choice([1, 3, 50])
            part, own = rows.slice(at, end - at), offsets[at:end]
            receiver.apply(name, part, int(own[-1]) + 1, own, 0)
            receiver.advance(name, int(behind[at + len(own) - 1]), int(own[-1]) + 1)
            if self.random.random() < 0.3:
                receiver.stabilize()
            at = end
        receiver.apply(name, rows[:0], changes.cut[name], offsets[:0], 0)
        receiver.advance(name, changes.watermark_ns, changes.cut[name])

    def run(self) -> None:
        while any(
            router.cut[n] < len(self.events[n]) for router in self.routers for n in router.cut
        ):
            at = self.random.randrange(len(self.routers))
            self.read(self.routers[at], self.random.choice(list(self.routers[at].cut)))
            if self.random.random() < 0.3:
                self.give(at)
        for at in range(len(self.routers)):
            self.give(at)
        for receiver in self.receivers:
            receiver.stabilize()

    def digest(self) -> int:
        return sum(int(one.digests["out"], 16) for one in self.receivers) % (1 << 64)


def whole(plan: Plan, events: dict[str, list[Any]]) -> Engine:
    engine = Engine(plan, 0, NAMES)
    schema = pa.schema(arrow_fields(plan.source.fields))
    for name in NAMES:
        engine.apply(name, pa.RecordBatch.from_pylist(events[name], schema), len(events[name]))
    engine.stabilize()
    return engine


@pytest.mark.parametrize("name", PLANS)
@settings(max_examples=15 * EXAMPLES // SAMPLED)
@given(events=st.tuples(*[ticks(max_size=30)] * 3), seed=st.integers(0, 1 << 16))
def test_receivers_together_have_what_one_engine_has(
    name: str, events: tuple[list[Any], ...], seed: int
) -> None:
    plan, given_to = PLANS[name], dict(zip(NAMES, events, strict=True))
    divided, one = Divided(plan, given_to, Random(seed)), whole(plan, given_to)
    divided.run()
    assert f"{divided.digest():016x}" == one.digests["out"]
    for receiver in divided.receivers:
        assert receiver.cut == one.cut
        assert receiver.watermark_ns == one.watermark_ns
        assert receiver.counters.very_late == 0
    senders = [router.counters for router in divided.routers]
    assert sum(each.consumed for each in senders) == one.counters.consumed
    assert sum(each.very_late for each in senders) == one.counters.very_late
    assert sum(each.dead_lettered for each in senders) == one.counters.dead_lettered


def test_a_record_goes_to_one_partition_as_it_came() -> None:
    plan = PLANS["running"]
    router = Router(plan, 0, NAMES[:1])
    event = {"symbol": "AA", "price": 1.5, "size": 3, "venue": None, "timestamp_ns": 70}
    dropped = {**event, "size": 2}
    schema = pa.schema(arrow_fields(plan.source.fields))
    router.apply(NAMES[0], pa.RecordBatch.from_pylist([dropped, event, dropped], schema), 3)
    router.stabilize()
    given_to = router.outgoing_to(range(divided_into(plan)))
    rows = [row for changes in given_to.values() for row in changes.rows.to_pylist()]
    assert rows == [{**event, OFFSET: 1, WATERMARK: 60}]
    assert all(dict(changes.cut) == {NAMES[0]: 3} for changes in given_to.values())
    assert all(changes.watermark_ns == 60 for changes in given_to.values())
    again = router.outgoing_to(range(divided_into(plan)))
    assert all(changes.rows.num_rows == 0 for changes in again.values())
