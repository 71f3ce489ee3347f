"""UUIDs and bytes in expressions, against the plain reference."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ripple.model.expression import Expr, col, lit, when
from ripple.model.schema.types import Bytes, FieldType, Int64, Option, String, Uuid
from tests.model.expression.reference import equals_reference

FIELDS: dict[str, FieldType] = {
    "a": Option(Uuid()), "b": Option(Uuid()), "n": Option(Int64()), "x": Option(String()),
}  # fmt: skip
KINDS = {"a": uuid.UUID, "b": uuid.UUID, "n": int, "x": str}
FEW = [uuid.UUID(int=n << shift) for n in range(3) for shift in (0, 124)]
TEXTS = st.none() | st.sampled_from(FEW).map(str) | st.uuids().map(str)
ROWS = st.lists(
    st.fixed_dictionaries({"a": TEXTS, "b": TEXTS, "n": st.none() | st.integers(0, 1),
                           "x": TEXTS}),
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
                *(one.hash(), one.cast(str) == col("x")),
            ]
        )
    )
    equals_reference(expr, rows, FIELDS, KINDS)


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
