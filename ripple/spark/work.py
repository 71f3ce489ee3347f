"""Jobs on Spark, in tasks, which yield packets.

Only a number crosses the JVM on the way to a task. A data source in Python would need two more
passes through Python while Spark plans, and they dominate a short job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.extras import needed
from ripple.spark import packets
from ripple.spark.packets import packets_in
from ripple.spark.settled_heap import settle_heap
from ripple.spark.sources import Conforming, spark_schema
from ripple.spark.task_division import most_cores, tasks_of

with needed("spark", "ripple.spark"):
    from pyspark import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ripple.spark.fold import Job


def cores_of(spark: SparkSession) -> int | None:
    """Return the cores that the executors have or may have; None on Spark Connect."""
    context = getattr(spark, "_sc", None)
    if context is None:
        return None
    now = int(context.defaultParallelism)
    # A local master never adds executors.
    return now if context.master.startswith("local") else most_cores(now, context.getConf().get)


def pickled(value: object) -> bytes:
    """Return a value pickled, with local classes and functions by value."""
    data: bytes = cloudpickle.dumps(value)
    return data


def packets_from(
    spark: SparkSession, jobs: Sequence[Job], sizes: Sequence[int | None] | None = None
) -> DataFrame:
    """Return the packets of jobs; evaluated lazily.

    sizes: of the jobs, in rows, None for one that is unknown: small ones share a task. Without
    them each job is a task.
    """
    divided = tasks_of(sizes or [None] * len(jobs), cores_of(spark))
    tasks = tuple(pickled([jobs[number] for number in one]) for one in divided)
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    return numbers.mapInArrow(Working(tasks), spark_schema(packets.SCHEMA))


class Working:
    """Runs the jobs of the tasks with the given numbers, one after the other."""

    def __init__(self, tasks: tuple[bytes, ...]) -> None:
        """Take pickled lists of jobs: a task unpickles its own only."""
        self._tasks = tasks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the packets of each job."""
        conforming = Conforming(spark_schema(packets.SCHEMA))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                # In Spark's own task, which Spark has unpickled likewise.
                jobs: list[Job] = cloudpickle.loads(self._tasks[number])
                for job in jobs:
                    for packet in job.run():
                        yield conforming(packet.as_batch())
        settle_heap()


class Unpacked:
    """Unpacks packets into rows."""

    def __init__(self, schema: StructType) -> None:
        self._schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each packet's body."""
        conforming = Conforming(self._schema)
        for packet in packets_in(batches):
            yield conforming(packet.rows())
