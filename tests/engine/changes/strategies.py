"""Schemas, values that fit them, and deltas that fit those."""

from __future__ import annotations

import math
import struct

import pyarrow as pa
from hypothesis import strategies as st

import ripple.engine.changes as rows_form
from ripple.engine.changes import (
    ABSENT,
    FieldRemove,
    FieldSet,
    Final,
    MapRemove,
    MapSet,
    Patch,
    Remove,
    Set,
)
from ripple.engine.changes.layout import Layout
from ripple.model.schema.types import (
    Bool,
    Case,
    Field,
    Float,
    Int,
    Int64,
    List,
    Option,
    Record,
    Schema,
    String,
    Variant,
)

NAMES = ("price", "size", "venue", "note", "leg", "flag", "bid", "ask")

# Few values, so that equal ones meet; among them all that == gets wrong.
floats = st.sampled_from([0.0, -0.0, 1.0, 150.25, math.nan, -math.nan, math.inf]) | st.floats(
    width=64
)
integers = st.sampled_from([0, 1, 2, 2**63 - 1, -(2**63)])
texts = st.sampled_from(["", "a", "b c", "é", "(x)"])

SCALARS = {Float(): floats, Int(): integers, Int64(): integers, Bool(): st.booleans()}
SCALARS[String()] = texts
VARIANT = Variant((Case("Buy"), Case("Limit", (Float(),))))


def field_types(depth=1):
    scalars = st.sampled_from([*SCALARS, VARIANT])
    if depth == 0:
        return scalars
    inner = field_types(depth - 1)
    return (
        scalars
        | st.builds(Option, inner)
        | st.builds(List, inner)
        | st.builds(Record, members(inner, size_max=3))
    )


def members(types, size_max=8):
    return st.lists(st.sampled_from(NAMES), min_size=1, max_size=size_max, unique=True).flatmap(
        lambda names: st.tuples(
            *(st.builds(Field, st.just(name), types, st.booleans()) for name in names)
        )
    )


schemas = st.builds(Schema, st.just("quote"), members(field_types()))


def values(kind):
    if kind in SCALARS:
        return SCALARS[kind]
    match kind:
        case Option(of):
            return st.none() | values(of)
        case List(of):
            return st.lists(values(of), max_size=2)
        case Record(fields):
            return records(fields)
    return st.sampled_from([("Buy",), ("Limit", 1.5), ("Limit", math.nan)])


@st.composite
def records(draw, fields):
    record = {}
    for field in fields:
        if not field.optional or draw(st.booleans()):
            held = draw(values(field.type))
            if held is not None or not field.optional:  # None is absent
                record[field.name] = held
    return record


@st.composite
def patches(draw, fields):
    ops = []
    for field in draw(st.lists(st.sampled_from(fields), max_size=4)):
        held = draw(st.none() | values(field.type)) if field.optional else draw(values(field.type))
        remove = held is None and field.optional
        ops.append(FieldRemove(field.name) if remove else FieldSet(field.name, held))
    return Patch(tuple(ops))


def deltas(fields):
    return (
        st.builds(Set, records(fields))
        | patches(fields)
        | st.just(Remove())
        | st.builds(Final, records(fields))
    )


map_keys = st.sampled_from([1, 2, "k", ("a", 1)])
maps = st.dictionaries(map_keys, floats | st.lists(integers, max_size=2), max_size=6)
map_ops = st.builds(MapSet, map_keys, floats) | st.builds(MapRemove, map_keys)
map_deltas = (
    st.builds(Set, maps)
    | st.builds(Patch, st.lists(map_ops, max_size=4).map(tuple))
    | st.just(Remove())
    | st.builds(Final, maps)
)


@st.composite
def scenes(draw, deltas_count=3):
    """A schema (or None for maps), a value or ABSENT, and some deltas of the same kind."""
    schema = draw(st.none() | schemas)
    one_value = maps if schema is None else records(schema.fields)
    one_delta = map_deltas if schema is None else deltas(schema.fields)
    value = draw(st.just(ABSENT) | one_value)
    return schema, value, [draw(one_delta) for _ in range(deltas_count)]


