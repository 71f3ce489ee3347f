"""DataFrames as the sources of a replay: checked, divided by key and sorted by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.time_form import UNITS_NS
from ripple.spark.dataframe.division import division_of, numbered_why
from ripple.spark.dataframe.frame_fold import SOURCE, FrameFold
from ripple.spark.dataframe.given import given_of, names_of
from ripple.spark.dataframe.paths import path_in, plain, quoted
from ripple.spark.fold import check_triggers, later_gathers
from ripple.spark.options import NOWHERE, whole_at_least_1
from ripple.spark.packets import SCHEMA, packets_in
from ripple.spark.sources import Conforming, arrow_schema, spark_schema
from ripple.task.arguments import sources_of

with needed("spark", "ripple.spark"):
    from pyspark import TaskContext
    from pyspark.sql import DataFrame, functions
    from pyspark.sql.types import (
        DateType,
        DoubleType,
        FloatType,
        LongType,
        TimestampNTZType,
        TimestampType,
    )

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, SparkSession

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.dataframe.given import Given, Names
    from ripple.spark.gather import Gather
    from ripple.spark.options import Bound
    from ripple.spark.parcel import Parcel
    from ripple.spark.progress import Reporter
    from ripple.spark.task_results import WantedResults

_TIME, _REST, _KEY = "ripple_time", "ripple_time_rest", "ripple_key"
_FLOATS = (DoubleType, FloatType)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_NS = 86_400 * UNITS_NS["s"]


def are_frames(source: Any) -> bool:
    """Return whether a source, or one of several, is a DataFrame."""
    given = source.values() if isinstance(source, Mapping) else [source]
    return any(isinstance(one, DataFrame) for one in given)


@dataclass(frozen=True, slots=True)
class Frames:
    """Rows of DataFrames, sorted in ``tasks`` partitions.

    together_why: the reason if one task reads all rows, None if several do. order: by source, a
    text for reports.
    """

    plan: Plan
    given: tuple[Given, ...]
    sorted: DataFrame
    tasks: int
    together_why: str | None
    order: Mapping[str, str]

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
        key, why = division_of(plan, is_open=not closes)
        why = numbered_why(plan) if why is None and partitions is None else why
        each = []
        for rank, one in enumerate(plan.sources):
            frame = _checked(one, found[one.name])
            table = _Table(frame, one, rank if len(plan.sources) > 1 else None)
            table.look(orders.get(one.name, ()), identities.get(one.name, ()))
            each.append(table.within(start, stop))
        tasks = 1 if why is not None else _tasks(spark, partitions)
        rows = _in_order(each, key, tasks)
        order = {
            one.name: t.given.order_text(one) for one, t in zip(plan.sources, each, strict=True)
        }
        return cls(plan, tuple(t.given for t in each), rows, tasks, why, order)

    @property
    def rows(self) -> int | None:
        """None: Spark does not tell the number of records without counting them."""
        return None

    def packets(
        self, parcel: Parcel, wanted: WantedResults, reporter: Reporter | None
    ) -> tuple[DataFrame, list[Gather]]:
        """Return the packets of the first stage, and the gathers that follow."""
        staged = len(stages_of(self.plan)) > 1 and self.tasks > 1
        fold = FrameFold(parcel, self.given, self.tasks, wanted, staged, reporter)
        gathers = later_gathers(parcel, self.plan, self.tasks, wanted) if staged else []
        return self.sorted.mapInArrow(_Running(fold), spark_schema(SCHEMA)), gathers

    def report_of_nothing(self, parcel: Parcel, wanted: WantedResults) -> dict[str, Any]:
        """Return the report of a task without rows: Spark starts none over an empty DataFrame."""
        fold = FrameFold(parcel, self.given, 1, wanted)
        *_, last = packets_in(packet.as_batch() for packet in fold.run(0, ()))
        return dict(last.about)


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


class _Table:
    """The DataFrame of one source. rank: of several sources, None of one alone."""

    def __init__(self, frame: DataFrame, source: SourceSpec, rank: int | None) -> None:
        self.frame = frame
        self.source = source
        self._rank = rank
        self._prefix = "" if rank is None else f"ripple_{rank}_"

    def look(self, order_by: tuple[str, ...], identity: tuple[str, ...]) -> None:
        """Check the columns. Raises InputError and SchemaError."""
        names = self.frame.columns
        columns = {
            one.name: f"{self._prefix}{plain(one.name, number)}"
            for number, one in enumerate(self.source.schema.fields)
            if path_in(self.frame.schema, one.name) is not None
        }
        self.fields = self.frame.select(*(self._column(name).alias(name) for name in columns))
        for name in order_by:
            if path_in(self.frame.schema, name) is None:
                raise InputError(
                    f"the DataFrame of {self.source.name} cannot be ordered by {name!r}: it has "
                    f"the columns {', '.join(names)}"
                )
        self.given: Given = given_of(
            self.source,
            columns,
            arrow_schema(self.fields.schema),
            names,
            order_by=order_by,
            identity=identity,
        )

    def within(self, start: Bound, stop: Bound) -> _Table:
        """Leave the rows of a range of event time. Raises InputError for a range of offsets."""
        for bound, is_start in ((start, True), (stop, False)):
            if bound == NOWHERE:
                continue
            field = self.source.time_field
            if bound.time_ns is None or field is None:
                raise InputError(
                    f"rows of the DataFrame of {self.source.name} have no offsets: a range begins "
                    "and ends at an event time, or filter the DataFrame, with df.where"
                )
            value = self._at(field, bound.time_ns)
            column = self._column(field)
            self.frame = self.frame.where(column >= value if is_start else column < value)
        return self

    def columns(self, key: Sequence[str], tasks: int) -> list[Column]:
        """Return the columns for a union of sources: of order, of key, and the fields."""
        found = [self._column(name).alias(column) for name, column in self.given.columns]
        found += [
            self._column(name).alias(f"{self._prefix}ripple_order_{number}")
            for number, name in enumerate(self.given.order_by)
        ]
        if self._rank is None:
            return found
        own = [functions.lit(self._rank).cast("int").alias(SOURCE), *self._instant()]
        if tasks > 1:
            own += [self._column(name).alias(f"{_KEY}_{name}") for name in key]
        return [*own, *found]

    def order(self, key: Sequence[str]) -> list[Column]:
        """Return the order of the rows by columns of the union."""
        names = dict(self.given.columns)
        time = self.source.time_field
        rest = self.given.identity or (
            *(name for name in key if name in names),
            *(name for name in names if name not in key),
        )
        first = [] if time is None else [time]
        orders = [f"{self._prefix}ripple_order_{n}" for n, _ in enumerate(self.given.order_by)]
        fields = [name for name in rest if name != time]
        listed = [*(names[name] for name in first), *orders, *(names[name] for name in fields)]
        kinds = {one.name: one.dataType for one in self.fields.schema.fields}
        floats = [names[name] for name in names if isinstance(kinds[name], _FLOATS)]
        # Spark's order has -0.0 and 0.0 as equal, and so would leave theirs to chance.
        signs = [functions.when(_quoted(one) == 0, _quoted(one).cast("string")) for one in floats]
        return [*map(_quoted, listed), *signs]

    def _column(self, name: str) -> Column:
        found = path_in(self.frame.schema, name)
        assert found is not None
        return functions.col(found)

    def _kind(self, name: str) -> Any:
        return next(one.dataType for one in self.fields.schema.fields if one.name == name)

    def _instant(self) -> list[Column]:
        """Return microseconds and the nanoseconds beyond, by which sources are read together."""
        field = self.source.time_field
        if field is None:
            time = rest = functions.lit(None).cast("long")
            return [time.alias(_TIME), rest.alias(_REST)]
        column, kind = self._column(field), self._kind(field)
        rest = functions.lit(0).cast("long")
        if isinstance(kind, TimestampType):
            time = functions.unix_micros(column)
        elif isinstance(kind, TimestampNTZType):
            begin = functions.lit(_EPOCH.replace(tzinfo=None))
            time = functions.timestamp_diff("MICROSECOND", begin, column)
        elif isinstance(kind, DateType):
            time = functions.unix_date(column).cast("long") * (_DAY_NS // 1000)
        else:
            number, unit_ns = column.cast("long"), self._unit_ns(field)
            rest = functions.pmod(number, functions.lit(1000)) if unit_ns == 1 else rest
            time = functions.try_multiply(number, functions.lit(unit_ns // 1000))
            if unit_ns == 1:
                time = functions.floor(number / 1000).cast("long")
        return [time.alias(_TIME), rest.alias(_REST)]

    def _unit_ns(self, field: str) -> int:
        checks = self.given.checks(self.source).get(field)
        form = None if checks is None else checks.time_form
        return UNITS_NS.get("ns" if form is None else form.form, 1)

    def _at(self, field: str, time_ns: int) -> Column:
        """Return the first value of a column of times that is not before a time."""
        kind = self._kind(field)
        moment = _EPOCH + timedelta(microseconds=-(-time_ns // 1000))
        if isinstance(kind, TimestampType):
            return functions.lit(moment)
        if isinstance(kind, TimestampNTZType):
            return functions.lit(moment.replace(tzinfo=None))
        if isinstance(kind, DateType):
            return functions.lit(date.fromordinal(_EPOCH.toordinal() - -time_ns // _DAY_NS))
        return functions.lit(-(-time_ns // self._unit_ns(field))).cast(LongType())


def _in_order(each: Sequence[_Table], key: Sequence[str], tasks: int) -> DataFrame:
    """Return the rows of all sources, divided and sorted."""
    rows, *others = (one.frame.select(*one.columns(key, tasks)) for one in each)
    for other in others:
        rows = rows.unionByName(other, allowMissingColumns=True)
    is_one = len(each) == 1
    names = dict(each[0].given.columns)
    by = [names[name] if is_one else f"{_KEY}_{name}" for name in key] if tasks > 1 else []
    divided = rows.repartition(tasks, *map(_quoted, by))
    first = [] if is_one else [_quoted(name) for name in (_TIME, SOURCE, _REST)]
    in_order = divided.sortWithinPartitions(*first, *(c for one in each for c in one.order(key)))
    kept = [column for one in each for _, column in one.given.columns]
    return in_order.select(*map(_quoted, kept if is_one else [SOURCE, *kept]))


def _tasks(spark: SparkSession, asked: int | None) -> int:
    if asked is not None:
        return whole_at_least_1(asked, "partitions")
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def _checked(source: SourceSpec, frame: Any) -> DataFrame:
    """Return the DataFrame of a source. Raises InputError unless it has fixed rows."""
    if not isinstance(frame, DataFrame):
        raise InputError(
            f"{source.name} is no DataFrame, and other sources are: give all as DataFrames "
            "(of a log: spark.read.format('ripple.log').option('path', ...).load()), or all as URIs"
        )
    if frame.isStreaming:
        raise InputError(
            f"the DataFrame of {source.name} is a stream, which does not end: ripple.spark.run "
            "takes it, with landing="
        )
    known = getattr(frame, "_jdf", None)  # of no Spark Connect
    if known is not None and not known.queryExecution().analyzed().deterministic():
        raise InputError(
            f"the DataFrame of {source.name} has other rows each time that Spark computes it "
            "(rand, uuid, monotonically_increasing_id or a function of yours): write it, as with "
            "df.write.parquet('DIR'), and replay what was written, or df.localCheckpoint()"
        )
    return frame


def _quoted(name: str) -> Column:
    return functions.col(quoted(name))
