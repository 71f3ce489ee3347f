"""A result row that cannot be computed is absent, counted and named, and comes back when it can."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ripple as rp
from ripple.connectors.memory import MemorySink
from ripple.engine.machine import Engine, Uncomputable, UncomputableRow
from ripple.engine.operators.uncomputable import REASON_LENGTH_MAX, ROWS_NAMED_MAX
from ripple.testing import check_pipeline
from tests.engine.machine.ticks import counts, finished
from tests.engine.machine.trades import Trade, batch_of

EVERY_ROW = (1, 2, 3, 1000)


def by_symbol(**window: Any) -> rp.Pipeline:
    pipeline = rp.Pipeline("p").source("trades", Trade).partition("by-symbol", key="symbol")
    return pipeline.window("w", rp.Tumbling(50), lateness=0, **window) if window else pipeline


def quotients(**window: Any) -> rp.Pipeline:
    """Divide by zero where a symbol has two trades."""
    fold = by_symbol(**window).fold("f", n=rp.count(), volume=rp.sum("size"))
    return fold.derive("each", q=rp.col("volume") // (rp.col("n") - 2))


def trades(*events: tuple[str, int, int]) -> list[tuple[str, float, int, int, str]]:
    return [(symbol, 1.0, size, time_ns, "X") for symbol, size, time_ns in events]


def fed(plan: rp.Plan, events: list[Any], size: int = 1000) -> Engine:
    """Return an engine that has stabilized after every ``size`` events."""
    engine = Engine(plan)
    feed(engine, events, size)
    return engine


def feed(engine: Engine, events: list[Any], size: int = 1000) -> list[dict[str, Any]]:
    """Go on with more events; return the changes of the last stabilize."""
    changes: list[dict[str, Any]] = []
    for at in range(0, len(events), size):
        part = events[at : at + size]
        engine.apply("trades", batch_of(part), engine.cut["trades"] + len(part))
        (rows,) = engine.stabilize().outputs.values()
        changes = rows.to_pylist()
    return changes


@pytest.mark.parametrize("size", EVERY_ROW)
def test_which_cuts_are_visited_does_not_matter(size: int) -> None:
    plan = quotients().sink("out").plan()
    three = trades(("A", 1, 1), ("A", 5, 2), ("A", 7, 3))
    two = fed(plan, three[:2], size)
    assert two.table("out").num_rows == 0
    reason = 'integer division by zero in col("volume") // (col("n") - 2)'
    row = UncomputableRow(("A",), "each", reason)
    assert two.uncomputable == {"f": Uncomputable(1, 0, (row,))}
    assert two.digest == Engine(plan).digest
    engine = fed(plan, three, size)
    assert engine.table("out").to_pylist() == [{"symbol": "A", "n": 3, "volume": 13, "q": 13}]
    assert engine.uncomputable == {}


def test_a_row_that_was_shown_is_removed_and_comes_back() -> None:
    engine = Engine(quotients().sink("out").plan(), retractions=True)
    (first,) = feed(engine, trades(("A", 1, 1)))
    assert (first["op"], first["q"]) == (0, -1)
    engine.apply("trades", batch_of(trades(("A", 5, 2))), 2)
    changes = engine.stabilize()
    assert changes.outputs["out"].to_pylist() == [
        {"op": 2, "symbol": "A", "n": None, "volume": None, "q": None}
    ]
    assert changes.retractions["out"].column("q").to_pylist() == [-1]
    (back,) = feed(engine, trades(("A", 7, 3)))
    assert (back["op"], back["q"]) == (0, 13)


def test_integer_sum_beyond_64_bits_keeps_its_exact_state() -> None:
    plan = by_symbol().fold("f", total=rp.sum("size"), n=rp.count()).sink("out").plan()
    engine = fed(plan, trades(("A", 2**63 - 1, 1), ("B", 1, 1), ("A", 2**63 - 1, 2)), 2)
    assert engine.table("out").to_pylist() == [{"symbol": "B", "total": 1, "n": 1}]
    ((row,),) = [found.rows for found in engine.uncomputable.values()]
    assert (row.key, row.step) == (("A",), "f")
    assert row.reason.startswith(f"'total': the exact integer sum {2**64 - 2} does not fit")
    for going_on in (engine, Engine.restore(plan, engine.snapshot())):
        feed(going_on, trades(("A", -(2**63), 3)))
        totals = dict(zip(*(going_on.table("out").column(c).to_pylist() for c in (0, 1)), strict=1))
        assert totals == {"A": 2**63 - 2, "B": 1}


@pytest.mark.parametrize("size", EVERY_ROW)
def test_window_that_closes_without_its_row_is_final_and_counted(size: int) -> None:
    plan = quotients(trigger=rp.OnWatermark()).sink("out").plan()
    events = trades(("A", 1, 1), ("A", 1, 2), ("B", 1, 3), ("A", 1, 60), ("A", 1, 150))
    engine = fed(plan, events, size)
    found = engine.uncomputable["f"]
    assert (found.count, found.final) == (1, 1)
    assert [(row.key, row.step) for row in found.rows] == [(("A", 0), "each")]
    restored = Engine.restore(plan, engine.snapshot())
    assert counts(restored) == {"f": (1, 1)}
    assert restored.uncomputable["f"].rows == ()  # the key went with the window
    # One more of a window that ends later.
    feed(restored, trades(("A", 1, 151), ("A", 1, 300)))
    assert counts(restored) == {"f": (2, 2)}
    assert [row.key for row in restored.uncomputable["f"].rows] == [("A", 150)]


def test_partial_result_that_failed_is_still_failed_after_a_restore() -> None:
    # Shown at every second trade: what could not be computed then cannot be told from the state.
    plan = quotients(trigger=rp.OnCount(2)).sink("out").plan()
    engine = fed(plan, trades(("A", 1, 1), ("A", 1, 2), ("A", 1, 3), ("B", 1, 4)), 1)
    assert engine.table("out").num_rows == 0
    whole, before = engine.snapshot(), engine.uncomputable
    assert Engine.restore(plan, whole).uncomputable == before
    assert before["f"].rows[0].key == ("A", 0)
    pending = engine.begin_snapshot()
    feed(engine, trades(("A", 1, 5), ("A", 1, 200)))  # the window closes before it was copied
    assert finished(pending) == whole


def test_batch_function_that_raises_costs_only_the_rows_that_it_raises_for() -> None:
    called: list[int] = []

    def picky(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        called.append(len(columns["n"]))
        if (columns["n"] == 2).any():
            raise ValueError("two is none of mine")
        return columns

    fold = by_symbol().fold("f", n=rp.count())
    pipeline = fold.map("picky", picky, into=rp.Schema("same", fold.fields), batch=True)
    events = trades(*((f"S{at:02}", 1, at) for at in range(20)), ("S07", 1, 21), ("S03", 1, 22))
    engine = fed(pipeline.sink("out").plan(), events)
    found = engine.uncomputable["f"]
    assert [(row.key, row.step) for row in found.rows] == [(("S03",), "picky"), (("S07",), "picky")]
    assert found.rows[0].reason == "the function raised ValueError: two is none of mine"
    assert engine.table("out").num_rows == 18
    assert max(called) == 20
    assert len(called) < 20  # by halves, not one by one


def test_batch_function_is_not_called_with_nothing() -> None:
    def largest_first(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {**columns, "n": columns["n"] - columns["n"].max()}  # raises for no rows

    fold = by_symbol().fold("f", n=rp.count()).filter("many", rp.col("n") > 1)
    pipeline = fold.map("least", largest_first, into=rp.Schema("same", fold.fields), batch=True)
    engine = fed(pipeline.sink("out").plan(), trades(("A", 1, 1), ("B", 1, 1)))
    assert engine.uncomputable == {}


def test_absent_row_is_no_member_of_the_group_above() -> None:
    pipeline = quotients().partition("all", key=()).fold("total", sum=rp.sum("q"), n=rp.count())
    engine = Engine(pipeline.sink("out").plan())
    assert feed(engine, trades(("A", 4, 1), ("B", 6, 2)))[0]["sum"] == -10
    assert feed(engine, trades(("A", 4, 3)))[0]["sum"] == -6
    assert feed(engine, trades(("A", 1, 4)))[0]["sum"] == -6 + 9
    assert feed(engine, trades(("A", 1, 5), ("B", 0, 6)))[0] == {"op": 0, "sum": 5, "n": 1}
    assert feed(engine, trades(("B", 1, 7)))[0] == {"op": 0, "sum": 5 + 7, "n": 2}


def test_row_that_the_fold_above_cannot_take_in_is_shown_and_named_under_its_own_fold() -> None:
    pipeline = (
        by_symbol()
        .fold("f", n=rp.count())
        .partition("all", key=())
        .fold("total", sum=rp.sum(12 // (rp.col("n") - 2)), rows=rp.count())
        .sink("rows", of="f")
        .sink("out")
    )
    engine = Engine(pipeline.plan())
    engine.apply("trades", batch_of(trades(("A", 1, 1), ("B", 1, 2), ("A", 1, 3))), 3)
    engine.stabilize()
    assert engine.table("rows").num_rows == 2
    assert engine.table("out").to_pylist() == [{"sum": -12, "rows": 1}]
    found = engine.uncomputable
    assert list(found) == ["f"]
    assert [(row.key, row.step) for row in found["f"].rows] == [(("A",), "total")]
    engine.apply("trades", batch_of(trades(("A", 1, 4))), 4)
    engine.stabilize()
    assert engine.table("out").to_pylist() == [{"sum": 0, "rows": 2}]
    assert engine.uncomputable == {}


def test_values_that_a_users_aggregate_refuses_are_not_folded() -> None:
    def add(state: int, value: int) -> int:
        if value == 2:
            raise ValueError("two is none of mine")
        return state + value

    picky = rp.custom(
        "n", init=lambda: 0, add=add, remove=lambda s, v: s - v, result=lambda s: 6 // s, type=int
    )
    fold = by_symbol().fold("f", n=rp.count()).partition("all", key=()).fold("total", picky=picky)
    events = trades(*((symbol, 1, at) for at, symbol in enumerate("ABABAACC")))
    check_pipeline(
        fold.sink("out"), [dict(zip(Trade.__annotations__, e, strict=1)) for e in events]
    )
    engine = fed(fold.sink("out").plan(), events[:4])
    assert counts(engine) == {"f": (2, 0)}
    assert engine.table("out").num_rows == 0


def test_result_that_a_users_aggregate_cannot_give_is_absent_until_it_can() -> None:
    def read(state: int) -> int:
        if state % 2:
            raise ValueError("an odd one")
        return state

    odd = rp.custom("size", init=lambda: 0, add=lambda s, v: s + v, result=read, type=int)
    engine = Engine(by_symbol().fold("f", even=odd, n=rp.count()).sink("out").plan())
    feed(engine, trades(("A", 1, 1), ("B", 2, 2), ("C", 3, 3)))
    assert engine.table("out").column("symbol").to_pylist() == ["B"]
    rows = engine.uncomputable["f"].rows
    assert [row.key for row in rows] == [("A",), ("C",)]
    assert "an odd one" in rows[0].reason
    feed(engine, trades(("A", 1, 4)))
    assert engine.table("out").column("symbol").to_pylist() == ["A", "B"]


def test_first_rows_by_key_are_named_and_all_are_counted() -> None:
    names = [f"S{at * 7 % 30:02}" for at in range(30)]
    events = trades(*((name, 1, 1) for name in names + names))
    for size in (1, 60):
        found = fed(quotients().sink("out").plan(), events, size).uncomputable["f"]
        assert (found.count, found.final) == (30, 0)
        assert [row.key for row in found.rows] == [(f"S{at:02}",) for at in range(ROWS_NAMED_MAX)]


def test_reason_has_a_limit() -> None:
    def refuse(row: Any) -> Any:
        raise ValueError("x" * 10_000)

    fold = by_symbol().fold("f", n=rp.count())
    pipeline = fold.map("m", refuse, into=rp.Schema("same", fold.fields))
    engine = fed(pipeline.sink("out").plan(), trades(("A", 1, 1)))
    assert len(engine.uncomputable["f"].rows[0].reason) == REASON_LENGTH_MAX


def test_a_total_over_everything_can_be_uncomputable_too() -> None:
    pipeline = by_symbol().fold("f", n=rp.count()).partition("all", key=())
    total = pipeline.fold("total", n=rp.count()).derive("d", q=1 // (rp.col("n") - 1))
    engine = fed(total.sink("out").plan(), trades(("A", 1, 1)))
    assert engine.uncomputable["total"].rows[0].key == ()
    feed(engine, trades(("B", 1, 2)))
    assert engine.table("out").to_pylist() == [{"n": 2, "q": 1}]


def test_reason_that_is_no_text_can_be_stored() -> None:
    def refuse(row: Any) -> Any:
        raise ValueError("half a pair: \ud800")

    fold = by_symbol(trigger=rp.OnCount(1)).fold("f", n=rp.count())
    pipeline = fold.map("m", refuse, into=rp.Schema("same", fold.fields))
    engine = fed(pipeline.sink("out").plan(), trades(("A", 1, 1)))
    restored = Engine.restore(engine.plan, engine.snapshot())
    assert restored.uncomputable == engine.uncomputable
    assert engine.uncomputable["f"].rows[0].reason == "ValueError: half a pair: \\ud800"


def test_memory_that_runs_out_makes_no_row_absent() -> None:
    def greedy(*_: Any) -> Any:
        raise MemoryError("no room")

    size = rp.custom("size", init=lambda: 0, add=lambda s, v: s + v, result=greedy, type=int)
    fold = by_symbol().fold("f", n=rp.count())
    mapped = fold.map("m", greedy, into=rp.Schema("same", fold.fields), batch=True)
    for pipeline in (by_symbol().fold("f", size=size), mapped):
        with pytest.raises(rp.RippleError, match="no room"):
            fed(pipeline.sink("out").plan(), trades(("A", 1, 1)))


def test_engine_refuses_to_go_on_after_an_aggregate_that_cannot_remove() -> None:
    def remove(state: int, value: int) -> int:
        raise ValueError("not again")

    once = rp.custom("n", init=int, add=int.__add__, remove=remove, result=int, type=int)
    pipeline = by_symbol().fold("f", n=rp.count()).partition("all", key=()).fold("total", s=once)
    engine = fed(pipeline.sink("out").plan(), trades(("A", 1, 1)))
    with pytest.raises(rp.RippleError, match="not again"):
        feed(engine, trades(("A", 1, 2)))
    with pytest.raises(rp.NodeError, match="restore a snapshot"):
        engine.stabilize()
    with pytest.raises(rp.NodeError, match="restore a snapshot"):
        engine.apply("trades", batch_of(trades(("A", 1, 3))), 3)


def test_report_of_a_run_names_what_is_absent_at_its_end() -> None:
    events = [dict(zip(Trade.__annotations__, e, strict=True)) for e in trades(("A", 1, 1)) * 2]
    with pytest.warns(rp.LostRecordsWarning, match="1 row of 'f' without a result"):
        report = rp.run(quotients().sink("out"), source=events, sink=MemorySink())
    found = report.uncomputable["f"]
    assert (found.count, found.final, found.rows[0].key) == (1, 0, ("A",))
    assert rp.run(quotients().sink("out"), source=events * 2, sink=MemorySink()).uncomputable == {}
