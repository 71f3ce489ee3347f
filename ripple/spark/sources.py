"""Ripple's data sources for Spark: planned on the driver, read in tasks."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.errors import SchemaError
from ripple.core.extras import needed
from ripple.model.schema.logical.columns import as_shown
from ripple.spark import checkpoint_table, log_table
from ripple.spark.checkpoint_table import CheckpointTable
from ripple.spark.environment import check_pyspark
from ripple.spark.log_stream import LogStream
from ripple.spark.log_table import OFFSET, PARTITION, LogTable

with needed("spark", "ripple.spark"):
    import pyspark

    check_pyspark(pyspark.__version__)
    from pyspark.errors import PySparkException
    from pyspark.sql import datasource
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        InputPartition,
    )
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
    from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# PySpark 4.0 has no filter pushdown for data sources in Python.
_OPERATIONS = {
    getattr(datasource, name): operation
    for name, operation in {
        "EqualTo": "=",
        "GreaterThan": ">",
        "GreaterThanOrEqual": ">=",
        "LessThan": "<",
        "LessThanOrEqual": "<=",
    }.items()
    if hasattr(datasource, name)
}
# Times are in UTC; before PySpark 4.2 there is no such option.
_IN_UTC = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def spark_schema(schema: pa.Schema) -> StructType:
    """Return Arrow's columns as Spark's. Raises SchemaError for an unsupported type."""
    try:
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)
    except PySparkException as error:
        raise SchemaError(f"Spark has no such columns: {error}") from error


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return Spark's columns as Arrow's."""
    return to_arrow_schema(schema, **_IN_UTC)


class Conforming:
    """Coerces batches to the columns that Spark expects."""

    def __init__(self, schema: StructType) -> None:
        self._schema = arrow_schema(schema)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the table's columns, in order."""
        columns = [
            column if column.type == field.type else as_shown(column, field.type)
            for column, field in zip(batch.columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


class LogReader(DataSourceReader):  # type: ignore[misc]
    """Reads partitions of a topic, narrowed by filters."""

    def __init__(self, table: LogTable, schema: StructType) -> None:
        self._table = table
        self._schema = schema

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Apply the filters that narrow the range; return the rest, which Spark applies."""
        for one in filters:
            operation = _OPERATIONS.get(type(one))
            narrows = (PARTITION, OFFSET, self._table.time_field)
            column = ".".join(getattr(one, "attribute", ()))
            if operation is None or column not in narrows or not isinstance(one.value, int):
                yield one
                continue
            self._table = self._table.narrowed(column, operation, one.value)
            if column == self._table.time_field:
                yield one

    def partitions(self) -> list[InputPartition]:
        """Return one partition for each of the log's."""
        return [InputPartition(split) for split in self._table.splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one, in order."""
        if partition.value is None:  # Spark's placeholder when there are none
            return
        yield from map(Conforming(self._schema), log_table.batches_of(partition.value))


class LogStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """Offers ranges of offsets to Spark, and reads them."""

    def __init__(self, stream: LogStream, schema: StructType) -> None:
        self._stream = stream
        self._schema = schema

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offsets at which a new query begins."""
        return self._stream.begin()

    def latestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the present ends of the partitions."""
        return self._stream.ends()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return one partition for each of the log's with records in the range."""
        return [InputPartition(split) for split in self._stream.splits(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one, in order."""
        if partition.value is None:  # Spark's placeholder when there are none
            return
        yield from map(Conforming(self._schema), log_table.batches_of(partition.value))


class LogSource(DataSource):  # type: ignore[misc]
    """``spark.read`` and ``spark.readStream`` of ``ripple.log``: see docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "ripple.log"

    def schema(self) -> StructType:
        """Return the columns; raises InputError for wrong options."""
        return spark_schema(LogTable.of(self.options).schema)

    def reader(self, schema: StructType) -> LogReader:
        """Return its reader."""
        return LogReader(LogTable.of(self.options), schema)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream."""
        return LogStreamReader(LogStream.of(self.options), schema)


class CheckpointReader(DataSourceReader):  # type: ignore[misc]
    """Reads the state of partitions."""

    def __init__(self, table: CheckpointTable, schema: StructType) -> None:
        self._table = table
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return one for each partition of the pipeline."""
        return [InputPartition(state) for state in self._table.states]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one."""
        yield from map(Conforming(self._schema), checkpoint_table.batches_of(partition.value))


class CheckpointSource(DataSource):  # type: ignore[misc]
    """``spark.read.format("ripple.checkpoint")``: see docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "ripple.checkpoint"

    def schema(self) -> StructType:
        """Return the columns; raises InputError and CheckpointError."""
        return spark_schema(CheckpointTable.of(self.options).schema)

    def reader(self, schema: StructType) -> CheckpointReader:
        """Return its reader."""
        return CheckpointReader(CheckpointTable.of(self.options), schema)
