"""Conversions to values of a type: nothing is truncated, wrapped or reinterpreted."""

from __future__ import annotations

import datetime as dt
import enum
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ripple.core.errors import SchemaError
from ripple.model.records import schema_of
from ripple.model.schema.types import (
    Bool,
    Case,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Opaque,
    Option,
    Record,
    String,
    Variant,
)
from ripple.model.schema.values import value_of


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    A = "a"


class Side(enum.Enum):
    BUY = 1
    SELL = 2


@dataclass
class Leg:
    size: int
    venue: str | None = None


LEG = Record(schema_of(Leg).fields)
SIDE = Variant((Case("BUY"), Case("SELL")))
ORDER = Variant((Case("market"), Case("limit", (Float(),))))

TAKEN: list[tuple[FieldType, Any, Any]] = [
    (Float(), 1.5, 1.5),
    (Float(), np.float64(1.5), 1.5),
    (Float(), np.float32(1.5), 1.5),
    (Float(), np.float16(1.5), 1.5),
    (Float(), 3, 3.0),
    (Float(), np.uint8(3), 3.0),
    (Float(), Level.HIGH, 3.0),
    (Float(), 1 << 60, 2.0**60),
    (Float(), -(10**22), -1e22),
    (Float(), math.inf, math.inf),
    *[(kind, given, 3) for kind in (Int(), Int64()) for given in (3, np.int64(3), np.uint64(3))],
    (Int(), Level.HIGH, 3),
    (Int(), (1 << 63) - 1, (1 << 63) - 1),
    (Int(), -(1 << 63), -(1 << 63)),
    (Bool(), True, True),
    (Bool(), np.False_, False),
    (String(), "", ""),
    (String(), "ä\0\U0001f600", "ä\0\U0001f600"),
    (String(), np.str_("a"), "a"),
    (String(), Word.A, "a"),
    (Opaque(), "(a b)", "(a b)"),
    (Option(Int()), None, None),
    (Option(Int()), 3, 3),
    (List(Float()), (1, 2.5), [1.0, 2.5]),
    (List(Int()), np.array([1, 2], np.int16), [1, 2]),
    (List(Option(Int())), [1, None], [1, None]),
    (List(List(String())), [["a"], []], [["a"], []]),
    (LEG, {"size": 1}, {"size": 1, "venue": None}),
    (LEG, Leg(1, "X"), {"size": 1, "venue": "X"}),
    (SIDE, "BUY", "BUY"),
    (SIDE, Side.SELL, "SELL"),
    (
        ORDER,
        {"case": "limit", "limit": {"0": 5}},
        {"case": "limit", "limit": {"0": 5.0}},
    ),
]

REFUSED: list[tuple[FieldType, Any, str]] = [
    *[
        (Float(), given, "must be a float")
        for given in (True, "7", None, 1j, b"1", [1.0], Side.BUY)
    ],
    *[
        (Float(), given, "must be a float")
        for given in (Decimal(1), Fraction(1), np.timedelta64(1))
    ],
    *[(Float(), given, "must be a float") for given in (np.array(1.5), np.longdouble(1))],
    *[
        (Float(), given, "which no float of 64 bits is")
        for given in ((1 << 53) + 1, np.int64((1 << 53) + 1), 10**400, -(10**400), (1 << 64) - 1)
    ],
    *[(Int(), given, "must be an int") for given in (1.5, 5.0, math.nan, True, "7", None, 1j)],
    *[(Int(), given, "must be an int") for given in (np.float64(5), np.True_, Decimal(1), b"1")],
    *[
        (Int64(), given, "must be an int")
        for given in (np.timedelta64(1, "ns"), np.datetime64(1, "ns"), dt.timedelta(1))
    ],
    (Int(), 1 << 63, "must be an int of 64 bits"),
    (Int(), np.uint64(1 << 63), "must be an int of 64 bits"),
    (Int(), -(1 << 63) - 1, "must be an int of 64 bits"),
    *[(Bool(), given, "must be a bool") for given in (0, 1, "False", "", None, np.int8(1), 0.0)],
    *[(String(), given, "must be a text") for given in (1, b"a", None, ["a"], math.nan)],
    (String(), "a\ud800", "which has no form in UTF-8"),
    (Opaque(), ["a"], "must be a text"),
    (List(Int()), [1, 2.5], r"at \[1\] must be an int, not 2.5"),
    (List(Int()), [1, None], r"at \[1\] must be an int, not None"),
    (List(Int()), np.array([1.0]), r"at \[0\] must be an int"),
    *[(List(Int()), given, "must be a list") for given in ("12", {1}, 5, np.zeros((1, 1), int))],
    (List(Int()), np.zeros(1, "M8[ns]"), "must be a list"),
    (List(LEG), [{"size": 1}, {"size": "x"}], r"at \[1\].size must be an int, not 'x'"),
    (LEG, {"venue": "X"}, "at .size must be an int, not None"),
    (LEG, {"size": 1, "other": 2}, "must be a record of size, venue"),
    (LEG, 5, "must be a record of size, venue"),
    (SIDE, "HOLD", "must be one of BUY, SELL"),
    (SIDE, 1, "must be one of BUY, SELL"),
    (ORDER, ("limit", 5.0), "must be a record of case, limit"),
]


@pytest.mark.parametrize(("of", "given", "expected"), TAKEN)
def test_a_value_that_loses_nothing_is_taken(of: FieldType, given: Any, expected: Any) -> None:
    found = value_of(given, of, "the field 'x'")
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(("of", "given", "reason"), REFUSED)
def test_a_value_that_would_change_is_refused(of: FieldType, given: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=f"^the field 'x' .*{reason}"):
        value_of(given, of, "the field 'x'")


def test_messages_name_no_address_and_survive_any_repr() -> None:
    class Loud:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    for given, text in ((object(), "not <object object>"), (Loud(), "not an object of type Loud")):
        with pytest.raises(SchemaError, match=text):
            value_of(given, Int(), "x")
    with pytest.raises(SchemaError) as caught:
        value_of("7" * 1000, Int(), "x")
    assert len(str(caught.value)) < 100
