"""Replay of a range of an input through a pipeline, on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.errors import InputError, OutputError
from ripple.core.extras import needed
from ripple.engine.operators.arrow_types import shown_fields
from ripple.spark import packets
from ripple.spark.dataframe.frames import Frames, are_frames
from ripple.spark.dataframe.named import frames_at
from ripple.spark.dataframe.source_frame import column_of, micros_of
from ripple.spark.dataframe.table_versions import pinned
from ripple.spark.draft import Draft
from ripple.spark.executors import check_executors
from ripple.spark.file_states import FileStates
from ripple.spark.options import BATCH_ROWS, Bound, whole_at_least_1
from ripple.spark.packets import LETTERS, REPORT, ROWS
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.progress import Listener, TaskProgress, listening
from ripple.spark.reading import TaskReading
from ripple.spark.report import Report
from ripple.spark.session import blaming, jobs, register
from ripple.spark.sources import arrow_schema, spark_schema
from ripple.spark.task_division import hashed_tasks
from ripple.spark.task_results import WantedResults, changes_schema, times_beside
from ripple.spark.work import Unpacked, cores_of, pickled

with needed("spark", "ripple.spark"):
    from pyspark.sql import functions

if TYPE_CHECKING:
    import os
    from collections.abc import Collection
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.dataframe.given import Names
    from ripple.spark.draft import PartFolder
    from ripple.spark.gather import Gather
    from ripple.spark.options import Place
    from ripple.spark.progress import Reporter

FORMATS = ("parquet", "csv", "json", "orc", "delta")


def replay(
    spark: SparkSession,
    pipeline: str | os.PathLike[str] | Pipeline | Plan,
    source: str | DataFrame | Mapping[str, str] | Mapping[str, DataFrame],
    *,
    output: str | None = None,
    timestamps: bool = False,
    **more: Any,
) -> DataFrame:
    """Return the rows of an output, or its events, from a range of an input through a pipeline.

    output: needed where there are several. timestamps: see ``Replay.rows``. The rest: see
    ``Replay``. Nothing is read before Spark needs it, and it is read each time. Raises PlanError,
    InputError, SchemaError, OutputError and StoreError.
    """
    return Replay(spark, pipeline, source, **more).rows(output, timestamps=timestamps)


class Replay:
    """A range of an input through a pipeline: its rows, dead letters and report."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: str | os.PathLike[str] | Pipeline | Plan,
        source: str | DataFrame | Mapping[str, str] | Mapping[str, DataFrame],
        *,
        start: Place = None,
        stop: Place = None,
        header: bool = False,
        closes: bool = True,
        markers: str | None = None,
        answers: str | None = None,
        cut: str | None = None,
        order_by: Names = (),
        identity: Names = (),
        partitions: int | None = None,
    ) -> None:
        """Examine the input.

        pipeline: ``FILE.py[:NAME]``, a pipeline or its plan. source: ``log:DIR/TOPIC``, a file, a
        folder or a pattern of files; ``table:NAME``, or a path of Spark's file systems, such as
        ``s3a://...``; or a DataFrame; a mapping by source name when the pipeline has several. A
        table of Delta Lake or Iceberg may be followed by ``VERSION AS OF NUMBER`` or ``TIMESTAMP AS
        OF TIME``; the version is found now, and read each time.
        start, stop: an offset, offsets by partition, or a time as text, which alone fits several
        sources and DataFrames; see ``Bound.parse``. header: whether CSV files name their columns.
        closes: whether windows end with the input.

        Each a folder of checkpoints, or ``s3://BUCKET/PREFIX``, of a durable run or a cluster:
        markers: with the markers of its idle inputs, read as well. answers: with its
        recorded answers of services; no call is made, and rows without an answer wait. cut: with
        the newest checkpoints, up to which each input is read, so that ticks of a clock end.

        Of DataFrames alone: order_by: columns that order rows of one event time, before their
        fields. identity: fields that identify a record within its event time; two records of one
        identity are an error. Both are by source where there are several. partitions: by key, where
        the key is known; by default ``spark.sql.shuffle.partitions``.

        Raises PlanError, InputError, SchemaError and StoreError.
        """
        register(spark)
        self._spark = spark
        self._parcel = Parcel.of(
            pipeline,
            pickled,
            has_markers=markers is not None,
            has_tables=True,
            has_answers=answers is not None,
        )
        self.plan = self._parcel.plan()
        self._closes = closes
        self._input: TaskReading | Frames
        self._before: Report | None = None
        bounds: dict[str, Any] = {"start": Bound.of(start), "stop": Bound.of(stop)}
        recorded: dict[str, Any] = {"markers": markers, "answers": answers, "cut": cut}
        of_frames: dict[str, Any] = {
            "order_by": order_by,
            "identity": identity,
            "partitions": partitions,
        }
        source = frames_at(spark, self.plan, pinned(spark, source), header=header)
        if are_frames(source):
            _need_none(recorded, "is of a run over a log or a topic, and a DataFrame is none")
            with blaming():
                self._input = Frames.of(
                    spark, self.plan, source, closes=closes, **bounds, **of_frames
                )
        else:
            _need_none(of_frames, "is of a DataFrame: other inputs have an order, and partitions")
            found = sources_at(source, self.plan, header=header, **bounds, **recorded)
            found = replace(found, is_open=not closes)
            self._input = TaskReading(spark, self.plan, found, FileStates.of(found))

    def rows(self, output: str | None = None, *, timestamps: bool = False) -> DataFrame:
        """Return the rows of an output, each key or event once. Raises OutputError.

        timestamps: whether each time in nanoseconds has a TIMESTAMP beside it, of microseconds: a
        field ``NAME_ns`` one called ``NAME``, the event time and each ``datetime`` called ``NAME``
        one called ``NAME_time``.
        """
        name = self._chosen(output)
        found = self._rows_in(self._packets((name,)), name)
        return self._timed(found, name) if timestamps else found

    def _timed(self, found: DataFrame, name: str) -> DataFrame:
        for field, beside in times_beside(self.plan, name).items():
            time = functions.timestamp_micros(micros_of(column_of(field)))
            found = found.withColumn(beside, time)
        return found

    def changes(
        self, output: str | None = None, *, every: int = BATCH_ROWS, timestamps: bool = False
    ) -> DataFrame:
        """Return the changes of an output: of each partition in order, by ``cut``.

        A key has at most one change for each ``every`` records of a partition. So changes are a
        function of the rows, their division, and ``every``. timestamps: see ``rows``. Raises
        OutputError.
        """
        name = self._chosen(output)
        schema = spark_schema(changes_schema(self.plan, name))
        found = self._rows_in(self._packets((name,), every=every), name, schema)
        return self._timed(found, name) if timestamps else found

    def _chosen(self, output: str | None) -> str:
        if output is None and len(self.plan.outputs) > 1:
            names = ", ".join(one.name for one in self.plan.outputs)
            raise OutputError(f"the pipeline has the outputs {names}: choose one")
        return self.plan.outputs[0].name if output is None else self.plan.output(output).name

    def letters(self) -> DataFrame:
        """Return the rejected records: source, offset, line_number, file, reason, raw."""
        return self._letters_in(self._packets(()))

    def report(self, *, show: Callable[[TaskProgress], None] | None = None) -> Report:
        """Run the replay, and return the report. Raises SparkJobError."""
        with self._listening(show) as listener:
            return self._report_in(self._packets((), listener))

    def write(
        self,
        sinks: Mapping[str, str],
        *,
        letters: str | None = None,
        overwrite: bool = False,
        show: Callable[[TaskProgress], None] | None = None,
    ) -> Report:
        """Write outputs, and return the report; the input is read once.

        sinks: by output, a folder, or ``FORMAT:FOLDER`` of FORMATS. letters: a folder for dead
        letters, as JSON lines. overwrite: whether an existing folder is replaced; else it is an
        error. show: called with the progress. Raises OutputError, InputError and SparkJobError.
        """
        places = {self.plan.output(name).name: _place(place) for name, place in sinks.items()}
        mode = "overwrite" if overwrite else "error"
        with self._listening(show) as listener, ExitStack() as ending:
            drafts = [
                ending.enter_context(self._draft(name, folder, overwrite=overwrite))
                for name, (form, folder) in places.items()
                if form == "parquet" and self._is_folder(folder)
            ]
            folders = {one.output: one.desk for one in drafts}
            found = self._packets(tuple(places), listener, folders)
            others = {name: place for name, place in places.items() if name not in folders}
            self._check_formats({form for form, _ in others.values()})
            if others or letters is not None:
                found = found.persist()
                ending.callback(found.unpersist)
            report = self._report_in(found)
            for name, (form, folder) in others.items():
                with jobs(self._spark, self.plan.name, f"write {name}"):
                    rows = self._rows_in(found, name)
                    rows.write.mode(mode).format(form).save(folder)
            if letters is not None:
                with jobs(self._spark, self.plan.name, "write dead letters"):
                    _as_text(self._letters_in(found)).write.mode(mode).json(letters)
            for draft in drafts:
                draft.adopt(report.partitions)
        return report

    def _draft(self, output: str, folder: str, *, overwrite: bool) -> Draft:
        schema = spark_schema(pa.schema(shown_fields(self.plan.output(output).fields)))
        path = folder.removeprefix("file:")
        return Draft(output, path, arrow_schema(schema), overwrite=overwrite)

    def _check_formats(self, forms: Collection[str]) -> None:
        """Raise SparkJobError for a format that Spark lacks, before anything is computed."""
        session: Any = getattr(self._spark, "_jsparkSession", None)  # of no Spark Connect
        if session is not None:
            looks: Any = self._spark._jvm
            find = looks.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource
            for form in sorted(forms):
                with blaming():
                    find(form, session.sessionState().conf())

    def _is_folder(self, place: str) -> bool:
        """Return whether a path is in the local file system, for Spark as well."""
        if place.startswith("file:"):
            return True
        context = getattr(self._spark, "_jsc", None)  # of no Spark Connect
        if ":" in place or context is None:
            return False
        default: str = context.hadoopConfiguration().get("fs.defaultFS", "file:///")
        return default.startswith("file:")

    def _listening(
        self, show: Callable[[TaskProgress], None] | None
    ) -> AbstractContextManager[Listener | None]:
        return listening(self._spark, self._input.tasks, self._input.rows, show)

    def _packets(
        self,
        outputs: tuple[str, ...],
        listener: Listener | None = None,
        folders: Mapping[str, PartFolder] | None = None,
        every: int | None = None,
    ) -> DataFrame:
        reporter: Reporter | None = None if listener is None else listener.reporter
        wanted = WantedResults(outputs, closes=self._closes, folders=folders or {})
        if every is not None:
            wanted = replace(wanted, changes=True, every=whole_at_least_1(every, "every"))
        with blaming():
            check_executors(self._spark)
            found, gathers = self._input.packets(self._parcel, wanted, reporter)
            for gather in gathers:
                targets = gather.targets(self.plan)
                tasks = hashed_tasks(targets, self._input.rows, cores_of(self._spark))
                found = gathered(found, gather, tasks)
        return found

    def _report_in(self, found: DataFrame) -> Report:
        with jobs(self._spark, self.plan.name, "replay"):
            rows = found.where(found.kind == REPORT).select("about").collect()
        reports = [json.loads(row.about) for row in rows]
        why = self._input.together_why
        if not isinstance(self._input, Frames):
            return Report.of(self.plan, reports, together_why=why)
        if not reports:
            reports = [self._input.report_of_nothing(self._parcel, WantedResults(()))]
        order, tables = self._input.order, self._input.tables
        report = Report.of(self.plan, reports, together_why=why, order=order, tables=tables)
        report.check_same_inputs(self._before)
        self._before = report
        return report

    def _rows_in(self, found: DataFrame, name: str, schema: StructType | None = None) -> DataFrame:
        if schema is None:
            schema = spark_schema(pa.schema(shown_fields(self.plan.output(name).fields)))
        chosen = found.where((found.kind == ROWS) & (found.name == name))
        return chosen.mapInArrow(Unpacked(schema), schema)

    def _letters_in(self, found: DataFrame) -> DataFrame:
        schema = spark_schema(packets.LETTER)
        return found.where(found.kind == LETTERS).mapInArrow(Unpacked(schema), schema)


