"""Users' own aggregates, the check of their remove, and single accumulators."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import PlanError, SchemaError
from ripple.model.aggregate.portable import of_text, to_text
from ripple.model.schema.types import Date, DateTime, Float, Int64, Option, String
from tests.examples import EXAMPLES
from tests.model.aggregate.aggregate_twin import floats, slots


def exact_total(**changes):
    functions = {
        "init": lambda: Fraction(0),
        "add": lambda total, x: total + Fraction(x),
        "remove": lambda total, x: total - Fraction(x),
        "merge": lambda one, other: one + other,
        "result": float,
        "type": float,
        "name": "exact_total",
    }
    return ra.custom("x", **(functions | changes))


def test_custom_aggregate_adds_removes_merges_and_survives_a_dump():
    state = exact_total().bind((Float(),)).state(retractable=True)
    state.resize(2)
    state.add(slots(0, 1, 0), floats([1e17, 1.0, 2.0]))
    state.remove(slots(0), floats([1e17]))
    other = exact_total().bind((Float(),)).state(retractable=True)
    other.resize(2)
    other.load(slots(0, 1), state.dump(slots(0, 1)))
    other.merge(slots(0), slots(1))
    values, valid = other.result(slots(0, 1))
    assert values.tolist() == [3.0, 0.0]
    assert valid is None
    other.clear(slots(0))
    assert other.result(slots(0))[0][0] == 0.0


def test_custom_result_of_none_needs_an_option():
    longest = {
        "init": lambda: (),
        "add": lambda words, word: (*words, word),
        "result": lambda words: max(words, key=len, default=None),
        "name": "longest",
    }
    state = (
        ra.custom("w", **longest, type=Option(String())).bind((String(),)).state(retractable=False)
    )
    state.resize(2)
    state.add(slots(1, 1), pa.array(["a", "bcd"]))
    values, valid = state.result(slots(0, 1))
    assert (values[1], valid.tolist()) == ("bcd", [False, True])
    strict = ra.custom("w", **longest, type=str).bind((String(),)).state(retractable=False)
    strict.resize(1)
    with pytest.raises(ra.AggregateError, match="the result must be a text, not None"):
        strict.result(slots(0))


def test_missing_function_of_a_custom_aggregate_is_named():
    bound = exact_total(remove=None, merge=None).bind((Float(),))
    with pytest.raises(PlanError, match=r"exact_total\(x\) cannot retract: give it remove="):
        bound.state(retractable=True)
    state = bound.state(retractable=False)
    state.resize(2)
    with pytest.raises(ra.AggregateError, match="merge="):
        state.merge(slots(0), slots(1))
    with pytest.raises(ra.AggregateError, match="no remove="):
        state.remove(slots(0), floats([1.0]))
    with pytest.raises(
        PlanError, match="type must be bool, int, float, str, date, datetime, UUID, a decimal"
    ):
        exact_total(type=set)


def test_error_in_a_users_function_shows_the_call():
    state = exact_total().bind((Float(),)).state(retractable=True)
    state.resize(1)
    with pytest.raises(ra.AggregateError, match=r"add\(Fraction\(0, 1\), nan\) raised ValueError"):
        state.add(slots(0), floats([math.nan]))


def test_check_inverse_accepts_an_exact_remove():
    assert ra.check_inverse(exact_total(), [0.1, 1e17, -1e17, 3.0]) is None


def test_check_inverse_finds_the_smallest_counterexample_of_a_float_sum():
    drifting = ra.custom(
        "x",
        init=lambda: 0.0,
        add=lambda s, x: s + x,
        remove=lambda s, x: s - x,
        result=lambda s: s,
        type=float,
    )
    with pytest.raises(ra.InverseError) as error:
        ra.check_inverse(drifting, [1.0, 2.0, 1e17, 5.0])
    message = str(error.value)
    assert message.count("add(") == 3  # two before, one fresh
    assert message.count("remove(1e+17)") == 1
    with pytest.raises(ra.InverseError) as again:
        ra.check_inverse(drifting, [1.0, 2.0, 1e17, 5.0])
    assert str(again.value) == message


def test_check_inverse_finds_a_maximum_that_forgets():
    forgetful = ra.custom(
        "x",
        init=lambda: 0,
        add=max,
        remove=lambda best, x: 0 if x == best else best,
        result=lambda best: best,
        type=int,
        name="forgetful",
    )
    with pytest.raises(ra.InverseError, match=r"forgetful\(x\): after .* the result is 0, but"):
        ra.check_inverse(forgetful, [3, 1, 2])


def test_check_inverse_reports_functions_that_raise():
    broken = exact_total(remove=lambda total, x: total - 1 / x)
    with pytest.raises(ra.InverseError, match="ZeroDivisionError"):
        ra.check_inverse(broken, [0.0])


BUILT_IN = [
    ra.sum("x"), ra.mean("x"), ra.variance("x"), ra.stddev_pop("x"), ra.min("x"), ra.max("x"),
    ra.first("x"), ra.last("x"), ra.ohlc("x"), ra.median("x"), ra.percentile("x", 12.5),
    ra.top_k("x", 2), ra.count_distinct("x"), ra.count("x"),
]  # fmt: skip


@pytest.mark.parametrize("aggregate", BUILT_IN, ids=str)
def test_every_built_in_aggregate_passes_the_check_that_users_run(aggregate):
    awkward = [0.1, 1e17, -1e17, math.nan, math.inf, -math.inf, 5e-324, 1e308, 1e308, -0.0, 0.1]
    ra.check_inverse(aggregate, awkward, rounds=60)


def test_accumulator_takes_python_values():
    words = ra.Accumulator(ra.max("w"), (String(),))
    words.add("a")
    words.add("b")
    words.remove("b")
    assert words.result() == "a"
    words.clear()
    assert words.result() is None
    price = ra.Accumulator(ra.vwap("price", "size"), (Float(), Int64()))
    price.add(10.0, 3)
    price.add(20.0, 1)
    assert price.result() == 12.5
    last = ra.Accumulator(ra.last("x"))
    last.add(1.0, 5, 0)
    with pytest.raises(SchemaError, match=r"expected \(float, time_ns, offset\)"):
        last.add(1.0)


plain = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(),
        st.fractions(), st.decimals(allow_nan=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner, inner), st.dictionaries(st.text(), inner),
        st.frozensets(st.integers()), st.sets(st.text()),
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=24 * EXAMPLES)
@given(plain)
def test_portable_values_read_back_equal_in_value_and_type(value):
    assert repr(of_text(to_text(value))) == repr(value) or of_text(to_text(value)) == value
    assert to_text(of_text(to_text(value))) == to_text(value)


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), [{"a": float("inf")}], "x\ud800\\"])
def test_portable_text_is_strict_json_in_utf8(value):
    def refuse(constant):
        raise ValueError(constant)

    text = to_text(value)
    json.loads(text.encode(), parse_constant=refuse)
    assert repr(of_text(text)) == repr(value)
    assert repr(of_text(json.dumps([float("nan")]))) == "[nan]"  # as it was written once


def test_equal_dicts_and_sets_have_equal_text():
    assert to_text({"a": 1, "b": 2}) == to_text({"b": 2, "a": 1})
    assert to_text({1, 64, 2}) == to_text({64, 2, 1})


def test_state_that_no_checkpoint_can_keep_is_refused():
    with pytest.raises(ra.AggregateError, match="holds a ndarray"):
        to_text([np.zeros(1)])
    for text in ("{", '{"class": 1}', '{"Fraction": "1/0"}', '{"a": 1, "b": 2}', "[" * 100_000):
        with pytest.raises(ra.StateError):
            of_text(text)
    assert of_text(to_text(Decimal("1.10"))) == Decimal("1.10")


def test_dates_and_times_are_kept_and_returned():
    day = dt.date(2026, 1, 31)
    at = ra.custom(
        "t", init=list, add=lambda s, x: [*s, x], result=lambda s: s[-1], type=dt.datetime
    )
    state = at.bind((DateTime(),)).state(retractable=False)
    state.resize(1)
    state.add(slots(0), np.array([1_769_850_000_000_000_007]))
    (time,) = of_text(to_text(state._states[0]))
    assert (time, time.nanosecond) == (dt.datetime(2026, 1, 31, 9, tzinfo=dt.UTC), 7)
    assert of_text(to_text({day: (time.replace(microsecond=1),)}))[day][0].microsecond == 1
    assert state.results(slots(0))[0][0].tolist() == [1_769_850_000_000_000_007]
    with pytest.raises(ra.AggregateError, match="datetime in UTC"):
        to_text(dt.datetime(2026, 1, 31, tzinfo=dt.timezone(dt.timedelta(hours=1))))


@pytest.mark.parametrize(
    ("given", "of"),
    [
        (dt.date, Date()),
        (Annotated[Decimal, rp.Decimal(12, 4)], rp.Decimal(12, 4)),
        (rp.Decimal(12, 4), rp.Decimal(12, 4)),
    ],
)
def test_a_result_may_have_a_type_of_python(given, of):
    assert exact_total(type=given).of == of
