"""UUIDs and bytes in expressions, against the plain reference."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.errors import PlanError
from ripple.model.expression import Expr, col, lit, when
from ripple.model.schema.types import (
    Bytes,
    Date,
    DateTime,
    Decimal,
    FieldType,
    Int64,
    Option,
    String,
    Uuid,
)
from tests.model.expression.reference import equals_reference

FIELDS: dict[str, FieldType] = {
    "a": Option(Uuid()), "b": Option(Uuid()), "n": Option(Int64()), "x": Option(String()),
}  # fmt: skip
KINDS = {"a": uuid.UUID, "b": uuid.UUID, "n": int, "x": str}
FEW = [uuid.UUID(int=n << shift) for n in range(3) for shift in (0, 124)]
TEXTS = st.none() | st.sampled_from(FEW).map(str) | st.uuids().map(str)
SPELLED = [str(FEW[1]).upper(), FEW[1].hex, f"{{{FEW[1]}}}", f" {FEW[1]}", "x"]
ENCODED = ["", "YQ==", "YQ", "YR==", "YQ= =", "6162", "616", "FF", "fF", "é", "_-8="]
ROWS = st.lists(
    st.fixed_dictionaries({"a": TEXTS, "b": TEXTS, "n": st.none() | st.integers(0, 1),
                           "x": TEXTS | st.sampled_from([*SPELLED, *ENCODED])}),
    min_size=1, max_size=12,
)  # fmt: skip
VALUES: st.SearchStrategy[Expr] = st.recursive(
    st.sampled_from([col("a"), col("b")]) | st.sampled_from(FEW).map(lit),
    lambda inner: (
        st.builds(lambda one, other: one.fill_null(other), inner, inner)
        | st.builds(lambda one, other: when(col("n") == 1).then(one).otherwise(other), inner, inner)
    ),
    max_leaves=4,
)


@given(VALUES, VALUES, ROWS, st.data())
def test_uuids_are_those_of_python(
    one: Expr, other: Expr, rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    expr = data.draw(
        st.sampled_from(
            [
                *(one == other, one != other, one < other, one <= other, one > other),
                *(one >= other, one, one.is_null(), one.is_in(FEW[:3]), one.cast(str)),
                *(one.hash(), one.cast(str) == col("x"), one.cast(uuid.UUID)),
                *(col("x").cast(uuid.UUID, strict=strict) == other for strict in (True, False)),
            ]
        )
    )
    equals_reference(expr, rows, FIELDS, KINDS)


@given(ROWS, st.sampled_from(["hex", "base64"]), st.booleans())
def test_bytes_of_texts_are_those_of_python(
    rows: list[dict[str, Any]], encoding: Any, strict: bool
) -> None:
    equals_reference(col("x").str.decode(encoding, strict=strict), rows, FIELDS, KINDS)


def test_a_choice_is_null_where_its_branch_is() -> None:
    sure: dict[str, FieldType] = {"u": Uuid(), "n": Option(Int64())}
    chosen = when(col("n") == 1).then(col("u")).otherwise(lit(FEW[0]))
    assert chosen.bind(sure).type == Uuid()  # of a null condition the other branch


def test_casts_between_types_that_have_none_say_the_way() -> None:
    fields: dict[str, FieldType] = {
        "d": Date(), "t": DateTime(), "n": Decimal(9, 2), "w": Decimal(30, 2), "y": Bytes(),
        "i": Int64(), "u": Uuid(),
    }  # fmt: skip
    for made, words in (
        (lambda: col("i").cast(uuid.UUID), "takes a text of 36 characters, not an int"),
        (lambda: col("n").cast(uuid.UUID), "takes no decimal"),
        (lambda: col("n").cast(dt.date), r"takes no decimal: .cast(int) it first"),
        (lambda: col("w").cast(dt.datetime), r"takes no decimal: .cast(int) it first"),
        (lambda: col("d").cast(dt.datetime), "is .dt.epoch('ns') with this cast"),
        (lambda: col("y").cast(bytes), ".str.decode('base64') reads bytes in a text"),
        (lambda: col("i").cast(bool), "compare, as in rp.col('x') != 0"),
        (lambda: col("i").str.decode("hex"), "takes a text, not an int"),
        (lambda: col("i").str.decode("HEX"), "encoding is 'base64' or 'hex', not 'HEX'"),
    ):
        with pytest.raises(PlanError, match=re.escape(words)):
            made().bind(fields)
    assert col("d").dt.epoch("ns").cast(dt.datetime).bind(fields).type == DateTime()


PARTS: dict[str, FieldType] = {"a": Option(Bytes()), "b": Option(Bytes()), "n": Option(Int64())}
RAW = st.none() | st.sampled_from(["", "00", "0000", "ff", "61"]) | st.binary().map(bytes.hex)
RAWS = st.lists(
    st.fixed_dictionaries({"a": RAW, "b": RAW, "n": st.none() | st.integers(0, 1)}),
    min_size=1, max_size=12,
)  # fmt: skip


@given(RAWS, st.binary(max_size=2), st.data())
def test_bytes_are_those_of_python(
    rows: list[dict[str, Any]], constant: bytes, data: st.DataObject
) -> None:
    one = when(col("n") == 1).then(col("a")).otherwise(col("b").fill_null(lit(constant)))
    other = data.draw(st.sampled_from([col("b"), lit(constant)]))
    expr = data.draw(
        st.sampled_from(
            [
                *(one == other, one != other, one < other, one <= other, one > other),
                *(one >= other, one, one.is_null(), one.is_in([constant, b"a"]), one.hash()),
                *(one.bin.size(), one.bin.encode("hex"), one.bin.encode("base64")),
            ]
        )
    )
    equals_reference(expr, rows, PARTS, {"a": bytes, "b": bytes, "n": int})
