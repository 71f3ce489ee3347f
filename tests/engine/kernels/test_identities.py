"""Identities of rows by their places, and the rows' part in a digest: as NumPy computes them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ripple.core.hashing import mix_each, xxh64_of
from ripple.engine.kernels.identities import (
    digest_in_span,
    digest_of,
    identities_of,
    letters_of,
    only_span,
)
from ripple.model.row_identity import mix_in
from ripple.model.schema.exported import Part

SEED = xxh64_of(b"trades")


def batch() -> pa.RecordBatch:
    nan = float("nan")
    columns = {
        "text": pa.array(["", "a", None, "ab" * 20, "é"]),
        "number": pa.array([0, -1, None, 1 << 62, 5]),
        "float": pa.array([0.0, -0.0, nan, None, -nan]),
        "flag": pa.array([True, False, None, True, True]),
    }
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize(("first", "count"), [(0, 5), (1, 3), (2, 3), (5, 0)])
def test_a_digest_is_the_sum_of_the_hashes_of_rows(first: int, count: int) -> None:
    rows, letters = batch(), letters_of(batch().schema)
    assert letters is not None
    offsets, indexes = np.arange(count) * 7, np.arange(count) - 2
    hashes = np.full(count, SEED, np.uint64)
    mix_each(hashes, offsets.view(np.uint64))
    mix_each(hashes, indexes.view(np.uint64))
    for column in rows.slice(first, count).columns:
        mix_in(hashes, column)
    part = Part.of_all(rows).slice(first, count)
    assert digest_of(part, letters, SEED, offsets, indexes) == int(hashes.sum())
    with pytest.raises(ValueError, match="one value for each"):
        digest_of(part, letters, SEED, np.arange(count + 1), indexes)
    with pytest.raises(ValueError, match="one value for each"):
        digest_of(part, letters[:3], SEED, offsets, indexes)


@pytest.mark.parametrize("gap", [0, 1, 4, 9, 10, 11, 25, -3])
def test_a_digest_by_places_is_that_of_their_records(gap: int) -> None:
    base, indexes, count = 1000, 10, 5
    nan = float("nan")
    columns = {"number": [5, -1, 0, 7, 1 << 62], "float": [0.0, -0.0, nan, 1.5, -nan]}
    rows = Part.of_all(pa.RecordBatch.from_pydict(columns))
    places = base + 17 + gap * np.arange(count)
    span = (int(places.min()), int(places.max()) + 1, base)
    offsets, found = identities_of(places, base, 1, indexes)
    assert digest_in_span(rows, b"qd", SEED, places, *span, indexes) == digest_of(
        rows, b"qd", SEED, offsets, found
    )
    for beyond in ((span[0] + 1, *span[1:]), (span[0], span[1] - 1, base)):
        assert digest_in_span(rows, b"qd", SEED, places, *beyond, indexes) is None
    mixed = np.full(count, SEED, np.uint64)
    for one in (offsets, found):
        mix_each(mixed, one.view(np.uint64))
    for column in rows.arrow().columns:
        mix_in(mixed, column)
    assert digest_of(rows, b"qd", SEED, offsets, found) == int(mixed.sum())


def test_columns_of_other_types_have_no_letters() -> None:
    assert letters_of(pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int64()))])) is None


@pytest.mark.parametrize("inputs", [1, 3])
def test_places_tell_offsets_and_indexes(inputs: int) -> None:
    base, indexes = 1 << 59, 10_000
    places = base + np.array([0, 9_999, 10_000, 123_456_789, -1, -10_000, -123_456_789])
    number = places - base
    offsets, index = identities_of(places, base, inputs, indexes)
    assert offsets.tolist() == (number // (indexes * inputs)).tolist()
    assert index.tolist() == (number % indexes).tolist()


def test_places_of_one_span_are_told() -> None:
    span, preceding = 1 << 59, 1 << 55
    for number in (0, 1, 15):
        first = number * span - preceding
        inside = np.array([first, first + 1, first + span - 1])
        assert only_span(inside, span, preceding) == number
        for other in [first - 1] * (number > 0) + [first + span] * (number < 15):
            assert only_span(np.append(inside, other), span, preceding) == -1
    assert only_span(np.empty(0, np.int64), span, preceding) == -1
