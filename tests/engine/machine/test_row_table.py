"""The rows of as-of joins from their reading on: against the reference, and the final join."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import PlanError
from ripple.engine.machine import Engine
from ripple.engine.migration.evolution import compare
from ripple.engine.operators.joins import row_table_rows
from ripple.engine.operators.joins.asof_rows import AsofRows
from ripple.engine.operators.joins.row_table_rows import RowTableRows
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.division import need_one_division
from ripple.model.pipeline.keeping import keeping
from ripple.model.pipeline.new_division import NewDivision
from ripple.model.pipeline.repartitioned import repartitioned_sources
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.columns import records_of
from ripple.testing import Divergence, check_pipeline, crash_test
from tests.engine.machine.interleaved import read_mixed
from tests.engine.machine.stream_ways import KEYS
from tests.engine.machine.test_asof import (
    BROKEN,
    SIZES,
    Quote,
    Trade,
    bounded,
    lagging,
    prices,
    sources,
)
from tests.engine.machine.ticks import Tick
from tests.examples import EXAMPLES, SAMPLED, SCATTERED


# Ways from the rows of the join to sinks.
def shown(rows: Pipeline) -> Pipeline:
    return rows.sink("out")


def failing(rows: Pipeline) -> Pipeline:
    """Show and fold rows of which some cannot be computed, and some are filtered out."""
    part = rows.filter("some", rp.col("size") != 1).derive("d", part=10 // (rp.col("size") - 3))
    return folded(part)


def folded(rows: Pipeline) -> Pipeline:
    """Fold rows by key, and the groups in one."""
    named = rows.derive("k", of=rp.col("venue").fill_null(""))
    keyed = named.partition("p", key="of")
    members = {"n": ra.count(), "matched": ra.count("price_right"), "size": ra.sum("size_right")}
    groups = keyed.fold("groups", most=ra.arg_max("size", "price_right"), **members)
    whole = groups.partition("all", key=()).fold("whole", n=ra.sum("n"), m=ra.sum("matched"))
    return groups.sink("groups-out").also(whole.sink("whole-out")).also(named.sink("named"))


WAYS = [shown, failing, folded]


def ways_to_join(chance: random.Random) -> dict[str, Any]:
    """Return the arguments of a join."""
    return bounded(
        {
            "strategy": chance.choice(["backward", "backward", "forward", "nearest"]),
            "tolerance": chance.choice([None, 0, 2, 8, 25]),
            "lateness": chance.choice([0, 0, 3, 12]),
            "allow_exact_matches": chance.random() < 0.6,
            "how": chance.choice(["left", "inner"]),
        }
    )


def eager(on: dict[str, Any], how: dict[str, Any], way: Any, delays_ns: tuple[int, int]) -> Any:
    """Return a pipeline that joins ticks with more of them, at once."""
    left, right = sources(delays_ns)
    return way(left.join_asof("j", right, **on, **how, emit="eager")).also(left.sink("every"))


def behind(on: dict[str, Any], how: dict[str, Any], way: Any, delays_ns: tuple[int, int]) -> Any:
    """Return a pipeline that joins rows that other joins and unions gave, at once."""
    one, other = sources(delays_ns)
    both = rp.union("both", one, other.filter("kept", rp.col("size") > 0))
    fewer = both.distinct("once", ["symbol", "size"], within=5, lateness=20)
    first = one.join_asof("first", other, on="symbol", lateness=3, emit="final", suffix="_1")
    left, right = (both, first) if how["how"] == "left" else (fewer, other)
    return way(left.join_asof("j", right, **on, **how, emit="eager"))


@pytest.mark.parametrize("seed", range(30 * EXAMPLES // SAMPLED))
def test_rows_equal_their_evaluation_from_scratch(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(row_table_rows, "_UNNEEDED_MAX", chance.choice([0, 10, 4096]))
    delays_ns = chance.choice([(0, 0), (0, 8), (8, 0)])
    make, way = chance.choice([eager, behind]), chance.choice(WAYS)
    pipeline = make(chance.choice(KEYS[:4]), ways_to_join(chance), way, delays_ns)
    check_pipeline(pipeline, lagging(chance, 50), SIZES, restarts=[chance.randint(0, 50)])


def _ends_by_its_own_side(self: RowTableRows) -> None:
    over = self._rows.end_below(self._join.left.settled_ns, ends=False)
    self._over = np.concatenate([self._over, over])


RULES: dict[str, tuple[Any, str, Any]] = {
    "late rows correct nothing": (RowTableRows, "_look", lambda _: None),
    "rows are final by the watermark of their own side": (
        RowTableRows,
        "_end",
        _ends_by_its_own_side,
    ),
    "of rows of one time the first counts": (
        AsofRows,
        *BROKEN["of rows of one time the first counts"],
    ),
    "rows are freed within the tolerance": (
        AsofRows,
        *BROKEN["rows are freed within the tolerance"],
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_table_without_one_of_its_rules_is_found(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_table_rows, "_UNNEEDED_MAX", 0)
    monkeypatch.setattr(*RULES[rule])
    for seed in range(1000):
        chance = random.Random(seed)
        pipeline = eager({"on": "symbol"}, {"lateness": 3, "tolerance": 25}, shown, (0, 8))
        try:
            check_pipeline(pipeline, lagging(chance, 90), (30,))
        except (Divergence, AssertionError, IndexError):
            return
    pytest.fail("no seed finds it")


@rp.record(version=1)
class Order:
    symbol: str
    venue: int
    tags: list[str]
    is_open: bool
    at: rp.Timestamp


@rp.record(version=1)
class Book:
    symbol: str
    venue: int
    bids: list[float] | None
    note: str | None
    is_firm: bool | None
    at: rp.Timestamp


@pytest.mark.parametrize("on", ["symbol", "venue", ["symbol", "venue"]])
def test_values_of_all_kinds_are_shown(on: str | list[str]) -> None:
    chance = random.Random(7)
    pipeline = rp.Pipeline("p")
    orders, books = pipeline.source("orders", Order), pipeline.source("books", Book)
    ways: dict[str, Any] = {"tolerance": "5ns", "lateness": "3ns", "emit": "eager"}
    joined = orders.join_asof("j", books, on=on, how=chance.choice(["left", "inner"]), **ways)
    rows: list[Any] = []
    for number in range(60):
        key = {"symbol": chance.choice("AB"), "venue": chance.randint(0, 1)}
        row = key | {"at": number // 2 + chance.randint(0, 4)}
        order = {"tags": ["t"] * chance.randint(0, 2), "is_open": chance.random() < 0.5}
        book = {
            "bids": chance.choice([None, [], [1.5, 2.5]]),
            "note": chance.choice([None, "", "longer than sixteen bytes"]),
            "is_firm": chance.choice([None, False, True]),
        }
        is_order = chance.random() < 0.5
        rows.append(("orders", row | order) if is_order else ("books", row | book))
    check_pipeline(joined.sink("out"), rows, SIZES, restarts=[20])


def check_finals(pipeline: Pipeline, chance: random.Random) -> None:
    """Compare the final rows of the output ``rows`` with those of the final join, ``once``.

    Neither do two readings of the inputs in other orders differ.
    """
    happened = lagging(chance, 60)
    engine = Engine(pipeline.plan(), finals=True)
    fields = [field.name for field in pipeline.plan().output("once").fields]
    found = 0
    for source, row in [*happened, ("", {})]:
        if source:
            batch = records_of([row], rp.schema_of(Tick).fields)
            engine.apply(source, batch, engine.cut[source] + 1)
        else:
            engine.close()
        changes = engine.stabilize()
        final = changes.final["rows"].select(fields).to_pylist()
        given = changes.outputs["once"].to_pylist()
        assert sorted(map(repr, final)) == sorted(map(repr, given))
        found += len(given)
    assert found
    assert not engine.table("rows").num_rows

    lanes: dict[str, list[Any]] = {"ticks": [], "more": []}
    for source, row in happened:
        lanes[source].append(row)
    one, other = (read_mixed(pipeline, lanes, chance.randint(0, 99)) for _ in range(2))
    assert one == other


@pytest.mark.parametrize("seed", range(20 * EXAMPLES // SAMPLED))
def test_a_final_row_is_that_of_the_final_join_and_interleavings_do_not_tell(seed: int) -> None:
    chance = random.Random(seed)
    how, on = ways_to_join(chance), chance.choice(KEYS[:2])
    left, right = sources((0, 8))
    at_once = left.join_asof("j", right, **on, **how, emit="eager").sink("rows")
    once = left.join_asof("k", right, **on, **how, emit="final").sink("once")
    check_finals(at_once.also(once), chance)


def rows_of(engine: Engine, source: str, *rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the rows that changed after some more rows of a source."""
    fields = rp.schema_of(Trade if source == "trades" else Quote).fields
    values = [dict(zip([field.name for field in fields], row, strict=True)) for row in rows]
    engine.apply(source, records_of(values, fields), engine.cut[source] + len(rows))
    found = engine.stabilize().outputs["out"].to_pylist()
    return sorted((row["row_offset"], row["bid"]) for row in found)


