"""Return values of maps' and aggregates' functions: one rule for all paths."""

from __future__ import annotations

import collections
import enum
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.errors import NodeError
from ripple.engine.machine import Engine
from ripple.model.window import watermark
from ripple.testing import check_pipeline


class Level(enum.IntEnum):
    HIGH = 3


@rp.record(version=1)
class In:
    k: str
    t: rp.Timestamp


KINDS: dict[str, Any] = {"int": int, "float": float, "bool": bool, "text": str}


def _into(kind: str, *, nullable: bool = False) -> type:
    of = KINDS[kind] | None if nullable else KINDS[kind]
    return rp.record(type("Out", (), {"__annotations__": {"k": str, "v": of}}))


def _plan(function: Callable[[Any], Any], into: type, *, batch: bool) -> rp.Plan:
    mapped = rp.Pipeline("p").source("s", In).map("m", function, into=into, batch=batch)
    fold = mapped.partition("by-k", key="k").fold("f", v=rp.max("v"), n=rp.count())
    return fold.sink("out").plan()


def _events(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"k": ["a"] * rows, "t": pa.array(range(rows), pa.int64())})


def _run(plan: rp.Plan, rows: int = 1) -> tuple[list[Any], list[str]]:
    """Return the values shown, and the reasons for which rows were refused."""
    engine = Engine(plan)
    rejected = engine.apply("s", _events(rows), rows)
    assert {bad.step for bad in rejected} <= {"m"}
    shown = engine.stabilize().outputs["out"].to_pylist()
    engine.check_invariants()
    return [row["v"] for row in shown], [bad.reason for bad in rejected]


# Every way from a value that a user's function made to a column.
def _by_row(value: Any, into: type) -> rp.Plan:
    return _plan(lambda row: SimpleNamespace(k=row.k, v=value), into, batch=False)


def _by_list(value: Any, into: type) -> rp.Plan:
    return _plan(lambda d: {**d, "v": [value]}, into, batch=True)


def _by_objects(value: Any, into: type) -> rp.Plan:
    def function(d: dict[str, Any]) -> dict[str, Any]:
        made = np.empty(1, object)
        made[0] = value
        return {**d, "v": made}

    return _plan(function, into, batch=True)


def _by_result(value: Any, into: type) -> rp.Plan:
    return _plan_of_results(lambda row: SimpleNamespace(k=row.k, v=value), into)


def _plan_of_results(function: Callable[[Any], Any], into: type) -> rp.Plan:
    fold = rp.Pipeline("p").source("s", In).partition("by-k", key="k").fold("f", n=rp.count())
    return fold.map("m", function, into=into).sink("out").plan()


TAKEN = [
    ("int", 3, 3),
    ("int", np.int64(3), 3),
    ("int", np.int32(-3), -3),
    ("int", np.uint64(3), 3),
    ("int", Level.HIGH, 3),
    ("float", np.float32(1.5), 1.5),
    ("float", 3, 3.0),
    ("float", np.int64(3), 3.0),
    ("float", 1 << 60, 2.0**60),
    ("bool", np.True_, True),
    ("text", np.str_("a"), "a"),
]
REFUSED = [
    ("int", 1.5),
    ("int", 5.0),
    ("int", math.nan),
    ("int", "7"),
    ("int", True),
    ("int", 1 << 63),
    ("int", np.uint64(1 << 63)),
    ("int", np.timedelta64(1, "ns")),
    ("int", np.datetime64(1, "ns")),
    ("float", "7"),
    ("float", 1j),
    ("float", True),
    ("float", (1 << 53) + 1),
    ("float", 10**400),
    ("bool", 1),
    ("bool", "False"),
    ("text", 1),
    ("text", b"a"),
    ("text", "\ud800"),
]
BY = [_by_row, _by_list, _by_objects]


