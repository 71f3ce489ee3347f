"""Jobs on Spark, one per task, which yield packets.

Only a number crosses the JVM on the way to a task. A data source in Python would need two more
passes through Python while Spark plans, and they dominate a short job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.extras import needed
from ripple.spark import packets
from ripple.spark.packets import packets_in
from ripple.spark.sources import Conforming, spark_schema

with needed("spark", "ripple.spark"):
    from pyspark import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ripple.spark.fold import Job


def pickled(value: object) -> bytes:
    """Return a value pickled, with local classes and functions by value."""
    data: bytes = cloudpickle.dumps(value)
    return data


def packets_from(spark: SparkSession, jobs: Sequence[Job]) -> DataFrame:
    """Return the packets of jobs, each a task; evaluated lazily."""
    count = len(jobs)
    numbers = spark.range(0, count, 1, max(1, count))
    return numbers.mapInArrow(Working(tuple(map(pickled, jobs))), spark_schema(packets.SCHEMA))


class Working:
    """Runs the jobs with the given numbers."""

    def __init__(self, jobs: tuple[bytes, ...]) -> None:
        """Take pickled jobs: a task unpickles its own only."""
        self._jobs = jobs

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the packets of each job."""
        conforming = Conforming(spark_schema(packets.SCHEMA))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                # In Spark's own task, which Spark has unpickled likewise.
                job: Job = cloudpickle.loads(self._jobs[number])
                for packet in job.run():
                    yield conforming(packet.as_batch())


class Unpacked:
    """Unpacks packets into rows."""

    def __init__(self, schema: StructType) -> None:
        self._schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each packet's body."""
        conforming = Conforming(self._schema)
        for packet in packets_in(batches):
            yield conforming(packet.rows())
