"""As-of joins: against the reference, other readings, Polars and DuckDB."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import InputError, PlanError
from ripple.engine.machine import Engine
from ripple.engine.machine.engine import SnapshotError
from ripple.engine.migration.adaptation import ChangedPlanError, decide
from ripple.engine.operators.division import Division
from ripple.engine.operators.joins import asof_rows
from ripple.engine.operators.joins.asof_rows import AsofRows
from ripple.engine.operators.waiting import settled_ns
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.division import need_one_division
from ripple.model.pipeline.keeping import keeping
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.columns import records_of
from ripple.testing import Divergence, Marker, check_pipeline, crash_test
from tests.engine.machine.finals import bars
from tests.engine.machine.interleaved import read_mixed
from tests.engine.machine.stream_ways import KEYS, ended, running, shown, sides, strict, windowed
from tests.engine.machine.ticks import Tick, ticks
from tests.examples import EXAMPLES, SAMPLED, SCATTERED, THINNED

SIZES = (1, 7, 1000)


def again(rows: Pipeline) -> Pipeline:
    """Tell joined rows apart, and join them with themselves."""
    fewer = rows.distinct("fewer", "size", within=30)
    both = fewer.join_asof(
        "again", rows, on="size", allow_exact_matches=False, suffix="_2", emit="final"
    )
    return fewer.sink("fewer-out").also(both.sink("again-out"))


WAYS = [shown, strict, running, windowed, again]


def bounded(how: dict[str, Any]) -> dict[str, Any]:
    """Give a join that looks ahead a tolerance."""
    if how["strategy"] != "backward" and how["tolerance"] is None:
        return how | {"tolerance": 15}
    return how


spans = st.sampled_from([None, 0, 3, 40, 10**6])
latenesses = st.sampled_from([0, 0, 5, 20, 200])
delays = st.sampled_from([(10, 30), (30, 0), (0, 0)])
joins = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from(["backward", "backward", "forward", "nearest"]),
        "tolerance": spans,
        "lateness": latenesses,
        "allow_exact_matches": st.booleans(),
        "how": st.sampled_from(["left", "inner"]),
    }
).map(bounded)
chosen = st.lists(st.sampled_from(WAYS), min_size=1, unique=True)


def sources(delays_ns: tuple[int, int]) -> list[Pipeline]:
    pipeline = Pipeline("test")
    each = zip(["ticks", "more"], delays_ns, strict=True)
    return [
        pipeline.source(name, Tick, out_of_order=delay_ns, reject_future=100_000)
        for name, delay_ns in each
    ]


def joined(
    on: dict[str, Any], how: dict[str, Any], ways: list[Any], delays_ns: tuple[int, int]
) -> Pipeline:
    """Return a pipeline that joins ticks with more of them."""
    left, right = sources(delays_ns)
    return ended(left.join_asof("j", right, **on, **how, emit="final"), ways, left)


def alone(on: dict[str, Any], how: dict[str, Any], ways: list[Any]) -> Pipeline:
    """Return a pipeline that joins ticks with some of themselves."""
    left = Pipeline("test").source("ticks", Tick, out_of_order=10, reject_future=100_000)
    right = left.filter("k", rp.col("size") > 1)
    return ended(left.join_asof("j", right, **on, **how, emit="final"), ways, left)


def mixed(
    on: dict[str, Any], how: dict[str, Any], ways: list[Any], delays_ns: tuple[int, int]
) -> Pipeline:
    """Return a pipeline that joins rows of both sources, told apart, with final rows."""
    one, other = sources(delays_ns)
    both = rp.union("both", one, other.filter("k", rp.col("size") > 0))
    fewer = both.distinct("d", ["symbol", "size"], within=5, lateness=20)
    final = bars(other, rp.Tumbling(50), None, 15).finals("final")
    if "venue" not in str(on):
        ways = [shown_finals(final, fewer), *ways]
    return ended(fewer.join_asof("j", one, **on, **how, emit="final"), ways, one)


def shown_finals(final: Pipeline, fewer: Pipeline) -> Any:
    """Return a way that joins final rows, on either side."""

    def way(rows: Pipeline) -> Pipeline:
        after = final.join_asof("after", rows, on="symbol", suffix="_j", emit="final")
        names = [field.name for field in final.fields if field.name != "symbol"]
        twice = after.join_asof("twice", final, on="symbol", suffix="_f", emit="final")
        assert all(f"{name}_f" in [one.name for one in twice.fields] for name in names)
        before = fewer.join_asof("before", final, on="symbol", how="inner", emit="final")
        return after.sink("after-out").also(twice.sink("twice-out")).also(before.sink("before-out"))

    return way


@settings(max_examples=16 * EXAMPLES // SAMPLED)
@given(
    on=st.sampled_from(KEYS),
    how=joins,
    ways=chosen,
    make=st.sampled_from([joined, mixed]),
    happened=ticks(extreme=True),
    owners=sides,
    delays_ns=delays,
    at=st.tuples(st.integers(0, 45), st.integers(0, 45)),
)
def test_joined_rows_equal_their_evaluation_from_scratch(
    *,
    on: Any,
    how: Any,
    ways: Any,
    make: Any,
    happened: Any,
    owners: Any,
    delays_ns: tuple[int, int],
    at: tuple[int, int],
) -> None:
    rows: list[Any] = list(zip(owners, happened, strict=False))
    rows.insert(min(at[0], len(rows)), Marker("more", 150))
    check_pipeline(make(on, how, ways, delays_ns), rows, SIZES, restarts=[min(at[1], len(rows))])


@settings(max_examples=6 * EXAMPLES // THINNED)
@given(
    on=st.sampled_from(KEYS),
    how=joins,
    ways=chosen,
    happened=ticks(max_size=30),
    owners=st.lists(st.sampled_from(["a", "b"]), min_size=60, max_size=60),
    restart=st.integers(0, 30),
)
def test_a_stream_is_joined_with_itself(
    *, on: Any, how: Any, ways: Any, happened: Any, owners: Any, restart: int
) -> None:
    rows = list(zip(owners, happened, strict=False))
    restarts = [min(restart, len(rows))]
    check_pipeline(alone(on, how, ways), rows, SIZES, inputs=["a", "b"], restarts=restarts)


@settings(max_examples=10 * EXAMPLES // SAMPLED)
@given(data=st.data(), how=joins, make=st.sampled_from([joined, mixed]), happened=ticks())
def test_a_cut_does_not_tell_how_its_inputs_interleaved(
    data: Any, how: Any, make: Any, happened: Any
) -> None:
    lanes: dict[str, list[Any]] = {"ticks": [], "more": []}
    for event in happened:
        lanes[data.draw(st.sampled_from(["ticks", "more"]))].append(event)
    pipeline = make(KEYS[0], how, WAYS, data.draw(delays))
    one, other = (read_mixed(pipeline, lanes, data.draw(st.integers())) for _ in range(2))

    assert one == other


def lagging(chance: random.Random, count: int) -> list[tuple[str, dict[str, Any]]]:
    """Return ticks of two sources, of which one may be far ahead, with ties and null keys."""
    clocks = {"ticks": chance.choice([0, 0, 60]), "more": chance.choice([0, 20, 60])}
    found = []
    for _ in range(count):
        source = chance.choice(["ticks", "more"])
        clocks[source] += chance.choice([0, 0, 1, 2, 5, 9])
        late = chance.choice([0, 0, 0, 1, 4, 15])
        row = {
            "symbol": chance.choice("AAB"),
            "price": chance.choice([None, float(len(found))]),
            "size": len(found),
            "venue": chance.choice(["A", "B", None]),
            "timestamp_ns": clocks[source] - late,
        }
        found.append((source, row))
    return found


@pytest.mark.parametrize("seed", range(40 * EXAMPLES // SAMPLED))
def test_joined_rows_of_a_side_that_lags(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(asof_rows, "_UNNEEDED_MAX", chance.choice([0, 10, 4096]))
    how = {
        "strategy": chance.choice(["backward", "forward", "nearest"]),
        "tolerance": chance.choice([0, 2, 8, 25]),
        "lateness": chance.choice([0, 0, 3, 12]),
        "allow_exact_matches": chance.random() < 0.6,
        "how": chance.choice(["left", "left", "inner"]),
    }
    if how["strategy"] == "backward" and chance.random() < 0.4:
        how["tolerance"] = None
    delays_ns = chance.choice([(0, 0), (0, 8), (8, 0)])
    pipeline = joined(chance.choice(KEYS[:3]), how, [shown], delays_ns)
    rows = lagging(chance, 50)
    check_pipeline(pipeline, rows, SIZES, restarts=[chance.randint(0, 50)])


MADE = AsofRows.__init__


def _first_of_ties(self: Any, *given: Any) -> None:
    """Hold rows of the right side as if those of one time had come in the opposite order."""
    MADE(self, *given)
    hold = self.right.held.hold

    def turned(rows: Any, *more: Any) -> None:
        rows.offsets = -rows.offsets
        hold(rows, *more)

    self.right.held.hold = turned


class _OwnSide:
    """Matches of rows that follow by the watermark of the left side alone."""

    def __init__(self, join: AsofRows) -> None:
        self._join, self._matches = join, join._matches

    def settle(self, *marks_ns: int) -> Any:
        latenesses_ns = [side.lateness_ns for side in self._join.sides]
        left_ns, right_ns = map(settled_ns, marks_ns, latenesses_ns)
        return self._matches.take(left_ns, min(left_ns, right_ns))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._matches, name)


def _by_own_side(self: Any, *given: Any) -> None:
    MADE(self, *given)
    self._matches = _OwnSide(self)


BROKEN = {
    "of rows of one time the first counts": ("__init__", _first_of_ties),
    "rows follow by the watermark of their own side": ("__init__", _by_own_side),
    "rows are freed within the tolerance": (
        "oldest_ns",
        property(lambda self: self.known_ns if self._is_backward else self.watermark_ns),
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_found(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsofRows, *BROKEN[rule])
    monkeypatch.setattr(asof_rows, "_UNNEEDED_MAX", 0)
    for seed in range(1000):
        chance = random.Random(seed)
        how = {"strategy": "backward", "tolerance": chance.choice([8, 25]), "lateness": 3}
        pipeline = joined({"on": "symbol"}, how, [shown], (0, 8))
        try:
            check_pipeline(pipeline, lagging(chance, 30), (7,))
        except (Divergence, AssertionError, IndexError):
            return
    pytest.fail("no seed finds it")


@rp.record
class Trade:
    symbol: str | None
    price: float
    at: rp.Timestamp


@rp.record
class Quote:
    symbol: str | None
    bid: float
    price: float
    at: rp.Timestamp


def prices(**options: Any) -> Pipeline:
    """Return trades with the quote of their time."""
    pipeline = Pipeline("prices")
    trades = pipeline.source("trades", Trade, out_of_order=options.pop("out_of_order", 0))
    quotes = pipeline.source("quotes", Quote, out_of_order=10)
    if options.pop("named", False):
        quotes = quotes.derive("n", name=rp.col("symbol"))
    options = {"on": "symbol", "lateness": 5, "emit": "final"} | options
    return trades.join_asof("at-quote", quotes, **options)


def read(engine: Engine, source: str, *rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return what is shown after some more rows of a source."""
    record = Trade if source.startswith("trades") else Quote
    fields = rp.schema_of(record).fields
    values = [dict(zip([field.name for field in fields], row, strict=True)) for row in rows]
    engine.apply(source, records_of(values, fields), engine.cut[source] + len(rows))
    return shown_by(engine)


