"""A pipeline as a streaming data source: its rows are the reports of micro-batches."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.extras import needed
from ripple.spark.driver import Driver
from ripple.spark.sources import Conforming, spark_schema
from ripple.spark.streaming.hints import Hints
from ripple.spark.streaming.turn import turns

with needed("spark", "ripple.spark"):
    from pyspark import cloudpickle
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import StructType

    from ripple.spark.streaming.stream import Stream

NAME = "ripple.run"
REPORT = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("events", pa.int64(), nullable=False),
        pa.field("rows_out", pa.int64(), nullable=False),
        pa.field("report", pa.string(), nullable=False),
    ]
)


class RunReader(DataSourceStreamReader):  # type: ignore[misc]
    """Offers cuts to Spark, and brings partitions there.

    Spark's own offsets say when there is work, and for which partitions. How far a partition is,
    its outputs and the store say, so what Spark keeps of a query counts for nothing.
    """

    def __init__(self, stream: Stream, driver: Driver, schema: StructType) -> None:
        self._stream = stream
        self._driver = driver
        self._schema = schema
        self._hints: Hints | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what tasks need."""
        return {**self.__dict__, "_hints": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return where nothing was read; Spark does not begin before something is there."""
        return {}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return where the inputs end now."""
        return dict(self._stream.bounds()[1])

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return a turn for each partition of the pipeline that has more to read."""
        if self._hints is None:
            self._hints = Hints(self._driver)
        return [InputPartition(turn) for turn in turns(self._stream, self._hints, start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Bring a partition up to the end of the micro-batch, and yield its report."""
        if partition.value is None:
            return
        found = partition.value.run()
        row = {name: found[name] for name in REPORT.names[:-1]}
        yield Conforming(self._schema)(
            pa.RecordBatch.from_pylist([{**row, "report": json.dumps(found)}], REPORT)
        )


class RunSource(DataSource):  # type: ignore[misc]
    """What a query reads."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of reports."""
        return spark_schema(REPORT)

    def streamReader(self, schema: StructType) -> RunReader:  # noqa: N802 - Spark's name
        """Return what reads it."""
        stream = cloudpickle.loads(base64.b64decode(self.options["stream"]))
        driver = Driver(self.options["host"], self.options["bind"])
        return RunReader(stream, driver, schema)
