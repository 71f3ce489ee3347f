"""Joins with constants in engines: every key type, events and results, against the reference."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ripple as rp
from ripple.engine.operators import rows as operators
from ripple.model.pipeline.constant import Constant
from ripple.testing import Divergence, check_pipeline


@rp.record(version=1)
class Event:
    text: str | None
    number: int | None
    flag: bool
    size: int
    at: rp.Timestamp


TEXTS = ["", "a", "longer than sixteen bytes", "b"]
BY_TEXT = rp.constant(
    "by-text", [{"text": text, "rank": at or None} for at, text in enumerate(TEXTS)], key="text"
)
BY_ALL = rp.constant(
    "by-all",
    [
        {"flag": flag, "text": text, "number": number, "weight": number / 2, "is_odd": flag}
        for flag in (False, True)
        for text in TEXTS[:2]
        for number in (-1, 0, 2**62)
    ],
    key=("flag", "text", "number"),
)
NONE = rp.constant(
    "none",
    pa.table(
        {
            "number": pa.array([], pa.int64()),
            "x": pa.array([], pa.string()),
            "y": pa.array([], pa.float64()),
        }
    ),
    key="number",
)


def events(seed: int, count: int) -> list[dict[str, Any]]:
    random = Random(seed)
    texts, numbers = [*TEXTS, "unknown", None], [-1, 0, 1, 2**62, None]
    return [
        {
            "text": random.choice(texts),
            "number": random.choice(numbers),
            "flag": random.random() < 0.5,
            "size": at,
            "at": at,
        }
        for at in range(count)
    ]


def pipeline() -> rp.Pipeline:
    start = rp.Pipeline("p").source("events", Event)
    both = start.join("all", BY_ALL, on=["text", "number", "flag"], how="left")
    some = start.filter("few", rp.col("size") % 3 != 0).join("ranked", BY_TEXT, on="text")
    counts = (
        some.derive("told", told=rp.col("text").fill_null(""))
        .partition("by", key="told")
        .fold("counts", number=rp.max("rank"), n=rp.count())
    )
    named = counts.join("again", BY_TEXT, left_on="told", right_on="text", how="left").join(
        "none", NONE, on="number", how="left"
    )
    return both.sink("rows").also(some.sink("some")).also(named.sink("named"))


def test_rows_are_those_of_the_reference_in_any_batches_and_over_restarts() -> None:
    check_pipeline(pipeline(), events(1, 200), restarts=[30, 100])


def test_a_null_that_names_a_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_nulls(constant: Constant, columns: Any, names: Any) -> Any:
        return constant.find([columns.key(name) for name in names])

    monkeypatch.setattr(operators, "found_in", without_nulls)
    with pytest.raises(Divergence):
        check_pipeline(pipeline(), events(2, 200))


def test_keys_that_are_not_there_leave_no_trace() -> None:
    size = BY_TEXT._keys.index.nbytes
    unknown = pa.array([f"unknown {at}" for at in range(5000)])
    assert (BY_TEXT.find([unknown]) == -1).all()
    assert BY_TEXT._keys.index.nbytes == size
    known = BY_TEXT.find([BY_TEXT.rows.column("text")])
    np.testing.assert_array_equal(known, np.arange(len(TEXTS)))
