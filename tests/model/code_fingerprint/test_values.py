"""Values that code holds: equal digests exactly for equal values, in any container."""

from __future__ import annotations

import copy
import enum
import functools
import ipaddress
import re
import time
import types
import uuid
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter, itemgetter, methodcaller
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.model.code_fingerprint.attributes import attributes
from ripple.model.code_fingerprint.form import CodeForm, code_form
from ripple.model.expression import col
from ripple.model.schema.checks import Checks
from ripple.model.window import Tumbling
from tests.model.code_fingerprint.modules import Node, linked
from tests.records import Trade


def form(value: object) -> CodeForm:
    """Return the form of a function that holds a value."""
    return code_form({"": lambda: value})


class Pair(NamedTuple):
    left: Any
    right: Any


class Side(enum.Enum):
    BUY = 1
    SELL = 2


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Slotted:
    __slots__ = ("one", "two")

    def __init__(self, one: Any) -> None:
        self.one = one


class Named(str):
    pass


class Counted(int):
    pass


class Kilo(float):
    pass


class Book(dict):  # type: ignore[type-arg]
    pass


class Vector(np.ndarray):  # type: ignore[type-arg]
    pass


class Money(Decimal):
    pass


def vector(unit: str) -> Vector:
    made = np.array([1.0, 2.0]).view(Vector)
    made.unit = unit  # type: ignore[attr-defined]
    return made


def ring() -> list[Any]:
    made: list[Any] = [1]
    made.append(made)
    return made


PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=300)
    | st.complex_numbers() | st.sampled_from([Side.BUY, Side.SELL, ...])
)  # fmt: skip
HASHABLE = st.recursive(PLAIN, lambda of: st.lists(of, max_size=3).map(tuple), max_leaves=4)
VALUES = st.recursive(
    HASHABLE,
    lambda of: (
        st.lists(of, max_size=4)
        | st.dictionaries(HASHABLE, of, max_size=4)
        | st.frozensets(HASHABLE, max_size=4)
        | st.sets(HASHABLE, max_size=4)
        | st.builds(Node, st.text(max_size=3), st.lists(of, max_size=3), of)
        | st.builds(Pair, of, of)
        | st.builds(types.SimpleNamespace, a=of)
        | st.builds(deque, st.lists(of, max_size=3))
    ),
    max_leaves=12,
)


@given(VALUES)
def test_equal_values_have_equal_forms(value: Any) -> None:
    assert form(copy.deepcopy(value)) == form(value)


@given(VALUES, st.data())
def test_values_with_one_difference_have_different_forms(value: Any, data: st.DataObject) -> None:
    other = data.draw(HASHABLE)
    one, changed = [[value], 5, {"k": [1]}], [[value], 5, {"k": [1, other]}]
    assert form(one).digest != form(changed).digest


