"""Rows of a program that come as they happen: iterators that pause, and streams."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.connectors.handover import Handover, HandoverOverError

PATIENCE_S = 60.0  # for what comes in milliseconds, else the test fails


@rp.record(version=1)
class Trade:
    symbol: str
    size: int = rp.field(gt=0)
    at: rp.Timestamp
    note: str | None = None


PIPELINE = (
    rp.Pipeline("p")
    .source("trades", Trade)
    .partition("k", key="symbol")
    .fold("f", n=rp.count(), size=rp.sum("size"))
    .sink("out")
)


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"symbol": "AB"[number % 2], "size": number + 1, "at": number, **more}


ROWS = [row(number) for number in range(10)]
VIEW = [{"symbol": "A", "n": 5, "size": 25}, {"symbol": "B", "n": 5, "size": 30}]


class TestIterators:
    def test_a_row_is_written_before_the_next_one_is_made(self) -> None:
        written = threading.Event()

        def rows() -> Iterator[dict[str, Any]]:
            for number in range(3):
                yield row(number)
                assert written.wait(PATIENCE_S)
                written.clear()

        report = rp.run(PIPELINE, source=rows(), sink=lambda _: written.set())
        assert report.stabilizations == report.applied == 3

    def test_so_are_batches(self) -> None:
        written = threading.Event()

        def batches() -> Iterator[pa.RecordBatch]:
            for number in range(3):
                yield pa.RecordBatch.from_pylist([row(number)])
                assert written.wait(PATIENCE_S)
                written.clear()

        assert rp.run(PIPELINE, source=batches(), sink=lambda _: written.set()).applied == 3

    @pytest.mark.parametrize("lacking", [1, 2])
    def test_pauses_do_not_decide_which_columns_there_are(self, lacking: int) -> None:
        """The first record lacks a column; whether that is an error, others decide."""
        seen = threading.Event()

        def rows() -> Iterator[dict[str, Any]]:
            for number in range(2):
                one = row(number)
                if number < lacking:
                    del one["symbol"]
                yield one
                if not number:
                    assert seen.wait(PATIENCE_S)  # so it was a batch by itself

        def run() -> rp.Report:
            return rp.run(
                PIPELINE,
                source=rows(),
                sink=[],
                on_batch=lambda engine, _: engine.counters.consumed and seen.set(),
            )

        if lacking == 2:
            with pytest.raises(rp.SchemaError, match="the source has no column 'symbol'"):
                run()
        else:
            with pytest.warns(rp.LostRecordsWarning, match="symbol is empty: 1"):
                assert run().applied == 1

    def test_a_failed_run_lets_the_iterator_end(self) -> None:
        closed = threading.Event()

        def rows() -> Iterator[dict[str, Any]]:
            try:
                while True:
                    yield row(0)
            finally:
                closed.set()

        def fail(_: pa.RecordBatch) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            rp.run(PIPELINE, source=rows(), sink=fail)
        assert closed.wait(PATIENCE_S)


class TestHandover:
    def test_a_burst_has_what_is_there(self) -> None:
        handover: Handover[int] = Handover(100)
        handover.put_all(range(5))
        assert handover.burst(3) == ([0, 1, 2], False)
        assert handover.burst(3, 0.0) == ([3, 4], True)
        handover.put(5)
        handover.end()
        assert handover.burst(3) == ([5], False)
        assert handover.burst(3) == ([], False)

    def test_an_error_comes_after_the_items(self) -> None:
        handover: Handover[int] = Handover(100)
        handover.put(1)
        handover.end(ZeroDivisionError())
        assert handover.burst(3) == ([1], False)
        with pytest.raises(ZeroDivisionError):
            handover.burst(3)

    def test_who_puts_waits_for_room(self) -> None:
        handover: Handover[int] = Handover(2)
        ended = []

        def put() -> None:
            try:
                handover.put_all(range(100))
            except HandoverOverError as error:
                ended.append(error)

        putting = threading.Thread(target=put)
        putting.start()
        taken: list[int] = []
        while len(taken) < 50:
            taken += handover.burst(2)[0]
        assert taken == list(range(len(taken)))
        handover.stop()
        putting.join(PATIENCE_S)
        assert ended


class TestStreams:
    async def test_pushed_rows_are_written_once_drained(self) -> None:
        stream, rows = rp.Stream(Trade), []
        running = asyncio.create_task(
            asyncio.to_thread(rp.run, PIPELINE, source=stream, sink=rows.append)
        )
        assert await stream.opened() == 0
        for number, one in enumerate([ROWS[0], Trade(**ROWS[1]), pa.Table.from_pylist(ROWS[2:])]):
            stream.push(one)
            await stream.drained()
            assert len(rows) > number
        assert stream.next_offset == 10
        stream.close()
        assert (await running).applied == 10
        assert rows[-1].to_pylist() == [{"op": "set", **one} for one in VIEW]
        with pytest.raises(rp.InputError, match="nothing can be pushed: the run that reads"):
            stream.push(ROWS[0])

    def test_threads_push_at_once_and_wait_for_room(self) -> None:
        stream = rp.Stream(Trade, max_rows=3)

        def push() -> None:
            for one in ROWS:
                stream.push(one)

        pushing = [threading.Thread(target=push) for _ in range(4)]

        def close() -> None:
            for one in pushing:
                one.join(PATIENCE_S)
            stream.close()

        for one in (*pushing, closing := threading.Thread(target=close)):
            one.start()
        result = rp.collect(PIPELINE, stream)
        closing.join(PATIENCE_S)
        assert [one["n"] for one in result.rows()] == [20, 20]

    async def test_it_is_read_by_one_run(self) -> None:
        """The other one fails, and the first goes on."""
        stream = rp.Stream(Trade)
        running = asyncio.create_task(asyncio.to_thread(rp.collect, PIPELINE, stream))
        await stream.opened()
        with pytest.raises(rp.InputError, match=r"read by one run: make another rp\.Stream$"):
            rp.collect(PIPELINE, stream)
        stream.push(ROWS[0])
        stream.close()
        assert (await running).report.applied == 1

    async def test_a_silent_stream_does_not_hold_another_one(self) -> None:
        both = rp.Pipeline("two")
        sums = both.source("a", Trade).partition("by-a", key="symbol").fold("n", n=rp.count())
        more = both.source("b", Trade).partition("by-b", key="symbol").fold("m", m=rp.count())
        streams = {"a": rp.Stream(Trade), "b": rp.Stream(Trade)}
        taken: list[dict[str, Any]] = []
        running = asyncio.create_task(
            asyncio.to_thread(
                rp.run,
                sums.sink("as").also(more.sink("bs")),
                source=streams,
                sink={"as": [], "bs": taken},
            )
        )
        streams["b"].push(ROWS[0])
        await asyncio.wait_for(streams["b"].drained(), PATIENCE_S)
        assert [one["m"] for one in taken] == [1]
        for one in streams.values():
            one.close()
        assert (await running).applied == 1

    @pytest.mark.parametrize("fails", [False, True])
    def test_nor_does_a_silent_iterator(self, fails: bool) -> None:
        both = rp.Pipeline("two")
        sums = both.source("a", Trade).partition("by-a", key="symbol").fold("n", n=rp.count())
        more = both.source("b", Trade).partition("by-b", key="symbol").fold("m", m=rp.count())
        taken, is_over = queue.Queue[dict[str, Any]](), threading.Event()

        def silent() -> Iterator[dict[str, Any]]:
            assert taken.get(timeout=PATIENCE_S)["m"] == 1  # written while this one waits
            if fails:
                raise ValueError("the feed is gone")
            yield ROWS[0]

        def quick() -> Iterator[dict[str, Any]]:
            try:
                yield ROWS[0]
                if fails:
                    is_over.wait(PATIENCE_S)
                    yield from ROWS  # nobody takes them any more
            finally:
                is_over.set()

        counts: list[dict[str, Any]] = []
        running = partial(
            rp.run,
            sums.sink("as").also(more.sink("bs")),
            source={"a": silent(), "b": quick()},
            sink={"as": counts, "bs": taken},
        )
        if fails:
            with pytest.raises(ValueError, match="the feed is gone"):
                running()
            is_over.set()
        else:
            assert running().applied == 2
            assert [one["n"] for one in counts] == [1]

    async def test_an_answer_is_written_while_a_stream_is_silent(self) -> None:
        @rp.record
        class Twice:
            twice: int

        async def twice(trade: Trade) -> Twice:
            await asyncio.sleep(0)
            return Twice(twice=2 * trade.size)

        asking = rp.Pipeline("asking").source("trades", Trade).ask("twice", twice, into=Twice)
        stream, taken = rp.Stream(Trade), queue.Queue[dict[str, Any]]()
        running = asyncio.create_task(
            asyncio.to_thread(rp.run, asking.sink("out"), source=stream, sink=taken)
        )
        stream.push(ROWS[0])
        answer = await asyncio.to_thread(taken.get, timeout=PATIENCE_S)
        assert answer["twice"] == 2 * ROWS[0]["size"]
        stream.close()
        await running

    async def test_a_child_process_is_told_that_nobody_reads(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stream = rp.Stream(Trade)
        running = asyncio.create_task(asyncio.to_thread(rp.collect, PIPELINE, stream))
        await stream.opened()
        with monkeypatch.context() as forked:
            forked.setattr(os, "getpid", lambda: 0)
            with pytest.raises(rp.InputError, match="this stream is in another process"):
                stream.push(ROWS[0])
        stream.close()
        assert (await running).report.consumed == 0

    async def test_a_push_that_waits_ends_with_the_stream(self) -> None:
        stream = rp.Stream(Trade, max_rows=1)
        stream.push(ROWS[0])
        pushing = asyncio.create_task(stream.apush(ROWS[1]))
        await asyncio.sleep(0)
        stream.close()
        with pytest.raises(rp.InputError, match="the stream is closed"):
            await asyncio.wait_for(pushing, PATIENCE_S)

    async def test_a_full_stream_does_not_block_a_loop(self) -> None:
        stream = rp.Stream(Trade, max_rows=1)
        stream.push(ROWS[0])
        with pytest.raises(rp.LimitError, match=r"1 rows wait already.*await stream\.apush"):
            stream.push(ROWS[1])
        pushing = asyncio.create_task(stream.apush(ROWS[1]))
        running = asyncio.to_thread(rp.collect, PIPELINE, stream)
        pushing.add_done_callback(lambda _: stream.close())
        assert len(await running) == 2

    @pytest.mark.parametrize(
        ("wrong", "error", "said"),
        [
            (row(0, size="1"), rp.SchemaError, "row 0: the field 'size' must be an integer"),
            ({"symbol": "A", "size": 1}, rp.SchemaError, "has no column 'at': it has symbol, size"),
            (("A", 1), rp.InputError, "row 0 of the source is"),
            (pa.table({"symbol": [1]}), rp.SchemaError, "column 'symbol' of the table is int64"),
        ],
    )
    def test_what_is_no_row_is_refused_where_it_is_pushed(
        self, wrong: Any, error: type[Exception], said: str
    ) -> None:
        stream = rp.Stream(Trade)
        with pytest.raises(error, match=said):
            stream.push(wrong)
        stream.push(ROWS[0])
        stream.close()
        with pytest.raises(rp.InputError, match="the stream is closed"):
            stream.push(ROWS[0])
        assert len(rp.collect(PIPELINE, stream)) == 1
        with pytest.raises(rp.InputError, match=r"read by one run: make another rp\.Stream"):
            rp.collect(PIPELINE, stream)

    def test_a_value_that_fails_a_check_is_a_dead_letter(self) -> None:
        stream = rp.Stream(Trade)
        for number in (1, -1, 2):
            stream.push(row(0, size=number))
        stream.close()
        with pytest.warns(rp.LostRecordsWarning):
            result = rp.collect(PIPELINE, stream)
        (letter,) = result.rejected.to_pylist()  # type: ignore[union-attr]
        assert (letter["offset"], letter["reason"]) == (1, "size is not positive")

    def test_times_are_read_in_their_form(self) -> None:
        @rp.record(version=1)
        class Tick:
            name: str
            at: rp.Timestamp = rp.field(format="iso")

        stream = rp.Stream(Tick)
        stream.push({"name": "a", "at": "2026-01-01T00:00:00Z"})
        stream.close()
        assert rp.collect(rp.Pipeline("t").source("ticks", Tick).sink("out"), stream).rows() == [
            {"name": "a", "at": 1767225600 * 10**9}
        ]

    def test_another_class_is_refused(self) -> None:
        @rp.record(version=1)
        class Other:
            symbol: str

        with pytest.raises(rp.InputError, match="the stream has records 'other', and source 'tra"):
            rp.collect(PIPELINE, rp.Stream(Other))
        with pytest.raises(rp.RippleError, match="max_rows must be a whole number"):
            rp.Stream(Trade, max_rows=0)


class TestStreamsWithCheckpoints:
    async def test_a_restart_says_where_to_go_on(self, tmp_path: Path) -> None:
        first: list[dict[str, Any]] = []
        arguments: dict[str, Any] = {"checkpoint_dir": tmp_path / "state"}
        stream = rp.Stream(Trade)
        async with rp.Task(PIPELINE, source=stream, sink=first, **arguments) as task:
            running = asyncio.create_task(task.run())
            assert await stream.opened() == 0
            for number, one in enumerate(ROWS[:6]):
                stream.push(one)
                await stream.drained()
                assert first[-1]["size"] == sum(ROWS[at]["size"] for at in range(number, -1, -2))
            task.stop()
            await running
        stream, rest = rp.Stream(Trade), []
        async with rp.Task(PIPELINE, source=stream, sink=rest, **arguments) as task:
            running = asyncio.create_task(task.run())
            offset = await stream.opened()
            assert offset == 6
            for one in ROWS[offset:]:
                await stream.apush(one)
            stream.close()
            await running
        assert {one["symbol"]: one["size"] for one in rest} == {"A": 25, "B": 30}

    async def test_after_a_failure_rows_are_pushed_again_and_written_once(
        self, tmp_path: Path
    ) -> None:
        """The file is ahead of the only checkpoint, the one before any row."""
        arguments: dict[str, Any] = {
            "sink": tmp_path / "out.jsonl",
            "checkpoint_dir": tmp_path / "state",
            "batch_rows": 1,
            "commit_interval": "1ms",
            "checkpoint_interval": "1h",
        }

        def fail(_: rp.Engine, report: rp.Report) -> None:
            if report.applied == 6 and report.restored is not None:
                raise ZeroDivisionError

        offsets = []
        for on_batch in (fail, None):
            stream = rp.Stream(Trade)
            async with rp.Task(PIPELINE, source=stream, on_batch=on_batch, **arguments) as task:
                running = asyncio.create_task(task.run())
                offsets.append(await stream.opened())
                for one in ROWS[offsets[-1] :]:
                    stream.push(one)
                stream.close()
                if on_batch is None:
                    await running
                else:
                    with pytest.raises(ZeroDivisionError):
                        await running
        assert offsets == [0, 0]
        lines = (tmp_path / "out.jsonl").read_text().splitlines()
        assert len(lines) == len(ROWS)