def _need_none(given: Mapping[str, Any], why: str) -> None:
    for name, value in given.items():
        if value not in (None, ()):
            raise InputError(f"{name}= {why}: leave it out")


def gathered(found: DataFrame, gather: Gather, tasks: int) -> DataFrame:
    """Return the packets after a stage; its own packets go to its partitions, in order.

    tasks: among which these are divided.
    """
    ours = (found.kind == gather.takes) & (found.stage == gather.stage)
    whose = functions.when(ours, found.target).otherwise(found.sender)
    divided = found.repartition(tasks, whose)
    in_order = divided.sortWithinPartitions("kind", "target", "turn", "sender", "piece")
    return in_order.mapInArrow(gather, spark_schema(packets.SCHEMA))


def _as_text(letters: DataFrame) -> DataFrame:
    """Return dead letters for JSON lines: raw as text, or base64 if it is not UTF-8."""
    is_text = functions.is_valid_utf8(letters.raw.cast("string"))
    text = functions.when(is_text, letters.raw.cast("string"))
    return letters.select(
        "source",
        "offset",
        "line_number",
        "file",
        "reason",
        text.alias("raw"),
        functions.when(~is_text, functions.base64(letters.raw)).alias("raw_base64"),
    )


def _place(text: str) -> tuple[str, str]:
    form, colon, folder = text.partition(":")
    if not colon or not form.isalnum():
        return "parquet", text
    if form not in FORMATS:
        raise OutputError(f"Spark cannot write {text!r} here: there are {', '.join(FORMATS)}")
    return form, folder
