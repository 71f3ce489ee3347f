"""A pipeline on Spark Structured Streaming, from the driver's side."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import TYPE_CHECKING, Any

from ripple.connectors.identity import check_not_read
from ripple.connectors.locate import sinks_by_output
from ripple.core.errors import InputError, OutputError
from ripple.spark.driver import Driver
from ripple.spark.parcel import Parcel
from ripple.spark.session import register
from ripple.spark.sources import arrow_schema
from ripple.spark.streaming.hints import Hints
from ripple.spark.streaming.landing import Landing
from ripple.spark.streaming.source import NAME, RunSource
from ripple.spark.streaming.stream import Stream
from ripple.spark.streaming.turn import TurnJob, turns
from ripple.spark.work import packets_from, pickled
from ripple.storage.store import RetryingStore
from ripple.storage.store.opening import open_store
from ripple.task.home import check_home
from ripple.task.settings import Settings
from ripple.world import LiveClock, LiveRandom

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ripple.core.cut import Cut
    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan

    Show: TypeAlias = Callable[[int, Sequence[Mapping[str, Any]]], None]

EVERY = "1 second"

# What such a source has given and Spark has not noted as done, it never gives again.
_FORGETS = re.compile(r"StreamingRelation\S* .*?(?:TextSocket|\bsocket\b)")


def stream(
    spark: SparkSession,
    pipeline: str | os.PathLike[str] | Pipeline | Plan,
    source: str,
    sinks: Mapping[str, str] | str,
    store: str,
    **more: Any,
) -> DataFrame:
    """Return a pipeline as a streaming DataFrame: a row a micro-batch and partition, its report.

    Whatever query reads it drives the pipeline; one at a time does. The rest is as of ``run``, with
    a source at a place.
    """
    made = _made(spark, Parcel.of(pipeline, pickled), source, sinks, store, **more)
    packed = base64.b64encode(pickled(made)).decode()
    reports = spark.readStream.format(NAME).option("stream", packed)
    driver = Driver.of(spark)
    return reports.option("host", driver.host).option("bind", driver.bind).load()


def run(
    spark: SparkSession,
    pipeline: str | os.PathLike[str] | Pipeline | Plan,
    source: str | DataFrame,
    sinks: Mapping[str, str] | str,
    store: str,
    *,
    landing: str | None = None,
    follow: bool = True,
    every: str | None = None,
    show: Show = lambda _, __: None,
    **more: Any,
) -> StreamingQuery:
    """Start a pipeline as a query, which goes on from the state in the store.

    pipeline: ``FILE.py[:NAME]``, a pipeline or its plan. source: ``log:DIR/TOPIC`` or
    ``kafka:BROKERS/TOPIC``; or a streaming DataFrame with the fields of the pipeline's records,
    whose micro-batches first land, each once, in the topic ``landing`` (``log:DIR/TOPIC``, made
    where there is none). sinks: outputs with places that can be taken over, ``log:`` or ``kafka:``.
    store: of checkpoints, a folder that all executors have or ``s3://bucket/prefix``. follow: go on
    at the end of the source; else it is what was there when the query began. every: the time
    between two micro-batches that follow, as Spark writes it, a second by default. show: told the
    reports of each. more: ``partitions`` of the pipeline, 1 as with ``ripple run``, by default as
    many as the source has, as in a cluster; ``batch_rows`` and ``keep``, as of a run. Raises
    PlanError, InputError, OutputError, SchemaError and StoreError.
    """
    if every is not None and not follow:
        raise InputError(f"every={every!r} is between two micro-batches that follow")
    if isinstance(source, str):
        if landing is not None:
            raise InputError(f"{source} has offsets of its own, and need not land in {landing}")
        reports = stream(spark, pipeline, source, sinks, store, **more)

        def shown(frame: DataFrame, number: int) -> None:
            show(number, [json.loads(row.report) for row in frame.collect()])

        # What Spark remembers counts for nothing: it has a folder for that, and removes it.
        writer = reports.writeStream.foreachBatch(shown)
    else:
        parcel = Parcel.of(pipeline, pickled)
        landed = _landed(source, parcel.plan(), landing, more.get("partitions"))
        made = _made(spark, parcel, str(landing), sinks, store, **more)
        rows = source.select(*(one.name for one in parcel.plan().source.fields))
        writer = rows.writeStream.foreachBatch(_Landing(made, landed, Driver.of(spark), show))
        writer = writer.option("checkpointLocation", landed.query)
    pace = {"processingTime": every or EVERY} if follow else {"availableNow": True}
    trigger: dict[str, Any] = pace
    return writer.trigger(**trigger).start()


class _Landing:
    """What is done with a micro-batch of somebody's: it lands, and the partitions read it."""

    def __init__(self, made: Stream, landing: Landing, driver: Driver, show: Show) -> None:
        self._made, self._landing, self._show = made, landing, show
        self._hints = Hints(driver)
        self._done: Cut = {}

    def __call__(self, frame: DataFrame, number: int) -> None:
        self._landing.take(number, frame.toArrow)
        _, end = self._made.bounds()
        jobs = [TurnJob(turn) for turn in turns(self._made, self._hints, self._done, end)]
        found = packets_from(frame.sparkSession, jobs).select("about").collect() if jobs else []
        self._done = end
        self._show(number, [json.loads(row.about) for row in found])


