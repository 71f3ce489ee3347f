"""A pipeline as a table function of SQL: ``SELECT * FROM ripple_replay(TABLE(trades), 'vwap.py')``.

Spark divides the rows by the pipeline's key, sorts them, and gives them to a process of Python one
by one, so that it is for tables of some millions of rows; ``replay`` takes them in columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.engine.operators.arrow_types import shown_fields
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.held import as_shown
from ripple.spark.dataframe.division import division_of, numbered_why
from ripple.spark.dataframe.frame_fold import FrameFold
from ripple.spark.dataframe.given import Given, given_of
from ripple.spark.packets import ROWS
from ripple.spark.parcel import Parcel
from ripple.spark.sources import arrow_schema, spark_schema
from ripple.spark.task_results import WantedResults

with needed("spark", "ripple.spark"):
    from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType
    from pyspark.sql.udtf import (
        AnalyzeArgument,
        AnalyzeResult,
        OrderingColumn,
        PartitioningColumn,
        SelectedColumn,
    )

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Row

    from ripple.model.pipeline.nodes import SourceSpec

NAME = "ripple_replay"
ROWS_AT_ONCE = 1 << 14
# Times leave Spark as integers: in Python they would be those of the session's zone.
_AS_NS = {
    TimestampType: "unix_micros({0}) * 1000",
    TimestampNTZType: "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01', {0}) * 1000",
    DateType: "unix_date({0}) * 86400000000000",
}


@dataclass
class Analyzed(AnalyzeResult):  # type: ignore[misc]
    """What the analysis has found, for each partition of the rows."""

    parcel: Parcel | None = None
    given: Given | None = None
    output: str = ""


class ReplayFunction:
    """Rows of a table through a pipeline, to the rows of an output.

    Arguments: the table; ``FILE.py[:NAME]``; an output, where there are several.
    """

    def __init__(self, analyzed: Analyzed) -> None:
        """Begin a partition: of one key, or of all rows."""
        assert analyzed.parcel is not None
        assert analyzed.given is not None
        self._fold = FrameFold(analyzed.parcel, (analyzed.given,), 1, _wanted(analyzed.output))
        fields = self._fold.parcel.plan().source.fields
        known = dict(analyzed.given.columns)
        kinds = [one for one in shown_fields(fields) if one.name in known]
        self._kinds = pa.schema(
            [pa.field(known[one.name], _told(one, analyzed.given)) for one in kinds]
        )
        self._waiting: list[tuple[Any, ...]] = []
        self._batches: list[pa.RecordBatch] = []

    @staticmethod
    def analyze(
        rows: AnalyzeArgument, pipeline: AnalyzeArgument, output: AnalyzeArgument | None = None
    ) -> Analyzed:
        """Return the columns, the division and the order. Raises PlanError and InputError."""
        if not rows.isTable or not isinstance(pipeline.value, str):
            raise InputError(f"{NAME} takes a table and a file: {NAME}(TABLE(trades), 'vwap.py')")
        parcel = Parcel.of(pipeline.value, lambda _: b"")
        plan = parcel.plan()
        plan.need_one_source(NAME)
        source, name = plan.source, _output_of(parcel, output)
        kind = rows.dataType
        assert isinstance(kind, StructType)
        names = {field.name: field.dataType for field in kind.fields}
        columns = {field.name: field.name for field in source.fields if field.name in names}
        found = StructType([field for field in kind.fields if field.name in columns])
        given = given_of(
            source, columns, arrow_schema(found), list(names), order_by=(), identity=()
        )
        key, why = division_of(plan)
        is_apart = why is None and numbered_why(plan) is None and len(stages_of(plan)) == 1
        chosen = {
            column: _AS_NS.get(type(names[column]), "{0}").format(_text(column))
            for column in columns
        }
        return Analyzed(
            schema=spark_schema(pa.schema(shown_fields(plan.output(name).fields))),
            withSinglePartition=not is_apart,
            partitionBy=[PartitioningColumn(_text(one)) for one in key] if is_apart else [],
            orderBy=[OrderingColumn(_text(one)) for one in _order(source, columns)],
            select=[SelectedColumn(text, alias=column) for column, text in chosen.items()],
            parcel=parcel,
            given=given,
            output=name,
        )

    def eval(self, row: Row, *_: Any) -> None:
        """Take a row."""
        self._waiting.append(tuple(row[name] for name in self._kinds.names))
        if len(self._waiting) >= ROWS_AT_ONCE:
            self._flush()

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the output."""
        self._flush()
        plan = self._fold.parcel.plan()
        (name,) = self._fold.wanted.outputs
        kinds = shown_fields(plan.output(name).fields)
        for packet in self._fold.run(0, self._batches):
            if packet.kind == ROWS:
                columns = [
                    as_shown(column, one.type)
                    for column, one in zip(packet.rows().columns, kinds, strict=True)
                ]
                yield from zip(*(column.to_pylist() for column in columns), strict=True)

    def _flush(self) -> None:
        if self._waiting:
            columns = zip(*self._waiting, strict=True)
            arrays = [
                pa.array(one, kind.type) for one, kind in zip(columns, self._kinds, strict=True)
            ]
            self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=self._kinds))
            self._waiting.clear()


def _wanted(output: str) -> WantedResults:
    return WantedResults((output,))


def _told(field: pa.Field, given: Given) -> pa.DataType:
    return pa.int64() if field.name in given.typed else field.type


def _order(source: SourceSpec, columns: dict[str, str]) -> list[str]:
    first = [] if source.time_field is None else [source.time_field]
    return [*first, *(name for name in columns if name not in first)]


def _output_of(parcel: Parcel, output: AnalyzeArgument | None) -> str:
    outputs = [one.name for one in parcel.plan().outputs]
    if output is not None:
        return parcel.plan().output(str(output.value)).name
    if len(outputs) > 1:
        raise InputError(f"the pipeline has the outputs {', '.join(outputs)}: name one, last")
    return outputs[0]


def _text(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
