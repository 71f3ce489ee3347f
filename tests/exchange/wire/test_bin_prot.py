"""The compiled codecs against their plain twin, and against everything that is not an encoding."""

from __future__ import annotations

import dataclasses
import struct
import sys
import tracemalloc
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.core.errors import SchemaError
from ripple.exchange.wire.bin_prot import codec_for
from ripple.exchange.wire.codec import (
    BOOL,
    BYTES,
    DEPTH_MAX,
    FLOAT,
    INT,
    INT64,
    SEXP,
    STRING,
    UNIT,
    enumeration,
    later,
    list_of,
    option,
    pair,
    record,
    tuple_as,
    tuple_of,
    union,
    variant,
)
from ripple.exchange.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.model.records.record import record as rp_record
from ripple.model.schema import types
from tests.examples import EXAMPLES, SAMPLED
from tests.exchange.wire.bin_prot_reference import MalformedError, read_record, write_fields

TEXT = st.text(max_size=140)
SEXPS = st.recursive(TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=8)
SCALARS: dict[types.FieldType, st.SearchStrategy[Any]] = {
    types.String(): TEXT,
    types.Int(): st.integers(-(2**62), 2**62 - 1),
    types.Int64(): st.integers(-(2**63), 2**63 - 1),
    types.Float(): st.floats(allow_nan=False),
    types.Bool(): st.booleans(),
    types.Opaque(): SEXPS,
}
NAMES = ["a", "b", "c", "d"]


def _cases(inner: st.SearchStrategy[types.FieldType]) -> st.SearchStrategy[types.FieldType]:
    args = st.lists(st.lists(inner, max_size=2), min_size=1, max_size=3)
    return args.map(
        lambda cases: types.Variant(
            tuple(
                types.Case(name.upper(), tuple(args))
                for name, args in zip(NAMES, cases, strict=False)
            )
        )
    )


def _fields(inner: st.SearchStrategy[types.FieldType]) -> st.SearchStrategy[Any]:
    members = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=4)
    return members.map(
        lambda members: tuple(
            types.Field(name, kind, optional)
            for name, (kind, optional) in zip(NAMES, members, strict=False)
        )
    )


KINDS = st.recursive(
    st.sampled_from(list(SCALARS)),
    lambda inner: (
        inner.map(types.Option)
        | inner.map(types.List)
        | _fields(inner).map(types.Record)
        | _cases(inner)
    ),
    max_leaves=6,
)
FIELDS = _fields(KINDS)


def _values(kind: types.FieldType) -> st.SearchStrategy[Any]:
    match kind:
        case types.Option(of):
            return st.none() | _values(of)
        case types.List(of):
            return st.lists(_values(of), max_size=4)
        case types.Record(fields):
            return _records(fields)
        case types.Variant(cases):
            return st.one_of(
                st.tuples(st.just(case.name), *map(_values, case.args)) for case in cases
            )
        case _:
            return SCALARS[kind]


