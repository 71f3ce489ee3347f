"""One session of Spark for all tests, with what they replay, and JVMs that start quickly."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.services.cache import fetch, kept
from tests.services.jars import java, java_digest

MARKS = [
    pytest.mark.services,
    # Of Spark itself, about versions of pandas and sockets that it leaves to the collector.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROOT = Path(__file__).parents[2]
ARCHIVE = "spark.jsa"
# What the tests let a driver and an executor do, roughly; the JVM writes the archive when it ends.
USED = """
from pyspark import SparkContext
from ripple.spark.session import session

spark = session("local[1]", is_brief=True, **{"spark.driver.host": "127.0.0.1"})
spark.range(9).mapInArrow(lambda batches: batches, "id long").write.parquet("rows")
spark.read.parquet("rows").groupBy("id").count().write.json("counts")
stream = spark.readStream.schema("id long").parquet("rows").writeStream
stream = stream.foreachBatch(lambda rows, number: rows.collect()).trigger(availableNow=True)
stream.option("checkpointLocation", "state").start().awaitTermination()
gateway = SparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
"""


@cache
def options() -> str:
    """Return what lets a JVM of Spark start for half the price: an archive of its classes.

    Raises MissingError without Java.
    """
    import pyspark

    command = java("Spark")
    jars = Path(pyspark.__file__).with_name("jars")
    # A JVM takes an archive for the very files of which it was made.
    files = sorted((str(jar), jar.stat().st_mtime_ns) for jar in jars.iterdir())
    seen = hashlib.sha256(repr(files).encode()).hexdigest()[:8]
    name = f"spark-archive-{seen}-java-{java_digest(command)}"
    folder = kept(name, _make_archive, ROOT / "build")
    return f"-XX:SharedArchiveFile={folder / ARCHIVE} -Xlog:cds=off"


def quick() -> tuple[str, ...]:
    """Return options of commands with executors of their own, whose JVMs are there for seconds."""
    given = f"-XX:TieredStopAtLevel=1 {options()}"
    return ("--conf", f"spark.executor.extraJavaOptions={given}")


def _make_archive(folder: Path) -> None:
    given = (
        f"SPARK_SUBMIT_OPTS=-XX:ArchiveClassesAtExit={folder / ARCHIVE}",
        f"PYTHONPATH={ROOT}",
        f"PYSPARK_PYTHON={sys.executable}",
    )
    fetch(["env", *given, sys.executable, "-c", USED], folder, "an archive of Spark's classes")
    assert (folder / ARCHIVE).exists()


@cache
def _session() -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from ripple.spark.session import session

    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    return session("local[2]", name="ripple-tests", is_brief=True, **settings)


@pytest.fixture
def spark(quick_jvms: None) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # see MARKS
        yield _session()
