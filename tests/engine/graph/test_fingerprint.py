"""The bytes that stand for a value in a column, against the plain form of them."""

from __future__ import annotations

import math
import struct
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.hashing import xxh64_of
from ripple.engine.graph.canonical import canonical, fingerprint


class Side(StrEnum):
    BUY = "buy"


def plain(value: Any) -> bytes:
    match value:
        case None:
            return b"n"
        case str():
            text = value.encode("utf-8", "surrogatepass")
            return b"s%d:%s" % (len(text), text)
        case bool():
            return b"t" if value else b"f"
        case int():
            return b"i%d;" % value
        case float():
            bits = struct.pack(">d", math.nan if math.isnan(value) else value)
            return b"d" + bits.hex().encode()
        case bytes():
            return b"b%d:%s" % (len(value), value)
        case list() | tuple():
            return b"l%d:%s" % (len(value), b"".join(map(plain, value)))
        case dict():
            items = [plain(name) + plain(item) for name, item in sorted(value.items())]
            return b"m%d:%s" % (len(value), b"".join(items))
    raise AssertionError(value)


texts = st.text(st.characters(), max_size=12) | st.text("ab", min_size=95, max_size=115)
atoms = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=30)
values = st.recursive(
    atoms,
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=40,
)


@given(value=values)
def test_values_are_written_as_the_plain_form_has_them(value: Any) -> None:
    assert canonical(value) == plain(value)
    assert fingerprint(value) == xxh64_of(plain(value)) >> 1


@pytest.mark.parametrize(
    "value", [Side.BUY, "\ud800", "x" * 104, "x" * 105, np.float64(-0.0), ("a", 1), -(2**70), ""]
)
def test_values_of_other_classes_are_those_of_their_base(value: Any) -> None:
    assert canonical(value) == plain(value)
    assert fingerprint(value) == xxh64_of(plain(value)) >> 1


def test_values_that_no_column_holds_are_refused() -> None:
    with pytest.raises(TypeError, match=r"a column cannot hold set: \{1\}"):
        fingerprint([{"a": {1}}])
