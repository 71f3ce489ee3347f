"""The statement that merges changes of an output into a table."""

from __future__ import annotations

import pytest

import ripple as rp
from ripple.core.errors import OutputError
from tests.spark.test_dataframe import BARS, PLAN

pytest.importorskip("pyspark", reason="a statement is of a module that Spark runs")
pytestmark = pytest.mark.services

from ripple.spark.merging import merge_into  # noqa: E402 - it needs pyspark


def test_rows_are_merged_by_their_key_and_window() -> None:
    merge = merge_into("market.bars", PLAN)
    assert merge.key == ("symbol", "window_start_ns")
    assert merge.statement() == (
        "MERGE INTO market.bars t USING ripple_changes s "
        "ON t.`symbol` <=> s.`symbol` AND t.`window_start_ns` <=> s.`window_start_ns` "
        "WHEN MATCHED AND s.op = 'remove' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t.`symbol` = s.`symbol`, "
        "t.`window_start_ns` = s.`window_start_ns`, t.`window_end_ns` = s.`window_end_ns`, "
        "t.`n` = s.`n`, t.`last` = s.`last` "
        "WHEN NOT MATCHED AND NOT s.op = 'remove' "
        "THEN INSERT (`symbol`, `window_start_ns`, `window_end_ns`, `n`, `last`) "
        "VALUES (s.`symbol`, s.`window_start_ns`, s.`window_end_ns`, s.`n`, s.`last`)"
    )


def test_events_and_unnamed_outputs_are_refused() -> None:
    both = BARS.fold("bar", n=rp.count()).sink("out").also(BARS.fold("b", n=rp.count()).sink("two"))
    with pytest.raises(OutputError, match="the pipeline has the outputs out, two: choose one"):
        merge_into("t", both.plan())
    events = rp.Pipeline("p").source("trades", PLAN.source.record, time="t").sink("out").plan()
    with pytest.raises(OutputError, match="out has events, which have no key to merge by"):
        merge_into("t", events)
