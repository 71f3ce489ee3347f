"""Choices of diff and errors of apply, case by case."""

import enum
import math
from dataclasses import dataclass, replace

import msgspec
import pydantic
import pytest

from ripple.core.errors import DeltaError
from ripple.engine.changes import (
    FieldRemove,
    FieldSet,
    MapRemove,
    MapSet,
    Patch,
    Remove,
    Set,
    apply,
    compose,
    diff,
    same,
)
from ripple.model.records.record import Timestamp, record
from ripple.model.schema.types import Field, Float, Int, Option, Schema, String


@record
class Trade:
    symbol: str
    price: float
    size: int
    timestamp_ns: Timestamp
    venue: str | None = None


class Quote(msgspec.Struct, frozen=True):
    symbol: str
    bid: float
    ask: float
    depth: int
    venue: str | None = None


class Order(pydantic.BaseModel):
    symbol: str
    limit: float
    size: int
    account: str
    venue: str | None = None


class Side(enum.Enum):
    BUY = 1
    SELL = 2


@dataclass
class Fill:
    side: Side
    legs: list[float]


TRADE = Trade("AAPL", 150.25, 200, 1709000001000000000, "XNAS")
SCHEMA = Schema(
    "row",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("hedge", Option(Float())),
        Field("venue", String(), optional=True),
    ),
)
ROW = {"symbol": "AAPL", "price": 150.25, "size": 200, "hedge": None, "venue": "XNAS"}


@pytest.mark.parametrize(
    ("value", "changed", "field"),
    [
        (TRADE, replace(TRADE, price=150.3), FieldSet("price", 150.3)),
        (TRADE, replace(TRADE, venue=None), FieldRemove("venue")),
        (Quote("A", 1.0, 2.0, 3), Quote("A", 1.5, 2.0, 3), FieldSet("bid", 1.5)),
        (
            Order(symbol="A", limit=1.0, size=2, account="x"),
            Order(symbol="A", limit=1.0, size=2, account="y"),
            FieldSet("account", "y"),
        ),
    ],
)
def test_one_field_of_a_record_instance_changes_by_patch(value, changed, field):
    delta = diff(value, changed)
    assert delta == Patch((field,))
    assert apply(delta, value) == changed


def test_small_record_is_sent_whole():
    assert diff(Fill(Side.BUY, [1.0]), Fill(Side.SELL, [1.0])) == Set(Fill(Side.SELL, [1.0]))


def test_mostly_changed_record_is_sent_whole():
    new = ROW | {"price": 1.0, "size": 1, "hedge": 1.0}
    assert diff(ROW, new, schema=SCHEMA) == Set(new)


def test_absent_optional_field_is_a_missing_key_or_none():
    missing = {name: held for name, held in ROW.items() if name != "venue"}
    assert diff(ROW | {"venue": None}, missing, schema=SCHEMA) == Patch()
    assert diff(ROW, missing, schema=SCHEMA) == Patch((FieldRemove("venue"),))
    assert apply(Patch((FieldRemove("venue"),)), ROW, schema=SCHEMA) == missing


def test_option_that_becomes_none_is_set_not_removed():
    old = ROW | {"hedge": 1.5}
    delta = diff(old, ROW, schema=SCHEMA)
    assert delta == Patch((FieldSet("hedge", None),))
    assert apply(delta, old, schema=SCHEMA) == ROW


def test_map_changes_by_entry():
    old = {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}
    new = {1: 1.0, 2: 2.5, 4: 4.0, 5: 5.0, 6: 6.0, 7: 7.0, 8: 8.0}
    assert diff(old, new) == Set(new)
    assert diff(new, new | {2: 2.0}) == Patch((MapSet(2, 2.0),))
    assert diff({**new, 9: 9.0}, new) == Patch((MapRemove(9),))


def test_floats_differ_by_bits():
    assert same(math.nan, math.nan)
    assert not same(0.0, -0.0)
    assert not same(1, 1.0)
    assert not same(1, True)
    assert not same([{"x": 0.0}], [{"x": -0.0}])
    assert same((math.nan, {"x": math.nan}), (math.nan, {"x": math.nan}))
    assert diff(0.0, -0.0) == Set(-0.0)
    assert diff(math.nan, math.nan) == Patch()


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (FieldSet("pirce", 1.0), "no field 'pirce'; the fields are symbol, price"),
        (FieldRemove("pirce"), "no field 'pirce'"),
        (FieldSet("price", 1), "'price' is Float"),
        (FieldSet("price", "1"), "'price' is Float"),
        (FieldSet("size", True), "'size' is Int"),
        (FieldSet("size", 2**63), "'size' is Int"),
        (FieldSet("price", None), "'price' is required"),
        (FieldRemove("price"), "'price' is required"),
        (FieldRemove("hedge"), "'hedge' is required"),
        (MapSet("price", 1.0), "MapSet is for maps"),
    ],
)
def test_patch_that_does_not_fit_the_record_is_refused(op, message):
    before = dict(ROW)
    with pytest.raises(DeltaError, match=message):
        apply(Patch((FieldSet("price", 9.0), op)), ROW, schema=SCHEMA)
    assert before == ROW


@pytest.mark.parametrize(
    ("value", "op", "message"),
    [
        ({"price": 1.0}, FieldSet("price", 2.0), "give the schema"),
        ({"price": 1.0}, MapSet(math.nan, 2.0), "NaN"),
        ({"price": 1.0}, MapSet([1], 2.0), "unhashable"),
        (1.0, MapSet("price", 2.0), "only Set can change"),
        (TRADE, FieldSet("price", "2"), "'price' is Float"),
    ],
)
def test_patch_of_another_kind_of_value_is_refused(value, op, message):
    with pytest.raises(DeltaError, match=message):
        apply(Patch((op,)), value)


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        {"symbol": "A"},
        ROW | {"more": 1},
        ROW | {"price": 1},
        ROW | {"symbol": None},
    ],
)
def test_set_that_does_not_fit_the_schema_is_refused(value):
    with pytest.raises(DeltaError):
        apply(Set(value), ROW, schema=SCHEMA)


def test_set_then_a_patch_that_does_not_fit_is_refused():
    with pytest.raises(DeltaError, match="no field"):
        compose(Set(ROW), Patch((FieldSet("x", 1),)), schema=SCHEMA)


def test_remove_of_an_absent_key_changes_nothing():
    gone = apply(Remove(), ROW)
    assert apply(Remove(), gone) is gone


@pytest.mark.parametrize(
    "act",
    [
        lambda: apply("Remove", ROW, schema=SCHEMA),
        lambda: compose(Set(ROW), None),
        lambda: compose(None, Patch()),
    ],
)
def test_value_that_is_no_delta_is_refused(act):
    with pytest.raises(DeltaError, match="a delta is a Set, Patch, Remove or Final, not"):
        act()


@pytest.mark.parametrize(
    "act",
    [
        lambda: apply(Patch(("price",)), ROW, schema=SCHEMA),
        lambda: apply(Patch(("price",)), {"price": 1.0}),
        lambda: compose(Patch(), Patch(("price",))),
    ],
)
def test_value_that_is_no_operation_is_refused(act):
    with pytest.raises(DeltaError, match="not str"):
        act()


@pytest.mark.parametrize(("patch_threshold", "kind"), [(1, Patch), (2, Patch), (3, Set), (4, Set)])
def test_change_of_as_many_fields_as_the_threshold_is_sent_whole(patch_threshold, kind):
    old = {"a": 1, "b": 2, "c": 3}
    assert type(diff(old, old | {"a": 0}, patch_threshold=patch_threshold)) is kind