def _records(fields: tuple[types.Field, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {f.name: _values(f.type) for f in fields if not f.optional},
        optional={f.name: _values(f.type) for f in fields if f.optional},
    )


def _has_option_of_option(kind: types.FieldType) -> bool:
    if isinstance(kind, types.Option) and isinstance(kind.of, types.Option):
        return True
    return any(map(_has_option_of_option, types.inner_types(kind)))


@given(FIELDS, st.data())
@settings(max_examples=36 * EXAMPLES // SAMPLED)
def test_values_of_any_schema_match_the_twin_and_come_back(fields, data) -> None:
    value = data.draw(_records(fields))
    codec = codec_for(types.Schema("s", fields))
    encoded = codec.dumps(value)
    assert encoded == write_fields(fields, value)
    assert codec.loads(encoded) == value
    assert codec.loads(memoryview(bytearray(encoded))) == value
    padding = data.draw(st.binary(max_size=3))
    offset = len(padding)
    assert codec.read(padding + encoded + padding, offset) == (value, offset + len(encoded))


@given(FIELDS, st.data())
@settings(max_examples=36 * EXAMPLES // SAMPLED)
def test_mutated_bytes_mean_the_same_to_both_or_nothing_to_either(fields, data) -> None:
    codec = codec_for(types.Schema("s", fields))
    raw = bytearray(codec.dumps(data.draw(_records(fields))))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw)))
        raw[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        expected = repr(read_record(fields, bytes(raw)))
    except MalformedError:
        with pytest.raises(RemoteProtocolError):
            codec.loads(bytes(raw))
    else:
        assert repr(codec.loads(bytes(raw))) == expected


def test_integers_at_every_boundary_come_back() -> None:
    for n in [0, 1, -1] + [s * 2**k + d for k in range(62) for s in (1, -1) for d in (-1, 0, 1)]:
        assert INT.loads(INT.dumps(n)) == n
        assert INT64.loads(INT64.dumps(n)) == n
        assert INT.dumps(n) == INT64.dumps(n), n


def test_a_63_bit_int_refuses_64_bits_and_names_the_field() -> None:
    codec = record(dict, {"legs": list_of(record(dict, {"size": INT}))})
    with pytest.raises(
        LocalProtocolError, match=r"^legs\[1\]\.size: 4611686018427387904 does not fit"
    ):
        codec.dumps({"legs": [{"size": 1}, {"size": 2**62}]})
    with pytest.raises(RemoteProtocolError, match="63 bits"):
        INT.loads(INT64.dumps(2**62))
    with pytest.raises(LocalProtocolError, match="64 bits does not fit"):
        INT64.dumps(2**63)


@pytest.mark.parametrize("text", ["fe0500", "fd05000000", "fc0500000000000000"])
def test_a_longer_form_of_a_small_number_is_accepted(text: str) -> None:
    assert INT.loads(bytes.fromhex(text)) == 5
    assert INT64.loads(bytes.fromhex(text)) == 5
    assert STRING.loads(bytes.fromhex(text) + b"12345") == "12345"


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        (INT, ""),
        (INT, "80"),
        (INT, "fb"),
        (INT, "ff00"),
        (INT, "fe00"),
        (INT, "0000"),
        (STRING, "ff"),
        (STRING, "02c328"),
        (STRING, "fcffffffffffffffff"),
        (STRING, "fcffffffffffffff7f"),
        (BOOL, "02"),
        (UNIT, "01"),
        (option(INT), "02"),
        (FLOAT, "00" * 7),
        (SEXP, "02"),
        (SEXP, "01fd" + "ffffff7f"),
        (list_of(INT), "0301"),
        (list_of(INT), "fcffffffffffffffff"),
        (list_of(FLOAT), "02" + "00" * 15),
        (variant({"A": (), "B": (INT,)}), "02"),
    ],
)
def test_invalid_encoding_is_rejected(codec, text: str) -> None:
    with pytest.raises(RemoteProtocolError, match="malformed bin_prot at byte"):
        codec.loads(bytes.fromhex(text))


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        (INT, True),
        (INT, 1.0),
        (INT, "1"),
        (FLOAT, "1.0"),
        (FLOAT, True),
        (FLOAT, 10**400),
        (BOOL, 1),
        (STRING, b"a"),
        (STRING, "\ud800"),
        (BYTES, "a"),
        (BYTES, 3),
        (UNIT, 0),
        (SEXP, 3),
        (SEXP, "\ud800"),
        (list_of(INT), "12"),
        (list_of(INT), {1, 2}),
        (pair(INT, INT), (1,)),
        (record(dict, {"a": INT}), [1]),
        (record(dict, {"a": INT}), {}),
        (record(dict, {"a": INT}), {"a": 1, "b": 2}),
        (variant({"A": ()}), ("B",)),
        (variant({"A": (INT,)}), ("A",)),
        (variant({"A": (INT,)}), "A"),
    ],
)
def test_a_value_of_another_type_is_a_local_error(codec, value) -> None:
    with pytest.raises(LocalProtocolError):
        codec.dumps(value)


def test_an_integer_too_long_to_print_is_a_local_error() -> None:
    for codec, value in ((FLOAT, 10**5000), (INT, 10**5000), (STRING, [10**5000])):
        with pytest.raises(LocalProtocolError):
            codec.dumps(value)


def test_a_number_may_be_written_where_a_float_is_wanted() -> None:
    assert FLOAT.loads(FLOAT.dumps(3)) == 3.0


