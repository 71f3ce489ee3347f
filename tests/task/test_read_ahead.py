"""An output is read back beside its active owner, and after the opening only the rest."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.commit_group import Groups, SinkGroup
from ripple.connectors.contract import Commit
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.log.sink import LogSink, topic_for, written_in
from ripple.core.row_ops import OP, OP_REMOVE, OP_SET
from ripple.model.schema.types import Field, Int64, Schema, String
from ripple.task.read_ahead import ReadAhead
from ripple.world import LiveClock, LiveDisk

if TYPE_CHECKING:
    from pathlib import Path

    from ripple.storage.log import Topic

KEY = (Field("k", String()),)
SCHEMA = Schema("rows", (Field("op", String()), *KEY, Field("n", Int64())))


def write(sink: LogSink, cut: int, **rows: int | None) -> None:
    """Commit rows by key; None removes one."""
    ops = pa.array([OP_REMOVE if n is None else OP_SET for n in rows.values()], pa.int8())
    batch = pa.record_batch([ops, list(rows), [n or 0 for n in rows.values()]], [OP, "k", "n"])
    reached = Commit({"in": cut}, "")
    sink.write(batch, reached)
    sink.commit(reached)


def sink_of(topic: Topic, epoch: int) -> LogSink:
    return LogSink(topic, 0, LiveClock(), Owner("p", "out"), epoch=epoch)


async def test_only_what_came_since_is_read_once_the_output_is_open(tmp_path: Path) -> None:
    topic = topic_for(LiveDisk(f"{tmp_path}"), "out", SCHEMA)
    former = sink_of(topic, 1)
    write(former, 1, a=1, b=2, c=3)
    reads = {"out": partial(written_in, topic, 0)}
    own = SinkGroup({"out": partial(sink_of, topic, 2)}, reads=reads)
    group = Groups([SinkGroup({}), own])
    ahead = ReadAhead(group, {"out": KEY, "elsewhere": KEY})
    await ahead.read()
    write(former, 2, b=None, d=4)
    await ahead.read()
    write(former, 3, c=5)  # it writes until the output is opened
    await group.open(2)
    shown, mark = ahead.take("out", KEY)
    assert mark == "5"
    left = [rows async for rows in group.written_since("out", mark)]
    assert [row["k"] for rows in left for row in rows.to_pylist()] == ["c"]
    shown.changed(left)
    now = pa.table({"k": ["a", "c", "d"], "n": [1, 3, 4]})
    assert shown.settled(now).to_pylist() == [{"k": "c", "n": 3}]
    assert ahead.take("elsewhere", KEY)[1] is None
    await group.close()


async def test_rows_of_another_key_are_left_for_the_error_that_names_the_output(
    tmp_path: Path,
) -> None:
    topic = topic_for(LiveDisk(f"{tmp_path}"), "out", SCHEMA)
    write(sink_of(topic, 1), 1, a=1)
    group = SinkGroup({}, reads={"out": partial(written_in, topic, 0)})
    for name, kind in (("other", String()), ("k", Int64())):
        key = (Field(name, kind),)
        ahead = ReadAhead(group, {"out": key}, are_keys_alone=True)
        await ahead.read()
        assert ahead.take("out", key)[1] is None