def test_a_row_is_there_at_once_and_changes_with_each_better_match_alone() -> None:
    engine = Engine(prices(emit="eager").sink("out").plan())

    assert rows_of(engine, "trades", ("A", 1.0, 20), ("A", 1.0, 30)) == [(0, None), (1, None)]
    assert rows_of(engine, "quotes", ("A", 1.5, 0.0, 25)) == [(1, 1.5)]
    assert rows_of(engine, "quotes", ("A", 2.5, 0.0, 15)) == [(0, 2.5)]
    assert rows_of(engine, "quotes", ("A", 3.5, 0.0, 16), ("A", 4.5, 0.0, 16)) == [(0, 4.5)]
    assert rows_of(engine, "quotes", ("B", 9.5, 0.0, 31)) == []
    assert engine.table("out").num_rows == 2
    engine.close()
    assert rows_of(Engine.restore(engine.plan, after(engine)), "trades") == []


def after(engine: Engine) -> Any:
    """Return the state after the last changes."""
    engine.stabilize()
    return engine.snapshot()


def test_steps_without_row_tables_are_refused() -> None:
    rows = prices(emit="eager")
    plan = rows.sink("out").plan()

    kept = {one.name: one.keeps for one in keeping(plan)}
    assert kept["at-quote.rows"] == "a row of 'at-quote' until it is final"
    table = "the rows of 'at-quote' are a table"
    with pytest.raises(PlanError, match=table):
        rows.finals("f")
    with pytest.raises(PlanError, match=f"answers belong to records, and {table}: ask before it"):
        rows.ask("a", bool, into=Trade)
    with pytest.raises(PlanError, match=table):
        rows.join_asof("again", rows, on="symbol", emit="final")
    with pytest.raises(PlanError, match=table):
        Pipeline("prices").source("x", Trade).join_asof("y", rows, on="symbol", emit="final")
    keyed = rows.derive("d", of=rp.col("symbol").fill_null("")).partition("p", key="of")
    named = keyed.fold("n", n=ra.count())
    with pytest.raises(PlanError, match=f"on the right, {table}"):
        named.join("z", rows, left_on="of", right_on="symbol")
    final = prices(emit="final").sink("out").plan()
    assert final.nodes[2].of.node_key != plan.nodes[2].of.node_key


