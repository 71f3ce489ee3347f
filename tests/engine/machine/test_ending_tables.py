"""Tables whose rows end by event time: against the reference, DuckDB, and what is left of them."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
from ripple.core.errors import PlanError
from ripple.engine.machine import Engine
from ripple.engine.snapshots.increment import applied
from ripple.model.pipeline.nodes import DELETED
from ripple.model.schema.columns import records_of
from ripple.testing import Marker, check_pipeline
from tests.engine.machine.ticks import finished
from tests.examples import EXAMPLES, SAMPLED


@rp.record(version=1)
class Rate:
    currency: str
    rate: float = rp.field(gt=0)
    region: str | None
    at: int


def rates(**options: Any) -> rp.Pipeline:
    given = {"key": "currency", "time": "at", **options}
    return rp.Pipeline("fx").table("rates", Rate, **given)


def folded(table: rp.Pipeline) -> rp.Pipeline:
    """Return the rows, sums over them, and the versions of a table."""
    known = table.derive("r", of=rp.col("region").fill_null("-")).filter("f", rp.col("rate") < 3)
    sums = known.partition("p", key="of").fold("sums", n=rp.count(), rate=rp.sum("rate"))
    total = sums.sink("sums-out").partition("all", key=()).fold("total", n=rp.sum("n"))
    return known.sink("rows").also(total.sink("out")).also(table.versions("v").sink("v-out"))


records = st.lists(
    st.fixed_dictionaries(
        {
            "currency": st.sampled_from(["EUR", "USD", "GBP", None]),
            "rate": st.sampled_from([1.5, 2.0, 3.0, -1.0]),
            "region": st.sampled_from(["a", "b", None]),
            "at": st.none() | st.integers(0, 100),
            DELETED: st.sampled_from([True, False, None]),
        }
    ),
    max_size=40,
)


@settings(max_examples=40 * EXAMPLES // SAMPLED)
@given(data=st.data(), happened=records, ttl=st.sampled_from([1, 8, 40, 10**6]))
def test_rows_that_end_equal_their_evaluation_from_scratch(
    data: Any, happened: list[Any], ttl: int
) -> None:
    inputs = data.draw(st.sampled_from([("rates",), ("rates/0", "rates/1")]))
    owners = data.draw(st.lists(st.sampled_from(inputs), min_size=40, max_size=40))
    events: list[Any] = list(zip(owners, happened, strict=False))
    at = data.draw(st.integers(0, len(events)))
    events.insert(at, Marker(inputs[-1], data.draw(st.integers(0, 200))))
    table = rates(ttl=ttl, out_of_order=data.draw(st.sampled_from([0, 10])))
    check_pipeline(folded(table), events, inputs=inputs, restarts=[at])


def test_a_row_is_removed_by_the_watermark_and_its_state_freed_a_ttl_later() -> None:
    plan = rates(ttl=10).sink("out").plan()
    engine = Engine(plan)
    row = {"currency": "EUR", "rate": 1.5, "region": "a", "at": 0}
    stored = engine.snapshot()

    def changed(*rows: dict[str, Any]) -> list[Any]:
        nonlocal stored
        batch = records_of([{**row, **one} for one in rows], plan.source.fields_taken)
        engine.apply("rates", batch, engine.cut["rates"] + len(rows))
        changes = engine.stabilize().outputs["out"].to_pylist()
        stored = applied(stored, finished(engine.begin_snapshot(stored.number)))
        return sorted((one["currency"], one["op"], one["rate"]) for one in changes)

    def held() -> list[str]:
        found: list[str] = stored.tables[plan.folds[0].node_key].column("currency").to_pylist()
        return sorted(set(found))

    assert changed({}, {"currency": "USD", "at": 5}) == [("EUR", 0, 1.5), ("USD", 0, 1.5)]
    assert changed({"currency": "GBP", "at": 10}) == [("EUR", 2, None), ("GBP", 0, 1.5)]
    assert held() == ["EUR", "GBP", "USD"]
    assert changed({"currency": "GBP", "at": 20}) == [("GBP", 0, 1.5), ("USD", 2, None)]
    assert held() == ["GBP", "USD"]
    # More than the ttl behind: the record would be over when it comes.
    assert changed({"currency": "CHF", "at": 9}) == []
    assert engine.counters.very_late == 1
    assert changed({"currency": "CHF", "at": 11}) == [("CHF", 0, 1.5)]
    assert engine.counters.future == 0
    assert changed({"currency": "CHF", "at": 31}) == [("CHF", 0, 1.5), ("GBP", 2, None)]
    assert engine.counters.future == 1  # it ends all other rows
    again = Engine.restore(plan, stored)
    assert again.digests == engine.digests


@settings(max_examples=20 * EXAMPLES // SAMPLED)
@given(happened=records, ttl=st.integers(1, 60))
def test_rows_of_rising_times_are_those_of_duckdb(happened: list[Any], ttl: int) -> None:
    known = [one for one in happened if one["currency"] is not None and one["rate"] > 0]
    known = [{**one, "at": 3 * at} for at, one in enumerate(known)]
    table = pa.table(
        {
            "number": pa.array(range(len(known)), pa.int64()),
            "currency": pa.array([one["currency"] for one in known], pa.string()),
            "rate": pa.array([one["rate"] for one in known], pa.float64()),
            "at": pa.array([one["at"] for one in known], pa.int64()),
            "gone": pa.array([one[DELETED] or False for one in known], pa.bool_()),
        }
    )
    with duckdb.connect() as sql:
        sql.register("given_rows", table)
        rows = sql.sql(
            'SELECT currency, rate, "at" FROM given_rows QUALIFY row_number() OVER '
            "(PARTITION BY currency ORDER BY number DESC) = 1 AND NOT gone "
            f'AND "at" + {ttl} > (SELECT max("at") FROM given_rows)'
        ).fetchall()
    plan = rates(ttl=ttl).sink("out").plan()
    engine = Engine(plan)
    for at, one in enumerate(known):
        engine.apply("rates", records_of([one], plan.source.fields_taken), at + 1)
        engine.stabilize()
    shown = engine.table("out").to_pylist()
    assert sorted(rows) == sorted((row["currency"], row["rate"], row["at"]) for row in shown)


def test_a_ttl_without_a_time_and_one_of_nothing_are_refused() -> None:
    with pytest.raises(PlanError, match="table 'rates': ttl= ends rows by event time: name the"):
        rates(time=None, ttl="7d")
    with pytest.raises(PlanError, match="table 'rates': ttl must be longer than zero, not 0"):
        rates(ttl=0)
    source = rp.Pipeline("p").source("rates", Rate, time="at")
    with pytest.raises(PlanError, match="distinct 'd': ttl is '7d', but a key is forgotten within"):
        source.distinct("d", "currency", within="1s", ttl="7d")  # type: ignore[arg-type]


def test_when_rows_end_is_in_the_key_of_the_table_and_said() -> None:
    plan, without = rates(ttl="7d").sink("out").plan(), rates().sink("out").plan()
    assert plan.folds[0].node_key != without.folds[0].node_key
    assert plan.sources[0].node_key == without.sources[0].node_key
    assert "    ttl 168h" in plan.describe()