def shown_by(engine: Engine) -> list[tuple[Any, ...]]:
    found = engine.stabilize().outputs["out"].to_pylist()
    return [(row["symbol"], row["at"], row["bid"]) for row in found]


def test_a_row_follows_with_the_last_row_of_its_key_once_both_sides_have_passed_it() -> None:
    engine = Engine(prices().sink("out").plan())

    assert read(engine, "trades", ("A", 1.0, 20), ("B", 1.0, 21), (None, 1.0, 22)) == []
    assert read(engine, "quotes", ("A", 1.0, 0, 12), ("A", 2.0, 0, 20), ("A", 3.0, 0, 21)) == []
    assert read(engine, "quotes", ("A", 4.0, 0, 36)) == []
    assert read(engine, "trades", ("A", 1.0, 40)) == [("A", 20, 2.0)]
    late = ("B", 6.0, 0, 21)  # by 5, then by 6
    assert read(engine, "quotes", late, ("B", 7.0, 0, 37)) == [("B", 21, 6.0)]
    assert read(engine, "quotes", late, ("B", 8.0, 0, 38)) == [(None, 22, None)]
    assert engine.counters.very_late == 1
    assert engine.counters_by_source["quotes"].very_late == 1


def test_a_strict_join_needs_no_row_of_the_same_time() -> None:
    for exact, expected in ((True, []), (False, [("A", 20, 1.0)])):
        engine = Engine(prices(allow_exact_matches=exact).sink("out").plan())
        read(engine, "trades", ("A", 1.0, 20), ("A", 1.0, 40))
        found = read(engine, "quotes", ("A", 1.0, 0, 19), ("A", 2.0, 0, 20), ("B", 0.0, 0, 35))

        assert found == expected


