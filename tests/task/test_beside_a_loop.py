"""``rp.arun`` and ``rp.changes``: runs in a thread beside an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.task.beside_a_loop import Change

PATIENCE_S = 60.0  # for what comes in milliseconds, else the test fails


@rp.record(version=1)
class Trade:
    symbol: str
    size: int = rp.field(gt=0)
    at: rp.Timestamp


TRADES = rp.Pipeline("p").source("trades", Trade)
PIPELINE = TRADES.partition("k", key="symbol").fold("f", size=rp.sum("size")).sink("out")
ROWS = [{"symbol": "AB"[at % 2], "size": at + 1, "at": at} for at in range(4)]
LAST = [{"op": "set", "symbol": "A", "size": 4}, {"op": "set", "symbol": "B", "size": 6}]


async def arows(rows: list[dict[str, Any]] = ROWS) -> AsyncIterator[dict[str, Any]]:
    for row in rows:
        await asyncio.sleep(0)
        yield row


async def queued(rows: list[dict[str, Any]] = ROWS) -> asyncio.Queue[Any]:
    queue: asyncio.Queue[Any] = asyncio.Queue()
    for row in (*rows, None):
        queue.put_nowait(row)
    return queue


async def _push_all(stream: rp.Stream, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        await stream.apush(row)


class TestARun:
    async def test_the_loop_goes_on_meanwhile(self) -> None:
        """The function waits for the loop, and so does each write."""
        here, turned = threading.current_thread(), threading.Event()
        asyncio.get_running_loop().call_soon(turned.set)
        threads = set()

        def write(_: pa.RecordBatch) -> None:
            threads.add(threading.current_thread())
            assert turned.wait(PATIENCE_S)

        report = await rp.arun(PIPELINE, source=ROWS, sink=write)
        assert report.applied == 4
        assert here not in threads

    async def test_async_sources(self) -> None:
        for source in (arows(), await queued(), ROWS, iter(ROWS)):
            rows: list[Any] = []
            report = await rp.arun(PIPELINE, source=source, sink=rows, batch_rows=1000)
            assert report.applied == 4
            assert {row["symbol"]: row for row in rows} == {row["symbol"]: row for row in LAST}

    async def test_async_sinks_are_awaited_in_the_loop(self) -> None:
        taken: list[Any] = []

        async def write(changes: pa.RecordBatch) -> None:
            await asyncio.sleep(0)
            taken.append((threading.current_thread(), changes.to_pylist()))

        async def write_too(changes: pa.RecordBatch, reached: Any) -> None:
            taken.append((threading.current_thread(), [dict(reached.cut)]))

        class Writer:
            async def write(self, changes: pa.RecordBatch) -> None:
                await write(changes)

        here = threading.current_thread()
        for sink in (write, Writer()):
            await rp.arun(PIPELINE, source=ROWS, sink=sink)
        await rp.arun(PIPELINE, source=ROWS, sink=write_too)
        assert taken == [(here, LAST), (here, LAST), (here, [{"trades": 4}])]

    async def test_a_queue_of_the_loop_takes_rows_as_it_has_room(self) -> None:
        queue: asyncio.Queue[Any] = asyncio.Queue(1)
        running = asyncio.create_task(rp.arun(PIPELINE, source=ROWS, sink=queue))
        assert [await queue.get() for _ in LAST] == LAST
        await running

    async def test_errors_come_out(self) -> None:
        async def broken() -> AsyncIterator[dict[str, Any]]:
            yield ROWS[0]
            raise ZeroDivisionError

        async def write(_: pa.RecordBatch) -> None:
            raise ZeroDivisionError

        for source, sink in ((broken(), []), (ROWS, write)):
            with pytest.raises(ZeroDivisionError):
                await rp.arun(PIPELINE, source=source, sink=sink)
        with pytest.warns(rp.LostRecordsWarning, match="size is not positive: 1"):
            await rp.arun(PIPELINE, source=[*ROWS, {"symbol": "A", "size": 0, "at": 1}], sink=[])
        with pytest.raises(rp.InputError, match="follow needs checkpoint_dir"):
            await rp.arun(PIPELINE, source=ROWS, sink=[], follow=True)
        with pytest.raises(rp.PlanError, match=r"rp\.arun has no argument 'batch'"):
            await rp.arun(PIPELINE, source=ROWS, sink=[], batch=1)

    async def test_a_cancelled_run_leaves_files_as_they_were(self, tmp_path: Path) -> None:
        file = tmp_path / "out.csv"
        file.write_text("before\n")
        closed = asyncio.Event()
        begun = asyncio.Event()

        async def endless() -> AsyncIterator[dict[str, Any]]:
            try:
                yield ROWS[0]
                begun.set()
                await asyncio.Event().wait()
            finally:
                closed.set()

        running = asyncio.create_task(rp.arun(PIPELINE, source=endless(), sink=file))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert file.read_text() == "before\n"
        assert closed.is_set()
        assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]

    async def test_so_does_one_that_waits_for_a_generator_or_a_stream(self) -> None:
        never = threading.Event()

        def waiting() -> Iterator[dict[str, Any]]:
            yield ROWS[0]
            never.wait(PATIENCE_S)

        stream = rp.Stream(Trade)
        stream.push(ROWS[0])
        for source in (waiting(), stream):
            written = asyncio.Event()

            async def write(_: pa.RecordBatch, written: asyncio.Event = written) -> None:
                written.set()

            running = asyncio.create_task(rp.arun(PIPELINE, source=source, sink=write))
            await written.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        never.set()

    async def test_a_sink_that_nobody_empties_is_given_up(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ripple.task.beside_a_loop.GRACE_S", 0.01)
        for more in ({}, {"checkpoint_dir": tmp_path / "state"}):
            stream, full = rp.Stream(Trade), asyncio.Queue[Any](1)
            run = rp.arun(PIPELINE, source=stream, sink=full, **more)
            running = asyncio.create_task(run)
            for row in ROWS:
                await stream.apush(row)
            while not full.full():
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait_for(asyncio.wait([running]), PATIENCE_S)
            with pytest.raises(rp.InputError, match="run that reads this stream has ended"):
                await asyncio.wait_for(stream.drained(), PATIENCE_S)  # its thread has ended, too

    async def test_a_generator_that_is_cancelled_has_no_end(self, tmp_path: Path) -> None:
        async def cancelled() -> AsyncIterator[Any]:
            yield ROWS[0]
            raise asyncio.CancelledError

        file = tmp_path / "out.csv"
        with pytest.raises(rp.InputError, match="the source was cancelled before its end"):
            await rp.arun(PIPELINE, source=cancelled(), sink=file)
        assert not file.exists()

    async def test_a_cancelled_durable_run_ends_in_good_order(self, tmp_path: Path) -> None:
        rows: list[Any] = []

        def arguments(stream: rp.Stream) -> dict[str, Any]:
            return {"source": stream, "sink": rows, "checkpoint_dir": tmp_path / "state"}

        stream = rp.Stream(Trade)
        running = asyncio.create_task(rp.arun(PIPELINE, **arguments(stream)))
        for row in ROWS[:2]:
            await stream.apush(row)
        await stream.drained()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        stream = rp.Stream(Trade)
        running = asyncio.create_task(rp.arun(PIPELINE, **arguments(stream)))
        assert await stream.opened() == 2
        for row in ROWS[2:]:
            await stream.apush(row)
        stream.close()
        assert (await running).consumed == 4
        assert rows[-2:] == LAST


class TestChanges:
    async def test_changes_come_one_by_one(self) -> None:
        found = [change async for change in rp.changes(PIPELINE, arows(), batch_rows=1)]
        assert found[0] == Change("out", "set", {"symbol": "A", "size": 1})
        assert [change.row["size"] for change in found] == [1, 2, 4, 6]

    async def test_outputs_are_named(self) -> None:
        both = PIPELINE.also(TRADES.sink("events"))
        names = {change.output async for change in rp.changes(both, ROWS)}
        assert names == {"out", "events"}
        found = [change async for change in rp.changes(both, ROWS, output="events")]
        assert found == [Change("events", "set", row) for row in ROWS]
        with pytest.raises(rp.OutputError, match="no output 'x'"):
            await anext(rp.changes(both, ROWS, output="x"))

    async def test_a_change_comes_before_the_next_row_is_pushed(self) -> None:
        stream, sizes = rp.Stream(Trade), []
        await stream.apush(ROWS[0])
        async for change in rp.changes(PIPELINE, stream):
            sizes.append(change.row["size"])
            if len(sizes) < 3:
                await stream.apush(ROWS[len(sizes)])
            else:
                stream.close()
        assert sizes == [1, 2, 4]

    async def test_leaving_the_loop_ends_the_run(self) -> None:
        source = arows(ROWS * 1000)
        async with aclosing(rp.changes(PIPELINE, source, batch_rows=1)) as found:
            async for _ in found:
                break
        assert [each async for each in source] == []

    async def test_leaving_it_late_ends_a_run_that_is_ahead(self, tmp_path: Path) -> None:
        for more in ({}, {"checkpoint_dir": tmp_path / "state"}):
            stream, rows = rp.Stream(Trade), [*ROWS] * 20
            async with aclosing(rp.changes(PIPELINE, stream, batch_rows=1, **more)) as changes:
                pushing = asyncio.create_task(_push_all(stream, rows))
                async for _ in changes:
                    while (stream.next_offset or 0) < len(rows):
                        await asyncio.sleep(0)
                    break
            assert asyncio.all_tasks() <= {asyncio.current_task(), pushing}
            await pushing

    async def test_its_arguments_and_the_place_of_its_warning(self) -> None:
        with pytest.raises(rp.PlanError, match=r"rp\.changes has no argument 'sink'"):
            await anext(rp.changes(PIPELINE, ROWS, sink=[]))
        with pytest.warns(rp.LostRecordsWarning) as told:
            async for _ in rp.changes(PIPELINE, [*ROWS, {**ROWS[0], "size": -1}]):
                pass
        assert told[0].filename == __file__

    async def test_errors_come_after_the_changes_before(self) -> None:
        async def broken() -> AsyncIterator[dict[str, Any]]:
            yield ROWS[0]
            raise ZeroDivisionError

        found = rp.changes(PIPELINE, broken(), batch_rows=1)
        assert await anext(found) == Change("out", "set", {"symbol": "A", "size": 1})
        with pytest.raises(ZeroDivisionError):
            await anext(found)
