"""Every family against its twin: adds, removes, merges, clears, dumps, in any order."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.model.aggregate.single import as_python, column_of
from ripple.model.schema.types import Bool, Float, Int64, String
from tests.examples import EXAMPLES, THINNED
from tests.model.aggregate.aggregate_twin import (
    any_floats,
    exact_sum,
    float_sum,
    int64s,
    order,
    quantile,
    root,
    rounded,
    slots,
    special_of,
    spread,
)

SLOTS = 3


def values_of(rows):
    return [row[0] for row in rows]


def in_time(rows):
    return sorted(rows, key=lambda row: (row[1], row[2]))


def mean_twin(rows):
    values = values_of(rows)
    special = special_of(values)
    return (
        None if not rows else rounded(exact_sum(values) / len(rows)) if special is None else special
    )


def vwap_twin(rows):
    size = exact_sum(row[3] for row in rows)
    products = [row[0] * float(row[3]) for row in rows]
    special = special_of(products)
    if not size:
        return None
    return rounded(exact_sum(products) / size) if special is None else special / float(size)


def spread_twin(rows, ddof, of=rounded):
    values = values_of(rows)
    if len(values) <= ddof or not values:
        return None
    return of(spread(values, ddof)) if special_of(values) is None else math.nan


def plus_zero(value):
    return value + 0.0 if isinstance(value, float) else value


def ranked(rows):
    return [plus_zero(v) for v in sorted(values_of(rows), key=order)]


def different(rows):
    return len(set(map(order, values_of(rows))))


def edge(rows, which):
    return in_time(rows)[which][0] if rows else None


def candle(rows):
    ends = ranked(rows) or [None]
    return {"open": edge(rows, 0), "high": ends[-1], "low": ends[0], "close": edge(rows, -1)}


def best_row(rows, last):
    ends = [order(value) for value in values_of(rows)]
    wanted = (max if last else min)(ends, default=None)
    best = in_time(row for row in rows if order(row[0]) == wanted)[:1]
    return {"y": best[0][3], "x": best[0][0]} if best else {"y": None, "x": None}


def sizes_by_value(rows, n):
    ranked = sorted(in_time(rows), key=lambda row: order(row[0]), reverse=True)
    return [row[3] for row in ranked[:n]]


def nearest(rows, share):
    return ranked(rows)[max(math.ceil(share * len(rows)) - 1, 0)] if rows else None


FLOAT, INT, TEXT, BOOL = (Float(),), (Int64(),), (String(),), (Bool(),)
ANY = (FLOAT, INT, TEXT, BOOL)
VALUE_AND_SIZE = tuple((of, Int64()) for (of,) in ANY)
VALUE_AND_ROW = tuple((of, Int64(), of) for (of,) in ANY)

# name: aggregate, input types to try, twin over rows (value, time_ns, offset, size)
FAMILIES = {
    "count": (ra.count(), ((),), len),
    "sum": (ra.sum("x"), (FLOAT,), lambda rows: float_sum(values_of(rows))),
    "mean": (ra.mean("x"), (FLOAT, INT), mean_twin),
    "vwap": (ra.vwap("x", "size"), ((Float(), Int64()),), vwap_twin),
    "variance": (ra.variance("x"), (FLOAT, INT), lambda rows: spread_twin(rows, 1)),
    "variance_pop": (ra.variance_pop("x"), (FLOAT, INT), lambda rows: spread_twin(rows, 0)),
    "stddev": (ra.stddev("x"), (FLOAT, INT), lambda rows: spread_twin(rows, 1, root)),
    "stddev_2": (ra.stddev("x", ddof=2), (FLOAT, INT), lambda rows: spread_twin(rows, 2, root)),
    "min": (ra.min("x"), ANY, lambda rows: ranked(rows)[0] if rows else None),
    "max": (ra.max("x"), ANY, lambda rows: ranked(rows)[-1] if rows else None),
    "top_k": (ra.top_k("x", 3), ANY, lambda rows: ranked(rows)[::-1][:3]),
    "count_distinct": (
        ra.count_distinct("x"),
        ANY,
        different,
    ),
    "first": (ra.first("x"), ANY, lambda rows: edge(rows, 0)),
    "last": (ra.last("x"), ANY, lambda rows: edge(rows, -1)),
    "ohlc": (ra.ohlc("x"), (FLOAT, INT), candle),
    "first_row": (ra.first_row("x"), ANY, lambda rows: edge(rows, 0)),
    "last_row": (ra.last_row("x"), ANY, lambda rows: edge(rows, -1)),
    "arg_max": (ra.arg_max("x", ["y", "x"]), VALUE_AND_ROW, lambda rows: best_row(rows, True)),
    "arg_min": (ra.arg_min("x", ["y", "x"]), VALUE_AND_ROW, lambda rows: best_row(rows, False)),
    "top_rows": (
        ra.top_rows(3, "x", "y"),
        VALUE_AND_SIZE,
        lambda rows: sizes_by_value(rows, 3),
    ),
    "median": (
        ra.median("x"),
        (FLOAT, INT),
        lambda rows: quantile(values_of(rows), Fraction(1, 2)) if rows else None,
    ),
    "percentile": (
        ra.percentile("x", 99.9),
        (FLOAT, INT),
        lambda rows: quantile(values_of(rows), Fraction(999, 1000)) if rows else None,
    ),
    "nearest": (
        ra.percentile("x", 30, method="nearest-rank"),
        (FLOAT, INT),
        lambda rows: nearest(rows, Fraction(30, 100)),
    ),
}
CASES = [
    pytest.param(aggregate, types, twin, id=f"{name}-{'-'.join(type(t).__name__ for t in types)}")
    for name, (aggregate, choices, twin) in FAMILIES.items()
    for types in choices
]

VALUES = {
    Float: st.one_of(any_floats, st.integers(-3, 3).map(float)),
    Int64: st.one_of(int64s, st.integers(-3, 3)),
    String: st.text(max_size=3),
    Bool: st.booleans(),
}


def rows_of(types):
    value = VALUES[type(types[0])] if types else st.none()
    # Offsets are drawn unique below, as they are in a log; times collide.
    return st.lists(st.tuples(value, st.integers(0, 3), st.integers(-9, 9)), max_size=16).map(
        lambda rows: [(v, t, offset, size) for offset, (v, t, size) in enumerate(rows)]
    )


def feed(act, aggregate, types, slot, rows):
    picks = [0, 3, 0][: len(types)]
    columns = [column_of(t, [row[k] for row in rows]) for t, k in zip(types, picks, strict=True)]
    if aggregate.ordered:
        columns += [np.array([row[k] for row in rows], np.int64) for k in (1, 2)]
    with np.errstate(all="ignore"):
        act(np.full(len(rows), slot, np.int64), *columns)


def read(bound, state, slot):
    found = {}
    for (suffix, _), (values, valid) in zip(bound.results, state.results(slots(slot)), strict=True):
        found[suffix] = as_python(values[0]) if valid is None or valid[0] else None
    return found[""] if list(found) == [""] else found


def dumped(state, slot):
    return {name: repr(array.to_pylist()) for name, array in state.dump(slots(slot)).items()}


def fresh(bound, count=SLOTS, retractable=True):
    state = bound.state(retractable=retractable)
    state.resize(count)
    return state


@pytest.mark.parametrize(("aggregate", "types", "twin"), CASES)
@settings(max_examples=6 * EXAMPLES // THINNED)
@given(data=st.data())
def test_incremental_equals_fresh_bitwise(aggregate, types, twin, data):
    rows = data.draw(rows_of(types))
    bound = aggregate.bind(types)
    state = fresh(bound)
    gone = data.draw(st.lists(st.sampled_from(rows), unique_by=id)) if rows else []
    kept = [row for row in rows if not any(row is other for other in gone)]
    cut = data.draw(st.integers(0, len(rows)))
    feed(state.add, aggregate, types, 0, data.draw(st.permutations(rows)))
    for row in data.draw(st.permutations(gone)):
        feed(state.remove, aggregate, types, 0, [row])
    assert repr(read(bound, state, 0)) == repr(twin(kept))

    straight = fresh(bound)
    feed(straight.add, aggregate, types, 2, kept)
    assert repr(read(bound, straight, 2)) == repr(twin(kept))
    assert dumped(state, 0) == dumped(straight, 2)

    merged = fresh(bound)
    feed(merged.add, aggregate, types, 0, kept[:cut])
    feed(merged.add, aggregate, types, 1, kept[cut:])
    merged.merge(slots(0), slots(1))
    assert dumped(merged, 0) == dumped(straight, 2)
    assert dumped(merged, 1) == dumped(fresh(bound), 1)

    loaded = fresh(bound)
    feed(loaded.add, aggregate, types, 1, rows)
    two = pa.concat_batches([pa.RecordBatch.from_pydict(straight.dump(slots(0, 2)))] * 2)
    loaded.load(slots(0, 1), {k: two.column(k).slice(1, 2).take([1, 0]) for k in two.schema.names})
    loaded.load(slots(1), {k: two.column(k).slice(1, 1) for k in two.schema.names})
    assert dumped(loaded, 1) == dumped(straight, 2)
    assert repr(read(bound, loaded, 1)) == repr(twin(kept))
    loaded.clear(slots(1))
    assert dumped(loaded, 1) == dumped(fresh(bound), 1)
    assert loaded.nbytes >= 0


def test_ordered_values_know_one_zero():
    bound = ra.median("x").bind(FLOAT)
    state = fresh(bound)
    state.add(slots(0, 0, 0, 1, 1, 1), np.array([0.0, -0.0, np.nan, -0.0, 0.0, np.nan]))
    assert repr([read(bound, state, slot) for slot in (0, 1)]) == "[0.0, 0.0]"


@pytest.mark.parametrize(("aggregate", "types", "twin"), CASES)
@settings(max_examples=6 * EXAMPLES // THINNED)
@given(data=st.data())
def test_append_only_states_read_the_same(aggregate, types, twin, data):
    rows = data.draw(rows_of(types))
    cut = data.draw(st.integers(0, len(rows)))
    bound = aggregate.bind(types)
    state = fresh(bound, retractable=False)
    feed(state.add, aggregate, types, 0, rows[cut:])
    feed(state.add, aggregate, types, 1, rows[:cut])
    other = fresh(bound, retractable=False)
    other.load(slots(1, 2), state.dump(slots(0, 1)))
    other.merge(slots(2), slots(1))
    assert repr(read(bound, other, 2)) == repr(twin(rows))
    assert dumped(other, 1) == dumped(fresh(bound, retractable=False), 1)


def test_append_only_states_are_small_and_refuse_to_retract():
    for aggregate in (ra.min("x"), ra.max("x")):
        state = fresh(aggregate.bind(FLOAT), 1, retractable=False)
        state.add(np.zeros(1000, np.int64), np.arange(1000.0))
        assert state.nbytes == 32
        with pytest.raises(ra.AggregateError, match="retractable=True"):
            state.remove(slots(0), np.zeros(1))


@pytest.mark.parametrize("of", [FLOAT, INT, TEXT, BOOL])
def test_removing_what_was_never_added_is_refused(of):
    for aggregate in (ra.min("x"), ra.last("x")):
        state = fresh(aggregate.bind(of))
        column = column_of(of[0], ["a" if of is TEXT else of is BOOL or 1])
        place = (slots(5), slots(6)) if aggregate.ordered else ()
        with pytest.raises(ra.AggregateError, match="was not added"):
            state.remove(slots(0), column, *place)


def test_fields_tell_apart_what_differs():
    family = [ra.percentile("x", 50), ra.percentile("x", 51), ra.top_k("x", 1), ra.top_k("x", 2)]
    family += [ra.stddev("x"), ra.stddev_pop("x"), ra.variance("x"), ra.median("x")]
    assert len({(a.name, dataclasses.astuple(a)) for a in family}) == len(family)
    assert ra.percentile("x", 50) == ra.percentile("x", 50.0)
    with pytest.warns(UserWarning, match=r"q=0.9 is 0.9 per cent: say q=90 for .*Decimal\('0.9'\)"):
        ninth = ra.percentile("x", 0.9)
    assert ninth == ra.percentile("x", Decimal("0.9"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ra.percentile("x", 101),
        lambda: ra.percentile("x", -1),
        lambda: ra.percentile("x", math.nan),
        lambda: ra.percentile("x", 0.12345678901234567),
        lambda: ra.percentile("x", 1e-300),
        lambda: ra.percentile("x", 50, method="guess"),
        lambda: ra.top_k("x", 0),
        lambda: ra.stddev("x", ddof=-1),
        lambda: ra.median("x").bind(TEXT),
        lambda: ra.ohlc("x").bind(TEXT),
    ],
)
def test_nonsense_is_refused_when_it_is_written(make):
    from ripple.core.errors import PlanError

    with pytest.raises(PlanError):
        make()


def test_percentile_of_many_places_is_still_exact():
    q = 12.3456789012345
    accumulator = ra.Accumulator(ra.percentile("x", q))
    for value in (1e300, -1e300, 1.0, 5e-324, 7.5):
        accumulator.add(value)
    wanted = quantile([1e300, -1e300, 1.0, 5e-324, 7.5], Fraction("0.123456789012345"))
    assert accumulator.result() == wanted


def test_percentiles_agree_with_numpy_to_rounding():
    rng = np.random.default_rng(3)
    values = rng.random(1001) * 100
    for q in (0, 1, 25, 50, 90, 99.9, 100):
        accumulator = ra.Accumulator(ra.percentile("x", q))
        for value in values.tolist():
            accumulator.add(value)
        assert accumulator.result() == pytest.approx(np.percentile(values, q), rel=1e-14)
