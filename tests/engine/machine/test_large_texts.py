"""Rows whose texts are too long for one batch leave a node in several, and come to the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.engine.kernels.asof import Taken
from ripple.engine.kernels.stored import gathered
from ripple.engine.machine import Engine
from ripple.engine.operators import held_rows
from ripple.engine.operators.joins import (
    asof_rows,
    known_side,
    near_rows,
    row_table_rows,
    stream_join_rows,
)
from ripple.model.schema.exported import Made

ROWS_MAX = 3
SECOND_NS = 10**9


@rp.record(version=1)
class Trade:
    symbol: str
    trade: int
    at_ns: rp.Timestamp


@rp.record(version=1)
class Quote:
    symbol: str
    quote: int
    at_ns: rp.Timestamp


TRADES = pa.RecordBatch.from_pydict(
    {
        "symbol": list("ABABABABAA"),
        "trade": list(range(10)),
        "at_ns": [at * SECOND_NS for at in (5, 3, 8, 1, 7, 9, 2, 6, 4, 10)],
    }
)
QUOTES = pa.RecordBatch.from_pydict(
    {
        "symbol": list("ABBAA"),
        "quote": list(range(5)),
        "at_ns": [at * SECOND_NS for at in (1, 1, 4, 5, 8)],
    }
)


def asof(trades: Any, quotes: Any) -> Any:
    return trades.join_asof("near", quotes, on="symbol", emit="final")


def interval(trades: Any, quotes: Any) -> Any:
    return trades.join_interval(
        "near", quotes, on="symbol", within=("-3s", "3s"), how="left", emit="final"
    )


def scan(trades: Any, quotes: Any) -> Any:
    del quotes
    return trades.scan("near", key="symbol", settled=True, before=rp.lag("trade"))


def eager(trades: Any, quotes: Any) -> Any:
    rows = trades.join_asof("near", quotes, on="symbol", emit="eager")
    return rows.derive("more", more=rp.col("trade") + 1)


def full(trades: Any, quotes: Any) -> Any:
    return trades.join_interval(
        "near", quotes, on="symbol", within=("-3s", "3s"), how="full", emit="final"
    )


def shown(step: Callable[[Any, Any], Any]) -> tuple[list[Any], str]:
    """The rows of a node that lets all go at once, and the digest of its output."""
    p = rp.Pipeline("long")
    trades, quotes = p.source("trades", Trade), p.source("quotes", Quote)
    made = step(trades, quotes)
    held = made.sink("rows")
    held = held.also(quotes.partition("q", key="symbol").fold("counts", n=rp.count()).sink("n"))
    engine = Engine(held.plan())
    engine.apply("quotes", QUOTES, QUOTES.num_rows)
    engine.apply("trades", TRADES, TRADES.num_rows)
    engine.close()
    rows: list[Any] = engine.stabilize().outputs["rows"].to_pylist()
    return rows, engine.digests["rows"]


@pytest.mark.parametrize("step", [asof, interval, scan, eager])
def test_texts_beyond_one_batch_leave_in_several(
    step: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def few(schema: pa.Schema, count: int, parts: list[Any]) -> Made:
        if count > ROWS_MAX:
            raise OverflowError
        made.append(count)
        return gathered(schema, count, parts)

    def few_of(due: Taken, first: int, end: int) -> Made:
        if end - first > ROWS_MAX:
            raise OverflowError
        made.append(end - first)
        return due.batch(first, end)

    whole = shown(step)
    monkeypatch.setattr(asof_rows, "batch_of", few_of)
    for module in (stream_join_rows, held_rows, row_table_rows):
        monkeypatch.setattr(module, "gathered", few)
    assert shown(step) == whole
    assert sum(made) >= TRADES.num_rows
    assert len(made) > TRADES.num_rows // ROWS_MAX


def test_more_than_an_output_takes_at_one_cut_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    def halves(due: Taken, first: int, end: int) -> Made:
        if end - first > ROWS_MAX:
            raise OverflowError
        return due.batch(first, end)

    monkeypatch.setattr(asof_rows, "batch_of", halves)
    monkeypatch.setattr(pa, "concat_batches", concat)
    with pytest.raises(rp.LimitError, match=r"2 GiB of the field '.*' at once: leave"):
        shown(asof)


@pytest.mark.parametrize("how", ["right", "full"])
def test_texts_of_an_outer_interval_join_leave_by_spans_and_pieces(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def step(trades: Any, quotes: Any) -> Any:
        within = ("-3s", "3s")
        return trades.join_interval(
            "near", quotes, on="symbol", within=within, how=how, emit="final"
        )

    def few(schema: pa.Schema, count: int, parts: list[Any]) -> Made:
        if count > ROWS_MAX:
            raise OverflowError("the texts of one batch exceed 2 GiB")
        made.append(count)
        return gathered(schema, count, parts)

    def few_in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.num_rows > ROWS_MAX:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        return in_order(batch)

    whole = shown(step)
    in_order = known_side.in_order
    monkeypatch.setattr(known_side, "in_order", few_in_order)
    for module in (near_rows, held_rows):
        monkeypatch.setattr(module, "gathered", few)
    assert shown(step) == whole
    assert len(made) > TRADES.num_rows // ROWS_MAX


def test_an_outer_interval_join_says_what_it_cannot_give(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(schema: pa.Schema, count: int, parts: list[Any]) -> Made:
        raise OverflowError("the texts of one batch exceed 2 GiB")

    monkeypatch.setattr(held_rows, "gathered", none)
    said = r"'near': with how='full' its rows of one .* 2 GiB of a field: leave long fields out"
    with pytest.raises(rp.LimitError, match=said):
        shown(full)
