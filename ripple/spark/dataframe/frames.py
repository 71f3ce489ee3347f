"""DataFrames as the sources of a replay: divided by key and sorted by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.extras import needed
from ripple.model.pipeline.topology import stages_of
from ripple.spark.dataframe.division import (
    calls_functions,
    division_of,
    numbered_why,
    uuids_in,
)
from ripple.spark.dataframe.file_scan import files_scan
from ripple.spark.dataframe.frame_fold import SOURCE, FrameFold
from ripple.spark.dataframe.given import names_of
from ripple.spark.dataframe.scan import Scan
from ripple.spark.dataframe.source_frame import KEY, REST, TIME, SourceFrame, column_of
from ripple.spark.dataframe.table_versions import check_unchanged, versions_in
from ripple.spark.fold import check_triggers, later_gathers
from ripple.spark.options import NOWHERE, whole_at_least_1
from ripple.spark.packets import SCHEMA, packets_in
from ripple.spark.settled_heap import settle_heap
from ripple.spark.sources import Conforming, arrow_schema, spark_schema
from ripple.spark.task_division import ROWS
from ripple.spark.work import cores_of, packets_from
from ripple.task.arguments import sources_of

with needed("spark", "ripple.spark"):
    from pyspark import TaskContext
    from pyspark.sql import DataFrame, functions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from ripple.model.pipeline.plan import Plan
    from ripple.spark.dataframe.given import Given, Names
    from ripple.spark.gather import Gather
    from ripple.spark.options import Bound
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.progress import Reporter
    from ripple.spark.task_results import WantedResults


def are_frames(source: Any) -> bool:
    """Return whether a source, or any of several, is a DataFrame."""
    given = source.values() if isinstance(source, Mapping) else [source]
    return any(isinstance(one, DataFrame) for one in given)


@dataclass(frozen=True, slots=True)
class Frames:
    """Rows of DataFrames, in ``tasks`` partitions.

    sorted: by Spark, or files that tasks read in order by themselves. together_why: the reason if
    one task reads all rows, None if several do. order: by source, a text for reports. tables: by
    source, its tables of Delta Lake and Iceberg with their versions.
    """

    spark: SparkSession
    plan: Plan
    given: tuple[Given, ...]
    sorted: DataFrame | Scan
    tasks: int
    together_why: str | None
    order: Mapping[str, str]
    tables: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        plan: Plan,
        source: Any,
        *,
        order_by: Names = (),
        identity: Names = (),
        partitions: int | None = None,
        start: Bound = NOWHERE,
        stop: Bound = NOWHERE,
        closes: bool = True,
    ) -> Frames:
        """Check the DataFrames, and lay out their division; computes nothing.

        Raises InputError and SchemaError.
        """
        if len(plan.sources) > 1:
            check_triggers(plan)
        found = sources_of(plan, source)
        orders, identities = (
            names_of(plan, order_by, "order_by"),
            names_of(plan, identity, "identity"),
        )
        each = []
        for rank, one in enumerate(plan.sources):
            frame = SourceFrame.of(
                found[one.name],
                one,
                rank=rank if len(plan.sources) > 1 else None,
                order_by=orders.get(one.name, ()),
                identity=identities.get(one.name, ()),
            )
            each.append(frame.within(start, stop))
        columns = arrow_schema(each[0].kinds) if len(each) == 1 else None
        key, why = division_of(plan, columns, is_open=not closes)
        why = numbered_why(plan) if why is None and partitions is None else why
        tasks = 1 if why is not None else _tasks(spark, partitions)
        order = {one.source.name: one.given.order_text(one.source) for one in each}
        tables = {one.source.name: versions_in(one.frame) for one in each}
        given = tuple(one.given for one in each)
        scan = None
        if len(each) == 1:
            few = 1 if why is not None else _few_tasks(spark, partitions, tasks)
            whole = replace(each[0], frame=found[each[0].source.name])
            few_rows = ROWS if partitions is None and not calls_functions(plan) else 0
            scan = files_scan(whole, key, few, start, stop, few_rows=few_rows)
        if scan is not None:
            return cls(spark, plan, given, scan, scan.tasks, why, order, tables)
        rows = _in_order(each, key, tasks)
        return cls(spark, plan, given, rows, tasks, why, order, tables)

    @property
    def rows(self) -> int | None:
        """The number of records, where the files' metadata have it; Spark would have to count."""
        return self.sorted.rows if isinstance(self.sorted, Scan) else None

    def packets(
        self, parcel: Parcel, wanted: WantedResults, reporter: Reporter | None
    ) -> tuple[DataFrame, list[Gather]]:
        """Return the packets of the first stage, and the gathers that follow.

        Raises InputError for a table that has changed since it was examined.
        """
        if not isinstance(self.sorted, Scan):
            check_unchanged({one for tables in self.tables.values() for one in tables}, self.sorted)
        staged = len(stages_of(self.plan)) > 1 and self.tasks > 1
        fold = FrameFold(parcel, self.given, self.tasks, wanted, staged, reporter)
        gathers = later_gathers(parcel, self.plan, self.tasks, wanted) if staged else []
        if isinstance(self.sorted, Scan):
            jobs = [ScanFold(fold, self.sorted, number) for number in range(self.tasks)]
            return packets_from(self.spark, jobs), gathers
        return self.sorted.mapInArrow(_Running(fold), spark_schema(SCHEMA)), gathers

    def report_of_nothing(self, parcel: Parcel, wanted: WantedResults) -> dict[str, Any]:
        """Return the report of a task without rows: Spark starts none over an empty DataFrame."""
        fold = FrameFold(parcel, self.given, 1, wanted)
        *_, last = packets_in(packet.as_batch() for packet in fold.run(0, ()))
        return dict(last.about)


