"""As-of joins: against the reference, other readings, Polars and DuckDB."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.engine.machine import Engine
from ripple.model.pipeline.builder import Pipeline
from ripple.model.schema.columns import records_of
from ripple.testing import Marker, check_pipeline
from tests.engine.machine.finals import bars
from tests.engine.machine.interleaved import read_mixed
from tests.engine.machine.ticks import Tick, ticks
from tests.examples import EXAMPLES

SIZES = (1, 7, 1000)
FIELDS = rp.schema_of(Tick).fields

# Ways to join ticks with more of them: by keys with nulls, or by two.
JOINS = [
    {"on": "symbol"},
    {"on": "venue"},
    {"on": ["symbol", "venue"]},
    {"left_on": "symbol", "right_on": "venue"},
    {"on": "size"},
]


# Ways from joined rows to sinks, each with names of its own.
def shown(rows: Pipeline) -> Pipeline:
    return rows.sink("out")


def strict(rows: Pipeline) -> Pipeline:
    """Refuse rows, which are lost in all branches behind."""
    return rows.derive("d1", part=10 // (rp.col("size") - 3)).sink("parts")


def running(rows: Pipeline) -> Pipeline:
    keyed = rows.filter("g2", rp.col("size") > 0).partition("g2p", key="symbol")
    members = {"n": ra.count(), "matched": ra.count("price_right"), "last": ra.last("size")}
    return keyed.fold("counted", **members).sink("counted-out")


def windowed(rows: Pipeline) -> Pipeline:
    keyed = rows.partition("g3p", key="size").window("w3", rp.Session(60))
    return keyed.fold("gw", n=ra.count(), last=ra.last("price_right")).sink("w-out")


def again(rows: Pipeline) -> Pipeline:
    """Tell joined rows apart, and join them with themselves."""
    fewer = rows.distinct("fewer", "size", within=30)
    both = fewer.join_asof(
        "again", rows, on="size", allow_exact_matches=False, suffix="_2", emit="final"
    )
    return fewer.sink("fewer-out").also(both.sink("again-out"))


WAYS = [shown, strict, running, windowed, again]

spans = st.sampled_from([None, 0, 3, 40, 10**6])
latenesses = st.sampled_from([0, 20, 200])
joins = st.fixed_dictionaries(
    {
        "tolerance": spans,
        "lateness": latenesses,
        "allow_exact_matches": st.booleans(),
        "how": st.sampled_from(["left", "inner"]),
    }
)
chosen = st.lists(st.sampled_from(WAYS), min_size=1, unique=True)
sides = st.lists(st.sampled_from(["ticks", "more"]), min_size=60, max_size=60)


def joined(on: dict[str, Any], how: dict[str, Any], ways: list[Any]) -> Pipeline:
    """Return a pipeline that joins ticks with more of them."""
    pipeline = Pipeline("test")
    left = pipeline.source("ticks", Tick, out_of_order=10, reject_future=100_000)
    right = pipeline.source("more", Tick, out_of_order=30, reject_future=100_000)
    return ended(left.join_asof("j", right, **on, **how, emit="final"), ways, left)


def alone(on: dict[str, Any], how: dict[str, Any], ways: list[Any]) -> Pipeline:
    """Return a pipeline that joins ticks with some of themselves."""
    left = Pipeline("test").source("ticks", Tick, out_of_order=10, reject_future=100_000)
    right = left.filter("k", rp.col("size") > 1)
    return ended(left.join_asof("j", right, **on, **how, emit="final"), ways, left)


def mixed(on: dict[str, Any], how: dict[str, Any], ways: list[Any]) -> Pipeline:
    """Return a pipeline that joins rows of both sources, told apart, with final rows."""
    pipeline = Pipeline("test")
    one = pipeline.source("ticks", Tick, out_of_order=10, reject_future=100_000)
    other = pipeline.source("more", Tick, out_of_order=30, reject_future=100_000)
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


def ended(rows: Pipeline, ways: list[Any], base: Pipeline) -> Pipeline:
    first, *rest = (way(rows) for way in ways)
    for branch in rest:
        first = first.also(branch)
    late = base.partition("p0", key="symbol").window("w0", rp.Tumbling(40), lateness=5)
    return first.also(base.sink("all")).also(late.fold("f0", n=ra.count()).sink("f0-out"))


@settings(max_examples=16 * EXAMPLES)
@given(
    on=st.sampled_from(JOINS),
    how=joins,
    ways=chosen,
    make=st.sampled_from([joined, mixed]),
    happened=ticks(extreme=True),
    owners=sides,
    at=st.tuples(st.integers(0, 45), st.integers(0, 45)),
)
def test_joined_rows_equal_their_evaluation_from_scratch(
    *, on: Any, how: Any, ways: Any, make: Any, happened: Any, owners: Any, at: tuple[int, int]
) -> None:
    rows: list[Any] = list(zip(owners, happened, strict=False))
    rows.insert(min(at[0], len(rows)), Marker("more", 150))
    check_pipeline(make(on, how, ways), rows, SIZES, restarts=[min(at[1], len(rows))])


@settings(max_examples=6 * EXAMPLES)
@given(
    on=st.sampled_from(JOINS),
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


@settings(max_examples=10 * EXAMPLES)
@given(data=st.data(), how=joins, make=st.sampled_from([joined, mixed]), happened=ticks())
def test_a_cut_does_not_tell_how_its_inputs_interleaved(
    data: Any, how: Any, make: Any, happened: Any
) -> None:
    lanes: dict[str, list[Any]] = {"ticks": [], "more": []}
    for event in happened:
        lanes[data.draw(st.sampled_from(["ticks", "more"]))].append(event)
    pipeline = make(JOINS[0], how, WAYS)
    one, other = (read_mixed(pipeline, lanes, data.draw(st.integers())) for _ in range(2))

    assert one == other


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
    options = {"on": "symbol", "lateness": 5, "emit": "final"} | options
    return trades.join_asof("at-quote", quotes, **options)


def read(engine: Engine, source: str, *rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return what is shown after some more rows of a source."""
    record = Trade if source == "trades" else Quote
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
    for turn in range(40):
        start = turn * 200
        read(engine, "quotes", *((f"key-{start + at}", 1.0, 1.0, start + at) for at in range(200)))
        read(engine, "trades", *((f"key-{start + at}", 1.0, start + at) for at in range(200)))
        tables = engine.snapshot().tables.values()
        sizes.append(([table.num_rows for table in tables], engine.nbytes))

    assert sizes[-1][0] == sizes[5][0] == [16, 116]
    assert max(size for _, size in sizes[-15:]) <= max(size for _, size in sizes[:25])


def test_the_slower_side_decides_what_is_kept() -> None:
    engine = Engine(prices().sink("out").plan())
    read(engine, "quotes", *(("A", float(at), 0.0, at) for at in range(1000)))

    assert len(read(engine, "trades", ("A", 1.0, 10), ("A", 1.0, 20), ("A", 1.0, 30))) == 2
    (_, right) = engine.snapshot().tables.values()
    assert right.num_rows == 1000 - 24
