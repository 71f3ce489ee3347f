"""Schemas, values that fit them, and deltas that fit those."""

from __future__ import annotations

import math
import struct

from hypothesis import strategies as st

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


def frozen(value, float_key=lambda value: struct.pack("<d", value)):
    """Return a value that == compares to the bit: the tests' own idea of being the same."""

    def freeze(item):
        match item:
            case float():
                return ("float", float_key(item))
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