def test_announced_counts_are_not_allocated() -> None:
    count = struct.pack("<BI", 0xFD, 2**31 - 1)
    tracemalloc.start()
    for codec in (list_of(INT), tuple_of(STRING), SEXP, STRING, BYTES):
        with pytest.raises(RemoteProtocolError):
            codec.loads((b"\1" if codec is SEXP else b"") + count + bytes(1000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000


def test_nesting_is_bounded_in_both_directions() -> None:
    deep: Any = "x"
    for _ in range(DEPTH_MAX):
        deep = [deep]
    assert SEXP.loads(SEXP.dumps(deep)) == deep
    with pytest.raises(LocalProtocolError, match="nested deeper"):
        SEXP.dumps([deep])
    with pytest.raises(RemoteProtocolError, match="nested deeper"):
        SEXP.loads(b"\1\1" * 100_000 + b"\0\0")
    tree = later("tree", 10)
    tree.define(list_of(tree))
    assert tree.loads(b"\1" * 9 + b"\0") == [[[[[[[[[[]]]]]]]]]]
    with pytest.raises(RemoteProtocolError, match="nested deeper"):
        tree.loads(b"\1" * 100_000 + b"\0")
    with pytest.raises(LocalProtocolError, match="already defined"):
        tree.define(INT)


def test_a_list_whose_items_take_no_bytes_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="cannot be bounded"):
        list_of(record(dict, {}))


def test_reading_outside_the_buffer_is_a_local_error() -> None:
    for offset in (-1, 3):
        with pytest.raises(LocalProtocolError, match="outside"):
            INT.read(b"\0\0", offset)


# --- Records as classes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slotted:
    a: str
    b: int


@dataclass(frozen=True)
class Plain:
    a: str
    b: int = 0


@dataclass
class Checked:
    a: str
    b: int

    def __post_init__(self) -> None:
        if self.b < 0:
            raise ValueError("b is negative")


@dataclass
class OwnInit:
    a: str
    b: int

    def __init__(self, a: str, b: int) -> None:
        self.a, self.b = a.upper(), b


@dataclass
class Setter:
    a: str
    b: int

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value.upper() if name == "a" else value)


class Struct(msgspec.Struct):
    a: str
    b: int


@rp_record
class Declared:
    a: str
    b: int


CLASSES = [Slotted, Plain, Checked, OwnInit, Setter, Struct, Declared]


@pytest.mark.parametrize("cls", CLASSES)
def test_each_kind_of_class_is_decoded_as_by_its_constructor(cls: Any) -> None:
    codec = record(cls, {"a": STRING, "b": INT})
    value = cls(a="x", b=7)
    assert codec.loads(codec.dumps(value)) == cls(a=value.a, b=7)
    assert type(codec.loads(b"\1x\7")) is cls
    wrong = cls("x", 7)
    (msgspec.structs.force_setattr if cls is Struct else object.__setattr__)(wrong, "b", "7")
    with pytest.raises(LocalProtocolError, match=r"^b: an integer wanted"):
        codec.dumps(wrong)
    with pytest.raises(LocalProtocolError, match=f"a {cls.__name__} wanted"):
        codec.dumps({"a": "x", "b": 7})


def test_a_constructor_that_refuses_is_the_peers_fault() -> None:
    with pytest.raises(RemoteProtocolError, match="b is negative"):
        record(Checked, {"a": STRING, "b": INT}).loads(b"\1x\xff\xff")


def test_an_unset_slot_is_named() -> None:
    value = Slotted.__new__(Slotted)
    with pytest.raises(LocalProtocolError, match=r"^a: the field is not set"):
        record(Slotted, {"a": STRING, "b": INT}).dumps(value)


def test_a_subclass_is_written_as_its_base() -> None:
    @dataclass(frozen=True)
    class More(Slotted):
        c: int = 3

    codec = record(Slotted, {"a": STRING, "b": INT})
    assert codec.loads(codec.dumps(More("x", 1))) == Slotted("x", 1)


def test_filled_instances_do_not_leak() -> None:
    for cls in CLASSES:
        codec = record(cls, {"a": STRING, "b": INT})
        text = "a text that is long enough not to be shared"
        value = cls(text, 10**6)
        encoded = codec.dumps(value)
        before = sys.getrefcount(value.a)
        for _ in range(100):
            codec.loads(codec.dumps(value))
        after = sys.getrefcount(value.a)
        assert after == before
        tracemalloc.start()
        for _ in range(2):
            start, _ = tracemalloc.get_traced_memory()
            for _ in range(2000):
                codec.loads(encoded)
            end, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert end - start < 10_000


class Side(Enum):
    BUY = "b"
    SELL = "s"


def test_unions_enums_and_tuples_come_back() -> None:
    either = union(record(Slotted, {"a": STRING, "b": INT}), record(Plain, {"a": STRING}))
    assert either.loads(either.dumps(Slotted("x", 1))) == Slotted("x", 1)
    with pytest.raises(LocalProtocolError, match="one of Slotted, Plain wanted"):
        either.dumps("x")
    side = enumeration(Side)
    assert [side.loads(side.dumps(s)) for s in Side] == list(Side)
    with pytest.raises(LocalProtocolError):
        side.dumps("b")
    triple = tuple_as(INT, STRING, BYTES)
    assert triple.loads(triple.dumps((1, "x", b"y"))) == (1, "x", b"y")


