"""The DataFrame of one source: checked, with the columns that order and divide its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError, SchemaError
from ripple.core.extras import needed
from ripple.model.schema.time_form import UNITS_NS
from ripple.spark.dataframe.frame_fold import SOURCE
from ripple.spark.dataframe.given import given_of
from ripple.spark.dataframe.paths import path_in, plain, quoted
from ripple.spark.options import NOWHERE
from ripple.spark.sources import arrow_schema

with needed("spark", "ripple.spark"):
    from pyspark.sql import DataFrame, functions
    from pyspark.sql.types import (
        ArrayType,
        DateType,
        DoubleType,
        FloatType,
        LongType,
        MapType,
        StructType,
        TimestampNTZType,
        TimestampType,
        VariantType,
    )

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column
    from pyspark.sql.types import DataType

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.spark.dataframe.given import Given
    from ripple.spark.options import Bound

# Columns of the union of several sources, beside SOURCE.
TIME, REST, KEY = "ripple_time", "ripple_time_rest", "ripple_key"
_UNORDERED = (MapType, VariantType)
_FLOATS = (DoubleType, FloatType)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_NS = 86_400 * UNITS_NS["s"]


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """The checked DataFrame of one source.

    given: its columns, order and identity. kinds: the types of the fields. rank: of the source
    among several, None of the only one.
    """

    frame: DataFrame
    source: SourceSpec
    given: Given
    kinds: StructType
    rank: int | None

    @classmethod
    def of(
        cls,
        frame: Any,
        source: SourceSpec,
        *,
        rank: int | None,
        order_by: tuple[str, ...] = (),
        identity: tuple[str, ...] = (),
    ) -> SourceFrame:
        """Check a DataFrame and its columns; computes nothing.

        Raises InputError and SchemaError.
        """
        _check(frame, source)
        names = frame.columns
        columns, fields = {}, []
        for name in (*order_by, *(field.name for field in source.schema.fields)):
            if names.count(name) > 1:
                raise SchemaError(
                    f"the DataFrame of {source.name} has {names.count(name)} columns {name!r}: "
                    "name them apart, as with df.toDF(...), or select one"
                )
        for number, field in enumerate(source.schema.fields):
            path = path_in(frame.schema, field.name)
            if path is not None:
                columns[field.name] = f"{_prefix(rank)}{plain(field.name, number)}"
                fields.append(functions.col(path).alias(field.name))
        kinds = frame.select(*fields).schema
        for name in order_by:
            if path_in(frame.schema, name) is None:
                raise InputError(
                    f"the DataFrame of {source.name} cannot be ordered by {name!r}: it has "
                    f"the columns {', '.join(names)}"
                )
            kind = frame.select(path_in(frame.schema, name)).schema[0].dataType
            if not _has_order(kind):
                raise InputError(
                    f"the DataFrame of {source.name} cannot be ordered by {name!r}: a column of "
                    f"{kind.simpleString()} has no order"
                )
        given = given_of(
            source,
            columns,
            arrow_schema(kinds),
            names,
            order_by=order_by,
            identity=identity,
        )
        return cls(frame, source, given, kinds, rank)

    def within(self, start: Bound, stop: Bound) -> SourceFrame:
        """Return the rows of a range of event time. Raises InputError for a range of offsets."""
        frame = self.frame
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
            frame = frame.where(column >= value if is_start else column < value)
        return replace(self, frame=frame)

    def columns(self, key: Sequence[str], tasks: int) -> list[Column]:
        """Return the columns for a union of sources: of order, of key, and the fields."""
        found = [self._column(name).alias(column) for name, column in self.given.columns]
        found += [
            self._column(name).alias(column)
            for name, column in zip(self.given.order_by, self._order_columns, strict=True)
        ]
        if self.rank is None:
            return found
        own = [functions.lit(self.rank).cast("int").alias(SOURCE), *self._instant()]
        if tasks > 1:
            own += [self._column(name).alias(f"{KEY}_{name}") for name in key]
        return [*own, *found]

    def order(self, key: Sequence[str]) -> list[Column]:
        """Return the order of the rows by columns of the union."""
        names = dict(self.given.columns)
        time, fields = self.source.time_field, self.given.tied_fields(self.source, key)
        first = [] if time is None else [names[time]]
        listed = [*first, *self._order_columns, *(names[name] for name in fields)]
        floats = [names[name] for name in names if self.is_float(name)]
        maps = [names[name] for name in names if isinstance(self.kinds[name].dataType, MapType)]
        return in_order(listed, floats, maps)

    def is_float(self, field: str) -> bool:
        """Return whether a field is a number with a sign of zero."""
        return isinstance(self.kinds[field].dataType, _FLOATS)

    @property
    def _order_columns(self) -> list[str]:
        """The columns of the union that have the values of ``order_by=``."""
        return [f"{_prefix(self.rank)}ripple_order_{n}" for n in range(len(self.given.order_by))]

    def _column(self, name: str) -> Column:
        found = path_in(self.frame.schema, name)
        assert found is not None
        return functions.col(found)

    def _instant(self) -> list[Column]:
        """Return the merge order of sources: microseconds, and the nanoseconds beyond."""
        field = self.source.time_field
        if field is None:
            time = rest = functions.lit(None).cast("long")
            return [time.alias(TIME), rest.alias(REST)]
        column, kind = self._column(field), self.kinds[field].dataType
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
                time = micros_of(number)
        return [time.alias(TIME), rest.alias(REST)]

    def _unit_ns(self, field: str) -> int:
        checks = self.given.checks(self.source).get(field)
        form = None if checks is None else checks.time_form
        return UNITS_NS.get("ns" if form is None else form.form, 1)

    def number_at(self, field: str, time_ns: int) -> int:
        """Return the first value of a column of times not before a time, in the column's unit."""
        kind, unit_ns = self.kinds[field].dataType, self._unit_ns(field)
        if isinstance(kind, TimestampType | TimestampNTZType):
            unit_ns = 1000
        elif isinstance(kind, DateType):
            unit_ns = _DAY_NS
        return -(-time_ns // unit_ns)

    def _at(self, field: str, time_ns: int) -> Column:
        kind, number = self.kinds[field].dataType, self.number_at(field, time_ns)
        if isinstance(kind, DateType):
            return functions.lit(date.fromordinal(_EPOCH.toordinal() + number))
        if isinstance(kind, TimestampType):
            return functions.lit(_EPOCH + timedelta(microseconds=number))
        if isinstance(kind, TimestampNTZType):
            return functions.lit(_EPOCH.replace(tzinfo=None) + timedelta(microseconds=number))
        return functions.lit(number).cast(LongType())


def micros_of(times_ns: Column) -> Column:
    """Return the microsecond of times in nanoseconds, by integers: they are no exact doubles."""
    thousand = functions.lit(1000)
    return functions.call_function("div", times_ns - functions.pmod(times_ns, thousand), thousand)


def in_order(names: Sequence[str], floats: Sequence[str], maps: Sequence[str] = ()) -> list[Column]:
    """Return the order by columns, and by the signs of zeros of others. maps: of ``names``."""
    # Spark's order has -0.0 and 0.0 as equal, and so would leave theirs to chance.
    signs = [functions.when(column_of(one) == 0, column_of(one).cast("string")) for one in floats]
    # Nor has Spark an order of maps: that of their entries is one.
    ordered = [
        functions.array_sort(functions.map_entries(column_of(one)))
        if one in maps
        else column_of(one)
        for one in names
    ]
    return [*ordered, *signs]


def column_of(name: str) -> Column:
    """Return a column by its whole name, dots included."""
    return functions.col(quoted(name))


def _has_order(kind: DataType) -> bool:
    """Return whether Spark sorts values of a type."""
    if isinstance(kind, StructType):
        return all(_has_order(member.dataType) for member in kind)
    return (
        _has_order(kind.elementType)
        if isinstance(kind, ArrayType)
        else (not isinstance(kind, _UNORDERED))
    )


def _prefix(rank: int | None) -> str:
    return "" if rank is None else f"ripple_{rank}_"


def _check(frame: Any, source: SourceSpec) -> None:
    """Raise InputError unless a source is a DataFrame with fixed rows."""
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
            "(rand, uuid, monotonically_increasing_id or a nondeterministic UDF): write it, as "
            "with df.write.parquet('DIR'), and replay that folder, or df.localCheckpoint()"
        )
