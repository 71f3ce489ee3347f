"""Sinks in the program itself."""

from __future__ import annotations

import asyncio
import io
import queue
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.connectors.locate import open_sink


@rp.record(version=1)
class Tick:
    name: str
    at: rp.Timestamp


TICKS = rp.Pipeline("p").source("ticks", Tick)
COUNTS = TICKS.partition("k", key="name").fold("f", n=rp.count()).sink("out")
EVENTS = TICKS.sink("out")
ROWS = [{"name": "a", "at": 1}, {"name": "b", "at": 2}]
CHANGES = [{"op": "set", "name": "a", "n": 1}, {"op": "set", "name": "b", "n": 1}]
LINES = '{"op":"set","name":"a","n":1}\n{"op":"set","name":"b","n":1}\n'


def run(sink: Any, pipeline: Any = COUNTS) -> None:
    rp.run(pipeline, source=ROWS, sink=sink)


@pytest.mark.parametrize(("pipeline", "rows"), [(COUNTS, CHANGES), (EVENTS, ROWS)])
def test_a_list_and_a_queue_take_rows(pipeline: Any, rows: list[Any]) -> None:
    taken: list[Any] = []
    run(taken, pipeline)
    assert taken == rows
    for many in (queue.Queue(), queue.SimpleQueue()):
        run(many, pipeline)
        assert [many.get_nowait() for _ in rows] == rows
        assert many.empty()


def test_a_function_takes_batches_and_the_cut_if_it_needs_it() -> None:
    batches: list[pa.RecordBatch] = []
    run(batches.append)
    run(lambda batch, more=None: batches.append(batch))
    cuts = []
    run(lambda batch, reached: (batches.append(batch), cuts.append(reached.cut)))
    assert [batch.to_pylist() for batch in batches] == [CHANGES] * 3
    assert cuts == [{"ticks": 2}]


def test_an_object_with_write_takes_batches() -> None:
    class Writer:
        def write(self, changes: pa.RecordBatch) -> None:
            self.taken = changes.to_pylist()

        def close(self) -> None:
            raise AssertionError("it is the program's to close")

    run(writer := Writer())
    assert writer.taken == CHANGES


def test_an_open_file_takes_lines_and_stays_open() -> None:
    text, data = io.StringIO(), io.BytesIO()
    run(text)
    run(data)
    assert text.getvalue() == LINES
    assert data.getvalue() == LINES.encode()


async def _write(changes: pa.RecordBatch) -> None: ...


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (7, r"cannot write to an object of type int: give a .csv.*; in Python a list or a queue"),
        (list, r"cannot write to <class 'list'>: give .*an object with write\(changes\)"),
        (asyncio.Queue, "cannot write to <class"),
        (asyncio.Queue(), r"asyncio.Queue is for .* one event loop: call await rp.arun"),
        (_write, "_write is async, and is called without await here"),
    ],
)
def test_others_are_told_what_would_do(sink: Any, said: str) -> None:
    with pytest.raises(rp.OutputError, match=said):
        run(sink)


def test_an_owner_that_is_fenced_has_none_of_them() -> None:
    with pytest.raises(rp.OutputError, match="as the owner of epoch 1"):
        open_sink([], COUNTS.plan(), "out", epoch=1)  # type: ignore[arg-type]
