"""A pipeline on Spark Structured Streaming: the driver's side."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ripple.connectors.identity import check_not_read
from ripple.connectors.locate import sinks_by_output
from ripple.core.errors import InputError, OutputError
from ripple.core.extras import needed
from ripple.model.pipeline.division import need_no_table
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
from ripple.task.arguments import sources_of, uri_of
from ripple.task.home import check_home
from ripple.task.settings import Settings
from ripple.world import LiveClock, LiveRandom

with needed("spark", "ripple.spark"):
    from pyspark.sql import DataFrame, functions

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

    from ripple.core.cut import Cut
    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan

    Show: TypeAlias = Callable[[int, Sequence[Mapping[str, Any]]], None]

EVERY = "1 second"

OBSERVED = "ripple"
"""The name of the sums in ``query.lastProgress["observedMetrics"]``."""

# Spark writes its own progress beside the micro-batches; not in a query with an end.
_UNAWAITED = "asyncProgressTrackingEnabled"

# Such a source never repeats batches that Spark has not committed.
_FORGETS = re.compile(r"StreamingRelation\S* .*?(?:TextSocket|\bsocket\b)")


def stream(
    spark: SparkSession,
    pipeline: str | os.PathLike[str] | Pipeline | Plan,
    source: str | Mapping[str, str],
    sinks: Mapping[str, str] | str,
    store: str,
    **more: Any,
) -> DataFrame:
    """Return a pipeline as a streaming DataFrame: one report per micro-batch and partition.

    The query that reads it drives the pipeline; only one may do so at a time. Arguments as for
    ``run``, with the URI of each source.
    """
    return _reports(spark, _made(spark, _parcel(pipeline), source, sinks, store, **more))


def _reports(spark: SparkSession, made: Stream) -> DataFrame:
    packed = base64.b64encode(pickled(made)).decode()
    reports = spark.readStream.format(NAME).option("stream", packed)
    driver = Driver.of(spark)
    found = reports.option("host", driver.host).option("bind", driver.bind).load()
    mark, lag = (
        functions.get_json_object("report", f"$.{name}").cast("long")
        for name in ("watermark_ns", "lag_ns")
    )
    return found.observe(
        OBSERVED,
        functions.sum("events").alias("events"),
        functions.sum("rows_out").alias("rows_out"),
        functions.min(mark).alias("watermark_ns"),
        functions.max(lag).alias("lag_ns"),
    )


def run(
    spark: SparkSession,
    pipeline: str | os.PathLike[str] | Pipeline | Plan,
    source: str | Mapping[str, str] | DataFrame,
    sinks: Mapping[str, str] | str,
    store: str,
    *,
    landing: str | None = None,
    follow: bool = True,
    every: str | None = None,
    show: Show | None = None,
    **more: Any,
) -> StreamingQuery:
    """Start a pipeline as a query, which resumes from the state in the store.

    pipeline: ``FILE.py[:NAME]``, a pipeline or its plan. source: ``log:DIR/TOPIC`` or
    ``kafka:BROKERS/TOPIC``, or a mapping of source names to those when the pipeline has several
    sources; or a streaming DataFrame with the fields of the pipeline's records, the
    micro-batches of which first land, each once, in the topic ``landing`` (``log:DIR/TOPIC``,
    created if missing). sinks: outputs with URIs that support takeover, ``log:`` or ``kafka:``.
    store: of checkpoints, a folder shared by all executors or ``s3://bucket/prefix``. follow: wait
    for more at the end of the source; else stop at its present end. every: the interval of
    micro-batches with ``follow``, in Spark's notation, a second by default. show: called with the
    reports of each, not on Spark Connect. more: ``partitions`` of the pipeline, by default the
    source's, as in a cluster; 1 as with ``ripple run``; ``batch_rows`` and ``keep``, as of a run.
    Raises PlanError, InputError, OutputError, SchemaError and StoreError.
    """
    if every is not None and not follow:
        raise InputError(f"every={every!r} needs follow")
    if show is not None and getattr(spark, "_sc", None) is None:
        raise InputError(
            "show= cannot be called here on Spark Connect, only by its server: leave it out and "
            "read query.lastProgress['observedMetrics'], or use a session without SPARK_REMOTE"
        )
    parcel = _parcel(pipeline)
    if isinstance(source, (str, Mapping)):
        if landing is not None:
            raise InputError(f"{source} has offsets of its own: leave landing={landing!r} out")
        reports = _reports(spark, _made(spark, parcel, source, sinks, store, **more))
        writer = _shown(reports, show, follows=follow)
    else:
        parcel.plan().need_one_source("a streaming DataFrame on Spark")
        need_no_table(parcel.plan(), "Spark with a streaming DataFrame")
        landed = _landed(source, parcel.plan(), landing, more.get("partitions"))
        made = _made(spark, parcel, str(landing), sinks, store, **more)
        rows = source.select(*(one.name for one in parcel.plan().source.fields))
        writer = rows.writeStream.foreachBatch(
            _Landing(made, landed, Driver.of(spark), show or _not_shown)
        )
        writer = writer.option("checkpointLocation", landed.query)
    pace = {"processingTime": every or EVERY} if follow else {"availableNow": True}
    trigger: dict[str, Any] = pace
    # Spark's UI shows it; two queries of a session cannot have one name.
    name = f"ripple-{parcel.name}"
    if all(query.name != name for query in spark.streams.active):
        writer = writer.queryName(name)
    return writer.trigger(**trigger).start()


def _parcel(pipeline: str | os.PathLike[str] | Pipeline | Plan) -> Parcel:
    # Its tasks record markers in the store, as every durable run does.
    return Parcel.of(pipeline, pickled, has_markers=True, has_tables=True)


def _shown(reports: DataFrame, show: Show | None, *, follows: bool) -> DataStreamWriter:
    """Return the writer of a query over reports.

    Spark's own checkpoint is not used, and has a temporary folder. So no micro-batch waits for its
    writes, if Spark allows that for a sink, as it does for this one.
    """
    if show is None:
        writer = reports.writeStream.format("noop")
        return writer.option(_UNAWAITED, "true") if follows else writer

    def shown(frame: DataFrame, number: int) -> None:
        show(number, [json.loads(row.report) for row in frame.collect()])

    return reports.writeStream.foreachBatch(shown)


def _not_shown(_: int, __: Sequence[Mapping[str, Any]]) -> None:
    pass


class _Landing:
    """Handles a micro-batch of a DataFrame: it lands, and the partitions read it.

    Spark Connect pickles it, for a process of its server.
    """

    def __init__(self, made: Stream, landing: Landing, driver: Driver, show: Show) -> None:
        self._made, self._landing, self._show = made, landing, show
        self._driver = driver
        self._hints: Hints | None = None
        self._done: Cut = {}

    def __call__(self, frame: DataFrame, number: int) -> None:
        if self._hints is None:
            self._hints = Hints(self._driver)
        self._landing.take(number, frame.toArrow)
        _, end = self._made.bounds()
        jobs = [TurnJob(turn) for turn in turns(self._made, self._hints, self._done, end)]
        found = packets_from(frame.sparkSession, jobs).select("about").collect() if jobs else []
        self._done = end
        self._show(number, [json.loads(row.about) for row in found])


def _landed(frame: DataFrame, plan: Plan, place: str | None, partitions: int | None) -> Landing:
    """Return a DataFrame's landing. Raises InputError and SchemaError."""
    if not getattr(frame, "isStreaming", False):
        raise InputError(
            "a source is a URI or a streaming DataFrame (spark.readStream): replay or backfill "
            "a static one"
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
            "micro-batches have no offsets from which a state could resume: add landing='log:DIR/"
            "TOPIC', where they get some"
        )
    known = getattr(frame, "_jdf", None)  # of no Spark Connect
    if known is not None and _FORGETS.search(known.queryExecution().analyzed().toString()):
        raise InputError(
            "a socket cannot repeat anything, so a crash would lose records: read "
            "Kafka, files, a table, or another source that Spark can replay"
        )
    landed = Landing.at(place, plan, partitions)
    landed.check(arrow_schema(frame.select(*names).schema))
    return landed


def _made(
    spark: SparkSession,
    parcel: Parcel,
    source: str | Mapping[str, str],
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
        raise OutputError("name a sink for the output: a query without one has no effect")
    for place in sources_of(plan, source).values():
        check_not_read(uri_of(place, "continued_source"), places)
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
    """Raise UnsafeStoreError for an unsafe store.

    Raises ChangedPlanError if its state is that of a cluster with several stages.
    """
    async with open_store(made.store, is_probed=True) as store:
        patient = RetryingStore(store, LiveClock(), LiveRandom())
        await check_home(patient, plan, staged=False)
