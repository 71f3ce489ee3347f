"""Expressions as values: their texts, and errors of misuse."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given, settings

import ripple.model.expression
from ripple.core.errors import PlanError
from ripple.model.expression import Expr, as_column, coalesce, col, greatest, least, lit, when
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
    (lambda: 1 < col("a") < 3, "a < b < c"),
    (lambda: col("a") in [col("b")], "per row, not as a whole"),
    (lambda: col(""), "the name of a column must be a text"),
    (lambda: lit(2**63), "64 bits"),
    (lambda: lit(b"x"), "cannot stand in an expression"),
    (lambda: col("a") + when(col("p")).then(1), "with .otherwise"),
    (lambda: col("a").cast(str), "float or int"),
    (lambda: col("a").is_in([]), "at least one"),
    (lambda: col("a").is_in("abc"), "a list of plain values"),
    (lambda: col("s").starts_with(col("t")), "a plain text"),
    (lambda: when(True), "takes an expression"),
    (lambda: col("i") ** -1, "a whole number from 0 to 63"),
    (lambda: col("i") ** col("j"), "a whole number from 0 to 63"),
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
    (col("a") + "x", "needs a float or an int; it was given a text"),
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
    (col("s").cast(float), "it was given a text"),
    (col("a") ** 2, "needs an int; it was given a float"),
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


def test_many_choices_of_texts_are_refused_before_they_explode() -> None:
    def grown(text: Expr, _: int) -> Expr:
        return when(col("p")).then(text).otherwise("x").fill_null(text)

    with pytest.raises(PlanError, match="chosen by more than"):
        functools.reduce(grown, range(8), col("t")).bind(FIELDS)
