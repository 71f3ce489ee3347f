"""Joins of tables against the reference, against other readings, and against DuckDB."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import decide
from ripple.engine.migration.evolution import Verdict
from ripple.engine.operators.joins import paired_rows, pieces
from ripple.engine.operators.joins.paired_rows import PairedRows
from ripple.engine.operators.joins.referring_rows import ReferringRows
from ripple.engine.operators.joins.table_join_rows import TableJoinRows
from ripple.engine.snapshots.increment import applied
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.input_names import source_of
from ripple.model.pipeline.nodes import DELETED
from ripple.model.schema.columns import records_of
from ripple.testing import Divergence, check_pipeline, crash_test
from tests.engine.machine.random_joins import INPUTS, Rate, Region, Trade, happened, random_joins
from tests.examples import EXAMPLES, SAMPLED, SCATTERED, THINNED

NONE = np.empty(0, np.int64)


@rp.record(version=1)
class Placed:
    venue: str
    region: int
    rate: float


@settings(max_examples=60 * EXAMPLES // SAMPLED)
@given(seed=st.integers(0, 10**9), count=st.integers(1, 60), restart=st.integers(0, 60))
def test_joins_equal_their_evaluation_from_scratch(seed: int, count: int, restart: int) -> None:
    random = Random(seed)
    pipeline = random_joins(random)
    names = names_of(pipeline)
    events = [one for one in happened(random, count) if one[0] in names]
    check_pipeline(pipeline, events, inputs=names, restarts=[min(restart, len(events))])


def names_of(pipeline: Pipeline) -> list[str]:
    plan = pipeline.plan()
    sources = {source.name for source in plan.sources}
    return [name for name in INPUTS if name.partition("/")[0] in sources]


def read_in(pipeline: Pipeline, lanes: dict[str, list[Any]], seed: int) -> Any:
    """Return what an engine shows that reads its inputs in a random order, with restores."""
    plan, chance = pipeline.plan(), Random(seed)
    engine, left = Engine(plan, inputs=list(lanes)), {name: [*rows] for name, rows in lanes.items()}
    stored = None
    while any(left.values()):
        name = chance.choice([name for name, rows in left.items() if rows])
        size = chance.randint(1, 9)
        rows, left[name] = left[name][:size], left[name][size:]
        fields = source_of(plan, name).fields_taken
        engine.apply(name, records_of(rows, fields), engine.cut[name] + len(rows))
        if chance.random() < 0.5:
            engine.stabilize()
            engine.check_invariants()
            if chance.random() < 0.4:
                pending = engine.begin_snapshot(None if stored is None else stored.number)
                while not pending.step(3):
                    pass
                made = pending.finish()
                stored = made if made.since is None else applied(stored, made)
                if chance.random() < 0.3:
                    engine, stored = Engine.restore(plan, stored), None
    engine.stabilize()
    tables = {
        one.name: sorted(map(repr, engine.table(one.name).to_pylist())) for one in plan.outputs
    }
    return engine.cut, engine.digests, engine.live_digests, engine.uncomputable_counts, tables


@settings(max_examples=40 * EXAMPLES // SAMPLED)
@given(seed=st.integers(0, 10**9), orders=st.tuples(st.integers(), st.integers()))
def test_a_cut_does_not_tell_how_its_inputs_interleaved(seed: int, orders: tuple[int, int]) -> None:
    random = Random(seed)
    pipeline = random_joins(random)
    lanes: dict[str, list[Any]] = {name: [] for name in names_of(pipeline)}
    for name, row in happened(random, 50):
        if name in lanes:
            lanes[name].append(row)
    assert read_in(pipeline, lanes, orders[0]) == read_in(pipeline, lanes, orders[1])


def priced() -> Pipeline:
    """Return trades by symbol with the rate of their newest venue, all of them in one table."""
    p = rp.Pipeline("priced")
    trades = p.source("trades", Trade, time="t").partition("by", key="symbol")
    newest = trades.fold("newest", venue=rp.last("venue"), size=rp.sum("size"))
    rates = p.table("rates", Rate, key="venue")
    return newest.join("rated", rates, on="venue", how="left").sink("out")


@rp.record(version=1)
class Held:
    account: int
    symbol: str | None
    size: int


@rp.record(version=1)
class News:
    item: int
    symbol: str | None
    words: str


def paired(how: Any = "inner") -> Pipeline:
    """Return each pair of what an account holds and news of it, with their number above."""
    p = rp.Pipeline("paired")
    held, news = p.table("held", Held, key="account"), p.table("news", News, key="item")
    pairs = held.join("pairs", news, on="symbol", how=how)
    count = pairs.partition("all", key=()).fold("count", n=rp.count(), size=rp.sum("size"))
    return pairs.sink("out").also(count.sink("counted"))


def owned(how: Any) -> Pipeline:
    """Return each pair of a symbol with its newest venue and a region of that owner."""
    p = rp.Pipeline("owned")
    trades = p.source("trades", Trade, time="t").partition("by", key="symbol")
    newest = trades.fold("newest", venue=rp.last("venue"), size=rp.sum("size"))
    regions = p.table("regions", Region, key="region")
    joined = newest.join("owned", regions, left_on="venue", right_on="owner", how=how)
    return joined.sink("out")


def both(how: Any) -> Pipeline:
    p = rp.Pipeline("both")
    rates = p.table("rates", Placed, key="region")
    regions = p.table("regions", Region, key="region")
    return rates.join("both", regions, on="region", how=how).sink("out")


TRADE = {"symbol": "a", "venue": "x", "price": 1.0, "size": 1, "t": 1}
RATE = {"venue": "x", "region": 1, "rate": 2.0}


def changes_after(engine: Engine, name: str, row: Any) -> list[Any]:
    fields = source_of(engine.plan, name).fields_taken
    assert engine.apply(name, records_of([row], fields), engine.cut[name] + 1) == []
    changes: list[Any] = engine.stabilize().outputs["out"].to_pylist()
    return changes


def test_a_change_of_a_row_changes_all_that_name_it_once() -> None:
    engine = Engine(priced().plan())
    for symbol in ("a", "b", "c"):
        venue = None if symbol == "c" else "x"
        (row,) = changes_after(engine, "trades", {**TRADE, "symbol": symbol, "venue": venue})
        assert row["rate"] is None
    rows = changes_after(engine, "rates", RATE)
    assert {(row["symbol"], row["op"], row["rate"]) for row in rows} == {
        ("a", 0, 2.0),
        ("b", 0, 2.0),
    }
    assert changes_after(engine, "rates", RATE) == []  # bit for bit the same is no change
    (moved,) = changes_after(engine, "trades", {**TRADE, "venue": "y"})
    assert (moved["symbol"], moved["rate"]) == ("a", None)
    gone = changes_after(engine, "rates", {**RATE, DELETED: True})
    assert [(row["symbol"], row["op"], row["rate"]) for row in gone] == [("b", 0, None)]
    join = next(one for one in engine.inspected()["nodes"] if one["name"] == "rated")
    assert (join["kind"], join["keys"], join["rows_out"]) == ("join", 3, 7)


def test_pairs_of_rows_that_move_on_both_sides_in_one_batch_change_once() -> None:
    engine = Engine(paired().plan())

    def apply(name: str, *rows: dict[str, Any]) -> None:
        fields = source_of(engine.plan, name).fields_taken
        assert engine.apply(name, records_of(rows, fields), engine.cut[name] + len(rows)) == []

    def shown() -> tuple[list[Any], list[Any]]:
        outputs = engine.stabilize().outputs
        engine.check_invariants()
        rows = [
            (row["account"], row["item"], row["symbol"], row["size"], row["words"], row["op"])
            for row in outputs["out"].to_pylist()
        ]
        return sorted(rows), [(row["n"], row["size"]) for row in outputs["counted"].to_pylist()]

    apply("held", *({"account": at, "symbol": "a", "size": at} for at in (1, 2)))
    apply("held", {"account": 3, "symbol": None, "size": 3})
    apply("news", *({"item": at, "symbol": "a", "words": "up"} for at in (7, 8)))
    apply("news", {"item": 9, "symbol": None, "words": "down"})
    pairs = [(account, item) for account in (1, 2) for item in (7, 8)]
    whole = [(account, item, "a", account, "up", 0) for account, item in pairs]
    assert shown() == (whole, [(4, 6)])
    apply(
        "held", {"account": 1, "symbol": "b", "size": 5}, {"account": 3, "symbol": "b", "size": 3}
    )
    apply("news", {"item": 7, "symbol": "b", "words": "up"})
    changes, counted = shown()
    assert counted == [(3, 10)]
    assert [row for row in changes if row[-1] == 0] == [
        (1, 7, "b", 5, "up", 0), (3, 7, "b", 3, "up", 0)
    ]  # fmt: skip
    assert [row[:2] for row in changes if row[-1] != 0] == [(1, 8), (2, 7)]
    apply("news", {"item": 7, "symbol": "b", "words": "up"})
    assert shown() == ([], [])  # bit for bit the same is no change
    apply("held", {"account": 1, "symbol": "b", "size": 5, DELETED: True})
    apply("news", {"item": 8, "symbol": "a", "words": "up", DELETED: True})
    changes, counted = shown()
    assert [row[:2] for row in changes] == [(1, 7), (2, 8)]
    assert counted == [(1, 3)]


def test_pairs_and_values_that_nothing_has_are_freed() -> None:
    engine = Engine(paired().plan())
    for at in range(200):
        held = {"account": at, "symbol": f"s{at}", "size": 1}
        news = {"item": at, "symbol": f"s{at}", "words": "up"}
        changes_after(engine, "held", held)
        assert len(changes_after(engine, "news", news)) == 1
        changes_after(engine, "held", {**held, "symbol": "other"})
        changes_after(engine, "held", {**held, DELETED: True})
        changes_after(engine, "news", {**news, DELETED: True})
    assert engine.keys_held == 0
    assert engine.nbytes < 60_000


@pytest.mark.parametrize("room", [1, 3])
def test_pairs_made_in_pieces_are_the_same(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PAIRS_AT_ONCE", room)
    chance = Random(room)
    held = [{"account": at % 7, "symbol": chance.choice("ab"), "size": at} for at in range(40)]
    news = [{"item": at % 7, "symbol": chance.choice("ab"), "words": "up"} for at in range(40)]
    events = [("held", one) for one in held] + [("news", one) for one in news]
    chance.shuffle(events)
    check_pipeline(paired(), events, (1, 80))


def test_rows_and_links_that_nothing_has_are_freed() -> None:
    engine = Engine(both("inner").plan())
    for region in range(200):
        (name, row), other = ("rates", {**RATE, "region": region}), {"region": region}
        changes_after(engine, name, row)
        changes_after(engine, "regions", other | {"owner": None, "symbol": None, "t": 0})
        changes_after(engine, name, {**row, DELETED: True})
        changes_after(engine, "regions", other | {DELETED: True})
    assert engine.keys_held == 0
    assert engine.nbytes < 40_000


def _kept_at_left(self: Any, slots: Any) -> Any:
    self._row_of[slots] = -1
    return NONE


def _one_row(self: Any, links: Any) -> Any:
    return LINKED(self, links)[:1]


def _null_is_a_key(self: Any, slots: Any) -> Any:
    arrays, there = REFERENCES(self, slots)
    if there.all():
        return arrays, there
    (values, _) = self._left.rows(slots)[self._left.names.index(self.fold.pairs[0][0])]
    return [pa.array(values).fill_null("x")], np.ones(len(slots), np.bool_)


def _half_of_matches(slots: Any, side: Any, other: Any) -> Any:
    found = MATCHES(slots, side, other)
    return found if side.column.names[0] == "venue" else ()


def _pairs_stay(self: Any, pairs: Any, slots: Any) -> None:
    if slots is not None:
        PAIR(self, pairs, slots)


def _null_is_equal(column: Any, names: Any, slots: Any) -> Any:
    (values, _) = column.rows(slots)[column.names.index(names[0])]
    return [pa.array(values).fill_null("x")], np.ones(len(slots), np.bool_)


def _named_for_ever(self: Any, slots: Any, rows: Any) -> None:
    self._named.reserve(self.keys.capacity, self._link_keys.capacity)
    new = self._named.links_of(rows) < 0
    REFER(self, slots[new], rows[new])


REFER = ReferringRows._refer
LINKED, REFERENCES = ReferringRows._rows_with, ReferringRows._references
MATCHES, PAIR = paired_rows._matches, PairedRows._pair

ABLATIONS = {
    "rows of a key that is gone stay": (TableJoinRows, "_part", _kept_at_left),
    "a change reaches the first row alone": (ReferringRows, "_rows_with", _one_row),
    "a row stays with the one that it named first": (ReferringRows, "_refer", _named_for_ever),
    "null equals a value": (ReferringRows, "_references", _null_is_a_key),
    "pairs of a row that moved on the right are missed": (
        paired_rows,
        "_matches",
        _half_of_matches,
    ),
    "pairs of a row that is gone stay": (PairedRows, "_pair", _pairs_stay),
    "pairs have null equal to a value": (paired_rows, "compared", _null_is_equal),
    "pairs of others do not take rows without a partner back": (
        paired_rows.Side,
        "values_of",
        lambda self, moved: moved[:0],
    ),
}


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_a_join_without_one_of_its_rules_is_found(
    ablation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*ABLATIONS[ablation])
    for seed in range(100):
        random = Random(seed)
        chosen = both("full") if ablation.startswith("rows") else priced()
        if ablation.startswith("pairs"):
            chosen = owned("full")
        names = names_of(chosen)
        names = [name.partition("/")[0] for name in names]
        events = [(name.partition("/")[0], row) for name, row in happened(random, 40)]
        try:
            check_pipeline(chosen, [one for one in events if one[0] in names])
        except (Divergence, AssertionError, IndexError):
            return
    pytest.fail("no seed finds it")


def beside(*joins: str) -> Pipeline:
    """Return two tables with sinks, and those of these joins of them."""
    p = rp.Pipeline("grown")
    rates, regions = (
        p.table("rates", Placed, key="region"),
        p.table("regions", Region, key="region"),
    )
    whole = rates.sink("rates-out").also(regions.sink("regions-out"))
    for how in joins:
        join = rates.join(how, regions, on="region", how=how).sink(f"{how}-out")
        total = join.partition(f"{how}-all", key=()).fold(f"{how}-total", n=rp.count())
        whole = whole.also(join).also(total.sink(f"{how}-total-out"))
    return whole


def test_a_join_beside_what_runs_is_new_and_all_else_is_kept() -> None:
    random = Random(1)
    events = [one for one in happened(random, 80) if one[0] in ("rates", "regions")]

    def run(engine: Engine, some: list[Any]) -> Engine:
        for name, row in some:
            fields = source_of(engine.plan, name).fields_taken
            engine.apply(name, records_of([row], fields), engine.cut[name] + 1)
        engine.stabilize()
        return engine

    plan, halfway = beside("left", "full").plan(), len(events) // 2
    fresh = run(Engine(plan), events)
    snapshot = run(Engine(beside("left").plan()), events[:halfway]).snapshot()
    decided = decide(plan, snapshot)
    verdicts = {one.key.partition("#")[0]: one.verdict for one in decided.comparison.folds}
    path = "rates/rates.key/rates.newest"
    assert {one for name, one in verdicts.items() if "full" not in name} == {Verdict.KEEP}
    assert verdicts[f"{path}/full"] is verdicts[f"{path}/full/full-all/full-total"] is Verdict.NEW
    assert decided.snapshot is not None
    grown = run(Engine.restore(plan, decided.snapshot), events[halfway:])
    assert grown.digests == fresh.digests
    assert grown.uncomputable_counts == fresh.uncomputable_counts


HOWS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}


@pytest.mark.parametrize("how", HOWS)
def test_rows_are_those_of_sql(how: str) -> None:
    chance = np.random.default_rng(7)
    count = 20_000
    rates = [
        {"venue": f"v{v}", "region": r, "rate": float(x)}
        for v, r, x in zip(*(chance.integers(0, 3_000, (3, count)).tolist()), strict=True)
    ]
    regions = [
        {"region": r, "owner": None if o % 7 == 0 else f"o{o}", "symbol": f"v{s}", "t": 0}
        for r, o, s in zip(*(chance.integers(0, 3_000, (3, count)).tolist()), strict=True)
    ]
    p = rp.Pipeline("sql")
    first, second = p.table("rates", Placed, key="region"), p.table("regions", Region, key="region")
    by_key = first.join("by-key", second, on="region", how=how)
    third = p.table("venues", Placed, key="venue")
    named = second.join("named", third, left_on="symbol", right_on="venue", how="left")
    plan = by_key.sink("by-key-out").also(named.sink("named-out")).plan()
    engine = Engine(plan)
    for name, rows in (("regions", regions), ("rates", rates), ("venues", rates)):
        engine.apply(name, records_of(rows, source_of(plan, name).fields_taken), count)
    engine.stabilize()
    newest = "select * from {} qualify row_number() over (partition by {} order by place desc) = 1"
    with duckdb.connect() as sql:
        for name, rows in (("a", rates), ("b", regions)):
            at = pa.array(np.arange(count))
            sql.register(name, pa.Table.from_pylist(rows).append_column("place", at))
        sql.execute(f"create temp view l as {newest.format('a', 'region')}")
        sql.execute(f"create temp view r as {newest.format('b', 'region')}")
        sql.execute(f"create temp view v as {newest.format('a', 'venue')}")
        by_key_rows = sql.execute(
            "select coalesce(l.region, r.region) region, l.venue, l.rate, r.owner, r.symbol, r.t "
            f"from l {HOWS[how]} r on l.region = r.region"
        ).fetchall()
        named_rows = sql.execute(
            "select r.region, r.owner, r.symbol, r.t, v.region, v.rate "
            "from r left join v on symbol = venue"
        ).fetchall()
    for name, theirs in (("by-key", by_key_rows), ("named", named_rows)):
        ours = engine.table(f"{name}-out")
        rows = (dict(zip(ours.column_names, row, strict=True)) for row in theirs)
        assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, rows))


@pytest.mark.parametrize("how", HOWS)
def test_pairs_are_those_of_sql(how: Any) -> None:
    chance = np.random.default_rng(8)
    count = 5_000
    held, news = (
        [
            {key: int(k), "symbol": None if s == 0 else f"s{s}", other: of(int(x))}
            for k, s, x in zip(*chance.integers(0, 700, (3, count)), strict=True)
        ]
        for key, other, of in (("account", "size", int), ("item", "words", str))
    )
    engine = Engine(paired(how).plan())
    for at in range(0, count, 500):
        for name, rows in (("held", held), ("news", news)):
            fields = source_of(engine.plan, name).fields_taken
            engine.apply(name, records_of(rows[at : at + 500], fields), at + 500)
        engine.stabilize()
    newest = "select * from {} qualify row_number() over (partition by {} order by place desc) = 1"
    with duckdb.connect() as sql:
        for name, rows in (("a", held), ("b", news)):
            at = pa.array(np.arange(count))
            sql.register(name, pa.Table.from_pylist(rows).append_column("place", at))
        theirs = sql.execute(
            "select account, item, l.symbol, size, words, r.symbol "
            f"from ({newest.format('a', 'account')}) l {HOWS[how]} "
            f"({newest.format('b', 'item')}) r on l.symbol = r.symbol"
        ).fetchall()
    ours = [in_sql(row) for row in engine.table("out").to_pylist()]
    assert len(ours) > 300
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))
    sizes = [row[3] for row in ours if row[3] is not None]
    assert engine.table("counted").to_pylist() == [{"n": len(ours), "size": sum(sizes)}]


def in_sql(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a row of ``paired`` as SQL has it, with nulls in the key of a missing row."""
    which = row.get("sides", "both")
    account = None if which == "right_only" else row["account"]
    item = None if which == "left_only" else row["item"]
    assert which != "right_only" or row["account"] == 0
    assert which != "left_only" or row["item"] == 0
    symbol = None if which == "left_only" else row.get("symbol_right", row["symbol"])
    return account, item, row["symbol"], row["size"], row["words"], symbol


