"""The pairs of interval joins from their reading on: against the reference, and the final join."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import PlanError
from ripple.engine.machine import Engine
from ripple.engine.machine.engine import SnapshotError
from ripple.engine.operators.joins import pair_table_rows
from ripple.engine.operators.joins.eager_side import EagerSide
from ripple.engine.operators.joins.pair_table_rows import PairTableRows
from ripple.model.pipeline.builder import Pipeline
from ripple.model.schema.columns import records_of
from ripple.testing import Divergence, check_pipeline, crash_test
from tests.engine.machine.several import doubled
from tests.engine.machine.stream_ways import KEYS
from tests.engine.machine.test_asof import SIZES, lagging, sources
from tests.engine.machine.test_row_table import WAYS, check_finals, folded, shown
from tests.engine.machine.ticks import Tick
from tests.examples import EXAMPLES, SCATTERED, THINNED

WITHIN = [(0, 0), (-5, 5), (-40, 0), (0, 25), (3, 30), (-60, -10), (-3, 1)]


def ways_to_join(chance: random.Random) -> dict[str, Any]:
    """Return the arguments of a join."""
    return {
        "within": chance.choice(WITHIN),
        "lateness": chance.choice([0, 0, 3, 12]),
        "how": chance.choice(["inner", "left", "right", "full"]),
    }


def eager(on: dict[str, Any], how: dict[str, Any], way: Any, delays_ns: tuple[int, int]) -> Any:
    """Return a pipeline that joins ticks with more of them, at once."""
    left, right = sources(delays_ns)
    return way(left.join_interval("j", right, **on, **how, emit="eager")).also(left.sink("every"))


def behind(on: dict[str, Any], how: dict[str, Any], way: Any, delays_ns: tuple[int, int]) -> Any:
    """Return a pipeline that joins rows that other nodes gave, several of a record."""
    one, other = sources(delays_ns)
    both = rp.union("both", one, other.filter("kept", rp.col("size") > 0))
    fewer = both.distinct("once", ["symbol", "size"], within=5, lateness=20)
    first = other.join_interval(
        "first", one, on="symbol", within=(-9, 9), lateness=3, emit="final", suffix="_1"
    )
    left, right = (both.flat_map("m", doubled, into=Tick), first)
    if how["how"] in ("left", "full"):
        left, right = fewer, other
    return way(left.join_interval("j", right, **on, **how, emit="eager"))


def alone(on: dict[str, Any], how: dict[str, Any], way: Any, delays_ns: tuple[int, int]) -> Any:
    """Return a pipeline that joins several rows of a record with some of themselves."""
    one, other = sources(delays_ns)
    left = rp.union("both", one, other).flat_map("m", doubled, into=Tick)
    right = left.filter("some-right", rp.col("size") > 1)
    return way(left.join_interval("j", right, **on, **how, emit="eager"))


def finals(on: dict[str, Any], how: dict[str, Any], way: Any, delays_ns: tuple[int, int]) -> Any:
    """Return a pipeline that joins final rows of windows, on either side or on both.

    Folds show the pairs: the reference has other offsets of final rows.
    """
    del on, way
    one, other = sources(delays_ns)
    final = windowed(other).finals("final").map("named", as_named, into=Named)
    near = how | {"within": (-30, 30), "emit": "eager"}
    never_late = {name: near[name] for name in ("within", "how", "emit")}
    joins = [
        one.join_interval("j", final, on="symbol", **near),
        final.join_interval("of", one, on="symbol", **near),
        final.join_interval("twice", final, on="symbol", **never_late),
    ]
    first, *rest = (counted(f"n{at}", rows) for at, rows in enumerate(joins))
    return first.also(rest[0]).also(rest[1])


def windowed(rows: Pipeline) -> Pipeline:
    keyed = rows.partition("w-by", key="symbol").window("w", rp.Tumbling(20), lateness=5)
    return keyed.fold("bars", size=ra.sum("size"))


def counted(name: str, rows: Pipeline) -> Pipeline:
    """Fold rows by their sizes."""
    keyed = rows.derive(f"{name}-of", of=rp.col("size").fill_null(-1))
    by = keyed.partition(f"{name}-by", key="of")
    members = {"n": ra.count(), "matched": ra.count("size_right"), "most": ra.max("size_right")}
    return by.fold(name, **members).sink(f"{name}-out")


@rp.record(version=1)
class Named:
    symbol: str | None
    size: int
    price: float | None
    venue: str | None


def as_named(row: Any) -> Named:
    """Return a final row without the names of its window."""
    return Named(row.symbol, row.window_start_ns % 7, None, None)


MAKES = [eager, behind, alone, finals]


@pytest.mark.parametrize("seed", range(24 * EXAMPLES // THINNED))
def test_pairs_equal_their_evaluation_from_scratch(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(pair_table_rows, "_UNNEEDED_MAX", chance.choice([0, 10, 4096]))
    delays_ns = chance.choice([(0, 0), (0, 8), (8, 0)])
    make, way = chance.choice(MAKES), chance.choice(WAYS)
    pipeline = make(chance.choice(KEYS[:4]), ways_to_join(chance), way, delays_ns)
    check_pipeline(pipeline, lagging(chance, 40), SIZES, restarts=[chance.randint(0, 40)])


@pytest.mark.parametrize("seed", range(16 * EXAMPLES // THINNED))
def test_a_final_pair_is_that_of_the_final_join_and_interleavings_do_not_tell(seed: int) -> None:
    chance = random.Random(seed)
    how, on = ways_to_join(chance), chance.choice(KEYS[:4])
    left, right = sources((0, 8))
    at_once = left.join_interval("j", right, **on, **how, emit="eager").sink("rows")
    once = left.join_interval("k", right, **on, **how, emit="final").sink("once")
    check_finals(at_once.also(once), chance)


def engine_of(**how: Any) -> Engine:
    """Return an engine that joins ticks with more of them, within 5 before and after."""
    left, right = sources((0, 0))
    rows = left.join_interval("j", right, on="symbol", within=(-5, 5), emit="eager", **how)
    return Engine(rows.sink("out").plan())


def seen(engine: Engine, source: str, *rows: tuple[str | None, int, int]) -> list[Any]:
    """Return the rows after some more rows of a source, by their sizes on both sides."""
    fields = rp.schema_of(Tick).fields
    values = [
        {"symbol": symbol, "price": 1.0, "size": size, "venue": "X", "timestamp_ns": at}
        for symbol, size, at in rows
    ]
    engine.apply(source, records_of(values, fields), engine.cut[source] + len(rows))
    engine.stabilize()
    return table_of(engine)


def table_of(engine: Engine) -> list[Any]:
    found = engine.table("out").to_pylist()
    return sorted((row["symbol"], row["size"], row["size_right"]) for row in found)


def test_a_pair_is_there_at_once_and_a_row_without_a_partner_until_it_has_one() -> None:
    engine = engine_of(how="full")

    assert seen(engine, "ticks", ("A", 1, 20), ("B", 2, 30)) == [("A", 1, None), ("B", 2, None)]
    with_a = [("A", 1, 3), ("B", 2, None)]
    assert seen(engine, "more", ("A", 3, 25)) == with_a
    engine = Engine.restore(engine.plan, engine.snapshot())
    assert table_of(engine) == with_a
    more = sorted([*with_a, ("A", 1, 4)])
    assert seen(engine, "more", ("A", 4, 15)) == more
    found = engine.table("out").sort_by([("row_offset", "ascending")]).to_pylist()[-1]
    assert (found["row_input"], found["row_offset"], found["row_index"]) == ("ticks", 1, 0)
    assert (found["right_input"], found["right_offset"], found["right_index"]) == ("", 0, 0)
    engine.close()
    assert seen_at_end(engine) == []


def seen_at_end(engine: Engine) -> list[Any]:
    engine.stabilize()
    return table_of(engine)


def test_a_record_of_which_too_many_rows_would_be_made_shows_none() -> None:
    most = pair_table_rows.FLAT_ROWS_MAX
    engine = engine_of(how="left")
    assert seen(engine, "ticks", ("A", 1, 20), ("B", 2, 20))
    assert len(seen(engine, "more", *(("A", at, 20) for at in range(most)))) == most + 1
    assert seen(engine, "more", ("A", -1, 21)) == [("B", 2, None)]
    engine = Engine.restore(engine.plan, engine.snapshot())
    assert table_of(engine) == [("B", 2, None)]
    engine.close()
    engine.stabilize()
    assert engine.uncomputable["j"].count == 1


def test_a_record_shows_its_rows_once_they_are_fewer() -> None:
    """A row on the right is one of its record's rows until it has a partner."""
    most = pair_table_rows.FLAT_ROWS_MAX
    ticks = Pipeline("test").source("ticks", Tick)
    how = {"left_on": "symbol", "right_on": "venue", "within": (0, 0), "how": "full"}
    rows = ticks.join_interval("j", ticks, **how, emit="eager")
    engine = Engine(rows.filter("of", rp.col("symbol") == "A").sink("out").plan())

    def seen(symbol: str, venue: str, count: int) -> int:
        row = {"symbol": symbol, "price": 1.0, "size": 1, "venue": venue, "timestamp_ns": 5}
        batch = records_of([row] * count, rp.schema_of(Tick).fields)
        engine.apply("ticks", batch, engine.cut["ticks"] + count)
        engine.stabilize()
        return engine.table("out").num_rows

    assert seen("A", "Z", 1) == 1
    assert seen("Q", "A", most) == 0
    assert seen("Z", "Q", 1) == most


