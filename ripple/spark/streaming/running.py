"""A pipeline on Spark Structured Streaming, from the driver's side."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import tempfile
from typing import TYPE_CHECKING, Any

from ripple.connectors.locate import sinks_by_output
from ripple.errors import OutputError
from ripple.partition.settings import Settings
from ripple.spark.parcel import Parcel
from ripple.spark.session import register
from ripple.spark.streaming.source import NAME, RunSource
from ripple.spark.streaming.stream import Stream
from ripple.spark.work import pickled
from ripple.store.opening import open_store

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ripple.pipeline.builder import Pipeline
    from ripple.pipeline.plan import Plan

EVERY = "1 second"


def stream(
    spark: SparkSession,
    pipeline: str | os.PathLike[str] | Pipeline | Plan,
    source: str,
    sinks: Mapping[str, str] | str,
    store: str,
    *,
    partitions: int | None = None,
    batch_rows: int = Settings().batch_rows,
    keep: int = Settings().keep,
) -> DataFrame:
    """Return a pipeline as a streaming DataFrame: a row a micro-batch and partition, its report.

    Whatever query reads it drives the pipeline; one at a time does. pipeline: ``FILE.py[:NAME]``, a
    pipeline or its plan. source: ``log:DIR/TOPIC`` or ``kafka:BROKERS/TOPIC``. sinks: outputs with
    places that can be taken over, ``log:`` or ``kafka:``. store: of checkpoints, a folder that all
    executors have or ``s3://bucket/prefix``. partitions: of the pipeline, 1 as with ``ripple run``;
    by default as many as the source has, as in a cluster. batch_rows, keep: as of a run. Raises
    PlanError, InputError, OutputError and StoreError.
    """
    register(spark)
    spark.dataSource.register(RunSource)
    parcel = Parcel.of(pipeline, pickled)
    plan = parcel.plan()
    given = [sinks] if isinstance(sinks, str) else [f"{one}={at}" for one, at in sinks.items()]
    places = sinks_by_output(plan, given)
    if not places:
        raise OutputError("name a place for the output: a query without one has no effect")
    made = Stream.of(
        parcel,
        source,
        places,
        store,
        partitions=partitions,
        batch_rows=batch_rows,
        keep=keep,
        token=secrets.token_hex(16),
    )
    asyncio.run(_probed(made))
    host = spark.conf.get("spark.driver.host", "localhost")
    if spark.conf.get("spark.master", "").startswith("local"):
        host = "127.0.0.1"
    packed = base64.b64encode(pickled(made)).decode()
    return spark.readStream.format(NAME).option("stream", packed).option("host", host).load()


def run(
    spark: SparkSession,
    pipeline: str | os.PathLike[str] | Pipeline | Plan,
    source: str,
    sinks: Mapping[str, str] | str,
    store: str,
    *,
    follow: bool = True,
    every: str = EVERY,
    show: Callable[[int, Sequence[Mapping[str, Any]]], None] = lambda _, __: None,
    **more: Any,
) -> StreamingQuery:
    """Start a pipeline as a query, which goes on from the state in the store; see ``stream``.

    follow: go on at the end of the source; else it is what was there when the query began. every:
    the time between two micro-batches, as Spark writes it. show: told the reports of each.
    """
    reports = stream(spark, pipeline, source, sinks, store, **more)

    def shown(frame: DataFrame, number: int) -> None:
        show(number, [json.loads(row.report) for row in frame.collect()])

    writer = reports.writeStream.foreachBatch(shown)
    # What Spark would remember counts for nothing, so it may be lost.
    kept = tempfile.mkdtemp(prefix="ripple-spark-")
    writer = writer.option("checkpointLocation", kept)
    trigger: dict[str, Any] = {"processingTime": every} if follow else {"availableNow": True}
    return writer.trigger(**trigger).start()


async def _probed(made: Stream) -> None:
    """Raise UnsafeStoreError for a store that does not keep its promise."""
    async with open_store(made.store, made.s3, is_probed=True):
        pass