@pytest.mark.parametrize("by", [*BY, _by_result])
@pytest.mark.parametrize(("kind", "value", "expected"), TAKEN)
def test_a_value_that_loses_nothing_is_taken_on_every_path(
    kind: str, value: Any, expected: Any, by: Callable[..., rp.Plan]
) -> None:
    assert _run(by(value, _into(kind))) == ([expected], [])


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_a_value_that_would_change_is_a_dead_letter_on_every_path(
    kind: str, value: Any, by: Callable[..., rp.Plan]
) -> None:
    shown, reasons = _run(by(value, _into(kind)))
    assert shown == []
    assert len(reasons) == 1
    assert "the field 'v' must be" in reasons[0]
    reasons[0].encode()
    check_pipeline(by(value, _into(kind)), [{"k": "a", "t": 1}])


@pytest.mark.parametrize("by", BY)
def test_null_is_a_dead_letter_unless_the_field_may_be_null(by: Callable[..., rp.Plan]) -> None:
    assert _run(by(None, _into("int"))) == ([], ["the field 'v' is null"])
    assert _run(by(None, _into("int", nullable=True))) == ([None], [])


@pytest.mark.parametrize(
    ("kind", "array", "expected", "refused"),
    [
        ("float", np.array([1, 2], np.int8), 2.0, 0),
        ("float", np.array([1.0, 2.5], np.float32), 2.5, 0),
        ("float", np.array([7, (1 << 53) + 1]), 7.0, 1),
        ("int", np.array([7, 1 << 63], np.uint64), 7, 1),
        ("int", np.ma.array([7, 9], mask=[False, True]), 7, 1),
        ("int", [7, 9.0], 7, 1),
        ("int", pa.array([7, None]), 7, 1),
        ("text", np.array(["a", "b"]), "b", 0),
        ("text", ["a", "\ud800"], "a", 1),
    ],
)
def test_an_array_loses_only_the_rows_that_would_change(
    kind: str, array: Any, expected: Any, refused: int
) -> None:
    plan = _plan(lambda d: {**d, "v": array}, _into(kind), batch=True)
    shown, reasons = _run(plan, rows=2)
    assert (shown, len(reasons)) == ([expected], refused)


@pytest.mark.parametrize(
    ("kind", "made", "reason"),
    [
        ("int", lambda d: {**d, "v": d["t"] / 2}, "'v' must be an int, not an array of float64"),
        ("int", lambda d: {**d, "v": np.array([1.7, -2.9])}, "not an array of float64"),
        ("int", lambda d: {**d, "v": np.array(["7", "8"])}, "not an array of <U1"),
        ("int", lambda d: {**d, "v": np.zeros(2, "M8[D]")}, r"not an array of datetime64\[D\]"),
        ("float", lambda d: {**d, "v": np.array([1j, 2j])}, "not an array of complex128"),
        ("text", lambda d: {**d, "v": d["t"]}, "must be a text, not an array of int64"),
        ("bool", lambda d: {**d, "v": d["t"]}, "must be a bool, not an array of int64"),
        ("int", lambda d: {**d, "v": np.zeros((2, 1), int)}, "not one of 2 dimensions"),
        ("int", lambda d: {**d, "v": 5}, "'v' must be an array, not 5"),
        ("int", lambda d: {**d, "v": None}, "'v' must be an array, not None"),
        ("int", lambda d: {**d, "v": d["t"][:1]}, "'v' must have 2 values, not 1"),
        ("int", lambda d: d, "returned nothing for the field 'v'"),
        ("int", lambda _: None, "must return a dict of arrays by field, not None"),
        ("int", lambda _: 5, "must return a dict of arrays by field, not 5"),
        ("int", lambda d: d["t"], "must return a dict of arrays by field, not array"),
        ("int", lambda d: d["nope"], "raised KeyError: 'nope'"),
    ],
)
def test_a_batch_function_that_is_wrong_as_a_whole_is_an_error_naming_the_step(
    kind: str, made: Callable[[Any], Any], reason: str
) -> None:
    with pytest.raises(rp.NodeError, match=f"^map 'm': .*{reason}"):
        _run(_plan(made, _into(kind), batch=True), rows=2)


def _rescaled(d: dict[str, Any]) -> dict[str, Any]:
    d["t"] //= 10
    return {**d, "v": d["t"]}


def _renamed(d: dict[str, Any]) -> dict[str, Any]:
    d["k"][0] = "z"
    return {**d, "v": d["t"]}


