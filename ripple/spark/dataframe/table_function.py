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
from ripple.model.schema.logical.columns import as_shown
from ripple.model.schema.types import Date, bare_type
from ripple.spark.dataframe.division import division_of, numbered_why, uuids_in
from ripple.spark.dataframe.frame_fold import FrameFold
from ripple.spark.dataframe.given import Given, given_of, is_time
from ripple.spark.dataframe.paths import path_in, plain, type_at
from ripple.spark.packets import ROWS
from ripple.spark.parcel import Parcel
from ripple.spark.sources import arrow_schema, spark_schema
from ripple.spark.task_results import WantedResults

with needed("spark", "ripple.spark"):
    from pyspark.sql.types import DateType, StructField, StructType, TimestampNTZType, TimestampType
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
_TIME = pa.timestamp("us", "UTC")
ROWS_AT_ONCE = 1 << 14
# Times leave Spark as integers: Python would have them as local times of the session's zone.
_AS_MICROS = {
    TimestampType: "unix_micros({0})",
    TimestampNTZType: "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01', {0})",
    DateType: "unix_date({0}) * 86400000000",
}


@dataclass
class Analyzed(AnalyzeResult):  # type: ignore[misc]
    """The findings of the analysis, for each partition of the rows."""

    parcel: Parcel | None = None
    given: Given | None = None
    kinds: pa.Schema | None = None
    output: str = ""


class ReplayFunction:
    """Rows of a table through a pipeline, to the rows of an output.

    Arguments: the table; ``FILE.py[:NAME]``; an output, where there are several.
    """

    def __init__(self, analyzed: Analyzed) -> None:
        """Begin a partition: of one key, or of all rows."""
        assert analyzed.parcel is not None
        assert analyzed.given is not None
        wanted = WantedResults((analyzed.output,))
        self._fold = FrameFold(analyzed.parcel, (analyzed.given,), 1, wanted)
        assert analyzed.kinds is not None
        self._kinds = analyzed.kinds
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
        paths = {one.name: path_in(kind, one.name) for one in source.schema.fields}
        texts = {name: text for name, text in paths.items() if text is not None}
        columns = {name: plain(name, number) for number, name in enumerate(texts)}
        found = StructType([StructField(name, type_at(kind, name)) for name in texts])
        given = given_of(source, columns, arrow_schema(found), kind.names, order_by=(), identity=())
        key, why = division_of(plan, arrow_schema(found))
        uuids = uuids_in(source, key)
        divides = [f"lower({texts[one]})" if one in uuids else texts[one] for one in key]
        is_apart = why is None and numbered_why(plan) is None and len(stages_of(plan)) == 1
        kinds = _kinds_of(source, arrow_schema(found))
        chosen = {
            columns[one.name]: _AS_MICROS.get(type(one.dataType), "{0}").format(texts[one.name])
            if kinds.field(one.name).type == _TIME
            else texts[one.name]
            for one in found
        }
        return Analyzed(
            schema=spark_schema(pa.schema(shown_fields(plan.output(name).fields))),
            withSinglePartition=not is_apart,
            partitionBy=[PartitioningColumn(one) for one in divides] if is_apart else [],
            orderBy=[OrderingColumn(text) for text in _order(source, texts, arrow_schema(found))],
            select=[SelectedColumn(text, alias=column) for column, text in chosen.items()],
            parcel=parcel,
            given=given,
            kinds=pa.schema([one.with_name(columns[one.name]) for one in kinds]),
            output=name,
        )

    def eval(self, row: Row, *_: Any) -> None:
        """Take a row. PySpark gives the method its name; nothing is evaluated as code."""
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


def _kinds_of(source: SourceSpec, schema: pa.Schema) -> pa.Schema:
    """Return the columns, by field, with their types in Python: times in microseconds."""
    dates = {one.name for one in source.fields if isinstance(bare_type(one.type), Date)}
    return pa.schema(
        [
            one.with_type(_TIME) if is_time(one.type) and one.name not in dates else one
            for one in schema
        ]
    )


def _order(source: SourceSpec, texts: dict[str, str], schema: pa.Schema) -> list[str]:
    first = [] if source.time_field is None else [source.time_field]
    names = [*first, *(name for name in texts if name not in first)]
    floats = [texts[one.name] for one in schema if pa.types.is_floating(one.type)]
    # Spark's order has -0.0 and 0.0 as equal.
    signs = [f"CASE WHEN {text} = 0 THEN CAST({text} AS STRING) END" for text in floats]
    return [*(texts[name] for name in names), *signs]


def _output_of(parcel: Parcel, output: AnalyzeArgument | None) -> str:
    outputs = [one.name for one in parcel.plan().outputs]
    if output is not None:
        return parcel.plan().output(str(output.value)).name
    if len(outputs) > 1:
        raise InputError(f"the pipeline has the outputs {', '.join(outputs)}: name one, last")
    return outputs[0]
