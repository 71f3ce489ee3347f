"""Values of PostgreSQL's columns as JSON: arrays, documents, bytes."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.connectors.postgres.cells import cell_of
from ripple.core.errors import InputError
from ripple.model.schema.types import (
    Bool,
    Bytes,
    Date,
    Dict,
    Field,
    Float,
    HexBytes,
    Int,
    JsonText,
    List,
    Logical,
    String,
)

TEXTS, INTEGERS, FLOATS, TRUTHS, DAYS, BYTES = 1009, 1016, 1022, 1000, 1182, 1001
JSON, TEXT, BINARY = 3802, 25, 17
TEXT_FIELD = Field("x", String())


def found(number: int, kind: Logical | List, value: bytes) -> object:
    cell = cell_of(number, TEXT_FIELD, kind)
    assert cell is not None
    return json.loads(cell("x", value))


@pytest.mark.parametrize(
    ("number", "kind", "value", "items"),
    [
        (INTEGERS, Int(), b"{}", []),
        (INTEGERS, Int(), b"[0:1]={1,-2}", [1, -2]),
        (INTEGERS, Int(), b"{1,NULL}", [1, None]),
        (TEXTS, String(), b'{NULL,"NULL","",a b}', [None, "NULL", "", "a b"]),
        (FLOATS, Float(), b"{1e-3,-Infinity}", [0.001, float("-inf")]),
        (TRUTHS, Bool(), b"{t,f}", [True, False]),
        (DAYS, Date(), b"{2026-01-31}", ["2026-01-31"]),
        (DAYS, Int(), b"{1970-01-02}", [86_400_000_000_000]),
        (BYTES, Bytes(), rb'{"\\x00ff","\\x"}', ["AP8=", ""]),
        (BYTES, HexBytes(), rb'{"\\x00ff"}', ["00ff"]),
        (JSON, String(), b'["a", "b"]', ["a", "b"]),
    ],
)
def test_arrays_are_lists(number: int, kind: object, value: bytes, items: object) -> None:
    assert found(number, List(kind), value) == items  # type: ignore[arg-type]


@given(st.lists(st.text(max_size=4) | st.sampled_from(['"', "\\", "{", "}", ",", "NULL", "\n"])))
def test_any_texts_come_back(texts: list[str]) -> None:
    quoted = ('"' + one.replace("\\", r"\\").replace('"', r"\"") + '"' for one in texts)
    assert found(TEXTS, List(String()), f"{{{','.join(quoted)}}}".encode()) == texts


@given(st.binary(max_size=5))
def test_bytes_are_base64(value: bytes) -> None:
    text = found(BINARY, Bytes(), b"\\x" + value.hex().encode())
    assert isinstance(text, str)
    assert base64.b64decode(text) == value


@pytest.mark.parametrize("value", [b"{{1},{2}}", b"{1", b"{1,}", b"", b"{1}2", b"1", b'{"1}'])
def test_other_arrays_are_named(value: bytes) -> None:
    cell = cell_of(INTEGERS, TEXT_FIELD, List(Int()))
    assert cell is not None
    with pytest.raises(InputError, match="x is no array of one dimension"):
        cell("x", value)


def test_bytes_in_another_form_are_named() -> None:
    cell = cell_of(BINARY, TEXT_FIELD, Bytes())
    assert cell is not None
    with pytest.raises(InputError, match="set the server's bytea_output to hex"):
        cell("x", b"abc")


def test_columns_of_other_types_give_no_such_values() -> None:
    assert found(JSON, Dict(Int()), b'{"a": 1}') == {"a": 1}
    assert found(JSON, JsonText(), b"[{}]") == [{}]
    for number, kind in (
        *((TEXT, List(String())), (TEXT, Dict(Int())), (TEXT, JsonText())),
        *((INTEGERS, List(Bool())), (TEXTS, List(Int())), (INTEGERS, Dict(Int()))),
    ):
        assert cell_of(number, TEXT_FIELD, kind) is None
