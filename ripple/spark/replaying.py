"""Replay of a range of an input through a pipeline, on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.errors import OutputError
from ripple.core.extras import needed
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.spark import packets
from ripple.spark.draft import Draft
from ripple.spark.fold import laid_out
from ripple.spark.options import Bound
from ripple.spark.packets import LETTERS, REPORT, ROWS
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.progress import Listener, TaskProgress, listening
from ripple.spark.report import Report
from ripple.spark.session import blaming, jobs, register
from ripple.spark.sources import arrow_schema, spark_schema
from ripple.spark.task_results import WantedResults
from ripple.spark.work import Unpacked, packets_from, pickled

with needed("spark", "ripple.spark"):
    from pyspark.sql import functions

if TYPE_CHECKING:
    import os
    from collections.abc import Collection
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.draft import PartFolder
    from ripple.spark.gather import Gather
    from ripple.spark.options import Place
    from ripple.spark.progress import Reporter

FORMATS = ("parquet", "csv", "json", "orc", "delta")


def replay(
    spark: SparkSession,
    pipeline: str | os.PathLike[str] | Pipeline | Plan,
    source: str | Mapping[str, str],
    *,
    output: str | None = None,
    start: Place = None,
    stop: Place = None,
    header: bool = False,
    closes: bool = True,
    markers: str | None = None,
    answers: str | None = None,
    cut: str | None = None,
) -> DataFrame:
    """Return the rows of an output, or its events, from a range of an input through a pipeline.

    pipeline: ``FILE.py[:NAME]``, a pipeline or its plan. source: ``log:DIR/TOPIC``, a file, a
    folder or a pattern of files; a mapping of source names to those when the pipeline has several.
    output: needed where there are several. start, stop: an offset, offsets by partition, or a time
    as text, which alone fits several sources; see ``Bound.parse``. header: whether CSV files name
    their columns. closes: whether windows end with the input. markers: the folder of checkpoints,
    or ``s3://BUCKET/PREFIX``, of the durable run or the cluster whose markers of idle inputs are
    read, too. answers: that of the run whose recorded answers of services are read; no call is
    made, and rows without an answer wait. cut: that of the run or the cluster up to whose newest
    checkpoints each input is read, so that ticks of a clock have an end. Nothing is read before
    Spark needs it, and it is read each time. Raises PlanError, InputError, OutputError and
    StoreError.
    """
    one = Replay(
        spark,
        pipeline,
        source,
        start=start,
        stop=stop,
        header=header,
        closes=closes,
        markers=markers,
        answers=answers,
        cut=cut,
    )
    return one.rows(output)


class Replay:
    """A range of an input through a pipeline: its rows, dead letters and report."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: str | os.PathLike[str] | Pipeline | Plan,
        source: str | Mapping[str, str],
        *,
        start: Place = None,
        stop: Place = None,
        header: bool = False,
        closes: bool = True,
        markers: str | None = None,
        answers: str | None = None,
        cut: str | None = None,
    ) -> None:
        """Examine the input; see ``replay``."""
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
        self.sources = sources_at(
            source,
            self.plan,
            start=Bound.of(start),
            stop=Bound.of(stop),
            header=header,
            markers=markers,
            answers=answers,
            cut=cut,
        )
        self.sources = replace(self.sources, is_open=not closes)
        self._closes = closes

    def rows(self, output: str | None = None) -> DataFrame:
        """Return the rows of an output, each key or event once. Raises OutputError."""
        if output is None and len(self.plan.outputs) > 1:
            names = ", ".join(one.name for one in self.plan.outputs)
            raise OutputError(f"the pipeline has the outputs {names}: choose one")
        name = self.plan.outputs[0].name if output is None else self.plan.output(output).name
        return self._rows_in(self._packets((name,)), name)

    def letters(self) -> DataFrame:
        """Return the rejected records: source, offset, line_number, reason, raw."""
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
        schema = spark_schema(pa.schema(arrow_fields(self.plan.output(output).fields)))
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
        tasks = len(self.sources.portions(self.plan))
        return listening(self._spark, tasks, self.sources.rows, show)

    def _packets(
        self,
        outputs: tuple[str, ...],
        listener: Listener | None = None,
        folders: Mapping[str, PartFolder] | None = None,
    ) -> DataFrame:
        reporter: Reporter | None = None if listener is None else listener.reporter
        wanted = WantedResults(outputs, closes=self._closes, folders=folders or {})
        jobs, gathers = laid_out(self._parcel, self.plan, self.sources, wanted, reporter)
        with blaming():
            found = packets_from(self._spark, jobs)
            for gather in gathers:
                found = gathered(found, gather, gather.targets(self.plan))
        return found

    def _report_in(self, found: DataFrame) -> Report:
        with jobs(self._spark, self.plan.name, "replay"):
            rows = found.where(found.kind == REPORT).select("about").collect()
        reports = [json.loads(row.about) for row in rows]
        return Report.of(self.plan, reports, together_why=self.sources.together_why(self.plan))

    def _rows_in(self, found: DataFrame, name: str) -> DataFrame:
        schema = spark_schema(pa.schema(arrow_fields(self.plan.output(name).fields)))
        chosen = found.where((found.kind == ROWS) & (found.name == name))
        return chosen.mapInArrow(Unpacked(schema), schema)

    def _letters_in(self, found: DataFrame) -> DataFrame:
        schema = spark_schema(packets.LETTER)
        return found.where(found.kind == LETTERS).mapInArrow(Unpacked(schema), schema)


def gathered(found: DataFrame, gather: Gather, targets: int) -> DataFrame:
    """Return the packets after a stage; its own packets go to its partitions, in order."""
    ours = (found.kind == gather.takes) & (found.stage == gather.stage)
    whose = functions.when(ours, found.target).otherwise(found.sender)
    divided = found.repartition(targets, whose)
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