def test_cluster_computes_eager_joins_whose_keys_divide_the_sources() -> None:
    rows = prices(emit="eager")
    plan = rows.sink("out").plan()
    both = {"trades": ("symbol",), "quotes": ("symbol",)}
    need_one_division(plan, "a cluster", both)
    (stage,) = stages_of(plan)
    assert (stage.key, stage.folds) == (("symbol",), ("at-quote.rows",))
    with pytest.raises(PlanError, match="of quotes are divided by bid, and at-quote needs all of"):
        need_one_division(plan, "a cluster", both | {"quotes": ("bid",)})
    found = repartitioned_sources(plan, both | {"quotes": ("bid",)})
    assert found == {"quotes": NewDivision(("symbol",))}
    whole = rows.partition("all", key=()).fold("whole", n=ra.count()).sink("out").plan()
    with pytest.raises(PlanError, match="trades are divided by symbol, and whole needs all of one"):
        need_one_division(whole, "a cluster", both)


@pytest.mark.parametrize("name", ["row_index", "window_start_ns"])
def test_names_that_its_rows_cannot_have_are_refused(name: str) -> None:
    pipeline = Pipeline("prices")
    trades = pipeline.source("trades", Trade).derive("d", **{name: rp.lit(1)})
    quotes = pipeline.source("quotes", Quote)
    with pytest.raises(PlanError, match=f"join_asof 'j': '{name}' is the name of a field"):
        trades.join_asof("j", quotes, on="symbol", emit="eager")


def test_rows_with_other_fields_are_computed_again_for_they_have_no_state_to_migrate() -> None:
    snapshot = after(Engine(prices(emit="eager").sink("out").plan()))
    other = prices(emit="eager").derive("d", more=rp.lit(1)).sink("out").plan()

    (told,) = compare(other, snapshot).problems

    assert told.startswith("the rows of 'at-quote.rows' are not those of the checkpoint (the steps")
    assert "final rows are not there any more" in told
    assert "--rebuild at-quote.rows" in told
    assert ".migrate(" not in told


def test_far_times_are_as_far_as_they_are() -> None:
    """A span between them may be more than 63 bits have."""
    for strategy in ("backward", "forward", "nearest"):
        how = {"strategy": strategy, "tolerance": 2**60, "lateness": 0}
        pipeline = eager(KEYS[0], how, shown, (0, 0))
        far = [-(2**62), -(2**61), 0, 2**61, 2**62 - 1]
        row = {"symbol": "A", "price": None, "size": 1, "venue": None}
        rows: list[Any] = [
            (source, row | {"timestamp_ns": at}) for at in far for source in ("ticks", "more")
        ]
        check_pipeline(pipeline, rows, SIZES)
        check_pipeline(pipeline, [*rows[::2], *rows[1::2]], SIZES)


def test_rows_and_their_corrections_survive_crashes() -> None:
    how = {"strategy": "nearest", "tolerance": 8, "lateness": 3, "how": "inner"}
    pipeline = eager({"on": "symbol"}, how, folded, (0, 8))
    crash_test(pipeline, lagging(random.Random(3), 24), seeds=range(2), every=SCATTERED, pairs=1)
