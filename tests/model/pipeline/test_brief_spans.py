"""Spans of a plan that may have been meant in seconds."""

from __future__ import annotations

from typing import Any

import pytest

import ripple as rp
from ripple.model.pipeline.brief_spans import brief_spans
from tests.records import Trade

START = rp.Pipeline("p").source("trades", Trade)
KEYED = START.partition("by", key="symbol")


@pytest.mark.parametrize(
    ("pipeline", "where"),
    [
        (rp.Pipeline("p").source("trades", Trade, out_of_order=5), "source 'trades': out_of_order"),
        (START.distinct("d", "symbol", within=3600), "distinct 'd': within"),
        (KEYED.window("w", rp.Tumbling(60)).fold("f", n=rp.count()), "window 'w': size"),
        (KEYED.window("w", rp.Session(60)).fold("f", n=rp.count()), "window 'w': gap"),
        (KEYED.fold("f", n=rp.count(), ttl=86400), "fold 'f': ttl"),
    ],
)
def test_a_small_int_is_named_with_its_unit(pipeline: rp.Pipeline, where: str) -> None:
    (remark,) = brief_spans(pipeline.sink("o").plan())
    assert remark.startswith(f"{where} is ")
    what = where.rpartition(" ")[2]
    assert f"ns: an int counts nanoseconds, so say {what}='" in remark


def test_spans_of_joins_and_tables_are_named_as_their_options() -> None:
    start = rp.Pipeline("p")
    left, right = start.source("trades", Trade), start.source("quotes", Trade)
    both: dict[str, Any] = {"on": "symbol", "lateness": 7, "emit": "final"}
    pairs = left.join_interval("i", right, within=(-5, "1s"), **both).sink("pairs")
    matches = left.join_asof("a", right, tolerance=5, **both).sink("matches")
    table = start.table("last", Trade, key="symbol", time="timestamp_ns", ttl=60).sink("rows")
    remarks = brief_spans(pairs.also(matches).also(table).plan())
    assert sorted(remark.partition(" is ")[0] for remark in remarks) == [
        "fold 'last.newest': ttl",
        "join_asof 'a': lateness",
        "join_asof 'a': tolerance",
        "join_interval 'i': lateness",
        "join_interval 'i': within[0]",
    ]


def test_spans_of_a_millisecond_and_more_need_no_remark() -> None:
    kept = START.distinct("d", "symbol", within="1ms").partition("by", key="symbol")
    assert not list(brief_spans(kept.fold("f", n=rp.count(), ttl="1d").sink("o").plan()))
    windowed = KEYED.window("w", rp.Sliding("1s", "500ms"), lateness="0s")
    assert not list(brief_spans(windowed.fold("f", n=rp.count()).sink("o").plan()))
