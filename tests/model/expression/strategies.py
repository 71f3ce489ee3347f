"""Random well-typed expressions, and rows to evaluate them on."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

import ripple as rp
from ripple.model.expression import Expr, coalesce, col, concat_str, greatest, least, lit, when
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
texts = st.sampled_from(
    [
        "", "a", "b", "ab", "AAPL", "\u00e9", "z\U0001f600", "a/b//c", "/\u00c9/", "12", "-7",
        "+0.5", " x\n", "9223372036854775808", "1e400", "id=4&id=5", "\u00df\u0130\u0394\ud55c",
        "\t ", '{"a": [1.50, "\\u00e9"]}', ' {"a":{"b":null},"a":"b"} ', '{"a":1', "[[]]",
    ]
)  # fmt: skip

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
        lambda x, y: x.fill_null(y), lambda x, y: x.cast(float) ** y, lambda x, y: x ** (y * 0.5),
    ]  # fmt: skip
    unary: list[Any] = [
        lambda x: -x, abs, lambda x: x.sqrt(), lambda x: x.floor(), lambda x: x.ceil(),
        lambda x: x.round(), lambda x: x.cast(int), lambda x: x.cast(float),
        lambda x: x.sign(), lambda x: x.truncate(), lambda x: x.nullif(1),
        lambda x: x.log(), lambda x: x.log2(), lambda x: x.log10(), lambda x: x.log1p(),
        lambda x: x.exp(), lambda x: x.exp2(), lambda x: x.expm1(), lambda x: x.fill_nan(0.5),
        lambda x: x.fill_nan(None), lambda x: x.round(2), lambda x: x.round(22),
        lambda x: x.round(9), lambda x: x.clip(-2, 2.5), lambda x: x.clip(upper=col("j")),
        lambda x: coalesce(x, col("j"), 0), lambda x: (x % 11).floor(),
        lambda x: x.round().cast(int) ** 3, lambda x: x.cast(int) ** 0, lambda x: x.hash(),
        lambda x: x.pow(0.5), lambda x: 2.0 ** x, lambda x: x.hash(seed=7),
    ]  # fmt: skip
    return (
        leaf
        | st.builds(lambda f, x, y: f(x, y), st.sampled_from(binary), number, number)
        | st.builds(lambda f, x: f(x), st.sampled_from(unary), number)
        | st.builds(lambda c, x, y: when(c).then(x).otherwise(y), boolean, number, number)
        | st.builds(lambda c, x: when(c).then(x).otherwise(None), boolean, number)
        | st.builds(lambda x: x.cast(int), boolean)
        | st.builds(lambda f, x: f(x), st.sampled_from(_NUMBERS_OF_TEXTS), _texts(depth))
        | st.builds(lambda f, x: f(x), st.sampled_from(_NUMBERS_OF_TIMES), whole_numbers(depth))
    )


def whole_numbers(depth: int) -> st.SearchStrategy[Expr]:
    return st.sampled_from([col("i"), col("j")]) | st.deferred(
        lambda: numbers(depth - 1).map(lambda x: x.round().cast(int))
    )


def _texts(depth: int) -> st.SearchStrategy[Expr]:
    return st.deferred(lambda: strings(depth - 1))


HOUR_NS = 3_600 * 10**9
_SESSIONS = [
    {"open": day * 24 * HOUR_NS, "close": (day * 24 + 7) * HOUR_NS} for day in (-1, 0, 1, 5, 20_000)
]
TRADING = rp.TradingSessions(table=_SESSIONS)
DIVIDED = rp.TradingSessions(table=_SESSIONS, every="5h", outside="own")
_NUMBERS_OF_TIMES: list[Any] = [
    lambda x: x.dt.year(), lambda x: x.dt.quarter(), lambda x: x.dt.month(), lambda x: x.dt.day(),
    lambda x: x.dt.weekday(), lambda x: x.dt.hour(), lambda x: x.dt.minute(),
    lambda x: x.dt.second(), lambda x: x.dt.nanosecond(), lambda x: x.dt.epoch("s"),
    lambda x: x.dt.epoch("d"), lambda x: x.dt.truncate("15m"), lambda x: x.dt.truncate("1d"),
    lambda x: x.dt.truncate("1w"), lambda x: x.dt.truncate("1mo"), lambda x: x.dt.truncate("5q"),
    lambda x: x.dt.in_zone("America/Havana").day(), lambda x: x.dt.in_zone("Asia/Tokyo").hour(),
    lambda x: x.dt.in_zone("America/Havana").truncate("1d"),
    lambda x: x.dt.in_zone("Europe/Paris").truncate("7h"),
    lambda x: x.dt.session_start(TRADING), lambda x: x.dt.session_start(DIVIDED),
]  # fmt: skip
FORMS = ["%F %T.%3f", "%j", "%u", "%H:%M é", "%Y%m%d%%%9f%6f", "%R", "%S"]
_NUMBERS_OF_TEXTS: list[Any] = [
    lambda x: x.str.len_chars(), lambda x: x.cast(int), lambda x: x.cast(float, strict=False),
    lambda x: x.cast(int, strict=False), lambda x: x.cast(float),
    lambda x: x.str.count_matches("/", literal=True),
    lambda x: x.str.count_matches("id=", literal=True),
    lambda x: x.str.count_matches("[a-z]+"), lambda x: x.hash(), lambda x: x.hash(2**64 - 1),
]  # fmt: skip
_TEXTS_OF_TEXTS: list[Any] = [
    lambda x: x.str.to_lowercase(), lambda x: x.str.to_uppercase(),
    lambda x: x.str.slice(1), lambda x: x.str.slice(-2), lambda x: x.str.slice(1, 2),
    lambda x: x.str.slice(-3, 2), lambda x: x.str.slice(0, 0), lambda x: x.str.slice(-(2**40), 3),
    lambda x: x.str.split("/").list.get(1), lambda x: x.str.split("id=").list.get(0),
    lambda x: x.str.extract("id=([^&]*)"), lambda x: x.str.extract("(a)?(/|b)", 2),
    lambda x: x.str.extract("[0-9]+", 0), lambda x: x.str.extract("(a)?/", 1),
    lambda x: x.str.replace("a|b", "<$0>"), lambda x: x.str.replace_all("([a-z])/", "${1}\\$$"),
    lambda x: x.str.replace_all("/", "--", literal=True),
    lambda x: x.str.replace("a", "\u00e9", literal=True),
    lambda x: x.str.strip_chars(), lambda x: x.str.strip_chars_start("/a\u00c9"),
    lambda x: x.str.strip_chars_end("/ \n"), lambda x: x.str.pad_start(4, "\u00e9"),
    lambda x: x.str.pad_end(3), lambda x: x + "/" + x, lambda x: "b" + x, lambda x: x.nullif("ab"),
    lambda x: concat_str(x, col("t"), x, separator=", "), lambda x: x.cast(str),
    lambda x: coalesce(x, col("t"), "none"), lambda x: x.str.json_path_match("$.a"),
    lambda x: x.str.json_path_match("$.a[1]", strict=False),
    lambda x: x.str.json_path_match("$", strict=False),
]  # fmt: skip


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
        lambda x, y: x.eq_missing(y), lambda x, y: x.ne_missing(y),
    ]  # fmt: skip
    logic: list[Any] = [
        lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x == y, lambda x, y: x.fill_null(y),
    ]  # fmt: skip
    text_tests: list[Any] = [
        lambda x: x.is_null(), lambda x: x.is_in(["a", "AAPL"]), lambda x: x.starts_with("a"),
        lambda x: x.ends_with("b"), lambda x: x.contains("A"), lambda x: x.str.contains("a/|É$"),
        lambda x: x.str.contains("a|b", literal=True), lambda x: x.str.starts_with("/"),
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
    number = st.deferred(lambda: numbers(depth - 1))
    return (
        leaf
        | st.builds(lambda f, x: f(x), st.sampled_from(_TEXTS_OF_TEXTS), text)
        | st.builds(lambda x: x.round().cast(int).cast(str), number)
        | st.builds(
            lambda x, form: x.dt.to_string(form), whole_numbers(depth), st.sampled_from(FORMS)
        )
        | st.builds(lambda x: x.cast(str), number | boolean)
        | st.builds(lambda x, y: x + y, text, text)
        | st.builds(lambda x, y: x.fill_null(y), text, text)
        | st.builds(lambda c, x, y: when(c).then(x).otherwise(y), boolean, text, text)
        | st.builds(lambda c, x: when(c).then(None).otherwise(x), boolean, text)
    )
