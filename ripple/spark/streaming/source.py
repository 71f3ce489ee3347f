"""A pipeline as a streaming data source: its rows are the reports of micro-batches."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.extras import needed
from ripple.spark.driver import Driver
from ripple.spark.settled_heap import settle_heap
from ripple.spark.sources import Conforming, spark_schema
from ripple.spark.streaming.hints import Hints
from ripple.spark.streaming.turn import BEAT, turns
from ripple.world import LiveClock

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
    """Offers cuts to Spark, and advances partitions to them.

    Spark's own offsets decide when there is work, and for which partitions. A partition's progress
    is in its outputs and the store, so Spark's checkpoint of a query is not used.
    """

    def __init__(self, stream: Stream, driver: Driver, schema: StructType) -> None:
        self._stream = stream
        self._driver = driver
        self._schema = schema
        self._hints: Hints | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for tasks."""
        return {**self.__dict__, "_hints": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offsets of an unread input; Spark waits until there is a record."""
        return {}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the present end of the inputs, and the beat if some may be idle."""
        end, beat_ns = dict(self._stream.bounds()[1]), self._stream.beat_ns
        return end if beat_ns is None else {**end, BEAT: LiveClock().now_ns() // beat_ns}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return a turn for each partition with more to read."""
        if self._hints is None:
            self._hints = Hints(self._driver)
        return [InputPartition(turn) for turn in turns(self._stream, self._hints, start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Advance a partition to the end of the micro-batch, and yield its report."""
        if partition.value is None:
            return
        found = partition.value.run()
        settle_heap()
        row = {name: found[name] for name in REPORT.names[:-1]}
        yield Conforming(self._schema)(
            pa.RecordBatch.from_pylist([{**row, "report": json.dumps(found)}], REPORT)
        )


class RunSource(DataSource):  # type: ignore[misc]
    """The data source of a query."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of reports."""
        return spark_schema(REPORT)

    def streamReader(self, schema: StructType) -> RunReader:  # noqa: N802 - Spark's name
        """Return the reader."""
        # The driver has written it: options are set by programs, which run code here already.
        stream = cloudpickle.loads(base64.b64decode(self.options["stream"]))
        driver = Driver(self.options["host"], self.options["bind"])
        return RunReader(stream, driver, schema)
