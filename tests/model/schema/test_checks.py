"""Checks of a record class are the same in every library's notation."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any

import annotated_types as at
import msgspec
import numpy as np
import pyarrow as pa
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripple as rp
from ripple.core.errors import PlanError, SchemaError
from ripple.model.records import checks_of
from ripple.model.schema import Checks, Field, Float, Int, Option, Schema, String, fingerprint
from ripple.model.schema.failing import Judge


@rp.record
class Ours:
    symbol: str = rp.field(min_length=1, max_length=8)
    price: float | None = rp.field(finite=True, ge=0)
    size: int = rp.field(gt=0, lt=100, default=1)
    note: str = ""


@rp.record
class Annotations:
    symbol: Annotated[str, at.Len(1, 8)]
    price: Annotated[at.IsFinite[float] | None, at.Ge(0)]
    size: Annotated[int, at.Interval(gt=0, lt=100)] = 1
    note: str = ""


class Struct(msgspec.Struct):
    symbol: Annotated[str, msgspec.Meta(min_length=1, max_length=8)]
    price: Annotated[float, rp.schema.Checks(finite=True), msgspec.Meta(ge=0)] | None
    size: Annotated[int, msgspec.Meta(gt=0, lt=100, description="of a lot")] = 1
    note: str = ""


class Model(pydantic.BaseModel):
    symbol: Annotated[str, pydantic.StringConstraints(min_length=1, max_length=8)]
    price: pydantic.NonNegativeFloat | None = pydantic.Field(allow_inf_nan=False)
    size: pydantic.PositiveInt = pydantic.Field(1, lt=100, strict=True)
    note: str = ""


@dataclasses.dataclass
class Plain:
    symbol: str = rp.field(min_length=1, max_length=8)
    price: Annotated[float | None, pydantic.Field(ge=0, allow_inf_nan=False)] = None
    size: int = rp.field(gt=0, lt=100, default=1)
    note: str = rp.field(default="")


@pytest.mark.parametrize("cls", [Ours, Annotations, Struct, Model, Plain])
def test_four_libraries_declare_the_same_checks(cls: type) -> None:
    assert checks_of(cls) == {
        "symbol": Checks(min_length=1, max_length=8),
        "price": Checks(finite=True, ge=0),
        "size": Checks(gt=0, lt=100),
    }


def test_checks_are_no_part_of_the_schema() -> None:
    @rp.record(name="ours")
    class Unchecked:
        symbol: str
        price: float | None
        size: int
        note: str

    assert rp.schema_of(Ours) == rp.schema_of(Unchecked)
    assert fingerprint(rp.schema_of(Ours)) == fingerprint(rp.schema_of(Unchecked))
    assert Ours("", -1.0, -5) == Ours("", -1.0, -5)  # an instance is not checked


def declared(annotation: Any) -> type:
    return dataclasses.make_dataclass("Odd", [("x", annotation)])


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (Annotated[int, at.MultipleOf(2)], "Odd declares x: multiple_of=2, which sources cannot"),
        (Annotated[str, msgspec.Meta(pattern="a+")], r"declares x: pattern='a\+'.*rp.schema_of"),
        (Annotated[str, pydantic.StringConstraints(to_lower=True)], "to_lower=True"),
        (Annotated[str, pydantic.Field(pattern="a")], "pattern='a'"),
        (Annotated[int, pydantic.AfterValidator(abs)], "func=<built-in function abs>"),
        (at.LowerCase[str], "func=<method 'islower'"),
        (Annotated[int, at.Gt(1), at.Gt(2)], "Odd.x: gt=1 and gt=2 are both declared"),
        (Annotated[int, at.Gt(1), at.Ge(2)], "Odd.x: gt and ge are bounds from the same side"),
    ],
)
def test_constraint_that_no_source_would_heed_is_refused(annotation: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        rp.Pipeline("p").source("s", declared(annotation))
    rp.Pipeline("p").source("s", rp.schema_of(declared(annotation)))


def test_validators_of_a_model_are_refused_and_serializers_are_not() -> None:
    class Validated(pydantic.BaseModel):
        x: int

        @pydantic.field_validator("x")
        @classmethod
        def is_even(cls, x: int) -> int:
            return x

    class Serialized(pydantic.BaseModel):
        x: Annotated[int, pydantic.PlainSerializer(str)]

    with pytest.raises(SchemaError, match=r"Validated declares is_even\(\), which sources cannot"):
        checks_of(Validated)
    assert checks_of(Serialized) == {}


@pytest.mark.parametrize(
    ("given_checks", "message"),
    [
        ({"gt": True}, "gt is True, but a bound is a finite number"),
        ({"le": math.nan}, "le is nan"),
        ({"ge": "1"}, "ge is '1'"),
        ({"lt": 1, "le": 1}, "lt and le are bounds from the same side"),
        ({"finite": 1}, "finite is 1"),
        ({"min_length": -1}, "min_length is -1, but a length is a whole number"),
        ({"max_length": 1.5}, "max_length is 1.5"),
    ],
)
def test_invalid_check_is_refused_where_it_is_written(
    given_checks: dict[str, Any], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        rp.field(**given_checks)


@pytest.mark.parametrize(
    ("kind", "given_checks", "message"),
    [
        (Int(), {"finite": True}, "field 'x' is Int, but finite is a check of floats"),
        (String(), {"gt": 0}, "field 'x' is String, but gt is a check of numbers"),
        (Option(Float()), {"min_length": 1}, "min_length is a check of text"),
        (Int(), {"ge": 0.5}, "is Int, which cannot be 0.5: choose another bound"),
        (Int(), {"lt": 1 << 63}, "which cannot be 9223372036854775808"),
        (Float(), {"lt": (1 << 53) + 1}, "is Float, which cannot be 9007199254740993"),
        (Float(), {"lt": 10**400}, "is Float, which cannot be 1000"),
        (Int(), {"gt": 1, "lt": 2}, "no value of the field 'x' passes gt=1, lt=2"),
        (String(), {"min_length": 2, "max_length": 1}, "no value"),
    ],
)
def test_checks_that_do_not_fit_the_field_are_refused(
    kind: Any, given_checks: dict[str, Any], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        Checks(**given_checks).fitted(Field("x", kind))


def test_pipeline_is_refused_when_a_check_does_not_fit() -> None:
    @rp.record
    class Wrong:
        price: int = rp.field(finite=True)

    with pytest.raises(SchemaError, match="field 'price' is Int, but finite is a check of floats"):
        rp.Pipeline("p").source("s", Wrong)
    with pytest.raises(PlanError, match="reject_future needs an event time"):
        rp.Pipeline("p").source("s", rp.schema_of(Wrong), reject_future="1d")


@pytest.mark.parametrize(
    ("checks", "words"),
    [
        (Checks(gt=0), "positive"),
        (Checks(gt=5), "greater than 5"),
        (Checks(ge=0), "at least 0"),
        (Checks(lt=5), "less than 5"),
        (Checks(le=5), "at most 5"),
        (Checks(ge=0, lt=5), "in [0, 5)"),
        (Checks(gt=0, le=5), "in (0, 5]"),
    ],
)
def test_range_in_words(checks: Checks, words: str) -> None:
    assert checks.range_words == words
    assert checks.is_bounded


NUMBERS = st.integers(-3, 3) | st.sampled_from([-(1 << 63), (1 << 63) - 1])
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 5e-324, 1.0, math.nextafter(1.0, 2.0)])
BOUNDS = st.none() | st.tuples(st.booleans(), st.integers(-2, 2))


def checks_from(low: Any, high: Any, kind: Any) -> Checks | None:
    given: dict[str, Any] = {}
    if low is not None:
        given["gt" if low[0] else "ge"] = low[1]
    if high is not None:
        given["lt" if high[0] else "le"] = high[1]
    try:
        return Checks(**given).fitted(Field("x", kind))
    except SchemaError:
        return None


@given(
    st.lists(st.none() | NUMBERS), st.lists(st.none() | FLOATS), BOUNDS, BOUNDS, st.integers(0, 3)
)
def test_columns_of_numbers_fail_as_their_values_do(
    ints: list[int | None], floats: list[float | None], low: Any, high: Any, start: int
) -> None:
    for values, kind in ((ints, Int()), (floats, Float())):
        checks = checks_from(low, high, kind)
        if checks is None or not checks.is_bounded:
            continue
        found = np.zeros(len(values[start:]), bool)
        column = pa.array(values, pa.int64() if kind == Int() else pa.float64())[start:]
        for reason, failed in Judge(checks).failing(column):
            assert reason == f"not {checks.range_words}"
            found |= failed
        expected = [
            value is not None
            and not (
                (checks.gt is None or value > checks.gt)
                and (checks.ge is None or value >= checks.ge)
                and (checks.lt is None or value < checks.lt)
                and (checks.le is None or value <= checks.le)
            )
            for value in values[start:]
        ]
        assert found.tolist() == expected


@given(
    st.lists(st.none() | st.text("aé€😀", max_size=5)),
    st.none() | st.integers(0, 3),
    st.none() | st.integers(3, 4),
    st.integers(0, 3),
)
def test_columns_of_text_fail_as_their_values_do(
    texts: list[str | None], shortest: int | None, longest: int | None, start: int
) -> None:
    column = pa.array(texts, pa.string())[start:]
    reasons = [""] * len(column)
    for reason, failed in Judge(Checks(min_length=shortest, max_length=longest)).failing(column):
        for row in np.flatnonzero(failed):
            reasons[row] = reasons[row] or reason
    for text, reason in zip(texts[start:], reasons, strict=True):
        too_short = text is not None and len(text) < (shortest or 0)
        too_long = text is not None and longest is not None and len(text) > longest
        assert bool(reason) == (too_short or too_long)
        assert (reason == "empty") == (too_short and text == "")


def test_pipelines_without_checks_keep_the_hash_that_they_had() -> None:
    schema = Schema("trade", (Field("symbol", String()), Field("size", Int())))
    line = rp.Pipeline("p").source("t", schema).partition("k", key="symbol")
    plan = line.fold("f", n=rp.count()).sink("o").plan()
    assert "checks" not in plan.notes
    assert plan.topology_hash == PINNED


PINNED = "5b16ba3f847023c607c54b611d1893ed"  # by the version before there were checks