def test_of_one_time_the_later_record_of_the_right_side_counts() -> None:
    engine = Engine(prices().sink("out").plan(), inputs=["trades", "quotes/0", "quotes/1"])

    def quotes(source: str, *bids: float) -> None:
        rows = [{"symbol": "A", "bid": bid, "price": 0.0, "at": 20} for bid in bids]
        batch = records_of(rows, rp.schema_of(Quote).fields)
        engine.apply(source, batch, engine.cut[source] + len(bids))

    quotes("quotes/1", 1.0, 2.0)
    quotes("quotes/0", 3.0, 4.0)
    read(engine, "trades", ("A", 0.0, 20))
    engine.close()

    assert shown_by(engine) == [("A", 20, 2.0)]


def test_rows_of_both_sides_are_freed() -> None:
    plan = prices(tolerance=100).sink("out").plan()
    engine = Engine(plan)
    sizes = []
    for turn in range(48):
        start = turn * 200
        keys = [(f"key-{at:06}", at) for at in range(start, start + 200)]  # of one length
        read(engine, "quotes", *((key, 1.0, 1.0, at) for key, at in keys))
        read(engine, "trades", *((key, 1.0, at) for key, at in keys))
        tables = engine.snapshot().tables.values()
        sizes.append(([table.num_rows for table in tables], engine.nbytes))

    assert sizes[-1][0] == sizes[5][0] == [16, 116]
    # Rows are dropped every twelve turns; room grows before the second time.
    nbytes = [size for _, size in sizes]
    assert max(nbytes[36:]) == max(nbytes[24:36])