def test_past_256_cases_a_tag_takes_two_bytes() -> None:
    few, many = (variant({f"c{i}": () for i in range(n)}) for n in (256, 257))
    assert few.dumps(("c255",)) == b"\xff"
    assert many.dumps(("c256",)) == b"\0\1"
    assert many.loads(b"\xff\0") == ("c255",)


@dataclass(frozen=True)
class Order:
    side: Side
    leg: Slotted
    legs: list[Slotted]
    either: Slotted | Plain


# --- Schemas -------------------------------------------------------------------------------------

TREE = types.Schema(
    "tree",
    (
        types.Field("value", types.Int()),
        types.Field("left", types.Ref("tree"), optional=True),
        types.Field("right", types.Ref("tree"), optional=True),
    ),
)


def test_a_schema_may_refer_to_itself() -> None:
    codec = codec_for(TREE)
    value = {"value": 1, "left": {"value": 2}, "right": {"value": 3, "left": {"value": 4}}}
    assert codec.loads(codec.dumps(value)) == value


def test_an_unknown_reference_names_the_field() -> None:
    schema = types.Schema("s", (types.Field("leg", types.Ref("missing")),))
    with pytest.raises(SchemaError, match=r"s\.leg: the schema 'missing' is not known"):
        codec_for(schema)
    assert (
        codec_for(schema, refs={"missing": TREE, "tree": TREE}).dumps({"leg": {"value": 1}})
        == b"\1\0\0"
    )


def test_absent_and_present_none_differ_in_an_optional_option() -> None:
    schema = types.Schema("s", (types.Field("x", types.Option(types.Int()), optional=True),))
    codec = codec_for(schema)
    assert [codec.dumps(v) for v in ({}, {"x": None}, {"x": 1})] == [b"\0", b"\1\0", b"\1\1\1"]
    assert [codec.loads(b) for b in (b"\0", b"\1\0", b"\1\1\1")] == [{}, {"x": None}, {"x": 1}]


def test_a_class_stands_for_the_schema() -> None:
    schema = types.Schema(
        "s", (types.Field("a", types.String()), types.Field("b", types.Int(), optional=True))
    )
    codec = codec_for(schema, Plain)
    for value in (Plain("x", 3), Plain("x", None)):  # type: ignore[arg-type]
        assert codec.loads(codec.dumps(value)) == value
    assert dataclasses.asdict(codec.loads(codec_for(schema).dumps({"a": "x"}))) == {
        "a": "x",
        "b": None,
    }


def test_references_in_a_long_chain_do_not_exhaust_the_stack() -> None:
    refs = {
        f"s{n}": types.Schema(f"s{n}", (types.Field("next", types.Ref(f"s{n + 1}")),))
        for n in range(2000)
    } | {"s2000": types.Schema("s2000", (types.Field("x", types.Bool()),))}
    with pytest.raises(RemoteProtocolError, match="nested deeper than 64"):
        codec_for(refs["s0"], refs=refs).loads(b"\1")
    assert codec_for(refs["s1990"], refs=refs).read(b"\1")[1] == 1


@pytest.mark.parametrize(
    ("codec", "item"),
    [
        (list_of(record(dict, {"x": INT}, optional={"x"})), b"\0"),
        (list_of(option(INT)), b"\0"),
        (list_of(list_of(INT)), b"\0"),
        (list_of(STRING), b"\2ab"),
        (SEXP, b"\1\0"),
    ],
)
def test_decoding_takes_a_bounded_multiple_of_the_bytes(codec, item: bytes) -> None:
    count = 50_000
    data = (b"\1" if codec is SEXP else b"") + struct.pack("<BH", 0xFE, count) + item * count
    tracemalloc.start()
    assert len(codec.loads(data)) == count
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * len(data)


def test_instance_of_the_class_of_a_schema_can_be_written() -> None:
    from ripple.model.records.derive import schema_of

    codec = codec_for(schema_of(Order), Order)
    order = Order(Side.SELL, Slotted("x", 1), [Slotted("y", 2)], Plain("z", 3))
    assert codec.loads(codec.dumps(order)) == Order(
        ("SELL",),  # type: ignore[arg-type]
        {"a": "x", "b": 1},  # type: ignore[arg-type]
        [{"a": "y", "b": 2}],  # type: ignore[list-item]
        ("Plain", {"a": "z", "b": 3}),  # type: ignore[arg-type]
    )
    assert codec.dumps(codec.loads(codec.dumps(order))) == codec.dumps(order)