def _landed(frame: DataFrame, plan: Plan, place: str | None, partitions: int | None) -> Landing:
    """Return where a DataFrame lands. Raises InputError and SchemaError for one that cannot."""
    if not getattr(frame, "isStreaming", False):
        raise InputError(
            "a source is a place or a streaming DataFrame (spark.readStream): what is there as a "
            "whole is replayed, or backfilled"
        )
    names = [one.name for one in plan.source.fields]
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InputError(
            f"the DataFrame has no {', '.join(missing)}: {plan.source.name} has the fields "
            f"{', '.join(names)}"
        )
    if place is None:
        raise InputError(
            "micro-batches have no offsets, by which a state could go on: say landing='log:DIR/"
            "TOPIC', where they get some"
        )
    known = getattr(frame, "_jdf", None)  # of no Spark Connect
    if known is not None and _FORGETS.search(known.queryExecution().analyzed().toString()):
        raise InputError(
            "a socket gives nothing a second time, so what a crash interrupts would be lost: read "
            "Kafka, files, a table, or another source that Spark can replay"
        )
    landed = Landing.at(place, plan, partitions)
    landed.check(arrow_schema(frame.select(*names).schema))
    return landed


def _made(
    spark: SparkSession,
    parcel: Parcel,
    source: str,
    sinks: Mapping[str, str] | str,
    store: str,
    *,
    partitions: int | None = None,
    batch_rows: int = Settings().batch_rows,
    keep: int = Settings().keep,
) -> Stream:
    register(spark)
    spark.dataSource.register(RunSource)
    plan = parcel.plan()
    given = [sinks] if isinstance(sinks, str) else [f"{one}={at}" for one, at in sinks.items()]
    places = sinks_by_output(plan, given)
    if not places:
        raise OutputError("name a place for the output: a query without one has no effect")
    check_not_read(source, places)
    made = Stream.of(
        parcel,
        source,
        places,
        store,
        partitions=partitions,
        batch_rows=batch_rows,
        keep=keep,
    )
    asyncio.run(_probed(made, plan))
    return made


async def _probed(made: Stream, plan: Plan) -> None:
    """Raise UnsafeStoreError for a store that does not keep its promise.

    Raises ChangedPlanError where the state in it is that of a cluster's stages.
    """
    async with open_store(made.store, is_probed=True) as store:
        patient = RetryingStore(store, LiveClock(), LiveRandom())
        await check_home(patient, plan, staged=False)
