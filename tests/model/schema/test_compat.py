"""The decision table, line by line and at any depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ripple.model.schema import (
    Bool,
    Case,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Variant,
)
from ripple.model.schema.compat import (
    Compatible,
    Incompatibility,
    IncompatibilityKind,
    Incompatible,
    check_backward,
    check_forward,
    check_full,
    check_readable,
)
from tests.strategies import evolved, schemas

if TYPE_CHECKING:
    from collections.abc import Callable

X = Field("x", Int())
REQUIRED = Field("venue", String())
OPTIONAL = Field("venue", String(), optional=True)
ONE, TWO = Variant((Case("A"),)), Variant((Case("A"), Case("B")))


def typed(kind: FieldType) -> tuple[Field, ...]:
    return (Field("x", kind),)


# (change, old fields, new fields, backward, forward); full is both.
TABLE = [
    ("add optional", (X,), (X, OPTIONAL), True, True),
    ("add required", (X,), (X, REQUIRED), False, True),
    ("remove optional", (X, OPTIONAL), (X,), True, False),
    ("remove required", (X, REQUIRED), (X,), False, False),
    ("widen", typed(Int()), typed(Int64()), True, False),
    ("narrow", typed(Int64()), typed(Int()), False, False),
    ("rename", (X, REQUIRED), (X, Field("mic", String())), False, False),
    ("make optional", (REQUIRED,), (OPTIONAL,), True, False),
    ("make required", (OPTIONAL,), (REQUIRED,), False, True),
    ("into option", typed(Int()), typed(Option(Int())), True, False),
    ("into option and wider", typed(Int()), typed(Option(Int64())), True, False),
    ("out of option", typed(Option(Int())), typed(Int()), False, False),
    ("add case", typed(ONE), typed(TWO), True, False),
    ("remove case", typed(TWO), typed(ONE), False, True),
    (
        "more arguments",
        typed(Variant((Case("A", (Int(),)),))),
        typed(Variant((Case("A", (Int(), Int())),))),
        False,
        False,
    ),
    ("other reference", typed(Ref("a")), typed(Ref("b")), False, False),
    ("integer to float", typed(Int()), typed(Float()), False, False),
    ("string to list", typed(String()), typed(List(String())), False, False),
    ("reorder fields", (X, REQUIRED), (REQUIRED, X), True, True),
    ("reorder cases", typed(TWO), typed(Variant(TWO.cases[::-1])), True, True),
    ("document", (X,), (Field("x", Int(), doc="the x"),), True, True),
    ("nothing", (X,), (X,), True, True),
]


def as_it_is(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return fields


def in_record(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return (Field("outer", Record(fields)),)


def in_list(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return (Field("outer", List(Record(fields)), optional=True),)


def in_option(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return (Field("outer", List(Option(Record(fields)))),)


def in_case(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return (Field("outer", Variant((Case("C", (Int(), Record(fields))),))),)


@pytest.mark.parametrize("place", [as_it_is, in_record, in_list, in_option, in_case])
@pytest.mark.parametrize(
    ("old", "new", "backward", "forward"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_change_is_judged_as_the_table_says_at_any_depth(
    place: Callable[[tuple[Field, ...]], tuple[Field, ...]],
    old: tuple[Field, ...],
    new: tuple[Field, ...],
    backward: bool,
    forward: bool,
) -> None:
    v1, v2 = Schema("t", place(old), 1), Schema("t", place(new), 2)
    assert bool(check_backward(reader=v2, writer=v1)) is backward
    assert bool(check_forward(reader=v1, writer=v2)) is forward
    assert bool(check_full(old=v1, new=v2)) is (backward and forward)


def test_every_difference_is_reported_with_its_path() -> None:
    v1 = Schema(
        "trade",
        (
            Field("price", Float()),
            Field("size", Int64()),
            Field("venue", String(), optional=True),
            Field("legs", List(Record((Field("ratio", Int()), Field("gone", Bool()))))),
            Field("kind", Variant((Case("A", (Int(), Option(String()))), Case("B")))),
        ),
    )
    v2 = Schema(
        "trade",
        (
            Field("price", String()),
            Field("size", Int()),
            Field("venue", String()),
            Field("legs", List(Record((Field("ratio", Ref("ratio")), Field("more", Bool()))))),
            Field("kind", Variant((Case("A", (Int(), String())),))),
            Field("fee", Float()),
        ),
        2,
    )
    verdict = check_backward(reader=v2, writer=v1)
    assert isinstance(verdict, Incompatible)
    kind = IncompatibilityKind
    assert [(".".join(d.path), d.kind) for d in verdict.differences] == [
        ("trade.price", kind.TYPE_CHANGED),
        ("trade.size", kind.TYPE_NARROWER),
        ("trade.venue", kind.FIELD_OPTIONAL),
        ("trade.legs.[].ratio", kind.TYPE_CHANGED),
        ("trade.legs.[].more", kind.FIELD_MISSING),
        ("trade.legs.[].gone", kind.FIELD_REMOVED),
        ("trade.kind.A.1", kind.TYPE_NARROWER),
        ("trade.kind.B", kind.CASE_UNKNOWN),
        ("trade.fee", kind.FIELD_MISSING),
    ]
    assert str(verdict.differences[0]) == (
        "trade.price: the reader has type String, the writer Float"
    )
    assert str(verdict.differences[-1]) == (
        "trade.fee: missing field fee: the reader has it, the writer does not"
    )


def test_renamed_schema_is_reported_beside_its_fields() -> None:
    verdict = check_full(Schema("a", (X,)), Schema("b", (X, REQUIRED)))
    assert isinstance(verdict, Incompatible)
    kinds = [difference.kind for difference in verdict.differences]
    assert kinds.count(IncompatibilityKind.NAME_CHANGED) == 2
    assert IncompatibilityKind.FIELD_MISSING in kinds


def test_full_check_reports_both_directions() -> None:
    verdict = check_full(Schema("t", (X, OPTIONAL)), Schema("t", (X, Field("fee", Float()))))
    assert isinstance(verdict, Incompatible)
    assert [d.path[-1] for d in verdict.differences] == ["fee", "venue"]


def test_verdicts_are_conditions() -> None:
    difference = Incompatibility(("t",), IncompatibilityKind.NAME_CHANGED, "")
    assert Compatible()
    assert not Incompatible((difference,))


@given(schemas(refs=True, nested_options=True))
def test_every_schema_is_compatible_with_itself(schema: Schema) -> None:
    again = Schema(schema.name, schema.fields, schema.version + 1, "another doc")
    assert check_full(schema, again) == Compatible()


@given(st.data(), schemas(refs=True))
def test_checks_agree_with_the_obvious_twin(data: st.DataObject, old: Schema) -> None:
    new = data.draw(evolved(old) | schemas(name=old.name, refs=True))
    backward = fits_fields(new.fields, old.fields, "backward")
    forward = fits_fields(old.fields, new.fields, "forward")
    event(f"backward {backward}, forward {forward}")
    assert bool(check_backward(new, old)) is backward
    assert bool(check_forward(old, new)) is forward
    assert bool(check_full(old, new)) is (backward and forward)
    assert bool(check_readable(new, old)) is fits_fields(new.fields, old.fields, "readable")
    if backward:
        assert check_readable(new, old)
    if forward:
        assert check_readable(old, new)


def fits_fields(reader: tuple[Field, ...], writer: tuple[Field, ...], how: str) -> bool:
    wanted, written = {f.name: f for f in reader}, {f.name: f for f in writer}
    shared = wanted.keys() & written.keys()
    added = [wanted[name] for name in wanted.keys() - shared]
    dropped = [written[name] for name in written.keys() - shared]
    return (
        all(fits(wanted[name].type, written[name].type, how) for name in shared)
        and all(wanted[name].optional or not written[name].optional for name in shared)
        and all(field.optional and how != "forward" for field in added)
        and all(field.optional or how != "backward" for field in dropped)
    )


def fits(reader: FieldType, writer: FieldType, how: str) -> bool:
    wide = how != "forward"
    if isinstance(reader, Option) and isinstance(writer, Option):
        return fits(reader.of, writer.of, how)
    if isinstance(reader, Option):
        return wide and fits(reader.of, writer, how)
    if isinstance(reader, List) and isinstance(writer, List):
        return fits(reader.of, writer.of, how)
    if isinstance(reader, Record) and isinstance(writer, Record):
        return fits_fields(reader.fields, writer.fields, how)
    if isinstance(reader, Variant) and isinstance(writer, Variant):
        known = {case.name: case.args for case in reader.cases}
        return all(
            case.name in known
            and len(known[case.name]) == len(case.args)
            and all(fits(r, w, how) for r, w in zip(known[case.name], case.args, strict=True))
            for case in writer.cases
        )
    return reader == writer or (wide and reader == Int64() and writer == Int())
