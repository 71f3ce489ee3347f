"""Records divided among partitions: frames are as large as the topic lets them be."""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow as pa
import pytest

from ripple.cli.log.log import configure, run
from ripple.core.errors import InputError, LimitError
from ripple.model.schema.types import Field, Schema, String
from ripple.storage.log import LogSettings, PartitionReader, Topic
from ripple.storage.log.router import TopicWriter
from ripple.world import LiveDisk
from tests.storage.log.trades import ManualClock


def test_append_of_more_than_a_frame_holds_is_several_frames_and_nothing_is_there_twice(
    tmp_path: Path,
) -> None:
    schema = Schema("s", (Field("k", String()), Field("text", String())))
    settings = LogSettings(batch_bytes_max=4096)
    topic = Topic.create(
        LiveDisk(tmp_path), "t", schema, partitions=2, key=["k"], settings=settings
    )
    texts = [f"{n:04}" * (1 if n % 3 else 150) for n in range(90)]
    rows = pa.record_batch({"k": [str(n) for n in range(90)], "text": texts})
    with TopicWriter(topic, ManualClock()) as writer:
        where = dict(writer.append(rows))
        assert writer.rows == 90
        with pytest.raises(LimitError):
            writer.append(pa.record_batch({"k": ["x"], "text": ["é" * 4096]}))
        assert writer.rows == 90
    found: list[str] = []
    for partition, appended in where.items():
        with PartitionReader(topic, partition) as reader:
            assert reader.range() == (appended.first_offset, appended.next_offset)
            found += [row for one in reader.read() for row in one.records["text"].to_pylist()]
    assert sorted(found) == sorted(texts)


def test_append_that_rejects_every_record_fails(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    configure(parser)

    def done(*given: str) -> int:
        return run(parser.parse_args(list(given)))

    where, file = f"{tmp_path}/t", tmp_path / "trades.csv"
    assert done("create", where, "--schema", "trade") == 0
    file.write_text("A,x,1,1,X\n")
    with pytest.raises(InputError, match="the only record of"):
        done("append", where, str(file))
    file.write_text("A,x,1,1,X\nA,1.0,1,1,X\n")
    assert done("append", where, str(file)) == 0
