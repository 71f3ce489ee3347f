"""Functions of a list's items, and rows of items: against the reference interpreter."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
import re
import sys
import uuid
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.errors import PlanError
from ripple.model.expression import col
from ripple.model.expression.functions.list_folds import LIST_FOLDS, exact_sum
from ripple.testing import check_pipeline

D = decimal.Decimal
NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
ID = uuid.UUID(int=5)


@rp.record
class Sample:
    at: int
    n: Annotated[D, rp.Decimal(12, 4)]
    floats: list[float]
    whole: list[int]
    texts: list[str]
    prices: list[Annotated[D, rp.Decimal(12, 4)]]
    large: list[Annotated[D, rp.Decimal(38, 4)]]
    days: list[dt.date] | None
    times: list[dt.datetime]
    ids: list[uuid.UUID]
    blobs: list[bytes]


FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, 1e308, 1e16, 1.0, -1e16]


def samples() -> list[dict[str, Any]]:
    def some(at: int, of: list[Any]) -> list[Any]:
        return [of[(at * 7 + place * 3) % len(of)] for place in range(at * 5 % 4)]

    days = [dt.date(2026, 1, day) for day in (3, 1, 2)]
    return [
        {
            "at": at,
            "n": D(at % 3) / 2,
            "floats": some(at, FLOATS),
            "whole": some(at, [1, 2, -3, 1 << 62]),
            "texts": some(at, ["b", "a", "é"]),
            "prices": some(at, [D("0.5"), D(0), D("-1.5"), D(1)]),
            "large": some(at, [D("9" * 34), D("0.5"), D(-1)]),
            "days": None if at % 5 == 0 else some(at, days),
            "times": some(at, [NOON, NOON - dt.timedelta(days=1)]),
            "ids": some(at, [ID, uuid.UUID(int=1)]),
            "blobs": some(at, [b"\1", b""]),
        }
        for at in range(40)
    ]


ROWS = rp.Pipeline("p").source("t", Sample, time="at")
NAMES = ["floats", "whole", "texts", "prices", "large", "days", "times", "ids", "blobs"]
FOUND = {
    **{f"{name}_min": col(name).list.min() for name in NAMES},
    **{f"{name}_max": col(name).list.max() for name in NAMES},
    **{f"{name}_get": col(name).list.get(-1) for name in NAMES},
    **{f"{name}_sum": col(name).list.sum() for name in ("floats", "whole", "prices")},
    "f": col("floats").list.contains(1),
    "z": col("floats").list.contains(0.0),
    "w": col("whole").list.contains(2),
    "t": col("texts").list.contains("é"),
    "p": col("prices").list.contains(D("0.5")),
    "has_n": col("prices").list.contains(col("n")),
    "l": col("large").list.contains(col("n")),
    "d": col("days").list.contains(dt.date(2026, 1, 2)),
    "m": col("times").list.contains(NOON),
    "i": col("ids").list.contains(ID),
    "b": col("blobs").list.contains(b"\1"),
    "span": col("days").list.max() - col("days").list.min(),
    "more": col("prices").list.max() + 1,
}


def test_items_are_those_of_the_interpreter() -> None:
    steps = ROWS.derive("d", **FOUND).derive("s", large_sum=col("large").list.sum())
    check_pipeline(steps.sink("o"), samples(), batch_sizes=(1, 7), restarts=(10,))


@pytest.mark.parametrize(
    ("last", "total"),
    [
        ([], math.inf),
        ([math.inf], math.inf),
        ([-math.inf], -math.inf),
        ([math.nan], math.nan),
        ([math.inf, -math.inf], math.nan),
        ([math.inf, math.nan], math.nan),
    ],
)
def test_sum_of_huge_floats_is_decided_by_those_without_a_value(
    last: list[float], total: float
) -> None:
    rows = [{**samples()[0], "floats": [1e308, 1e308, *last]}]
    summed = ROWS.derive("d", sum=FOUND["floats_sum"]).sink("o")
    assert repr(rp.collect(summed, rows).table()["sum"][0].as_py()) == repr(total)


HUGE = sys.float_info.max
ORDERED = [
    ([1e308, 1e308, -1e308, 5.0], 1e308),
    ([HUGE, 2.0**969, 2.0**969], math.inf),
    ([HUGE, 2.0**969, 2.0**969, -(2.0**900)], HUGE),
    ([1e308, 1e308, -1e308, -1e308, -0.0], 0.0),
    ([1e16, 1.0, 1e-300, -1e16], 1.0),
    ([-0.0, -0.0], 0.0),
    ([1e308, 1e308, -1e308, -math.inf], -math.inf),
    ([1e308, 1e308, math.inf, -math.inf], math.nan),
    ([1e308, 1e308, math.nan, -math.inf], math.nan),
    ([1e308, 1e308, math.copysign(math.nan, -1)], math.nan),
    ([1.0, math.nan, math.copysign(math.nan, -1)], math.nan),
]


@pytest.mark.parametrize(("values", "total"), ORDERED)
def test_sum_of_floats_is_the_same_in_any_order(values: list[float], total: float) -> None:
    orders = [list(order) for order in itertools.permutations(values)]
    plain = np.array([exact_sum(order) for order in orders])
    column = LIST_FOLDS["list.sum.float"].columns
    assert column is not None
    bits = np.float64(total).view(np.int64)
    assert set(plain.view(np.int64)) == set(column(pa.array(orders)).view(np.int64)) == {bits}


@pytest.mark.parametrize("name", NAMES)
def test_items_become_rows_of_their_type(name: str) -> None:
    each = ROWS.flat_map("each", col(name), into="item")
    check_pipeline(each.sink("o"), samples(), batch_sizes=(7,))
    if name != "floats":
        by_item = each.partition("by", key="item").fold("f", n=rp.count(), last=rp.last("at"))
        check_pipeline(by_item.sink("o"), samples(), batch_sizes=(7,), restarts=(20,))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (col("texts").list.sum, "takes a list of numbers or decimals"),
        (col("days").list.sum, "takes a list of numbers or decimals"),
        (lambda: col("prices").list.contains(D("0.00001")), "5 behind the point: .round(4)"),
        (lambda: col("prices").list.contains("x"), "mixes a decimal and a text"),
        (lambda: col("days").list.contains("2026-01-01"), "looks for a text in a list of a date"),
        (lambda: col("whole").list.contains(None), "looks for null"),
        (lambda: col("whole").list.contains(1.5), "looks for a float"),
        (col("n").list.min, "takes a field that is a list"),
    ],
)
def test_what_items_do_not_have_is_refused(made: Callable[[], Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        ROWS.derive("d", x=made())
