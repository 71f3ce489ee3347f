"""Expressions as values: their texts, and errors of misuse."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given, settings

import ripple.model.expression
from ripple.core.errors import PlanError
from ripple.model.expression import (
    Expr,
    as_column,
    coalesce,
    col,
    concat_str,
    greatest,
    least,
    lit,
    when,
)
from ripple.model.expression.functions.json_path import JSON
from ripple.model.expression.functions.text import TEXTS
from ripple.model.expression.functions.time import TIMES
from ripple.model.expression.text_methods import TextMethods
from ripple.model.expression.time_methods import TimeMethods
from ripple.model.schema.types import Bool, Float, Int, Int64, List, Option, String
from tests.examples import EXAMPLES, THINNED
from tests.model.expression.strategies import FIELDS, booleans, numbers, strings

_NAMES = {name: getattr(ripple.model.expression, name) for name in ripple.model.expression.__all__}


@pytest.mark.parametrize(
    ("expr", "canonical", "text"),
    [
        (
            col("price") * col("size"),
            "(*(col price)(col size))",
            'col("price") * col("size")',
        ),
        (
            (col("a") > 1) & ~(col("b") == "x"),
            "(&(>(col a)(lit(int 1)))(~(==(col b)(lit x))))",
            '(col("a") > 1) & ~(col("b") == "x")',
        ),
        (
            when(col("p")).then(0.5).otherwise(None),
            "(when(col p)(lit(float 0x1.0000000000000p-1))(null))",
            'when(col("p")).then(0.5).otherwise(None)',
        ),
        (
            when(col("p")).then(1).when(col("q")).then(2).when(col("r")).then(3).otherwise(4),
            "(when(col p)(lit(int 1))"
            "(when(col q)(lit(int 2))(when(col r)(lit(int 3))(lit(int 4)))))",
            'when(col("p")).then(1).otherwise(when(col("q")).then(2)'
            '.otherwise(when(col("r")).then(3).otherwise(4)))',
        ),
        (
            -(col("a") - (col("b") - 1)).cast(int),
            "(neg(cast int(-(col a)(-(col b)(lit(int 1))))))",
            '-(col("a") - (col("b") - 1)).cast(int)',
        ),
        (
            least(abs(col("a")), 2, True),
            "(least(least(abs(col a))(lit(int 2)))(lit(bool true)))",
            'least(least(abs(col("a")), lit(2)), lit(True))',
        ),
        (
            -((-col("i")) ** 2**1).sign().truncate(),
            "(neg(truncate(sign(**(neg(col i))(lit(int 2))))))",
            '-((-col("i")) ** 2).sign().truncate()',
        ),
    ],
)
def test_canonical_and_readable_texts(expr: Expr, canonical: str, text: str) -> None:
    assert expr.canonical == canonical
    assert repr(expr) == text


@settings(max_examples=36 * EXAMPLES // THINNED)
@given(numbers(3) | booleans(3) | strings(3))
def test_the_readable_text_is_the_python_that_builds_the_expression(expr: Expr) -> None:
    rebuilt = eval(repr(expr), dict(_NAMES))
    assert rebuilt.canonical == expr.canonical


def test_literals_that_differ_in_type_or_sign_have_different_texts() -> None:
    texts = [lit(value).canonical for value in (1, 1.0, True, "1", 0.0, -0.0, None, "true")]
    assert len(set(texts)) == len(texts)


def test_an_expression_does_not_change() -> None:
    with pytest.raises(AttributeError):
        col("a").value = "b"  # type: ignore[misc]  # what the test is about


MISUSES: list[tuple[Any, str]] = [
    (lambda: bool(col("a") > 1), "& | ~ instead of and, or, not"),
    (lambda: col("a") > 1 & col("b") < 2, "comparisons in parentheses"),
    (lambda: col("a") == col("s").str.split(":"), "take one of the parts, as in .str.split"),
    (lambda: col("s").str.split(":")[0], "take one of the parts, as in .str.split"),
    (lambda: when(col("p")).then(1).when(True), "when takes an expression"),
    (lambda: 1 < col("a") < 3, "a < b < c"),
    (lambda: col("a") in [col("b")], "per row, not as a whole"),
    (lambda: col(""), "the name of a column must be a text"),
    (lambda: lit(2**63), "64 bits"),
    (lambda: lit({}), "cannot stand in an expression"),  # type: ignore[arg-type]
    (lambda: col("a") + when(col("p")).then(1), "with .otherwise"),
    (lambda: col("a").cast(bool), "float, int or str"),
    (lambda: col("a").cast(int, strict=None), "True or False"),
    (lambda: col("s").str.slice("1"), "offset must be a whole number"),
    (lambda: col("s").str.slice(0, -1), "length must be a whole number from 0"),
    (lambda: col("s").str.split(""), "the separator of .str.split must be a text"),
    (lambda: col("s").str.split("/").list.get(-1), "index must be a whole number from 0"),
    (lambda: col("s").str.extract(col("t")), "the pattern of .str.extract must be a text"),
    (lambda: col("s").str.contains("x", literal=1), "literal must be True or False"),
    (lambda: col("s").str.replace("x", 1), "must be a text, not 1"),
    (lambda: col("s").str.pad_start(3, "ab"), "one character"),
    (lambda: col("i").dt.truncate("1 hour"), "as in '15m'"),
    (lambda: col("i").dt.truncate("0d"), "as in '15m'"),
    (lambda: col("i").dt.epoch("m"), "ns, us, ms, s or d"),
    (lambda: col("i").dt.to_string("%A"), "format takes %Y %m"),
    (lambda: col("i").dt.to_string("%"), "format takes %Y %m"),
    (lambda: concat_str("a", "b", separator=1), "separator must be a text"),
    (lambda: col("a").is_in([]), "at least one"),
    (lambda: col("a").is_in("abc"), "a list of plain values"),
    (lambda: col("s").starts_with(col("t")), "a plain text"),
    (lambda: when(True), "takes an expression"),
    (lambda: col("i") ** True, "exponent of an expression is a number, not True"),
    (lambda: col("i") ** "2", "exponent of an expression is a number, not '2'"),
    (lambda: col("i").hash(-1), "the seed of .hash must be a whole number from 0"),
    (lambda: as_column(3), "the name of a field or an expression"),
]


@pytest.mark.parametrize(("misuse", "told"), MISUSES)
def test_misuse_is_told(misuse: Any, told: str) -> None:
    with pytest.raises(PlanError) as caught:
        misuse()
    assert told in str(caught.value)


def test_an_expression_is_no_dictionary_key() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(col("a"))


TYPE_ERRORS: list[tuple[Expr, str]] = [
    (col("prise"), "there is no field 'prise'"),
    (col("a") + "x", "needs a text; it was given a float"),
    (col("s") + 1, "needs a text; use .cast(str); it was given an int"),
    (col("i").str.len_chars(), "needs a text; it was given an int"),
    (col("a").dt.hour(), "needs an int; it was given a float"),
    (col("s").str.contains("(a"), "is no pattern of RE2: missing )"),
    (col("s").str.extract("a+"), "has no group 1, but 0"),
    (col("s").str.extract(r"\pL", 0), "changes with versions of Unicode"),
    (col("s").str.contains(r"[^\pL]"), "changes with versions of Unicode"),
    (col("s").str.contains("(?i)É"), "give both letters"),
    (col("s").str.contains(r"(?i)\x{e9}"), "give both letters"),
    (col("s").str.replace(r"a|\b", ""), "matches the empty text"),
    (col("s").str.replace("(a)", "${1"), "write $1 for a group"),
    (col("s").str.replace_all("a*", ""), "matches the empty text"),
    (col("s").str.count_matches("a?"), "matches the empty text"),
    (col("s").str.replace("(a)", "$2"), "the replacement has group 2"),
    (col("s").str.replace("a", "$name"), "write $1 for a group"),
    (col("a") > "x", "compares a float with a text"),
    (col("p") > col("q"), "compares a bool with a bool"),
    (col("a") == None, "use .is_null()"),  # noqa: E711  # the mistake
    (col("p") + 1, "it was given a bool"),
    ((col("a") > 1) & col("i"), "put each comparison in parentheses"),
    (~col("a"), "needs a bool"),
    (when(col("a")).then(1).otherwise(2), "as its condition"),
    (when(col("p")).then(1).otherwise("x"), "mixes an int and a text"),
    (when(col("p")).then(None).otherwise(None), "mixes null and null"),
    (col("j").fill_null("x"), "mixes an int and a text"),
    (col("j").fill_null(None), "give a value"),
    (col("s").is_in(["a", 1]), "looks for an int where a text is"),
    (col("i").is_in([None]), "use .is_null()"),
    (col("a").starts_with("x"), "needs a text"),
    (col("i") ** -1, "a plain one from 0 to 63; for a float write"),
    (col("i") ** col("j"), 'write col("i").cast(float) ** ...'),
    (col("t") ** 2, "needs a float or an int; it was given a text"),
    (col("tags").hash(), "it was given a value without operators"),
    (col("t").sign(), "needs a float or an int; it was given a text"),
    (coalesce(col("t"), 1), "mixes a text and an int"),
    (col("tags") == col("tags"), "a value without operators"),
    (lit(None), "always null"),
]


@pytest.mark.parametrize(("expr", "told"), TYPE_ERRORS)
def test_types_that_do_not_fit_are_told(expr: Expr, told: str) -> None:
    with pytest.raises(PlanError) as caught:
        expr.bind({**FIELDS, "tags": List(String())})
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("expr", "result"),
    [
        (col("n"), Int()),
        (col("n") + 1, Int64()),
        (col("i") / 2, Float()),
        (col("i") + 0.5, Float()),
        (col("j") + 1, Option(Int64())),
        (col("j").fill_null(0), Int64()),
        (col("i").round(), Int64()),
        (col("t") == "x", Option(Bool())),
        (col("t").is_null(), Bool()),
        (when(col("q")).then(1).otherwise(2), Int64()),
        (when(col("p")).then(col("s")).otherwise(None), Option(String())),
    ],
)
def test_the_type_of_a_result(expr: Expr, result: Any) -> None:
    assert expr.bind({**FIELDS, "n": Int()}).type == result


def test_bound_texts_depend_on_the_types_of_the_fields_that_are_read() -> None:
    expr = col("x") + 1
    integer = expr.bind({"x": Int64()}).canonical
    assert integer == expr.bind({"other": String(), "x": Int64()}).canonical
    assert integer != expr.bind({"x": Float()}).canonical


def test_size_and_depth_are_limited() -> None:
    with pytest.raises(PlanError, match="inside each other"):
        functools.reduce(lambda deep, _: deep + 1, range(300), col("a"))
    with pytest.raises(PlanError, match="parts"):
        functools.reduce(lambda wide, _: wide + wide, range(40), col("a"))
    columns = [col(f"c{k}") for k in range(70)]
    with pytest.raises(PlanError, match="reads 70 columns"):
        sum(columns[1:], columns[0]).bind({f"c{k}": Float() for k in range(70)})


def test_equal_parts_are_computed_once() -> None:
    part = col("a") * col("b")
    program = greatest(part, part * part).bind({"a": Float(), "b": Float()}).program
    assert program is not None
    assert program.input_kinds == ("float", "float")


NAMES = [
    (col("s").str, "lower", "no attribute 'lower': write .str.to_lowercase()"),
    (col("s").str, "len", ".str.len_chars()"),
    (col("s"), "upper", "no attribute 'upper': write .str.to_uppercase()"),
    (col("i").dt, "strftime", '.dt.to_string("%Y-%m-%d")'),
    (col("i").dt, "datetime", '.dt.truncate("1d")'),
    (col("i"), "isin", ".is_in([1, 2])"),
    (col("i"), "fillna", ".fill_null(0)"),
]


@pytest.mark.parametrize(("of", "name", "told"), NAMES)
def test_names_of_other_libraries_are_told_ours(of: Any, name: str, told: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(of, name)
    assert told in str(caught.value)


def test_the_table_of_functions_has_what_the_methods_spell() -> None:
    """``of_integer`` and the like are of casts and operators."""
    inner = {"str.concat", "str.to_integer", "str.to_float", "str.of_integer"}
    inner |= {"str.of_float", "str.of_bool"}
    inner |= {"dt.zone_offset", "dt.span_begin"}
    spelled = {
        f"{space}.{name}"
        for space, methods in (("str", TextMethods), ("dt", TimeMethods))
        for name in vars(methods)
        if not name.startswith("_") and name not in {"expr", "zone"}
    }
    others = {"str.starts_with", "str.ends_with", "str.split", "dt.date", "str.decode"}
    assert spelled - others == {*TEXTS, *JSON, *TIMES} - inner - {"str.split.list.get"}