@pytest.mark.parametrize("strategy", ["backward", "forward", "nearest"])
def test_the_ends_of_time_are_not_near(strategy: str) -> None:
    engine = Engine(prices(strategy=strategy, tolerance=2**60).sink("out").plan())
    first, last = -(2**62), 2**62 - 1
    read(engine, "quotes", ("A", 1.0, 0.0, first), ("B", 2.0, 0.0, last), ("C", 3.0, 0.0, last))
    found = read(engine, "trades", ("B", 1.0, first), ("A", 1.0, last), ("C", 1.0, last))
    engine.close()

    assert found + shown_by(engine) == [("B", first, None), ("A", last, None), ("C", last, 3.0)]


def test_the_slower_side_decides_what_is_kept() -> None:
    engine = Engine(prices().sink("out").plan())
    read(engine, "quotes", *(("A", float(at), 0.0, at) for at in range(1000)))

    assert len(read(engine, "trades", ("A", 1.0, 10), ("A", 1.0, 20), ("A", 1.0, 30))) == 2
    (_, right) = engine.snapshot().tables.values()
    assert right.num_rows == 1000 - 24


def refused(make: Any) -> str:
    with pytest.raises(PlanError) as raised:
        make()
    return str(raised.value)


@rp.record
class Untimed:
    symbol: str


@rp.record
class Numbered:
    symbol: int
    kind: int
    at: rp.Timestamp


def windowed_rows(rows: Pipeline, lateness: int) -> Pipeline:
    keyed = rows.derive("d", whole=rp.col("price").round().cast(int)).partition("t", key="whole")
    return keyed.window("w", rp.Tumbling(1), lateness=lateness)