@pytest.mark.parametrize("function", [_rescaled, _renamed])
def test_a_batch_function_cannot_change_event_times_or_the_callers_table(
    function: Callable[[Any], Any],
) -> None:
    engine = Engine(_plan(function, _into("int"), batch=True))
    batch = _events(3)
    with pytest.raises(rp.NodeError, match=r"map 'm': .*read-only.*change a copy, d\['x'\].copy"):
        engine.apply("s", batch, 3)
    assert batch.equals(_events(3))
    assert engine.watermark_ns in (watermark.NONE, 2)


def test_arrays_that_are_passed_on_unchanged_go_through_every_aggregate() -> None:
    folds = {
        **{f"{make.__name__}_v": make("v") for make in (rp.sum, rp.mean, rp.first, rp.ohlc)},
        **{f"{make.__name__}_v": make("v") for make in (rp.median, rp.stddev, rp.count_distinct)},
        "top": rp.top_k("v", 2),
        "weighted": rp.vwap("v", "v"),
    }
    mapped = rp.Pipeline("p").source("s", In, time="t")
    mapped = mapped.map("m", lambda d: {**d, "v": d["t"]}, into=_into("int"), batch=True)
    keyed = mapped.partition("by-k", key="k").window("w", rp.Tumbling(2))
    events = [{"k": "ab"[at % 2], "t": at} for at in range(9)]
    check_pipeline(keyed.fold("f", **folds).sink("out"), events, batch_sizes=(1, 4))


def test_a_batch_function_is_not_called_without_rows() -> None:
    """Which batches come to be empty behind a filter is no business of the function's."""
    calls = []

    def function(d: dict[str, Any]) -> dict[str, Any]:
        calls.append(len(d["t"]))
        return {**d, "v": np.array([int(t) for t in d["t"]])}

    mapped = rp.Pipeline("p").source("s", In).filter("later", rp.col("t") > 1)
    mapped = mapped.map("m", function, into=_into("int"), batch=True)
    plan = mapped.partition("by-k", key="k").fold("f", v=rp.max("v")).sink("out").plan()
    engine = Engine(plan)
    for at in range(3):
        engine.apply("s", _events(3).slice(at, 1), at + 1)
    assert engine.stabilize().outputs["out"].column("v").to_pylist() == [2]
    assert calls == [1]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda _: None, "a dict or an object with k, v, not None"),
        (lambda _: {"k": "a"}, "returned a dict without 'v'"),
        (lambda _: SimpleNamespace(v=1), "returned a SimpleNamespace without 'k'"),
        (lambda _: [("k", "a"), ("v", 1)], "a dict or an object with k, v, not list"),
        (lambda _: 1 // 0, "ZeroDivisionError"),
        (lambda _: (_ for _ in ()).throw(ValueError("\ud800")), "ValueError: \\ud800"),
    ],
)
def test_a_row_function_that_returns_no_row_refuses_its_record(
    function: Callable[[Any], Any], reason: str
) -> None:
    shown, (said,) = _run(_plan(function, _into("int"), batch=False))
    assert shown == []
    assert reason in said
    said.encode()


@pytest.mark.parametrize(("kind", "value"), [case for case in REFUSED if case[1] is not None])
def test_the_result_of_a_users_aggregate_is_held_to_its_type(kind: str, value: Any) -> None:
    aggregate = rp.custom(
        init=lambda: 0,
        add=lambda s: s,
        remove=lambda s: s,
        result=lambda _: value,
        type=KINDS[kind],
        name="mine",
    )
    accumulator = rp.Accumulator(aggregate)
    accumulator.add()
    with pytest.raises(rp.RippleError, match=r"mine\(\): the result must be"):
        accumulator.result()


@pytest.mark.parametrize(("kind", "value", "expected"), TAKEN)
def test_the_result_of_a_users_aggregate_may_be_of_numpy(
    kind: str, value: Any, expected: Any
) -> None:
    aggregate = rp.custom(
        init=lambda: 0, add=lambda s: s, result=lambda _: value, type=KINDS[kind], name="mine"
    )
    accumulator = rp.Accumulator(aggregate, retractable=False)
    accumulator.add()
    assert accumulator.result() == expected


