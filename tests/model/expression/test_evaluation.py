"""The machine and Arrow against plain Python, one row at a time, on random expressions."""

from __future__ import annotations

import itertools
import math
import operator
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.model.expression import Expr, coalesce, col, greatest, least, lit, when
from ripple.model.expression.bound import Values
from ripple.model.schema.types import List, Option, String
from ripple.testing.reference.expressions import Failed, evaluate
from tests.examples import EXAMPLES, THINNED
from tests.model.expression.strategies import FIELDS, KINDS, booleans, numbers, rows, strings

_ARROW = {float: pa.float64(), int: pa.int64(), bool: pa.bool_(), str: pa.string()}


def _columns(table: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: pa.array([row[name] for row in table], _ARROW[KINDS[name]]) for name in KINDS}


def _outcomes(values: Values) -> list[Any]:
    """Return each row's value, None for null, or Failed, floats as their bits."""
    plain = (
        values.values.tolist()
        if isinstance(values.values, np.ndarray)
        else values.values.to_pylist()
    )
    valid = [True] * len(plain) if values.valid is None else values.valid.tolist()
    found = [_bits(value) if ok else None for value, ok in zip(plain, valid, strict=True)]
    for row, reason in values.failed.items():
        assert found[row] is None, "a failed row has a value"
        found[row] = Failed(reason.split(" in ")[0])
    return found


