"""Calls of functions without an end, with changes of their row, or with odd failures."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.cli.lib.exits import SignalledError
from ripple.connectors.memory import MemorySink
from ripple.core.errors import LostRecordsWarning, NodeError
from ripple.task import blocking
from ripple.task.asks import calling


@rp.record(version=1)
class Size:
    """A record."""

    size: int


@rp.record(version=1)
class Timed(Size):
    """A record with an event time."""

    at: rp.Timestamp


@rp.record(version=1)
class Grade:
    """The answer to it."""

    grade: int


def run(function: Any, count: int = 3, *, timeout: str = "10s", retries: int = 0) -> MemorySink:
    rows = rp.Pipeline("test").source("sizes", Size).derive("with-more", more=rp.col("size") + 1)
    asked = rows.ask("grade", function, into=Grade, timeout=timeout, retries=retries)
    sink = MemorySink()
    rp.run(asked.sink("out"), source=[{"size": at} for at in range(count)], sink=sink)
    return sink


async def for_ever(_row: object) -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


def test_a_run_ends_though_a_call_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "GRACE_S", 0)
    with pytest.warns(LostRecordsWarning, match="3 rows of 'grade' .* longer than 0.001 s"):
        run(for_ever, timeout="1ms")


def test_calls_that_go_on_are_not_left_behind_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "GRACE_S", 0)
    monkeypatch.setattr(calling, "GIVEN_UP_MAX", 20)
    with pytest.raises(NodeError, match=r"32 calls took too long.* CancelledError on"):
        run(for_ever, 100, timeout="1ms")


def test_a_call_that_is_made_again_is_given_the_row_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ripple.task.asks.calls.PAUSE_S", 0)
    again = set()

    async def change(row: SimpleNamespace) -> dict[str, int]:
        row.size += 1
        if row.more not in again:
            again.add(row.more)
            raise OSError
        return {"grade": row.size}

    assert [row["grade"] for row in run(change, retries=1).rows()] == [1, 2, 3]


def test_each_call_for_a_row_has_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripple.task.asks.calls.PAUSE_S", 0)
    keys = []

    async def fail_once(row: Any) -> dict[str, int]:
        keys.append((row.size, await asyncio.to_thread(rp.asked)))
        if len(keys) < 3:
            raise OSError
        return {"grade": 1}

    run(fail_once, 2, retries=1)
    assert sorted(keys) == [(at, f"test/grade/sizes/{at}/0") for at in (0, 0, 1, 1)]
    with pytest.raises(NodeError, match=r"in the function of an \.ask alone"):
        rp.asked()


class Unsaid(Exception):  # noqa: N818 - under test
    """An exception without a text."""

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Unsaid(), "Unsaid: its text raised ValueError"),
        (ValueError("\x1b[2Jno\n"), r"ValueError: \\x1b\[2Jno\\n"),
    ],
)
def test_any_error_has_a_reason_without_control_characters(error: Exception, said: str) -> None:
    async def fail(_row: object) -> None:
        raise error

    with pytest.warns(LostRecordsWarning, match=said):
        run(fail)


async def grade(row: Any) -> dict[str, int]:
    return {"grade": row.size}


@pytest.mark.parametrize("emit", ["final", "eager"])
def test_one_of_several_sources_is_asked(emit: Any) -> None:
    pipeline = rp.Pipeline("test")
    asked = pipeline.source("sizes", Timed).ask("grade", grade, into=Grade)
    other = pipeline.source("others", Timed)
    joined = asked.join_asof("joined", other, on="size", emit=emit)
    rows = [{"size": size, "at": size} for size in (1, 2)]
    rp.run(joined.sink("out"), source={"sizes": rows, "others": rows}, sink=(sink := MemorySink()))

    assert [row["grade"] for row in sink.rows()][-2:] == [1, 2]


def test_answers_are_no_second_input_of_a_branch_beside() -> None:
    begun = rp.Pipeline("test").source("sizes", Timed)
    by = begun.partition("by-size", key="size")
    counts = by.window("seconds", rp.Tumbling("1s"), trigger=rp.OnCount(1)).fold("n", n=rp.count())
    both = begun.ask("grade", grade, into=Grade).sink("out").also(counts.sink("counts"))
    sinks = {name: MemorySink() for name in ("out", "counts")}
    rp.run(both, source=[{"size": 1, "at": 1}], sink=sinks)

    assert [row["n"] for row in sinks["counts"].rows()] == [1]


def test_a_function_that_ends_the_process_ends_the_run_with_an_error() -> None:
    async def end(_row: object) -> None:
        sys.exit(0)

    (sink := MemorySink()).batches.append(pa.record_batch({"size": [1]}))
    asked = rp.Pipeline("test").source("sizes", Size).ask("grade", end, into=Grade)
    with pytest.raises(NodeError, match=r"'grade': its function called sys.exit\(0\)"):
        rp.run(asked.sink("out"), source=[{"size": 1}, {"size": 2}], sink=sink)

    assert sink.batches == [], "the sink was closed"


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), SignalledError(15)])
def test_a_signal_in_a_function_that_blocks_ends_the_run_before_others_are_called(
    ending: BaseException,
) -> None:
    called = []

    async def block(row: Any) -> None:
        called.append(row.size)
        raise ending

    with pytest.raises(type(ending)):
        run(block, 40)

    assert called == [0]


def test_blocking_function_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(calling, "BLOCKED_NS", 0)
    run(grade)

    (told,) = caplog.messages
    assert "'test': the function of 'grade' blocked the run for 0.0 s" in told
