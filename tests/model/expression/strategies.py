"""Random well-typed expressions, and rows to evaluate them on."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from ripple.model.expression import Expr, coalesce, col, greatest, least, lit, when
from ripple.model.schema.types import Bool, FieldType, Float, Int64, Option, String

FIELDS: dict[str, FieldType] = {
    "a": Float(),
    "b": Option(Float()),
    "i": Int64(),
    "j": Option(Int64()),
    "p": Bool(),
    "q": Option(Bool()),
    "s": String(),
    "t": Option(String()),
}
KINDS: dict[str, type] = {
    "a": float, "b": float, "i": int, "j": int, "p": bool, "q": bool, "s": str, "t": str,
}  # fmt: skip

floats = st.floats() | st.sampled_from(
    [
        0.0,
        -0.0,
        1.0,
        0.5,
        2.5,
        -3.0,
        2.0**53,
        2.0**63,
        -(2.0**63),
        1e308,
        5e-324,
        math.inf,
        math.nan,
    ]
)
integers = (
    st.integers(-(2**63), 2**63 - 1)
    | st.integers(-3, 3)
    | st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**62])
)
texts = st.sampled_from(["", "a", "b", "ab", "AAPL", "\u00e9", "z\U0001f600"])

rows = st.lists(
    st.fixed_dictionaries(
        {
            "a": floats,
            "b": st.none() | floats,
            "i": integers,
            "j": st.none() | integers,
            "p": st.booleans(),
            "q": st.none() | st.booleans(),
            "s": texts,
            "t": st.none() | texts,
        }
    ),
    min_size=1,
    max_size=8,
)


def numbers(depth: int) -> st.SearchStrategy[Expr]:
    leaf = st.sampled_from([col(name) for name in "abij"]) | (floats | integers).map(lit)
    if depth == 0:
        return leaf
    number, boolean = (
        st.deferred(lambda: numbers(depth - 1)),
        st.deferred(lambda: booleans(depth - 1)),
    )
    binary: list[Any] = [
        lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y,
        lambda x, y: x // y, lambda x, y: x % y, least, greatest,
        lambda x, y: x.fill_null(y),
    ]  # fmt: skip
    unary: list[Any] = [
        lambda x: -x, abs, lambda x: x.sqrt(), lambda x: x.floor(), lambda x: x.ceil(),
        lambda x: x.round(), lambda x: x.cast(int), lambda x: x.cast(float),
        lambda x: x.sign(), lambda x: x.truncate(), lambda x: x.nullif(1),
        lambda x: x.clip(-2, 2.5), lambda x: x.clip(upper=col("j")),
        lambda x: coalesce(x, col("j"), 0), lambda x: (x % 11).floor(),
        lambda x: x.round().cast(int) ** 3, lambda x: x.cast(int) ** 0,
    ]  # fmt: skip
    return (
        leaf
        | st.builds(lambda f, x, y: f(x, y), st.sampled_from(binary), number, number)
        | st.builds(lambda f, x: f(x), st.sampled_from(unary), number)
        | st.builds(lambda c, x, y: when(c).then(x).otherwise(y), boolean, number, number)
        | st.builds(lambda c, x: when(c).then(x).otherwise(None), boolean, number)
        | st.builds(lambda x: x.cast(int), boolean)
    )


def booleans(depth: int) -> st.SearchStrategy[Expr]:
    leaf = st.sampled_from([col("p"), col("q"), lit(value=True)])
    if depth == 0:
        return leaf
    number, boolean = (
        st.deferred(lambda: numbers(depth - 1)),
        st.deferred(lambda: booleans(depth - 1)),
    )
    text = st.deferred(lambda: strings(depth - 1))
    compare: list[Any] = [
        lambda x, y: x == y, lambda x, y: x != y, lambda x, y: x < y,
        lambda x, y: x <= y, lambda x, y: x > y, lambda x, y: x >= y,
    ]  # fmt: skip
    logic: list[Any] = [
        lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x == y, lambda x, y: x.fill_null(y),
    ]  # fmt: skip
    text_tests: list[Any] = [
        lambda x: x.is_null(), lambda x: x.is_in(["a", "AAPL"]), lambda x: x.starts_with("a"),
        lambda x: x.ends_with("b"), lambda x: x.contains("A"),
    ]  # fmt: skip
    number_tests: list[Any] = [
        lambda x: x.is_null(), lambda x: x.is_nan(), lambda x: x.is_finite(),
        lambda x: x.is_in([1, 2.5, 2**53]), lambda x: x.is_in([0]),
    ]  # fmt: skip
    return (
        leaf
        | st.builds(lambda f, x, y: f(x, y), st.sampled_from(compare), number, number)
        | st.builds(lambda f, x, y: f(x, y), st.sampled_from(compare), text, text)
        | st.builds(lambda f, x, y: f(x, y), st.sampled_from(logic), boolean, boolean)
        | st.builds(lambda f, x: f(x), st.sampled_from(text_tests), text)
        | st.builds(lambda f, x: f(x), st.sampled_from(number_tests), number)
        | boolean.map(lambda x: ~x)
        | boolean.map(lambda x: x.is_null())
    )


def strings(depth: int) -> st.SearchStrategy[Expr]:
    leaf = st.sampled_from([col("s"), col("t")]) | texts.map(lit)
    if depth == 0:
        return leaf
    text, boolean = (
        st.deferred(lambda: strings(depth - 1)),
        st.deferred(lambda: booleans(depth - 1)),
    )
    return (
        leaf
        | st.builds(lambda x, y: x.fill_null(y), text, text)
        | st.builds(lambda c, x, y: when(c).then(x).otherwise(y), boolean, text, text)
        | st.builds(lambda c, x: when(c).then(None).otherwise(x), boolean, text)
    )
