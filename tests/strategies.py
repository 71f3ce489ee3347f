"""Random schemas, and random values of them as ``ripple.model.schema.types`` describes them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ripple.model.schema.logical.dates import DATE_LEAST, DATE_MOST
from ripple.model.schema.types import (
    Bool,
    Bytes,
    Case,
    Date,
    DateTime,
    Field,
    FieldType,
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
    Uuid,
    Variant,
)

INT_MIN, INT_MAX = -(2**62), 2**62 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

SCALARS = st.sampled_from(
    [String(), Int(), Int64(), Float(), Bool(), Date(), DateTime(), Uuid(), Bytes()]
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=6)

_SCALAR_VALUES: dict[FieldType, st.SearchStrategy[Any]] = {
    String(): TEXT,
    Int(): st.integers(INT_MIN, INT_MAX),
    Int64(): st.integers(INT64_MIN, INT64_MAX),
    Date(): st.integers(DATE_LEAST, DATE_MOST),
    DateTime(): st.integers(INT64_MIN, INT64_MAX),
    Uuid(): st.uuids().map(str),
    Bytes(): st.binary(max_size=6).map(bytes.hex),
    Float(): st.floats(),
    Bool(): st.booleans(),
    Opaque(): st.recursive(TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=4),
}

# Few plain names, so that two schemas often share some; and now and then an awkward one.
NAMES = st.one_of(
    st.sampled_from(list("abcdefgh")),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=6),
)

DOCS = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)


def field_types(
    *, depth: int = 3, refs: bool = False, opaque: bool = True, nested_options: bool = False
) -> st.SearchStrategy[FieldType]:
    """Field types nested at most ``depth`` deep.

    ``nested_options``: allow an option right inside an option, which the plain values here cannot
    tell from a single one.
    """
    leaves: st.SearchStrategy[FieldType] = SCALARS
    if opaque:
        leaves = st.one_of(leaves, st.just(Opaque()))
    if refs:
        leaves = st.one_of(leaves, st.builds(Ref, NAMES))
    if depth <= 1:
        return leaves
    inner = field_types(depth=depth - 1, refs=refs, opaque=opaque, nested_options=nested_options)
    present = inner if nested_options else inner.filter(lambda kind: not isinstance(kind, Option))
    cases = st.builds(Case, NAMES, st.lists(inner, max_size=2).map(tuple))
    return st.one_of(
        leaves,
        st.builds(Option, present),
        st.builds(List, inner),
        _tuples(_fields(inner, nested_options), "name").map(Record),
        _tuples(cases, "name").map(Variant),
    )


def schemas(
    *,
    name: str | None = None,
    depth: int = 3,
    refs: bool = False,
    opaque: bool = True,
    nested_options: bool = False,
) -> st.SearchStrategy[Schema]:
    """Schemas of one to five fields."""
    kinds = field_types(depth=depth, refs=refs, opaque=opaque, nested_options=nested_options)
    return st.builds(
        Schema,
        st.just(name) if name else NAMES,
        _tuples(_fields(kinds, nested_options), "name"),
        st.integers(1, 2**31),
        DOCS,
    )


@st.composite
def evolved(draw: st.DrawFn, schema: Schema) -> Schema:
    """A version of ``schema`` that somebody may have made of it: some changes are compatible."""
    return Schema(schema.name, _evolved_fields(draw, schema.fields), schema.version + 1)


def values(kind: FieldType) -> st.SearchStrategy[Any]:
    """Values of a type; a ``Ref`` has none here."""
    match kind:
        case Option():
            return st.none() | values(kind.of)
        case List():
            return st.lists(values(kind.of), max_size=3)
        case Record():
            return records(kind)
        case Variant():
            return st.one_of(*(_case_values(case) for case in kind.cases))
        case _:
            return _SCALAR_VALUES[kind]


def records(kind: Schema | Record) -> st.SearchStrategy[dict[str, Any]]:
    """Records as dicts in field order, each optional field present or not."""
    order = [field.name for field in kind.fields]
    return st.fixed_dictionaries(
        {field.name: values(field.type) for field in kind.fields if not field.optional},
        optional={field.name: values(field.type) for field in kind.fields if field.optional},
    ).map(lambda record: {name: record[name] for name in order if name in record})


def _fields(kinds: st.SearchStrategy[FieldType], nested_options: bool) -> st.SearchStrategy[Field]:
    fields = st.builds(Field, NAMES, kinds, st.booleans(), DOCS)
    if nested_options:
        return fields
    return fields.filter(lambda field: not (field.optional and isinstance(field.type, Option)))


def _tuples(members: st.SearchStrategy[Any], unique: str) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(
        members, min_size=1, max_size=5, unique_by=lambda member: getattr(member, unique)
    ).map(tuple)


def _case_values(case: Case) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(case.name), *(values(arg) for arg in case.args))


def _evolved_fields(draw: st.DrawFn, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    result = []
    for field in draw(st.permutations(fields)):
        # Most fields stay, or else hardly any two versions could read each other.
        change = draw(st.sampled_from(["keep"] * 3 + ["evolve"] * 3 + ["drop", "optional"]))
        kind = _evolved(draw, field.type) if change == "evolve" else field.type
        optional = field.optional or (change == "optional" and not isinstance(kind, Option))
        if change != "drop" or len(fields) == 1:
            result.append(Field(field.name, kind, optional))
    if draw(st.booleans()):
        added = Field("added", draw(SCALARS), draw(st.sampled_from([True, True, False])))
        result = [field for field in result if field.name != "added"] + [added]
    return tuple(result) or fields


def _evolved(draw: st.DrawFn, kind: FieldType) -> FieldType:
    match kind:
        case Option():
            return Option(_evolved(draw, kind.of))
        case List():
            return List(_evolved(draw, kind.of))
        case Record():
            return Record(_evolved_fields(draw, kind.fields))
        case Variant():
            cases = draw(st.permutations(kind.cases))
            return Variant(tuple(cases[1:]) if draw(st.booleans()) and cases[1:] else tuple(cases))
        case Int():
            return Int64()
        case _:
            return kind