def test_records_are_taken_by_the_engine_only_where_nothing_is_lost() -> None:
    plan = _plan(lambda d: {**d, "v": d["t"]}, _into("int"), batch=True)
    for times in (pa.array([3], pa.int8()), pa.array([3], pa.uint64())):
        engine = Engine(plan)
        engine.apply("s", pa.record_batch({"k": ["a"], "t": times}), 1)
        assert engine.stabilize().outputs["out"].column("v").to_pylist() == [3]
    for times in (["3"], [3.0], [True], pa.array([3], pa.timestamp("us"))):
        with pytest.raises(rp.InputError, match="the field 't' must be an int"):
            Engine(plan).apply("s", pa.record_batch({"k": ["a"], "t": pa.array(times)}), 1)


@pytest.mark.parametrize("make", [dict, collections.OrderedDict])
def test_a_function_of_a_row_may_return_a_dict_of_the_fields(make: Callable[..., Any]) -> None:
    fields = {"k": str, "items": int}  # which is an attribute of a dict, too
    into = rp.record(type("Out", (), {"__annotations__": fields}))
    mapped = rp.Pipeline("p").source("s", In).map("m", lambda r: make(k=r.k, items=3), into=into)
    fold = mapped.partition("by-k", key="k").fold("f", v=rp.max("items"), n=rp.count())
    plan = fold.sink("out").plan()
    assert _run(plan) == ([3], [])
    check_pipeline(plan, [{"k": "a", "t": 1}])


@rp.record(version=1)
class Texts:
    k: str
    other: str | None
    t: rp.Timestamp


@rp.record(version=1)
class TextsOut:
    k: str
    v: str


def _over_texts(function: Callable[[Any], Any]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the results of a batch map over texts after a filter, and the reasons for refusals."""
    rows = [("a", "x"), ("b", None), ("c", "dropped"), ("d", "é")]
    mapped = (
        rp.Pipeline("p")
        .source("s", Texts)
        .filter("kept", rp.col("k") != "c")
        .map("m", function, into=TextsOut, batch=True)
    )
    engine = Engine(mapped.sink("out").plan())
    columns = {"k": [k for k, _ in rows], "other": pa.array([o for _, o in rows], pa.string())}
    batch = pa.record_batch({**columns, "t": pa.array(range(4), pa.int64())})
    rejected = engine.apply("s", batch, 4)
    shown = engine.stabilize().outputs["out"].to_pylist()
    engine.check_invariants()
    return [(row["k"], row["v"]) for row in shown], [bad.reason for bad in rejected]


def test_texts_that_are_returned_as_they_were_given_are_those_of_the_rows() -> None:
    found, reasons = _over_texts(lambda d: {"k": d["k"], "v": d["other"]})
    assert found == [("a", "x"), ("d", "é")]
    assert reasons == ["the field 'v' is null"]
    assert _over_texts(lambda d: {"k": d["other"], "v": d["k"]})[0] == [("x", "a"), ("é", "d")]


def test_texts_of_arrow_are_checked_as_a_whole() -> None:
    texts = pa.array(["cut off", "x", None, "é"])
    found, reasons = _over_texts(lambda d: {"k": d["k"], "v": texts.slice(1)})
    assert found == [("a", "x"), ("d", "é")]
    assert reasons == ["the field 'v' is null"]
    for made in (texts.cast(pa.large_string()).slice(1), texts.dictionary_encode().slice(1)):
        assert _over_texts(lambda d, v=made: {"k": d["k"], "v": v})[0] == found
    with pytest.raises(NodeError, match="must have 3 values, not 4"):
        _over_texts(lambda d: {"k": d["k"], "v": texts})
    broken = pa.Array.from_buffers(
        pa.string(),
        3,
        [None, pa.array([0, 1, 2, 3], pa.int32()).buffers()[1], pa.py_buffer(b"\xff12")],
    )
    with pytest.raises(NodeError, match="not bytes beyond UTF-8"):
        _over_texts(lambda d: {"k": d["k"], "v": broken})
