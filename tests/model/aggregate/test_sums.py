"""count, sum, mean, vwap: results, empty groups, types, dumps."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.core.errors import PlanError
from ripple.model.schema.types import Bool, Float, Int, Int64, Option, String
from tests.examples import EXAMPLES, SAMPLED
from tests.model.aggregate.aggregate_twin import (
    any_floats,
    at,
    exact_sum,
    finite_floats,
    floats,
    int64s,
    rounded,
    same,
    slots,
)

ZERO = slots(0)


def state_of(aggregate, *types, count=2, retractable=True):
    state = aggregate.bind(types).state(retractable=retractable)
    state.resize(count)
    return state


def value_of(state, slot=0):
    values, valid = state.result(slots(slot))
    return values[0] if valid is None or valid[0] else None


def integers(values):
    return np.array(values, np.int64)


@settings(max_examples=24 * EXAMPLES // SAMPLED)
@given(st.lists(int64s, max_size=30))
def test_integer_sum_is_exact_or_a_typed_error(values):
    state = state_of(ra.sum("x"), Int64())
    state.add(at(0, values), integers(values))
    if -(2**63) <= sum(values) < 2**63:
        assert value_of(state) == sum(values)
    else:
        with pytest.raises(ra.IntegerRangeError, match=str(sum(values))) as error:
            state.result(slots(1, 0))
        assert error.value.position == 1
    state.remove(at(0, values), integers(values))
    assert value_of(state) == 0


@settings(max_examples=24 * EXAMPLES // SAMPLED)
@given(st.lists(int64s, min_size=1, max_size=30))
def test_integer_mean_is_rounded_once(values):
    state = state_of(ra.mean("x"), Int())
    state.add(at(0, values), integers(values))
    assert value_of(state) == rounded(Fraction(sum(values), len(values)))


@settings(max_examples=24 * EXAMPLES // SAMPLED)
@given(st.lists(finite_floats, min_size=1, max_size=30))
def test_float_mean_is_rounded_once(values):
    state = state_of(ra.mean("x"), Option(Float()))
    state.add(at(0, values), floats(values))
    assert value_of(state) == rounded(exact_sum(values) / len(values))


@settings(max_examples=24 * EXAMPLES // SAMPLED)
@given(st.lists(st.tuples(finite_floats, st.integers(-1000, 2**40)), max_size=30))
def test_vwap_with_integer_sizes_is_rounded_once(pairs):
    state = state_of(ra.vwap("price", "size"), Float(), Int64())
    prices, sizes = floats([p for p, _ in pairs]), integers([s for _, s in pairs])
    with np.errstate(over="ignore"):
        products = (prices * sizes).tolist()
    state.add(at(0, pairs), prices, sizes)
    total = sum(s for _, s in pairs)
    if not total:
        assert value_of(state) is None
    elif all(math.isfinite(p) for p in products):
        assert value_of(state) == rounded(exact_sum(products) / total)
    state.remove(at(0, pairs), prices, sizes)
    assert value_of(state) is None


@settings(max_examples=24 * EXAMPLES // SAMPLED)
@given(st.lists(st.tuples(st.floats(0.01, 1e5), st.floats(1e-8, 1e5)), min_size=1, max_size=30))
def test_vwap_with_float_sizes_is_rounded_once(pairs):
    state = state_of(ra.vwap("price", "size"), Float(), Float())
    prices, sizes = floats([p for p, _ in pairs]), floats([s for _, s in pairs])
    state.add(at(0, pairs), prices, sizes)
    wanted = exact_sum(p * s for p, s in pairs) / exact_sum(s for _, s in pairs)
    assert value_of(state) == rounded(wanted)


def test_vwap_reads_specials_as_arithmetic_on_the_two_sums_does():
    state = state_of(ra.vwap("price", "size"), Float(), Float())
    state.add(slots(0, 1), floats([math.inf, 1.0]), floats([2.0, math.inf]))
    assert value_of(state) == math.inf
    assert math.isnan(value_of(state, 1))
    state.remove(slots(0), floats([math.inf]), floats([2.0]))
    assert value_of(state) is None


def test_empty_groups_count_and_sum_to_zero_and_have_no_mean():
    assert value_of(state_of(ra.count())) == 0
    assert value_of(state_of(ra.sum("x"), Int64())) == 0
    assert same(value_of(state_of(ra.sum("x"), Float())), 0.0)
    assert value_of(state_of(ra.mean("x"), Float())) is None


def test_count_ignores_the_values():
    state = state_of(ra.count("venue"), String())
    state.add(slots(0, 1, 0), pa.array(["a", "b", "a"]))
    state.remove(slots(0), pa.array(["a"]))
    state.merge(slots(1), slots(0))
    assert (value_of(state), value_of(state, 1)) == (0, 2)


def test_result_types_say_what_empty_groups_give():
    assert ra.count().bind(()).result == Int64()
    assert ra.sum("x").bind((Int(),)).result == Int64()
    assert ra.sum("x").bind((Float(),)).results == (("", Float()),)
    assert ra.vwap("p", "s").bind((Float(), Int64())).result == Option(Float())


@pytest.mark.parametrize("of", [String(), Bool(), Option(String())])
def test_sum_of_what_is_not_a_number_is_refused(of):
    with pytest.raises(PlanError, match=r"sum\(x\) needs a number, not"):
        ra.sum("x").bind((of,))
    with pytest.raises(PlanError, match="needs numbers, not float, "):
        ra.vwap("p", "s").bind((Float(), of))


def test_wrong_number_of_types_is_refused():
    with pytest.raises(PlanError, match="1 inputs, but 2 types"):
        ra.sum("x").bind((Float(), Float()))


CASES = [
    (ra.count(), ()),
    (ra.sum("x"), (Float(),)),
    (ra.sum("x"), (Int64(),)),
    (ra.mean("x"), (Float(),)),
    (ra.mean("x"), (Int64(),)),
    (ra.vwap("x", "y"), (Float(), Float())),
    (ra.vwap("x", "y"), (Float(), Int64())),
]


@pytest.mark.parametrize(("aggregate", "types"), CASES)
@settings(max_examples=6 * EXAMPLES // SAMPLED)
@given(data=st.data())
def test_dumps_depend_on_the_multiset_only_and_load_again(aggregate, types, data):
    rows = data.draw(st.lists(st.tuples(any_floats, int64s), max_size=12))
    order = data.draw(st.permutations(range(len(rows))))

    def columns(indexes):
        picked = [rows[i] for i in indexes]
        both = [
            floats([f for f, _ in picked])
            if isinstance(t, Float)
            else integers([n for _, n in picked])
            for t in types
        ]
        return at(0, picked), *both

    one, two = state_of(aggregate, *types), state_of(aggregate, *types)
    with np.errstate(all="ignore"):
        one.add(*columns(range(len(rows))))
        two.add(*columns(order))
        two.add(*columns(order))
        two.remove(*columns(range(len(rows))))
    dump = one.dump(ZERO)
    assert {k: v.to_pylist() for k, v in dump.items()} == {
        k: v.to_pylist() for k, v in two.dump(ZERO).items()
    }
    batch = pa.RecordBatch.from_pydict(dump)  # through a slice, as out of a checkpoint
    doubled = pa.concat_batches([batch, batch])
    three = state_of(aggregate, *types)
    three.load(slots(1), {k: doubled.column(k).slice(1) for k in dump})
    assert [v.to_pylist() for v in three.dump(slots(1)).values()] == [
        v.to_pylist() for v in dump.values()
    ]


def test_loading_something_else_is_a_state_error():
    dump = state_of(ra.count()).dump(ZERO)
    with pytest.raises(ra.StateError, match="sum"):
        state_of(ra.sum("x"), Float()).load(ZERO, dump)
    with pytest.raises(ra.StateError, match="nulls"):
        state_of(ra.count()).load(ZERO, {"count": pa.array([None], pa.int64())})
    with pytest.raises(ra.StateError):
        state_of(ra.count()).load(slots(0, 1), dump)
    with pytest.raises(ra.StateError):
        state_of(ra.count()).load(ZERO, {"count": pa.array(["x"])})


def test_vwap_of_two_thousand_keys_costs_below_a_hundred_bytes_a_key():
    state = state_of(ra.vwap("price", "size"), Float(), Int64(), count=2000)
    assert state.nbytes == 2000 * 56