def test_bad_uses_are_told_what_to_write() -> None:
    pipeline = Pipeline("p")
    trades, quotes = pipeline.source("trades", Trade), pipeline.source("quotes", Quote)
    numbered = pipeline.source("numbered", Numbered)

    def join(right: Any = quotes, **options: Any) -> str:
        return refused(
            lambda: trades.join_asof("j", right, **{"on": "symbol", "emit": "final"} | options)
        )

    assert join(emit=None) == (
        "join_asof 'j': emit is missing: say 'eager', a row at once, with corrections until it is "
        "final, or 'final', each row once"
    )
    assert "emit is 'now': it must be 'eager' or 'final'" in join(emit="now")
    assert "how is 'outer': it must be 'left' or 'inner'" in join(how="outer")
    for strategy in ("forward", "nearest"):
        assert "a row could wait for ever for a later one: say how long with tolerance=" in join(
            strategy=strategy
        )
    assert "must be 'backward', 'forward' or 'nearest'" in join(strategy="exact")
    assert "allow_exact_matches must be True or False, not 1" in join(allow_exact_matches=1)
    assert "tolerance" in join(tolerance="soon")
    assert "keys are missing: name them with on=" in join(on=None)
    assert "right_on=" in join(on=None, left_on="symbol")
    assert "leave left_on= and right_on= out" in join(left_on="symbol")
    assert "left_on names 1 fields and right_on 2: name them in pairs" in join(
        numbered, on=None, left_on="symbol", right_on=["symbol", "kind"]
    )
    assert "on names no field" in join(on=[])
    assert "the key names 'symbol' twice" in join(on=["symbol", "symbol"])
    assert "floats are compared bit by bit here, NaN with NaN" in join(on="price")
    assert (
        "on names 'at', the event time of 'trades': on= are the keys, and rows are matched by "
        "event time in any case"
    ) in join(on="at")
    assert "there is no field 'venue'" in join(on="venue")
    assert (
        "'symbol' is a text in 'trades', and 'symbol' is an integer in 'numbered', and they would "
        "never be equal: .cast one of them"
    ) in join(numbered)
    named = quotes.derive("d", bid_right=rp.col("bid"))
    assert "two fields would be called 'bid_right'" in refused(
        lambda: named.join_asof("j", quotes, on="symbol", emit="final")
    )
    assert "suffix is ''" in join(suffix="")
    assert "the right side is another branch of the pipeline, not 3" in join(3)
    timeless = pipeline.source("timeless", Untimed)
    assert "the source 'timeless' has no time field" in join(timeless)
    named_quotes = quotes.derive("n", name=rp.col("symbol").fill_null(""))
    fold = named_quotes.partition("q", key="name").fold("best", bid=ra.max("bid"))
    assert (
        "'best' is a table: which row it has when a row of the left side is read depends on how "
        "the inputs interleave"
    ) in join(fold)
    assert "name the right side before its .partition(...)" in join(
        named_quotes.partition("q", "name")
    )
    assert "right side has nothing to read yet" in join(Pipeline("p"))
    assert "begin both branches with the same Pipeline" in join(
        Pipeline("risk").source("quotes", Quote)
    )
    assert "the rows of a fold have no event time" in refused(
        lambda: fold.join_asof("j", trades, on="symbol", emit="final")
    )
    keyed = trades.derive("n", name=rp.col("symbol").fill_null("")).partition("t", key="name")
    assert "put it before .partition(...)" in refused(
        lambda: keyed.join_asof("j", quotes, on="symbol", emit="final")
    )
    rows = trades.join_asof("j", quotes, on="symbol", emit="final")
    assert "the rows of 'j' are never late: leave lateness= out" in refused(
        lambda: windowed_rows(rows, lateness=1)
    )
    assert "have rows of the same events, of 'trades', and 'j' gives them later" in refused(
        lambda: rp.union("u", rows, trades.join_asof("k", quotes, on="symbol", emit="final"))
    )
    assert "put it before .distinct, .scan, .ask and joins" in refused(
        lambda: rows.flat_map("m", lambda row: [row], into=Trade)
    )
    assert "leave lateness= out" in refused(
        lambda: rows.join_asof("k", rows, on="symbol", suffix="_k", lateness=3, emit="final")
    )


