"""Record classes are ordinary frozen dataclasses that also know their columns."""

from __future__ import annotations

import dataclasses
import decimal
from typing import Annotated, Any, get_type_hints

import pytest

from ripple.core.errors import SchemaError
from ripple.model.expression import Expr, col
from ripple.model.records import Timestamp, record, schema_of
from ripple.model.records.derive import time_field_of
from ripple.model.records.members import members_of
from ripple.model.records.record import snake_case
from ripple.model.schema import Field, Float, Int, Int64, String


@record(version=3, doc="One fill")
class Trade:
    symbol: str
    price: float
    size: int = 1
    timestamp_ns: Timestamp = 0


@record
class Bare:
    """Has a text
    over two lines."""

    x: int


def test_record_is_a_frozen_dataclass() -> None:
    trade = Trade("AAPL", 150.25)
    assert (trade.symbol, trade.price, trade.size, trade.timestamp_ns) == ("AAPL", 150.25, 1, 0)
    assert trade == Trade("AAPL", 150.25, 1, 0)
    assert dataclasses.replace(trade, size=2) == Trade("AAPL", 150.25, size=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        trade.size = 2  # type: ignore[misc]


@dataclasses.dataclass
class Kinds:
    text: str
    time: Timestamp
    elsewhere: decimal.Decimal
    itself: Kinds | None
    several: list[Price]
    checked: Annotated[float, "of a trade"]
    mine: Price
    made: bytes


class Price(int):
    pass


class bytes(str):  # noqa: A001, N801 - a name of Python's own, for something else
    pass


def test_types_are_those_that_python_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> dict[str, Any]:
        return {member.name: member.annotation for member in members_of(Kinds)}

    assert found() == get_type_hints(Kinds, include_extras=True)
    assert (found()["mine"], found()["made"]) == (Price, bytes)
    monkeypatch.setitem(globals(), "Price", decimal.Decimal)  # defined anew, as in a notebook
    assert found()["mine"] is decimal.Decimal
    assert found() == get_type_hints(Kinds, include_extras=True)


def test_record_names_and_documents_its_schema() -> None:
    schema = schema_of(Trade)
    assert (schema.name, schema.version, schema.doc) == ("trade", 3, "One fill")
    assert schema.fields == (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("timestamp_ns", Int64()),
    )
    assert schema_of(Bare).doc == "Has a text over two lines."
    assert schema_of(Bare, name="other", version=9).name == "other"
    assert schema_of(Bare, name="other", version=9).version == 9


def test_class_attribute_is_the_column_expression() -> None:
    for name in ("price", "size"):
        expression = getattr(Trade, name)
        assert isinstance(expression, Expr)
        assert repr(expression) == repr(col(name))


def test_field_declared_again_in_a_subclass_keeps_no_stale_default() -> None:
    @record
    class Child(Trade):
        symbol: str
        venue: str = "XNAS"

    assert Child("AAPL", 1.0).venue == "XNAS"
    with pytest.raises(TypeError, match="symbol"):
        Child(price=1.0)  # type: ignore[call-arg]
    assert [field.name for field in schema_of(Child).fields][-1] == "venue"


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.0])
def test_version_below_one_is_refused(version: object) -> None:
    with pytest.raises(SchemaError, match="version must be a whole number from 1 on"):
        record(version=version)  # type: ignore[call-overload]


def test_time_field_is_the_required_timestamp() -> None:
    assert time_field_of(Trade) == "timestamp_ns"
    assert time_field_of(Bare) is None


def test_two_time_fields_are_refused_by_name() -> None:
    @record
    class Order:
        sent_ns: Timestamp
        received_ns: Timestamp

    with pytest.raises(SchemaError, match="sent_ns, received_ns"):
        time_field_of(Order)


def test_optional_timestamp_is_no_time_field() -> None:
    @record
    class Order:
        closed_ns: Timestamp | None

    assert time_field_of(Order) is None
    assert schema_of(Order).fields == (Field("closed_ns", Int64(), optional=True),)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Trade", "trade"), ("VwapResult", "vwap_result"), ("HTTPLog2Line", "http_log2_line")],
)
def test_class_names_become_schema_names(name: str, expected: str) -> None:
    assert snake_case(name) == expected