@dataclass(frozen=True, slots=True)
class ScanFold:
    """The job of a task that reads files by itself."""

    fold: FrameFold
    scan: Scan
    number: int

    def run(self) -> Iterator[Packet]:
        """Yield the packets of its partition."""
        yield from self.fold.run(self.number, self.scan.batches(self.number))


class _Running:
    """Runs the fold in a task, over the rows of its partition."""

    def __init__(self, fold: FrameFold) -> None:
        self._fold = fold

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the packets of the partition."""
        context = TaskContext.get()
        assert context is not None
        conforming = Conforming(spark_schema(SCHEMA))
        for packet in self._fold.run(context.partitionId(), batches):
            yield conforming(packet.as_batch())
        settle_heap()


def _in_order(each: Sequence[SourceFrame], key: Sequence[str], tasks: int) -> DataFrame:
    """Return the rows of all sources, divided and sorted."""
    rows, *others = (one.frame.select(*one.columns(key, tasks)) for one in each)
    for other in others:
        rows = rows.unionByName(other, allowMissingColumns=True)
    is_one = len(each) == 1
    names = dict(each[0].given.columns)
    by = [(name, names[name] if is_one else f"{KEY}_{name}") for name in key if tasks > 1]
    uuids = uuids_in(each[0].source, key)
    divided = rows.repartition(
        tasks,
        *(
            functions.lower(column_of(column)) if name in uuids else column_of(column)
            for name, column in by
        ),
    )
    first = [] if is_one else [column_of(name) for name in (TIME, SOURCE, REST)]
    in_order = divided.sortWithinPartitions(*first, *(c for one in each for c in one.order(key)))
    kept = [column for one in each for _, column in one.given.columns]
    return in_order.select(*map(column_of, kept if is_one else [SOURCE, *kept]))


def _few_tasks(spark: SparkSession, asked: int | None, tasks: int) -> int:
    """Return the number of tasks that read files themselves: each of them reads all of the rows."""
    cores = cores_of(spark)
    return tasks if asked is not None or cores is None else min(tasks, cores)


def _tasks(spark: SparkSession, asked: int | None) -> int:
    if asked is not None:
        return whole_at_least_1(asked, "partitions")
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