def test_a_cluster_joins_sources_that_are_divided_by_the_keys() -> None:
    plan = prices().sink("out").plan()
    both = {"trades": ("symbol",), "quotes": ("symbol",)}
    need_one_division(plan, "a cluster")
    need_one_division(plan, "a cluster", both)
    (stage,) = stages_of(plan)
    assert (stage.key, stage.edge) == (("symbol",), None)
    with pytest.raises(PlanError, match="of quotes are divided by bid, and at-quote needs all of"):
        need_one_division(plan, "a cluster", both | {"quotes": ("bid",)})
    with pytest.raises(PlanError, match="nothing tells by which fields records of quotes are div"):
        need_one_division(plan, "a cluster", both | {"quotes": None})
    other = prices(on=None, left_on="symbol", right_on="name", named=True).sink("out").plan()
    need_one_division(other, "a cluster", both, is_one=True)
    with pytest.raises(PlanError, match="the sides of at-quote have other names for their keys"):
        need_one_division(other, "a cluster", both)


def test_a_key_in_a_partition_of_another_is_an_error_and_a_null_is_not() -> None:
    engine = Engine(prices().sink("out").plan(), 0, ["trades/0", "quotes/0"])
    engine.expect(Division(("symbol",), {"quotes/0": 0}, 2))
    fields = rp.schema_of(Quote).fields[:1]
    apart = {
        name: int(partition_numbers(records_of([{"symbol": name}], fields), ("symbol",), 2)[0])
        for name in "ABCDEF"
    }
    here, there = (next(name for name in apart if apart[name] == at) for at in (0, 1))
    read(engine, "quotes/0", (here, 1.0, 0, 3), (None, 1.0, 0, 3))
    with pytest.raises(
        InputError, match=f"the symbol '{there}' is in quotes/0, which is partition"
    ):
        read(engine, "quotes/0", (there, 1.0, 0, 3))


def test_the_plan_says_what_is_kept_on_both_sides() -> None:
    assert [one.text for one in keeping(prices().sink("out").plan())] == [
        "lateness 5ns; rows of 'trades' and 'quotes' until the watermarks of both are 5ns past "
        "them; of 'quotes' a key's last one before that for ever: it has no tolerance"
    ]
    plan = prices(strategy="nearest", tolerance="5s").sink("out").plan()
    assert "that of 'quotes' by 5s more" in next(keeping(plan)).text
    assert "join at-quote: on symbol, trades with quotes nearest within 5s" in plan.describe()


def test_state_is_kept_or_refused_after_a_change() -> None:
    engine = Engine(prices(tolerance=30).sink("out").plan())
    read(engine, "quotes", ("A", 1.0, 0, 12), ("A", 2.0, 0, 20), ("A", 3.0, 0, 50))
    read(engine, "trades", ("A", 1.0, 20))
    snapshot = engine.snapshot()
    options = {"on": "symbol", "lateness": 5, "emit": "final", "tolerance": 30}
    pipeline = Pipeline("prices")
    trades = pipeline.source("trades", Trade)
    quotes = pipeline.source("quotes", Quote, out_of_order=10)
    renamed = trades.join_asof("best", quotes, **options, suffix="_q").sink("out").plan()
    found = decide(renamed, snapshot)
    assert found.kept_outputs == ("out",)
    assert found.snapshot is not None
    again = Engine.restore(renamed, found.snapshot)
    for one in (engine, again):
        one.close()
        assert shown_by(one) == [("A", 20, 2.0)]
    for changed in ({"tolerance": 31}, {"allow_exact_matches": False}, {"how": "inner"}):
        other = prices(**{"tolerance": 30} | changed).sink("new").plan()
        with pytest.raises(ChangedPlanError, match="there are no rows for 'at-quote'"):
            decide(other, snapshot)
    with pytest.raises(SnapshotError):
        Engine.restore(prices(tolerance=31).sink("out").plan(), snapshot)


def test_joined_rows_survive_crashes() -> None:
    chance = random.Random(3)
    rows = lagging(chance, 24)
    how = {"strategy": "nearest", "tolerance": 8, "lateness": 3, "how": "left"}
    pipeline = joined({"on": "symbol"}, how, [shown, running], (0, 8))
    crash_test(pipeline, rows, seeds=range(2), every=SCATTERED, pairs=1)


STRATEGIES = [
    ("backward", True, None),
    ("backward", True, 40),
    ("backward", False, 40),
    ("forward", True, 40),
    ("forward", False, 60),
]