def test_a_row_without_a_partner_goes_with_the_first_one_and_comes_back_after_the_last() -> None:
    engine = Engine(paired("full").plan())

    def changed(name: str, row: dict[str, Any]) -> list[Any]:
        found = [
            (row["sides"], row["account"], row["item"], row["op"])
            for row in changes_after(engine, name, row)
        ]
        return sorted(found)

    held, news = {"account": 1, "symbol": "a", "size": 5}, {"item": 7, "symbol": "a", "words": "up"}
    assert changed("held", held) == [("left_only", 1, 0, 0)]
    assert changed("news", news) == [("both", 1, 7, 0), ("left_only", 1, 0, 2)]
    assert changed("news", {**news, "item": 8}) == [("both", 1, 8, 0)]
    assert changed("news", {**news, DELETED: True}) == [("both", 1, 7, 2)]
    assert changed("held", {**held, "symbol": None}) == [
        ("both", 1, 8, 2), ("left_only", 1, 0, 0), ("right_only", 0, 8, 0)
    ]  # fmt: skip
    assert changed("held", {**held, "symbol": None, "size": 6}) == [("left_only", 1, 0, 0)]
    assert changed("held", {**held, DELETED: True}) == [("left_only", 1, 0, 2)]
    assert changed("news", {**news, "item": 8, DELETED: True}) == [("right_only", 0, 8, 2)]
    assert engine.keys_held == 0


