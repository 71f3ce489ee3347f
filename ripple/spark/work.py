"""Jobs as a data source: one task does one, and what it yields are packets."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from ripple.extras import needed
from ripple.spark import packets
from ripple.spark.sources import Conforming, spark_schema

with needed("spark", "ripple.spark"):
    from pyspark import cloudpickle
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ripple.spark.fold import Job

NAME = "ripple.work"


def pickled(value: object) -> bytes:
    """Return a value pickled, with classes and functions that are in no module."""
    data: bytes = cloudpickle.dumps(value)
    return data


def packets_from(spark: SparkSession, jobs: Sequence[Job]) -> DataFrame:
    """Return the packets of jobs, each a task; they are done when Spark needs them."""
    work = base64.b64encode(pickled(list(jobs))).decode()
    return spark.read.format(NAME).option("work", work).load()


class WorkReader(DataSourceReader):  # type: ignore[misc]
    """Does jobs."""

    def __init__(self, work: str, schema: StructType) -> None:
        self._work = work
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return one for each job."""
        jobs = cloudpickle.loads(base64.b64decode(self._work))
        return [InputPartition(job) for job in jobs]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Do a job, and yield its packets."""
        conforming = Conforming(self._schema)
        for packet in partition.value.run() if partition.value is not None else ():
            yield conforming(packet.as_batch())


class WorkSource(DataSource):  # type: ignore[misc]
    """What ``packets_from`` reads."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of packets."""
        return spark_schema(packets.SCHEMA)

    def reader(self, schema: StructType) -> WorkReader:
        """Return what does the jobs."""
        return WorkReader(self.options["work"], schema)