def test_names_of_its_key_are_refused() -> None:
    left, right = sources((0, 0))
    named = left.derive("d", right_offset=rp.lit(1))
    with pytest.raises(PlanError, match="join_interval 'j': 'right_offset' is the name of a field"):
        named.join_interval("j", right, on="symbol", within=(0, 1), emit="eager")


def test_pairs_and_their_corrections_survive_crashes() -> None:
    how = {"within": (-8, 8), "lateness": 3, "how": "full"}
    pipeline = eager({"on": "symbol"}, how, folded, (0, 8))
    crash_test(pipeline, lagging(random.Random(3), 24), seeds=range(2), every=SCATTERED, pairs=1)


NEAR, PAIR, SHOW = EagerSide.near, PairTableRows._pair, PairTableRows._show_alone


def _shown_alone_for_ever(self: Any, touched: Any, records: Any) -> None:
    some = zip(self._sides, touched, strict=True)
    SHOW(self, [(rows[side.counts[rows] == 0], was) for side, (rows, was) in some], records)


def _over_by_the_left(self: Any) -> None:
    self._final_ns = max(self._final_ns, self._join.left.watermark_ns)
    self._over = np.sort(self._ends.take_below(self._final_ns))


def _all_shown(self: Any, table: Any, watermark_ns: int) -> None:
    del table, watermark_ns
    for number, held in enumerate(self._join.dump()):
        for rows in held.combine_chunks().to_batches():
            self._take([rows, None] if number == 0 else [None, rows])


