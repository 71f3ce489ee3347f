"""One declaration, written with four libraries, is one schema."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, Literal, NewType, Optional, TypeVar, Union

import msgspec
import pydantic
import pytest

from ripple.core.errors import SchemaError
from ripple.model.records import Timestamp, record, schema_of
from ripple.model.schema import (
    Bool,
    Case,
    Field,
    Float,
    Int,
    Int64,
    List,
    Opaque,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Variant,
)

T = TypeVar("T")
Venue = NewType("Venue", str)


class Side(enum.Enum):
    BUY = "b"
    SELL = "s"
    BID = "b"  # noqa: PIE796  # an alias of BUY is not a case of its own


@record
class Leg:
    ratio: int
    open: bool


class LegStruct(msgspec.Struct):
    ratio: int
    open: bool


class LegModel(pydantic.BaseModel):
    ratio: int
    open: bool


@record
class Order:
    symbol: str
    price: float
    at_ns: Timestamp
    side: Side
    kind: Literal["limit", "market"]
    legs: list[Leg]
    best: Leg | None
    notes: list[str | None]
    child: Order | None = None
    limit: Union[int, str] = 0  # noqa: UP007  # the old spelling must work too
    venue: Annotated[Optional[Venue], "MIC"] = None  # noqa: UP045


@dataclasses.dataclass
class OrderData:
    symbol: str
    price: float
    at_ns: Timestamp
    side: Side
    kind: Literal["limit", "market"]
    legs: Sequence[Leg]
    best: Leg | None
    notes: tuple[str | None, ...]
    child: OrderData | None = None
    limit: int | str = 0
    venue: Annotated[Venue | None, "MIC"] = None


class OrderStruct(msgspec.Struct):
    symbol: str
    price: float
    at_ns: Timestamp
    side: Side
    kind: Literal["limit", "market"]
    legs: list[LegStruct]
    best: LegStruct | None
    notes: list[str | None]
    child: OrderStruct | None = None
    limit: int | str = 0
    venue: Annotated[str | None, msgspec.Meta(description="MIC")] = None


class OrderModel(pydantic.BaseModel):
    symbol: str
    price: float
    at_ns: Timestamp
    side: Side
    kind: Literal["limit", "market"]
    legs: list[LegModel]
    best: LegModel | None
    notes: list[str | None]
    child: OrderModel | None = None
    limit: int | str = 0
    venue: str | None = pydantic.Field(None, description="MIC")


LEG = Record((Field("ratio", Int()), Field("open", Bool())))


def order(name: str) -> Schema:
    return Schema(
        name,
        (
            Field("symbol", String()),
            Field("price", Float()),
            Field("at_ns", Int64()),
            Field("side", Variant((Case("BUY"), Case("SELL")))),
            Field("kind", Variant((Case("limit"), Case("market")))),
            Field("legs", List(LEG)),
            Field("best", LEG, optional=True),
            Field("notes", List(Option(String()))),
            Field("child", Ref(name), optional=True),
            Field("limit", Variant((Case("int", (Int(),)), Case("str", (String(),))))),
            Field("venue", String(), optional=True, doc="MIC"),
        ),
    )


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (Order, "order"),
        (OrderData, "order_data"),
        (OrderStruct, "order_struct"),
        (OrderModel, "order_model"),
    ],
)
def test_same_declaration_in_any_library_gives_the_same_schema(cls: type, name: str) -> None:
    assert schema_of(cls) == order(name)


def test_class_used_twice_is_inlined_twice() -> None:
    @record
    class Pair:
        left: Leg
        right: Leg

    assert schema_of(Pair).fields == (Field("left", LEG), Field("right", LEG))


@record
class Tree:
    value: int
    children: list[Tree]


@record
class Forest:
    first: Tree
    others: list[Tree]


def test_recursion_below_the_root_is_a_reference_that_resolves() -> None:
    node = Record((Field("value", Int()), Field("children", List(Ref("tree")))))
    forest, tree = schema_of(Forest), schema_of(Tree)
    assert forest.fields == (Field("first", node), Field("others", List(node)))
    assert tree == Schema("tree", node.fields)


def test_two_classes_of_one_schema_name_cannot_both_be_referred_to() -> None:
    other = dataclasses.make_dataclass("Tree", [("forest", Forest), ("again", "Any")])
    other.__annotations__["again"] = list[other]  # type: ignore[valid-type]
    with pytest.raises(SchemaError, match=r"two record classes would both be schema 'tree'"):
        schema_of(other)


def test_annotated_field_type_is_taken_as_it_is() -> None:
    @dataclasses.dataclass
    class Row:
        raw: Annotated[Any, Opaque()]
        wide: Annotated[int, Int64()]

    assert schema_of(Row).fields == (Field("raw", Opaque()), Field("wide", Int64()))


class Box(pydantic.BaseModel, Generic[T]):
    value: T


class BoxStruct(msgspec.Struct, Generic[T]):
    value: T


def test_generic_class_with_arguments_is_expressible_and_without_is_not() -> None:
    assert schema_of(Box[int]).fields == (Field("value", Int()),)
    with pytest.raises(SchemaError, match=r"Box.value: .*give the generic class its arguments"):
        schema_of(Box)
    with pytest.raises(SchemaError, match=r"BoxStruct.value: .*give the generic class its"):
        schema_of(BoxStruct)


class Flags(enum.Flag):
    A = 1


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (memoryview, r"Outer.field: memoryview cannot be expressed"),
        (dict[int, int], r"Outer.field: a map has texts as its keys, as in dict\[str, int\]"),
        (list[dict], r"Outer.field\[\]: dict .*such as dict\[str, int\]"),
        (set[int], r"Outer.field: set\[int\] cannot be expressed: use list"),
        (list, r"Outer.field: list cannot be expressed: say what it is a list of"),
        (tuple[int, str], r"Outer.field: tuple\[int, str\]"),
        (dt.time, r"Outer.field: time cannot be expressed: no field type"),
        (decimal.Decimal, r"Outer.field: Decimal cannot"),
        (Any, r"Outer.field: .*Any cannot be expressed"),
        (None, r"Outer.field: NoneType cannot"),
        (T, r"Outer.field: ~T cannot be expressed: give the generic class its arguments"),
        (Literal[1], r"Outer.field: a Literal may hold strings and None, not 1"),
        (Literal[None], r"Outer.field: a variant has no cases"),
        (int | set, r"Outer.field\|set: set cannot"),
        (list[int] | list[str], r"Outer.field: a variant has two cases named 'list'"),
        (Callable[[], int], r"Outer.field: .*Callable"),
        (Flags, r"Outer.field: Flags is a Flag"),
        (enum.Enum("Empty", []), r"Outer.field: a variant has no cases"),
        ("Missing", r"Outer.field: the type 'Missing' cannot be resolved"),
        (5, r"Outer.field: 5 cannot"),
    ],
)
def test_inexpressible_type_is_refused_with_class_and_field(annotation: Any, message: str) -> None:
    outer = dataclasses.make_dataclass("Outer", [("field", annotation)])
    with pytest.raises(SchemaError, match=message):
        schema_of(outer)


def test_inexpressible_type_deep_inside_is_named_by_its_path() -> None:
    inner = dataclasses.make_dataclass("Inner", [("blob", set)])
    outer = dataclasses.make_dataclass("Outer", [("rows", list[inner])])  # type: ignore[valid-type]
    with pytest.raises(SchemaError, match=r"Outer.rows\[\].blob: set"):
        schema_of(outer)


class Broken(msgspec.Struct):
    fine: int
    wrong: list[Missing]  # type: ignore[name-defined]  # noqa: F821


class BrokenModel(pydantic.BaseModel):
    fine: int
    wrong: Missing  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("cls", [Broken, BrokenModel])
def test_unresolved_name_is_reported_with_its_field(cls: type) -> None:
    with pytest.raises(SchemaError, match=rf"{cls.__name__}.wrong: .*Missing"):
        schema_of(cls)


@pytest.mark.parametrize("cls", [int, list, Side])
def test_class_that_is_no_record_is_refused(cls: type) -> None:
    with pytest.raises(SchemaError, match="is not a record class"):
        schema_of(cls)


def test_class_without_fields_is_refused() -> None:
    with pytest.raises(SchemaError, match="class Empty has no fields"):
        schema_of(dataclasses.make_dataclass("Empty", []))


def test_deriving_imports_neither_msgspec_nor_pydantic() -> None:
    program = (
        "import sys, dataclasses, ripple.model.records as s;"
        "s.schema_of(dataclasses.make_dataclass('A', [('x', int)]));"
        "sys.exit('msgspec' in sys.modules or 'pydantic' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
