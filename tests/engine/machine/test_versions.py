"""The versions of tables against the reference, and times of deletions that tell none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
from ripple.engine.machine import Engine
from ripple.model.pipeline.nodes import DELETED
from ripple.model.schema.columns import records_of
from ripple.testing import check_pipeline
from tests.examples import EXAMPLES, SAMPLED


@rp.record(version=1)
class Rate:
    currency: str
    rate: float = rp.field(gt=0)
    region: str | None
    at: int


def rates(**options: Any) -> rp.Pipeline:
    return rp.Pipeline("fx").table("rates", Rate, **{"key": "currency", "time": "at", **options})


def alone(table: rp.Pipeline) -> rp.Pipeline:
    return table.versions("changes").sink("changes-out", key="currency")


def beside_the_table(table: rp.Pipeline) -> rp.Pipeline:
    versions = (
        table.versions("changes")
        .filter("there", ~rp.col("deleted"))
        .partition("k", key="currency")
        .window("w", rp.Tumbling(10), lateness=5)
        .fold("bars", n=rp.count(), last=rp.last("rate"))
    )
    return table.sink("rows").also(versions.sink("bars-out"))


def followed(table: rp.Pipeline) -> rp.Pipeline:
    first = table.versions("changes").distinct("first", "currency", within=3, lateness=4)
    kept = (
        table.versions("others")
        .partition("k", key="currency")
        .fold("ending", gone=rp.max("at"), n=rp.count(), ttl=7)
    )
    return first.sink("first-out").also(kept.sink("ending-out")).also(table.sink("rows"))


WAYS = (alone, beside_the_table, followed)

records = st.lists(
    st.fixed_dictionaries(
        {
            "currency": st.sampled_from(["EUR", "USD", "", None]),
            "rate": st.sampled_from([1.5, 2.0, -1.0, None]),
            "region": st.sampled_from(["a", None]),
            "at": st.sampled_from([None, -(2**62), 2**62]) | st.integers(0, 60),
            DELETED: st.sampled_from([True, False, None]),
        }
    ),
    max_size=40,
)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=15 * EXAMPLES // SAMPLED)
@given(data=st.data(), happened=records)
def test_versions_equal_their_evaluation_from_scratch(
    way: Any, data: Any, happened: list[Any]
) -> None:
    restart, ahead = data.draw(st.integers(0, 40)), data.draw(st.sampled_from([None, 5, 40]))
    delay = data.draw(st.sampled_from([0, 3]))
    inputs = data.draw(st.sampled_from([("rates",), ("rates/0", "rates/1")]))
    owners = data.draw(st.lists(st.sampled_from(inputs), min_size=40, max_size=40))
    events = list(zip(owners, happened, strict=False))
    restarts = [restart] if restart <= len(events) else []
    table = rates(reject_future=ahead, out_of_order=delay)
    check_pipeline(way(table), events, inputs=inputs, restarts=restarts)


def test_a_deletion_without_a_time_has_the_newest_one_of_its_input() -> None:
    plan = alone(rates(out_of_order=3)).plan()
    engine = Engine(plan, inputs=("rates/0", "rates/1"))
    row = {"currency": "EUR", "rate": 1.5, "region": "a", "at": 9}
    gone = {"currency": "EUR", DELETED: True}

    def applied(name: str, rows: list[Any], next_offset: int) -> list[Any]:
        batch = records_of(rows, plan.source.fields_taken)
        return [bad.reason for bad in engine.apply(name, batch, next_offset)]

    assert applied("rates/1", [gone], 1) == [
        "a deletion without 'at' comes before any record with it"
    ]
    assert applied("rates/0", [row, {**row, "at": 7}, gone, {**row, "at": 12}, gone], 5) == []
    assert applied("rates/1", [{**gone, "at": 4}, gone], 3) == []
    changes = engine.stabilize().outputs["changes-out"].to_pylist()
    assert [(one["rate"], one["at"], one["deleted"]) for one in changes] == [
        (1.5, 9, False),
        (1.5, 7, False),
        (None, 9, True),
        (1.5, 12, False),
        (None, 12, True),
        (None, 4, True),
        (None, 4, True),
    ]
    engine.check_invariants()
