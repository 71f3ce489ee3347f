"""Variance and deviation where rounding is hardest: cancellation, extremes, perfect squares."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.model.aggregate.moments import spread_of
from ripple.model.schema.types import Float, Int64
from tests.examples import EXAMPLES, SAMPLED
from tests.model.aggregate.aggregate_twin import (
    at,
    finite_floats,
    floats,
    root,
    rounded,
    slots,
    spread,
)

FLOAT = Float()


def read(aggregate, values, of=FLOAT):
    state = aggregate.bind((of,)).state(retractable=True)
    state.resize(1)
    state.add(at(0, values), np.array(values, np.int64 if of == Int64() else np.float64))
    return float(state.result(slots(0))[0][0])


CASES = {
    "cancelling": [1e9 + 1e-6, 1e9, 1e9 - 1e-6],
    "equal": [0.1] * 7,
    "huge": [1.7e308, -1.7e308, 1e308],
    "tiny": [5e-324, 0.0, 1e-323],
    "apart": [1e300, 1e-300],
    "prices": [100.01, 100.02, 99.98, 100.0, 101.25],
    "perfect": [1.0, 3.0],
    "symmetric": [-2.5, 2.5],
    "one": [3.0],
    "zeros": [0.0, -0.0, 0.0],
}


@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_spread_of_awkward_values_is_rounded_once(values):
    assert read(ra.variance_pop("x"), values) == rounded(spread(values, 0))
    assert read(ra.stddev_pop("x"), values) == root(spread(values, 0))
    if len(values) > 1:
        assert read(ra.variance("x"), values) == rounded(spread(values, 1))
        assert read(ra.stddev("x"), values) == root(spread(values, 1))


@settings(max_examples=48 * EXAMPLES // SAMPLED)
@given(
    st.lists(st.floats(1, 1000), min_size=2, max_size=20),
    st.integers(-500, 500),
    st.integers(0, 60),
)
def test_spread_at_every_scale_is_rounded_once(values, scale, offset):
    moved = [(v + 2.0**offset) * 2.0**scale for v in values]
    assert read(ra.variance("x"), moved) == rounded(spread(moved, 1))
    assert read(ra.stddev("x"), moved) == root(spread(moved, 1))


@settings(max_examples=48 * EXAMPLES // SAMPLED)
@given(st.lists(finite_floats, min_size=1, max_size=12), st.booleans())
def test_long_form_agrees_with_fractions(values, rooted):
    total = sum((Fraction(v) for v in values), Fraction(0))
    squares = sum((Fraction(v) ** 2 for v in values), Fraction(0))

    def scaled(value, bits):
        return int(value * 2**bits), -bits

    found = spread_of(scaled(total, 1100), scaled(squares, 2200), len(values), 0, rooted)
    assert found == (root if rooted else rounded)(spread(values, 0))


def test_many_equal_values_of_a_large_group_have_no_spread():
    values = np.full(100_000, 123.456)
    assert read(ra.stddev("x"), values) == 0.0
    assert read(ra.variance("x"), [*values.tolist(), 123.456 + 2**-40]) > 0


def test_integers_beyond_the_doubles_are_squared_exactly():
    values = [2**63 - 1, -(2**63), 2**53 + 1]
    assert read(ra.variance("x"), values, Int64()) == rounded(spread(values, 1))
    assert read(ra.stddev("x"), values, Int64()) == root(spread(values, 1))


def test_removals_ahead_of_their_adds_read_as_nan_and_come_back():
    state = ra.variance("x").bind((Float(),)).state(retractable=True)
    state.resize(1)
    state.add(slots(0, 0), floats([1.0, 2.0]))
    state.add(slots(0, 0), floats([0.0, 0.0]))
    state.remove(slots(0), floats([9.0]))
    assert np.isnan(state.result(slots(0))[0][0])
    state.add(slots(0), floats([9.0]))
    assert state.result(slots(0))[0][0] == rounded(spread([1.0, 2.0, 0.0, 0.0], 1))
