"""Rows of a key: whatever somebody gives as its value, it is a row's or told as wrong."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ripple.client.outputs.subscription import of_key
from ripple.core.errors import InputError
from ripple.engine.changes.layout import Layout

TABLE = pa.table({"k": ["a", "b"], "n": [1, 2], "v": [1.0, 2.0]})
LAYOUT = Layout(TABLE.schema, ("k", "n"))


def test_a_key_chooses_rows() -> None:
    assert of_key(LAYOUT, TABLE, {"k": "b"})["n"].to_pylist() == [2]
    assert of_key(LAYOUT, TABLE, {"k": "b", "n": 1}).num_rows == 0


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ({"v": 1.0}, "'v' is not part of the key, which is k, n"),
        ({"k": ["a"]}, r"k=\['a'\]: the field is string"),
        ({"k": {"a": 1}}, "the field is string"),
        ({"k": 1}, "the field is string"),
        ({"k": "\ud800"}, r"k='\\ud800': the field is string"),
        ({"n": 2**64}, "n=18446744073709551616: the field is int64"),
        ({"n": 1.5}, "the field is int64"),
        ({"n": "1" * 500}, "n='1{99}: the field is int64"),
    ],
)
def test_a_value_that_no_field_can_have_is_told_as_wrong(key: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        of_key(LAYOUT, TABLE, key)
