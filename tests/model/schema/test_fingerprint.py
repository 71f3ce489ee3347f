"""Fingerprints are pinned: another process, platform or release must compute the same."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ripple.model.schema import (
    Case,
    Field,
    FieldType,
    Float,
    Int,
    List,
    Option,
    Record,
    Schema,
    String,
    Variant,
    notation,
)
from ripple.model.schema.fingerprint import fingerprint, layout_hash
from tests.model.schema.trade import TRADE, shuffled_fields
from tests.strategies import schemas

if TYPE_CHECKING:
    import random

VWAP = Schema(
    "vwap",
    (
        Field("symbol", String()),
        Field("vwap", Float()),
        Field("total_volume", Int()),
        Field("trade_count", Int()),
    ),
)

# Each is b2sum -l 64 over the schema's S-expression, docs emptied, sorted or as declared.
PINNED_TRADE = ("ba0dc14b4df6227a", "c1467f249b2788f6")
PINNED_VWAP = ("473007c02183a8bb", "accf246ef3c645b1")


def test_fingerprints_are_pinned() -> None:
    assert (fingerprint(TRADE), layout_hash(TRADE)) == PINNED_TRADE
    assert (fingerprint(VWAP), layout_hash(VWAP)) == PINNED_VWAP


def test_fingerprint_agrees_across_processes_with_other_hash_seeds() -> None:
    program = (
        "import sys; from ripple.model.schema import notation;"
        "from ripple.model.schema.fingerprint import fingerprint, layout_hash;"
        "schema = notation.loads(sys.stdin.read());"
        "print(fingerprint(schema), layout_hash(schema))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        input=notation.dumps(TRADE),
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert tuple(answer.stdout.split()) == PINNED_TRADE


@given(schemas(refs=True))
def test_round_trip_keeps_both_hashes(schema: Schema) -> None:
    again = notation.loads(notation.dumps(schema))
    assert fingerprint(again) == fingerprint(schema)
    assert layout_hash(again) == layout_hash(schema)


@given(schemas(refs=True), st.randoms(use_true_random=False))
def test_order_and_docs_at_any_depth_do_not_change_the_fingerprint(
    schema: Schema, rng: random.Random
) -> None:
    other = Schema(schema.name, shuffled_fields(schema.fields, rng), schema.version, "other")
    assert fingerprint(other) == fingerprint(schema)


@given(schemas(), schemas())
def test_schemas_that_differ_in_more_than_order_and_docs_differ_in_fingerprint(
    left: Schema, right: Schema
) -> None:
    same = _names_and_types(left) == _names_and_types(right)
    assert (fingerprint(left) == fingerprint(right)) == same


def test_swapped_fields_and_cases_change_the_layout_only() -> None:
    swapped = Schema("vwap", (*VWAP.fields[:2], VWAP.fields[3], VWAP.fields[2]))
    assert fingerprint(swapped) == fingerprint(VWAP)
    assert layout_hash(swapped) != layout_hash(VWAP)

    cases = [Variant((Case("A"), Case("B"))), Variant((Case("B"), Case("A")))]
    left, right = (Schema("s", (Field("x", List(kind)),)) for kind in cases)
    assert fingerprint(left) == fingerprint(right)
    assert layout_hash(left) != layout_hash(right)


def test_docs_do_not_change_the_layout() -> None:
    documented = Schema("vwap", VWAP.fields, doc="Volume-weighted average price")
    assert layout_hash(documented) == layout_hash(VWAP)


def test_case_arguments_are_positional_in_the_fingerprint_too() -> None:
    left = Schema("s", (Field("x", Variant((Case("A", (Int(), String())),))),))
    right = Schema("s", (Field("x", Variant((Case("A", (String(), Int())),))),))
    assert fingerprint(left) != fingerprint(right)


def _names_and_types(schema: Schema) -> object:
    return (schema.name, schema.version, _field_set(schema.fields))


def _field_set(fields: tuple[Field, ...]) -> object:
    return frozenset((field.name, _shape(field.type), field.optional) for field in fields)


def _shape(kind: FieldType) -> object:
    match kind:
        case Option() | List():
            return (type(kind), _shape(kind.of))
        case Record():
            return _field_set(kind.fields)
        case Variant():
            return frozenset((c.name, tuple(_shape(arg) for arg in c.args)) for c in kind.cases)
    return kind
