"""Long runs, digests, and the state left when everything is over."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings

import ripple.model.aggregate as ra
from ripple.model.pipeline.builder import Pipeline
from ripple.model.window import OnCount, OnEveryElement, OnInterval, Session, Sliding, Tumbling
from ripple.testing import Divergence, Reference, check_pipeline
from ripple.testing.check import Lane
from tests.engine.machine.ticks import keyed, ticks
from tests.examples import EXAMPLES, THINNED


def _pipeline(assigner: Any = None, trigger: Any = None) -> Pipeline:
    return keyed(assigner, trigger).fold(
        "f", n=ra.count(), total=ra.sum("price"), last=ra.last("size"), top=ra.top_k("price", 2)
    )


def _long(count: int, keys: int, seed: int) -> list[dict[str, Any]]:
    """Return disordered events over keys that come and go."""
    chance, clock, events = random.Random(seed), 0, []
    for at in range(count):
        clock += chance.choice([0, 1, 1, 3])
        events.append(
            {
                "symbol": f"K{at * keys // count + chance.randrange(4)}",
                "price": chance.choice([0.1, 1e17, -1e17, 3.5, None]),
                "size": chance.randrange(9),
                "venue": None,
                "timestamp_ns": clock - chance.choice([0, 0, 5, 30, 90]),
            }
        )
    return events


WINDOWED = [
    (Tumbling(50), None),
    (Sliding(60, 25), OnEveryElement()),
    (Sliding(60, 25), OnInterval(35)),
    (Tumbling(50), OnCount(3)),
    (Session(5), None),
    (Session(5), OnCount(3)),
]


@pytest.mark.parametrize(("assigner", "trigger"), WINDOWED, ids=repr)
def test_long_run_equals_the_reference_and_leaves_nothing(assigner: Any, trigger: Any) -> None:
    plan = _pipeline(assigner, trigger).sink("rows").plan()
    lanes, reference = [Lane(plan, ["ticks"], size) for size in (61, 977)], Reference(plan)
    events = _long(1200, keys=240, seed=7)
    live = []
    for event in events:
        reference.apply(event)
        for lane in lanes:
            lane.take("ticks", event)
            if lane.since == lane.size:
                lane.compare(reference)
                live.append(len(lane.engine._fold.space.index))
    reference.close()
    for lane in lanes:
        lane.compare_after_close(reference)
        fold = lane.engine._fold
        assert lane.engine.table("rows").num_rows == 0
        assert len(fold.space.index) == len(fold.keys.index) == 0
        empty = lane.engine.snapshot().tables[fold.fold.node_key]
        assert empty.num_rows == 0
    assert lanes[0].engine.digests == lanes[1].engine.digests
    # 240 keys came and went, a few dozen windows of them were alive at a time.
    assert max(live) < 150


@settings(max_examples=7 * EXAMPLES // THINNED)
@given(one=ticks(max_size=12), other=ticks(max_size=12))
def test_digests_are_equal_exactly_for_equal_tables(one: list[Any], other: list[Any]) -> None:
    plan = _pipeline(Tumbling(50)).sink("rows").plan()
    found = []
    for events in (one, other, one[:-1], [*one[::-1]]):
        lane, reference = Lane(plan, ["ticks"], 5), Reference(plan)
        for event in events:
            reference.apply(event)
            lane.take("ticks", event)
        lane.compare(reference)
        reference.close()
        lane.compare_after_close(reference)
        table = repr(sorted(reference.tables()["rows"].items()))
        found.append((table, lane.engine.digest))
    for table, digest in found:
        for other_table, other_digest in found:
            assert (table == other_table) == (digest == other_digest)


def test_function_that_remembers_is_caught_with_its_place() -> None:
    calls: list[int] = []

    def leaky(state: int, size: int) -> int:
        calls.append(size)
        return state + size + (1 if len(calls) == 5 else 0)

    custom = ra.custom(
        "size", init=lambda: 0, add=leaky, result=lambda s: s, type=int, name="leaky"
    )
    pipeline = keyed().fold("f", n=ra.count(), odd=custom).sink("out")
    with pytest.raises(Divergence, match=r"output 'out', key \('K0',\), field 'odd'") as caught:
        check_pipeline(pipeline, [{**e, "symbol": "K0"} for e in _long(8, 1, seed=1)])
    assert caught.value.field == "odd"
    assert caught.value.key == ("K0",)
    assert caught.value.engine != caught.value.reference