@rp.record(version=1)
class Priced:
    venue: str
    rate: float
    gone: bool


def durable() -> Pipeline:
    """Return a join by reference, one of windows, and one of pairs."""
    p = rp.Pipeline("durable")
    trades = p.source("trades", Trade, time="t")
    newest = trades.partition("by", key="symbol").fold("newest", venue=rp.last("venue"))
    rates = p.table("rates", Priced, key="venue", deleted="gone")
    rated = newest.join("rated", rates, on="venue", how="left").sink("rated-out")
    bars = [
        trades.filter(f"f{at}", rp.col("size") > at)
        .partition(f"p{at}", key="symbol")
        .window(f"w{at}", rp.Tumbling(4), lateness=0)
        .fold(f"bars{at}", n=rp.count())
        for at in (0, 1)
    ]
    beside = bars[0].join("beside", bars[1], on=["symbol", "window_start_ns"], how="full")
    alike = newest.join("alike", newest, on="venue", suffix="_too").sink("alike-out")
    return rated.also(beside.sink("beside-out")).also(alike)


def test_joins_do_not_tell_of_crashes() -> None:
    events: list[Any] = []
    for at in range(16):
        rate = {"venue": "xy"[at % 2], "rate": float(at), "gone": at % 5 == 3}
        trade = {**TRADE, "symbol": "ab"[at // 2 % 2], "venue": "xyz"[at % 3], "size": at % 3}
        events.append(("rates", rate) if at % 3 == 2 else ("trades", {**trade, "t": at}))
    report = crash_test(
        durable(), events, seeds=range(2 * EXAMPLES // THINNED), pairs=1, every=SCATTERED
    )
    assert report.lives > report.runs