# Rules of which each is broken in turn: what, and how.
BROKEN: dict[str, tuple[Any, str, Any]] = {
    "no partner at the upper bound": (
        EagerSide,
        "near",
        lambda self, slots, times, lo_ns, hi_ns: NEAR(self, slots, times, lo_ns, hi_ns - 1),
    ),
    "a row without a partner is not taken back": (
        PairTableRows,
        "_show_alone",
        _shown_alone_for_ever,
    ),
    "earlier rows get no later partner": (
        PairTableRows,
        "_pair",
        lambda self, number, *near: PAIR(self, number, *near) if number == 0 else None,
    ),
    "partners are dropped once they are final": (
        PairTableRows,
        "_is_needed",
        lambda self, number, times: self._is_from(times),
    ),
    "rows are over by the watermark of one side": (PairTableRows, "_end", _over_by_the_left),
    "final rows are shown again after a restore": (PairTableRows, "load", _all_shown),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_table_without_one_of_its_rules_is_found(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_table_rows, "_UNNEEDED_MAX", 0)
    monkeypatch.setattr(*BROKEN[rule])
    for seed in range(100):
        chance = random.Random(seed)
        how = ways_to_join(chance) | {"within": (-40, 5)}
        pipeline = eager(KEYS[0], how, shown, chance.choice([(0, 0), (0, 8)]))
        try:
            check_pipeline(pipeline, lagging(chance, 40), [7], restarts=[20])
        except (Divergence, SnapshotError, AssertionError, IndexError):
            return
    pytest.fail("no seed finds it")