def frozen(value):
    """Return a value that == compares to the bit: the tests' own idea of being the same."""

    def freeze(item):
        match item:
            case float():
                return ("float", struct.pack("<d", item))
            case dict():
                return ("map", frozenset((key, freeze(held)) for key, held in item.items()))
            case list() | tuple():
                return ("list", tuple(map(freeze, item)))
            case Set(held):
                return ("Set", freeze(held))
            case Final(held):
                return ("Final", freeze(held))
            case Patch(ops):
                return ("Patch", tuple(map(freeze, ops)))
            case FieldSet(name, held):
                return ("FieldSet", name, freeze(held))
            case MapSet(key, held):
                return ("MapSet", key, freeze(held))
        return (type(item).__name__, item)

    return freeze(value)


LEG = Record((Field("bid", Float()), Field("ask", Float())))
KINDS = {
    Float(): pa.float64(),
    Int64(): pa.int64(),
    Bool(): pa.bool_(),
    String(): pa.string(),
    List(Float()): pa.list_(pa.float64()),
    LEG: pa.struct([("bid", pa.float64()), ("ask", pa.float64())]),
}
KEY_KINDS = {
    (): (),
    ("symbol",): (pa.string(),),
    ("id",): (pa.int64(),),
    ("symbol", "id"): (pa.string(), pa.int64()),
    ("symbol", "flag", "venue"): (pa.string(), pa.bool_(), pa.string()),
}
KEY_VALUES = {
    pa.string(): st.sampled_from(["", "A", "B", "a key that is longer than sixteen bytes", "é"]),
    pa.int64(): st.sampled_from([0, 1, -1, 2**63 - 1]),
    pa.bool_(): st.booleans(),
}


@st.composite
def tables(draw):
    """A layout, the schema of its values without the key, and a strategy for its keys."""
    keys = draw(st.sampled_from([*KEY_KINDS]))
    kinds = draw(st.lists(st.sampled_from([*KINDS]), min_size=not keys, max_size=6))
    fields = [Field(f"f{i}", kind, draw(st.booleans())) for i, kind in enumerate(kinds)]
    arrow = [pa.field(k, kind) for k, kind in zip(keys, KEY_KINDS[keys], strict=True)]
    arrow += [pa.field(f.name, KINDS[f.type], f.optional) for f in fields]
    parts = st.tuples(*(KEY_VALUES[kind] for kind in KEY_KINDS[keys]))
    return Layout(pa.schema(arrow), keys), fields, parts


@st.composite
def keyed_deltas(draw, scene, known=()):
    """Deltas, one per key; the likelier sound the more keys are known to be there."""
    layout, fields, parts = scene
    deltas = {}
    for part in draw(st.lists(parts, max_size=5, unique=True)):
        key = part[0] if len(part) == 1 else part
        record = dict(zip(layout.keys, part, strict=True)) | draw(records(fields))
        some = st.just(Set(record)) | st.just(Remove()) | st.just(Final(record))
        if fields and (key in known or draw(st.integers(0, 3)) == 0):
            some = patches(fields).map(lambda p: rows_form.compose(Patch(), p)) | some
        deltas[key] = draw(some)
    return deltas


def unordered(deltas):
    """Deltas by key; a patch's operations in any order."""
    return {
        key: frozen({op.name: op for op in delta.ops})
        if isinstance(delta, Patch)
        else frozen(delta)
        for key, delta in deltas
    }


LAYOUT = Layout(
    pa.schema(
        [
            pa.field("price", pa.float64(), nullable=False),
            pa.field("symbol", pa.string()),
            pa.field("size", pa.int64(), nullable=False),
            pa.field("open", pa.float64(), nullable=False),
            pa.field("venue", pa.string()),
        ]
    ),
    ("symbol",),
)
ROW = {"symbol": "A", "price": 1.0, "size": 1, "open": 0.5, "venue": "X"}