@pytest.mark.parametrize(("strategy", "exact", "tolerance"), STRATEGIES)
def test_rows_are_those_of_polars(strategy: Any, exact: bool, tolerance: int | None) -> None:
    polars = pytest.importorskip("polars")
    chance = random.Random(11)
    keys = [*"ABCDEF", None]
    quotes = [
        {"symbol": chance.choice(keys), "bid": float(at), "price": 0.0, "at": 2 * at // 3 * 3}
        for at in range(3000)
    ]
    trades = [
        {"symbol": chance.choice(keys), "price": float(at), "at": 10 * at + chance.randint(0, 40)}
        for at in range(600)
    ]
    late = [{**row, "at": row["at"] - chance.choice([0] * 9 + [30])} for row in quotes]
    options = {"strategy": strategy, "allow_exact_matches": exact, "tolerance": tolerance}
    engine = Engine(prices(out_of_order=50, **options, lateness=100).sink("out").plan())
    found: list[tuple[Any, ...]] = []
    for part in range(30):
        for source, record, rows in (("trades", Trade, trades), ("quotes", Quote, late)):
            size = len(rows) // 30
            batch = records_of(rows[part * size : (part + 1) * size], rp.schema_of(record).fields)
            engine.apply(source, batch, (part + 1) * size)
        if part == 29:
            engine.close()
        shown_rows = engine.stabilize().outputs["out"].to_pylist()
        found += [(row["price"], row["bid"]) for row in shown_rows]
    left = polars.DataFrame(trades).sort("at", maintain_order=True)
    right = polars.DataFrame(late).sort("at", maintain_order=True)
    expected = left.join_asof(right, on="at", by="symbol", **options).select("price", "bid")

    assert engine.counters.very_late == 0
    assert found == [tuple(row) for row in expected.rows()]
    assert sum(bid is not None for _, bid in found) > 300


def test_rows_are_those_of_duckdb() -> None:
    import duckdb

    chance = random.Random(12)
    quotes = [
        {"symbol": chance.choice("ABCD"), "bid": float(at), "price": 0.0, "at": 7 * at}
        for at in range(2000)
    ]
    trades = [
        {"symbol": chance.choice("ABCDE"), "price": float(at), "at": 20 * at} for at in range(600)
    ]
    engine = Engine(prices().sink("out").plan())
    trades_in = records_of(trades, rp.schema_of(Trade).fields)
    quotes_in = records_of(quotes, rp.schema_of(Quote).fields)
    engine.apply("trades", trades_in, 600)
    engine.apply("quotes", quotes_in, 2000)
    engine.close()
    rows = duckdb.sql(
        "select trades_in.symbol, trades_in.at, bid from trades_in asof left join quotes_in "
        "on trades_in.symbol = quotes_in.symbol and trades_in.at >= quotes_in.at order by 2"
    )

    assert shown_by(engine) == rows.fetchall()


@rp.record
class Rate:
    symbol: str
    bid: float | None
    gone: bool | None
    at: rp.Timestamp


def rated(**options: Any) -> Pipeline:
    """Return trades with the row that a table had at their time."""
    pipeline = Pipeline("rated")
    trades = pipeline.source("trades", Trade, out_of_order=2)
    rates = pipeline.table("rates", Rate, key="symbol", time="at", deleted="gone")
    options = {"on": "symbol", "lateness": 5, "emit": "final"} | options
    return trades.join_asof("at-rate", rates.versions("changes"), **options)


def test_a_deleted_version_matches_as_no_row() -> None:
    pipeline = rated()
    assert [field.name for field in pipeline.fields] == ["symbol", "price", "at", "bid", "at_right"]
    trades = [("trades", {"symbol": "A", "price": 1.0, "at": at}) for at in (9, 10, 19, 20, 30)]
    rates = [
        ("rates", {"symbol": "A", "bid": bid, "gone": bid is None, "at": at})
        for at, bid in ((10, 1.0), (20, None), (25, 3.0))
    ]
    engine = Engine(pipeline.sink("out").plan())
    for source, row in (*rates, *trades):
        fields = engine.plan.sources[source == "rates"].fields_taken
        engine.apply(source, records_of([row], fields), engine.cut[source] + 1)
    engine.close()

    assert [bid for _, _, bid in shown_by(engine)] == [None, 1.0, 1.0, None, 3.0]
    check_pipeline(rated(how="inner").sink("out"), [*trades, *rates], SIZES)
