"""Each query of Nexmark has DuckDB's rows of its SQL, in every kind of run."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import ripple as rp
from bench.nexmark.data import events
from bench.nexmark.queries import QUERIES
from bench.nexmark.results import Changes, differences, expected, table
from ripple.core.row_ops import OP
from ripple.model.pipeline.nodes import SourceSpec
from ripple.storage.log import LogSettings, Topic
from ripple.storage.log.router import TopicWriter
from ripple.world import LiveClock, LiveDisk
from tests.bench.command import bench
from tests.patience import TEST_S
from tests.services.cache import FETCH_S
from tests.services.missing import MissingError, skip
from tests.services.spark_session import MARKS, spark

pytestmark = MARKS
__all__ = ["spark"]

EVENTS = 100_000
PARTITIONS = 3
FRAME_ROWS = 9_999
FOLDED = [name for name in QUERIES if not QUERIES[name].pipeline().plan().outputs[0].is_stream]


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return events(EVENTS)
    except MissingError as error:
        skip(error)


@cache
def wanted(query: str, folder: Path) -> pa.Table:
    return expected(QUERIES[query].sql, folder)


def files(query: str, folder: Path) -> dict[str, str]:
    return {topic: str(folder / f"{topic}.parquet") for topic in QUERIES[query].topics}


@pytest.mark.parametrize("query", QUERIES)
def test_a_run_over_a_file(query: str, folder: Path) -> None:
    sink = Changes()
    rp.run(QUERIES[query].pipeline(), source=files(query, folder), sink=sink)
    assert differences(table(sink.batches), wanted(query, folder)) == []


@pytest.mark.parametrize("query", QUERIES)
def test_a_restart_in_the_middle_of_several_inputs(
    query: str, folder: Path, tmp_path: Path
) -> None:
    pipeline = QUERIES[query].pipeline()
    sources = pipeline.plan().sources
    topics = {one.name: topic_for(one, tmp_path) for one in sources}
    for is_last in (False, True):
        consumed = 0
        for name, topic in topics.items():
            rows = pq.read_table(folder / f"{name}.parquet")
            # So that the topic has the order of the file.
            half = len(rows) // 2 // PARTITIONS * PARTITIONS
            write(topic, rows.slice(half) if is_last else rows.slice(0, half), is_last=is_last)
            consumed += len(rows) if is_last else half
        report = rp.run(
            pipeline,
            source={name: f"log:{tmp_path}/{name}" for name in topics},
            sink=f"{tmp_path}/rows.jsonl",
            checkpoint_dir=tmp_path / "state",
        )
        assert report.consumed == consumed
    with (tmp_path / "rows.jsonl").open() as lines:
        written = [json.loads(line) for line in lines]
    found = last_rows(written, pipeline.plan(), wanted(query, folder).schema)
    assert differences(found, wanted(query, folder)) == []


@pytest.mark.parametrize("query", FOLDED)
def test_a_replay_on_spark(query: str, folder: Path, spark: Any) -> None:
    import ripple.spark as rs

    found = rs.replay(spark, QUERIES[query].pipeline(), files(query, folder)).toArrow()
    assert differences(found, wanted(query, folder)) == []


def test_the_command_compares_all_engines(folder: Path, tmp_path: Path) -> None:
    del folder  # they are there, or the test is skipped
    chosen = ("--quick", "--events", "5000", "--queries", "q2,q12")
    figures_at = tmp_path / "figures.json"
    # The peers may have to be fetched.
    ended = bench("nexmark", *chosen, "--json", str(figures_at), within_s=FETCH_S + TEST_S)
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(figures_at.read_text())["benchmarks"]["nexmark"]
    engines = {"", "DuckDB", "Polars", "Bytewax", "Pathway", "Feldera, published"}
    for query in ("q2", "q12"):
        rows = [row for row in figures if row["name"].startswith(f"{query} ")]
        assert {row["versus"] for row in rows} == engines, ended.stderr
        assert all(row["value"] > 0 for row in rows)


def topic_for(source: SourceSpec, folder: Path) -> Topic:
    """Create a topic with the fields of a pipeline's source."""
    return Topic.create(
        LiveDisk(folder),
        source.name,
        source.schema,
        partitions=PARTITIONS,
        time_field=source.time_field,
        settings=LogSettings(sync_appends=0),
    )


def write(topic: Topic, rows: pa.Table, *, is_last: bool) -> None:
    """Append rows to the partitions in turn; the last ones with the end of all windows."""
    names = [field.name for field in topic.schema.fields]
    with TopicWriter(topic, LiveClock()) as writer:
        for number, partition in enumerate(writer.writers):
            share = rows.select(names).take(pa.array(range(number, len(rows), PARTITIONS)))
            for batch in share.combine_chunks().to_batches(max_chunksize=FRAME_ROWS):
                partition.append(batch)
        if is_last:
            last_ns = pc.max(rows["date_time"]).as_py()
            writer.mark(last_ns + 3_600_000_000_000)


def last_rows(written: list[dict[str, Any]], plan: rp.Plan, schema: pa.Schema) -> pa.Table:
    """Return the rows at the end of the written changes."""
    if not plan.outputs[0].is_stream:
        keys = plan.folds[-1].identity
        held = {tuple(row[name] for name in keys): row for row in written}
        written = [row for row in held.values() if row[OP] != "remove"]
    return pa.Table.from_pylist(written, schema)
