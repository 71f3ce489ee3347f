"""Tables from topics against the reference, against folds by hand, and against DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
from ripple.core.errors import InputError
from ripple.engine.machine import Engine
from ripple.engine.operators.division import Division
from ripple.engine.snapshots.increment import applied
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.nodes import DELETED
from ripple.model.schema.columns import records_of
from ripple.testing import check_pipeline
from tests.engine.machine.ticks import finished
from tests.examples import EXAMPLES, SAMPLED


@rp.record(version=1)
class Rate:
    currency: str
    place: int
    rate: float = rp.field(gt=0)
    region: str | None
    final: bool


@rp.record(version=1)
class Trade:
    currency: str
    size: int
    timestamp_ns: rp.Timestamp


def rows_alone(table: rp.Pipeline) -> rp.Pipeline:
    return table.sink("rows")


def folded(table: rp.Pipeline) -> rp.Pipeline:
    by_region = (
        table.filter("known", rp.col("region") != "x")
        .derive("double", twice=rp.col("rate") * 2)
        .sink("rows")
        .partition("by-region", key="currency")
        .fold(
            "sums",
            n=rp.count(),
            rate=rp.sum("twice"),
            most=rp.arg_max("rate", ["region", "final"]),
            regions=rp.count_distinct("region"),
        )
    )
    return (
        by_region.sink("sums-out")
        .partition("all", key=())
        .fold("total", n=rp.sum("n"))
        .sink("all-out")
    )


def mapped(table: rp.Pipeline) -> rp.Pipeline:
    named = table.map("named", lambda row: {**vars(row), "region": "r"}, into=Rate)
    total = named.partition("all", key=()).fold("total", best=rp.top_rows(2, "rate", "currency"))
    return named.sink("rows").also(total.sink("best"))


WAYS = (rows_alone, folded, mapped)

maybe = st.sampled_from
records = st.lists(
    st.fixed_dictionaries(
        {
            "currency": maybe(["EUR", "USD", "GBP", "", None]),
            "place": maybe([0, 1, 2**63 - 1]),
            "rate": maybe([1.5, 2.0, -1.0, None]),
            "region": maybe(["a", "b", "x", None]),
            "final": maybe([True, False, None]),
            DELETED: maybe([True, False, None]),
        }
    ),
    max_size=40,
)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=15 * EXAMPLES // SAMPLED)
@given(data=st.data(), happened=records, restart=st.integers(0, 40))
def test_a_table_equals_its_evaluation_from_scratch(
    way: Any, data: Any, happened: list[Any], restart: int
) -> None:
    inputs = data.draw(st.sampled_from([("rates",), ("rates/0", "rates/1")]))
    owners = data.draw(st.lists(st.sampled_from(inputs), min_size=40, max_size=40))
    events = list(zip(owners, happened, strict=False))
    table = rp.Pipeline("fx").table("rates", Rate, key=["place", "currency"])
    restarts = [restart] if restart <= len(events) else []
    check_pipeline(way(table), events, inputs=inputs, restarts=restarts)


@settings(max_examples=15 * EXAMPLES // SAMPLED)
@given(happened=records, data=st.data())
def test_tables_and_streams_of_one_pipeline_equal_theirs(happened: list[Any], data: Any) -> None:
    pipeline = rp.Pipeline("both")
    trades = pipeline.source("trades", Trade).partition("k", key="currency")
    table = pipeline.table("rates", Rate, key="currency", deleted="final").sink("rates-out")
    bars = trades.window("w", rp.Tumbling(10)).fold("bars", n=rp.count()).sink("bars-out")
    trade = {"currency": "EUR", "size": 1, "timestamp_ns": 7}
    events: list[Any] = [("rates", one) for one in happened]
    for at in data.draw(st.lists(st.integers(0, 40), max_size=8)):
        events.insert(at, ("trades", {**trade, "timestamp_ns": at}))
    check_pipeline(bars.also(table), events)


def test_a_row_is_the_newest_record_of_its_key_and_a_deletion_takes_it_away() -> None:
    plan = rp.Pipeline("fx").table("rates", Rate, key="currency").sink("out").plan()
    engine = Engine(plan)
    first = {"currency": "EUR", "place": 1, "rate": 1.5, "region": "a", "final": False}
    rows = [first, {**first, "currency": "USD"}, {**first, "rate": 2.0, "region": None}]
    engine.apply("rates", records_of(rows, plan.source.fields), 3)
    changes = engine.stabilize().outputs["out"].to_pylist()
    assert [(row["currency"], row["op"], row["rate"]) for row in changes] == [
        ("EUR", 0, 2.0),
        ("USD", 0, 1.5),
    ]
    gone = records_of([{"currency": "EUR", DELETED: True}], plan.source.fields_taken)
    assert engine.apply("rates", gone, 4) == []
    changes = engine.stabilize().outputs["out"].to_pylist()
    assert [(row["currency"], row["op"]) for row in changes] == [("EUR", 2)]
    assert engine.uncomputable_counts == {"rates.newest": 0}
    again = Engine.restore(plan, engine.snapshot())
    assert again.table("out").column("currency").to_pylist() == ["USD"]
    again.apply("rates", gone, 5)  # a deletion of what is gone changes nothing
    assert again.stabilize().outputs["out"].num_rows == 0


@settings(max_examples=10 * EXAMPLES // SAMPLED)
@given(happened=records, size=st.integers(1, 7))
def test_a_deleted_row_of_one_input_leaves_no_state(happened: list[Any], size: int) -> None:
    plan = folded(rp.Pipeline("fx").table("rates", Rate, key=["place", "currency"])).plan()
    engine = Engine(plan)
    engine.stabilize()
    stored = engine.snapshot()
    newest: dict[Any, bool] = {}
    for start in range(0, len(happened), size):
        some = happened[start : start + size]
        failed = engine.apply(
            "rates", records_of(some, plan.source.fields_taken), start + len(some)
        )
        refused = {bad.row for bad in failed}
        for at, one in enumerate(some):
            if at not in refused:
                newest[one["place"], one["currency"]] = one[DELETED] or False
        engine.stabilize()
        stored = applied(stored, finished(engine.begin_snapshot(stored.number)))
        state = stored.tables[plan.folds[0].node_key]
        held = zip(*(state.column(name).to_pylist() for name in ("place", "currency")), strict=True)
        assert set(held) == {key for key, deleted in newest.items() if not deleted}
        again = Engine.restore(plan, stored)
        assert again.digests == engine.digests
        assert again.table("sums-out").sort_by("currency") == engine.table("sums-out").sort_by(
            "currency"
        )


def test_a_deletion_stays_known_where_a_key_could_be_in_two_inputs() -> None:
    plan = rp.Pipeline("fx").table("rates", Rate, key="currency").sink("out").plan()
    engine = Engine(plan, inputs=("rates/0", "rates/1"))
    row = {"currency": "EUR", "place": 1, "rate": 1.5, "region": "a", "final": False}
    gone = records_of([{"currency": "EUR", DELETED: True}], plan.source.fields_taken)
    engine.apply("rates/1", gone, 9, offsets=np.array([8]), rejected=0)
    engine.stabilize()
    engine.apply("rates/0", records_of([row], plan.source.fields), 1)
    assert engine.stabilize().outputs["out"].num_rows == 0


def test_a_table_of_keys_alone_is_a_set() -> None:
    @rp.record(version=1)
    class Member:
        name: str
        gone: bool

    table = rp.Pipeline("p").table("members", Member, key="name", deleted="gone")
    count = table.sink("rows").partition("all", key=()).fold("count", n=rp.count()).sink("out")
    events = [("a", False), ("b", False), ("a", True), ("c", True), ("b", False)]
    check_pipeline(count, [{"name": name, "gone": gone} for name, gone in events])


def test_a_key_in_another_partition_than_its_own_stops_the_run() -> None:
    plan = rp.Pipeline("fx").table("rates", Rate, key="currency").sink("out").plan()
    engine = Engine(plan, inputs=("rates/0", "rates/1"))
    engine.expect(Division(("currency",), {"rates/0": 0, "rates/1": 1}, 2))
    row = {"currency": "EUR", "place": 1, "rate": 1.5, "region": "a", "final": False}
    batch = records_of([row], plan.source.fields)
    own = int(partition_numbers(batch, ["currency"], 2)[0])
    engine.apply(f"rates/{own}", batch, 1)
    wrong = f"rates/{1 - own}"
    with pytest.raises(
        InputError, match=f"the currency 'EUR' is in {wrong}, which is partition"
    ) as e:
        engine.apply(wrong, batch, 1)
    assert "repartition" not in str(e.value)  # tables cannot be


@settings(max_examples=10 * EXAMPLES // SAMPLED)
@given(happened=records)
def test_rows_and_sums_equal_those_of_duckdb(happened: list[Any]) -> None:
    known = [
        one
        for one in happened
        if one["currency"] is not None
        and (one[DELETED] or ((one["rate"] or 0) > 0 and one["final"] is not None))
    ]
    types = {"currency": "VARCHAR", "rate": "DOUBLE", "region": "VARCHAR", DELETED: "BOOLEAN"}
    given_rows = pa.table(
        {
            "number": pa.array(range(len(known)), pa.int64()),
            **{
                name: pa.array(
                    [one[name] for one in known],
                    {"VARCHAR": pa.string(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_()}[of],
                )
                for name, of in types.items()
            },
        }
    )
    newest = (
        "SELECT * FROM given_rows QUALIFY row_number() OVER "
        f'(PARTITION BY currency ORDER BY number DESC) = 1 AND NOT coalesce("{DELETED}", false)'
    )
    with duckdb.connect() as sql:
        sql.register("given_rows", given_rows)
        rows = sql.sql(f"SELECT currency, rate, region FROM ({newest})").fetchall()
        sums = sql.sql(
            f"SELECT coalesce(region, '-'), count(*), sum(rate) FROM ({newest}) GROUP BY ALL"
        ).fetchall()
    table = rp.Pipeline("fx").table("rates", Rate, key="currency")
    plan = (
        table.derive("region", of=rp.col("region").fill_null("-"))
        .sink("rows")
        .partition("by-region", key="of")
        .fold("sums", n=rp.count(), rate=rp.sum("rate"))
        .sink("out")
        .plan()
    )
    engine = Engine(plan)
    for at, one in enumerate(happened):
        engine.apply("rates", records_of([one], plan.source.fields_taken), at + 1)
        engine.stabilize()
    engine.check_invariants()
    shown = engine.table("rows").to_pylist()
    assert sorted(rows, key=str) == sorted(
        [(row["currency"], row["rate"], row["region"]) for row in shown], key=str
    )
    out = [tuple(row.values()) for row in engine.table("out").to_pylist()]
    assert sorted(sums) == sorted(out)
