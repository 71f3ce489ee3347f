"""The schema of the examples in the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.model.schema import (
    Bool,
    Case,
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
    Variant,
)

if TYPE_CHECKING:
    import random

TRADE = Schema(
    "trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("timestamp_ns", Int64()),
        Field("venue", String(), optional=True, doc="MIC"),
        Field("tags", List(Option(String())), optional=True),
        Field("leg", Record((Field("x", Bool()),)), optional=True),
        Field("kind", Variant((Case("A", (Int(), Ref("vwap"))), Case("B"))), optional=True),
        Field("raw", Opaque(), optional=True),
    ),
    doc="Trade event from exchange",
)


def shuffled(kind: FieldType, rng: random.Random) -> FieldType:
    match kind:
        case Option():
            return Option(shuffled(kind.of, rng))
        case List():
            return List(shuffled(kind.of, rng))
        case Record():
            return Record(shuffled_fields(kind.fields, rng))
        case Variant():
            cases = [Case(c.name, tuple(shuffled(a, rng) for a in c.args)) for c in kind.cases]
            return Variant(tuple(rng.sample(cases, len(cases))))
    return kind


def shuffled_fields(fields: tuple[Field, ...], rng: random.Random) -> tuple[Field, ...]:
    inner = [Field(f.name, shuffled(f.type, rng), f.optional, "new doc") for f in fields]
    return tuple(rng.sample(inner, len(inner)))