# Each is another value than all the others, although many are equal to some.
DIFFERENT: list[Any] = [
    *(0, 1, False, True, 0.0, -0.0, 1.0, 1 + 0j, complex(1, -0.0), "0", "1", b"1", None, ...),
    *(float("nan"), float("inf"), 10**5000, "é", "\ud800", "a" * 1000, "a" * 1001),
    *((), [], {}, set(), frozenset(), (0,), [0], {0}, {0: 0}, (1, (2, 3)), ((1, 2), 3)),
    *(bytearray(), bytearray(b"a"), time.gmtime(0), time.gmtime(1), Kilo(1), Kilo(2)),
    *({"a": 1, "b": 2}, {"b": 2, "a": 1}, OrderedDict(a=1, b=2), Counter("ab"), UserDict(a=1)),
    *(defaultdict(list), defaultdict(int), deque([1]), deque([1], 3), ChainMap({}, {1: 2})),
    *(range(3), range(4), slice(1, 2), slice(1, 2, 1), types.MappingProxyType({"a": 1})),
    *(Decimal("1"), Decimal("1.0"), Fraction(1), Fraction(1, 2), date(2024, 1, 1)),
    *(datetime.fromisoformat("0001-01-01"), datetime(1, 1, 1, tzinfo=UTC)),
    *(timedelta(1), timedelta(1, 1)),
    *(datetime(2024, 1, 1, tzinfo=ZoneInfo("UTC")), PurePosixPath("a"), PurePosixPath("a/b")),
    *(uuid.UUID(int=1), uuid.UUID(int=2), ipaddress.ip_address("::1"), re.compile("a")),
    *(re.compile("a", re.I), itemgetter(1), itemgetter(2), attrgetter("a"), methodcaller("a", 1)),
    *(Side, Side.BUY, Side.SELL, Right.READ, Right.READ | Right.WRITE, {Side.BUY}, int, list[int]),
    *(str.upper, "a".upper, "b".upper, len, {}.get, {1: 2}.get, [].append, int | str, list[str]),
    *(Node("a"), Node("b"), Node("a", [1]), Node("a", above=1), Pair(1, 2), Pair(2, 1)),
    *(Slotted(1), Slotted(2), Named("1"), Named("2"), Counted(1), Counted(2), Book(), Book(a=1)),
    *(Money("1"), Money("2"), ValueError(1), ValueError(2), vector("m"), vector("s")),
    *(linked(3), linked(4), linked(90), ring(), [ring()]),
    *(functools.partial(max, 1), functools.partial(max, 2), functools.partial(min, 1)),
    *(functools.partial(max, key=len), Node("a").__repr__, Node("b").__repr__, Node.__init__),
    *(np.int64(1), np.int32(1), np.float64(1), np.float32(1), np.str_("1"), np.bool_(True)),
    *(np.datetime64(1, "s"), np.datetime64(1, "ns"), np.dtype("i4"), np.dtype("i8"), np.sqrt),
    *(np.arange(4), np.arange(4).astype("f8"), np.arange(4).reshape(2, 2), np.arange(4)[::-1]),
    *(np.zeros(0), np.zeros((0, 2)), np.array(3), np.array(["a"]), np.array(["a"], object)),
    *(np.array([1, "a"], object), np.array([1, "b"], object), np.array(["b"], "T")),
    *(np.array([(1, 2.0)], "i4,f8"), np.array([(1, 2.5)], "i4,f8")),
    *(np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 0])),
    *(pa.int64(), pa.int32(), pa.schema([("a", pa.int64())]), pa.scalar(1), pa.scalar(1, "f8")),
    *(pa.array([1, 2]), pa.array([1, None]), pa.array([1, 2], "i4"), pa.chunked_array([[1, 2, 3]])),
    *(pa.array([1], pa.timestamp("ns")), pa.array([2], pa.timestamp("ns")), pa.nulls(1)),
    *(pa.scalar(1, pa.timestamp("ns")), pa.scalar(None, pa.timestamp("ns")), pa.array([b"a"])),
    *(pa.array(["a", "b"]).dictionary_encode(), pa.array(["a", "c"]).dictionary_encode()),
    *(pa.array([{"a": 1}]), pa.array([{"a": 2}]), pa.array([1], "date32"), pa.array([1], "date64")),
    *(pa.table({"a": [1]}), pa.table({"b": [1]}), pa.table({"a": [2]}), pa.array([[1], []])),
    *(pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]}), pd.DataFrame({"b": [1]})),
    *(pd.Series([1]), pd.Series([2]), pd.Timestamp(1), pd.Timestamp(2)),
    *(col("a"), col("b"), col("a") + 1, ra.sum("a"), ra.max("a"), Tumbling("1s"), Tumbling("2s")),
]  # fmt: skip


def test_different_values_have_different_forms() -> None:
    seen: dict[str, Any] = {}
    for value in DIFFERENT:
        found = form(value)
        assert not found.unseen, value
        other = seen.setdefault(found.digest, value)
        assert other is value, (other, value)


@pytest.mark.parametrize("at", range(len(DIFFERENT)))
def test_value_made_again_has_the_form_that_it_had(at: int) -> None:
    value = DIFFERENT[at]
    if type(value) not in (types.MappingProxyType, Vector):  # those lose something, or refuse
        assert form(copy.deepcopy(value)) == form(value)


def test_layout_of_arrays_is_no_part_of_their_form() -> None:
    array = np.arange(12.0).reshape(3, 4)
    assert form(np.asfortranarray(array)).digest == form(array).digest
    assert form(np.repeat(array, 2, axis=1)[:, ::2]).digest == form(array).digest
    arrow = pa.array([1, 2, None])
    assert form(pa.array([0, 1, 2, None])[1:]).digest == form(arrow).digest
    chunks = [pa.array([1]), pa.array([2, None])]
    assert form(pa.chunked_array(chunks)).digest == form(arrow).digest


def test_order_of_attributes_and_sets_is_no_part_of_a_form() -> None:
    one, other = types.SimpleNamespace(a=1, b=2), types.SimpleNamespace(b=2, a=1)
    assert form(one).digest == form(other).digest
    nodes = [Node("a"), Node("b")]
    Node.__hash__ = object.__hash__  # type: ignore[method-assign]
    try:
        sets = [frozenset(nodes), frozenset(reversed(nodes)), {*nodes}]
        assert len({form(frozenset(each)).digest for each in sets}) == 1
        assert form({Node("a")}).digest != form({Node("b")}).digest
    finally:
        Node.__hash__ = None  # type: ignore[assignment]


def test_records_are_known_by_no_more_than_in_the_first_version() -> None:
    """Functions that name a record's class have it in their node keys, which are in checkpoints."""
    checks = {"gt", "ge", "lt", "le", "finite", "min_length", "max_length"}
    assert attributes(Checks(gt=0)).keys() == checks
    assert attributes(vars(Trade)["price"]).keys() == {"name"}