def _bits(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return "nan" if math.isnan(value) else struct.pack("<d", value)


def _check(expr: Expr, table: list[dict[str, Any]]) -> None:
    found = _outcomes(expr.bind(FIELDS).evaluate(_columns(table), len(table)))
    assert found == [_bits(evaluate(expr, row, KINDS)) for row in table], repr(expr)


@settings(max_examples=36 * EXAMPLES // THINNED)
@given(numbers(3) | booleans(3), rows)
def test_numbers_and_bools_equal_plain_python(expr: Expr, table: list[dict[str, Any]]) -> None:
    _check(expr, table)


@settings(max_examples=19 * EXAMPLES // THINNED)
@given(strings(3) | booleans(2), rows)
def test_texts_equal_plain_python(expr: Expr, table: list[dict[str, Any]]) -> None:
    _check(expr, table)


@settings(max_examples=7 * EXAMPLES // THINNED)
@given(numbers(2) | booleans(2), rows, st.sampled_from([255, 256, 257, 700]))
def test_chunks_do_not_show(expr: Expr, table: list[dict[str, Any]], count: int) -> None:
    longer = [table[k % len(table)] for k in range(count)]
    few = _outcomes(expr.bind(FIELDS).evaluate(_columns(table), len(table)))
    many = _outcomes(expr.bind(FIELDS).evaluate(_columns(longer), count))
    assert many == [few[k % len(table)] for k in range(count)]


@settings(max_examples=28 * EXAMPLES // THINNED)
@given(numbers(2) | booleans(2), rows, st.data())
def test_slots_are_gathered_and_one_alone_is_computed_alike(
    expr: Expr, table: list[dict[str, Any]], data: st.DataObject
) -> None:
    bound = expr.bind(FIELDS)
    names = bound.machine_columns
    if not names:
        return
    filled = [{k: (0 if v is None else v) for k, v in row.items()} for row in table]
    dtypes = {float: np.float64, int: np.int64, bool: np.bool_}
    arrays = [np.array([row[name] for row in filled], dtypes[KINDS[name]]) for name in names]
    slots = np.array(
        data.draw(st.lists(st.integers(0, len(table) - 1), min_size=1, max_size=600)), np.int64
    )
    program = bound.program
    assert program is not None
    whole, whole_states = program.run(arrays, len(table))
    gathered, states = program.run_slots(arrays, slots)
    np.testing.assert_array_equal(gathered, whole[slots])
    if whole_states is not None or states is not None:
        everything = np.zeros(len(table), np.uint8) if whole_states is None else whole_states
        np.testing.assert_array_equal(
            everything[slots], np.zeros(len(slots), np.uint8) if states is None else states
        )
    assert program.run_each(arrays, slots).tobytes() == gathered.tobytes()  # -0.0 is not 0.0


FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    0.1,
    2.0**53,
    2.0**63,
    1e308,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
]
INTEGERS = [0, 1, -1, 2, 3, -7, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
BINARY: list[Any] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, least, greatest,
]  # fmt: skip
UNARY: list[Any] = [
    operator.neg, abs, Expr.sqrt, Expr.floor, Expr.ceil, Expr.round, Expr.is_nan, Expr.is_finite,
    Expr.is_null, lambda x: x.cast(int), lambda x: x.cast(float), lambda x: x.is_in([1, 2.5]),
    Expr.sign, Expr.truncate, lambda x: x.clip(-1, 2), lambda x: x.nullif(0), Expr.is_not_null,
    lambda x: coalesce(x, 7), lambda x: x.is_between(0, 2),
]  # fmt: skip


@pytest.mark.parametrize("operation", BINARY)
@pytest.mark.parametrize(("left", "right"), list(itertools.product("bj", repeat=2)))
def test_every_operation_on_every_pair_of_special_values(
    operation: Any, left: str, right: str
) -> None:
    special = {"b": [*FLOATS, None], "j": [*INTEGERS, None]}
    blank = {"a": 0.0, "b": 0.0, "i": 0, "j": 0, "p": False, "q": None, "s": "", "t": None}
    if left != right:
        pairs = list(itertools.product(special[left], special[right]))
        table = [{**blank, left: x, right: y} for x, y in pairs]
        _check(operation(col(left), col(right)), table)
        return
    # The field without nulls of the same type is the other operand.
    other = {"b": "a", "j": "i"}[left]
    pairs = list(itertools.product(special[left], special[left][:-1]))
    table = [{**blank, left: x, other: y} for x, y in pairs]
    _check(operation(col(left), col(other)), table)
    _check(operation(col(other), col(left)), table)


@pytest.mark.parametrize("operation", UNARY)
def test_every_function_of_every_special_value(operation: Any) -> None:
    blank = {"a": 0.0, "b": 0.0, "i": 0, "j": 0, "p": False, "q": None, "s": "", "t": None}
    _check(operation(col("b")), [{**blank, "b": x} for x in (*FLOATS, None)])
    _check(operation(col("j")), [{**blank, "j": x} for x in (*INTEGERS, None)])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 21, 39, 40, 62, 63])
def test_powers_fail_exactly_where_they_do_not_fit(exponent: int) -> None:
    bases = [0, 1, -1, 2, -2, 3, -3, 8, -8, 10**9, 3037000499, 3037000500, *INTEGERS]
    columns = {"j": [*bases, None]}
    expected = [p if -(2**63) <= (p := base**exponent) < 2**63 else None for base in bases]
    found = (col("j") ** exponent).bind(FIELDS).evaluate(columns)
    assert _outcomes(found)[:-1] == [
        Failed("integer overflow") if p is None else p for p in expected
    ]
    assert _outcomes(found)[-1] is None


@pytest.mark.parametrize("operation", [operator.and_, operator.or_, operator.eq, operator.ne])
def test_logic_of_true_false_null_and_failed(operation: Any) -> None:
    """``1 // i > 0`` is true for 1, false for -1, null for null and fails for 0."""
    first, second = (1 // col(name).fill_null(1) > 0 for name in ("i", "j"))
    nullable = when(col("q").is_null()).then(None).otherwise(first)
    blank = {"a": 0.0, "b": 0.0, "p": False, "s": "", "t": None}
    table = [
        {**blank, "i": i, "j": j, "q": q}
        for i, j, q in itertools.product([1, -1, 0], [1, -1, 0], [True, None])
    ]
    _check(operation(nullable, second), table)
    _check(operation(second, nullable), table)
    _check(~operation(nullable, second), table)


@settings(max_examples=14 * EXAMPLES // THINNED)
@given(st.data(), rows)
def test_shared_parts_stay_until_their_last_reader(
    data: st.DataObject, table: list[dict[str, Any]]
) -> None:
    parts = [col("a"), col("b"), col("a") + 1, col("b") * 2]
    for _ in range(12):
        apply = data.draw(st.sampled_from([operator.sub, operator.mul, least, greatest]))
        recent = st.sampled_from(parts[-6:])
        parts.append(apply(data.draw(recent), data.draw(recent)))
    _check(parts[-1] + parts[4] * parts[-2], table)


def test_a_part_used_early_and_late_keeps_its_register() -> None:
    part = col("a") * col("b")
    expr = (part + (col("a") + 1)) * ((col("b") - 2) * (col("a") - 3) + part)
    blank = {"i": 0, "j": 0, "p": False, "q": None, "s": "", "t": None}
    _check(expr, [{**blank, "a": 1.5, "b": 7.0}, {**blank, "a": -2.0, "b": 0.25}])


def test_overflow_fails_its_row_only() -> None:
    columns = {"i": np.array([1, 2**63 - 1, 3])}
    values = (col("i") + 1).bind(FIELDS).evaluate(columns)
    assert values.failed == {1: 'integer overflow in col("i") + 1'}
    assert values.values.tolist() == [2, 0, 4]
    assert values.valid is not None
    assert values.valid.tolist() == [True, False, True]


def test_a_guard_keeps_the_other_branch_from_failing() -> None:
    columns = {"i": np.array([0, 2])}
    guarded = when(col("i") != 0).then(10 // col("i")).otherwise(-1)
    assert guarded.bind(FIELDS).evaluate(columns).values.tolist() == [-1, 5]
    test = (col("i") != 0) & (10 // col("i") > 3)
    result = test.bind(FIELDS).evaluate(columns)
    assert result.values.tolist() == [False, True]
    assert not result.failed


def test_every_nan_has_the_same_bits() -> None:
    columns = {"a": np.array([0.0, np.inf, -1.0, np.nan, -np.nan])}
    for expr in (
        col("a") - col("a") + col("a") * 0 / 0,
        -col("a").sqrt(),
        least(col("a"), -col("a")),
    ):
        values = (expr / 0 * 0).bind(FIELDS).evaluate(columns).values
        assert set(values.view(np.int64).tolist()) == {0x7FF8000000000000}, repr(expr)


def test_large_integers_are_compared_with_floats_exactly() -> None:
    columns = {"i": np.array([2**53 + 1, 2**63 - 1]), "a": np.array([2.0**53, 2.0**63])}
    assert (col("i") > col("a")).bind(FIELDS).evaluate(columns).values.tolist() == [True, False]
    assert (col("i") == col("a")).bind(FIELDS).evaluate(columns).values.tolist() == [False, False]


def test_a_constant_needs_to_know_the_rows() -> None:
    bound = lit(3).bind(FIELDS)
    assert bound.evaluate({}, 2).values.tolist() == [3, 3]
    with pytest.raises(ValueError, match="rows"):
        bound.evaluate({})


def test_a_field_of_any_type_passes_through_and_is_tested_for_null() -> None:
    fields = {"tags": Option(List(String()))}
    column = pa.array([["a"], None, []])
    passed = col("tags").bind(fields).evaluate({"tags": column})
    assert passed.values is column
    assert passed.valid is not None
    assert passed.valid.tolist() == [True, False, True]
    assert col("tags").is_null().bind(fields).evaluate({"tags": column}).values.tolist() == [
        False,
        True,
        False,
    ]


def test_columns_come_in_every_form() -> None:
    bound = (col("j") + 1).bind(FIELDS)
    masked = Values(np.array([1, 99, 3]), np.array([True, False, True]))
    for column in (pa.array([0, 1, None, 3]).slice(1), [1, None, 3], masked):
        values = bound.evaluate({"j": column})
        assert _outcomes(values) == [2, None, 4]
    derived = bound.evaluate({"j": [1, None]})
    assert _outcomes((col("j") * 2).bind(FIELDS).evaluate({"j": derived})) == [4, None]
    text = (col("t") == "a").bind(FIELDS)
    masked_text = Values(pa.array(["a", "a"]), np.array([True, False]))
    for texts in (["a", None], pa.array(["a", None]).dictionary_encode(), masked_text):
        assert _outcomes(text.evaluate({"t": texts})) == [True, None]


def test_an_array_of_another_type_is_refused_by_the_machine() -> None:
    program = (col("a") + 1).bind(FIELDS).program
    assert program is not None
    with pytest.raises(TypeError, match="float32"):
        program.run([np.zeros(3, np.float32)], 3)
    with pytest.raises(ValueError, match="3 rows"):
        program.run([np.zeros(3)], 4)
    with pytest.raises(IndexError, match="slot 3"):
        program.run_slots([np.zeros(3)], np.array([0, 3]))
