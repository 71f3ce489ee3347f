"""The loops over decimals of 128 bits, against Python's integers and decimals."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.model.expression.functions.wide_decimals import halves, whole
from ripple.model.schema import wide
from ripple.model.schema.logical.wide_decimals import stored_of, stored_text, units_in
from ripple.model.schema.text_columns import parts, text_column

END = 10**38
EXACT = decimal.Context(prec=100)
UNITS = st.integers(0, 38).flatmap(lambda digits: st.integers(-(10**digits) + 1, 10**digits - 1))
EDGES = st.sampled_from([0, 1, -1, END - 1, 1 - END, 2**63, -(2**63), 2**64, -(2**64), 10**19])
COLUMNS = st.lists(st.tuples(UNITS | EDGES, UNITS | EDGES), min_size=1, max_size=20)


@given(COLUMNS)
def test_stored_texts_have_the_order_of_the_numbers(rows: list[tuple[int, int]]) -> None:
    units = [one for one, _ in rows]
    texts = stored_of(halves(units)).to_pylist()
    assert texts == [stored_text(one) for one in units]
    assert whole(units_in(pa.array([None, *texts]))) == [0, *units]
    assert sorted(units) == [one for _, one in sorted(zip(texts, units, strict=True))]


@given(COLUMNS, st.sampled_from([20, 38]))
def test_arithmetic_is_exact_or_fails(rows: list[tuple[int, int]], precision: int) -> None:
    left, right = (halves([row[at] for row in rows]) for at in (0, 1))
    wanted = {
        "+": (wide.sums(left, right, False, precision), [a + b for a, b in rows]),
        "-": (wide.sums(left, right, True, precision), [a - b for a, b in rows]),
        "*": (wide.products(left, right, precision), [a * b for a, b in rows]),
        "finer": (wide.finer(left, 4, precision), [a * 10_000 for a, _ in rows]),
    }
    for name, ((found, failed), exact) in wanted.items():
        beyond = [abs(one) >= 10**precision for one in exact]
        assert failed.astype(bool).tolist() == beyond, name
        good = [0 if far else one for one, far in zip(exact, beyond, strict=True)]
        assert whole(found) == good, name


@given(COLUMNS, st.integers(0, 38))
def test_texts_are_those_of_python_and_are_read_again(
    rows: list[tuple[int, int]], scale: int
) -> None:
    units = [one for one, _ in rows]
    column = text_column(*wide.texts(halves(units), scale))
    exact = [decimal.Decimal(one).scaleb(-scale, EXACT) for one in units]
    assert column.to_pylist() == [format(one, "f") for one in exact]
    for texts in (column, pa.array([f"{one:e}" for one in exact])):
        found, verdicts = wide.parse(*parts(texts), 38, scale)
        assert not np.asarray(verdicts).any()
        assert whole(found) == units


def test_other_texts_are_told() -> None:
    texts = pa.array(["", "1e38", "9" * 39, "1.55", "x", "-", "1e", "2"])
    assert wide.parse(*parts(texts), 38, 1)[1].tolist() == [1, 2, 2, 2, 1, 1, 1, 0]
    for text in ("8" * 31, "8" * 31 + "G", "8" * 31 + "A"):
        with pytest.raises(ValueError, match="row 1 is no stored decimal"):
            units_in(pa.array([stored_text(7), text]))
