"""A Spark session that knows Ripple."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError, RippleError
from ripple.core.extras import needed

with needed("spark", "ripple.spark"):
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

from ripple.spark import jvm
from ripple.spark.sources import CheckpointSource, LogSource

if TYPE_CHECKING:
    from collections.abc import Iterator

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
# The last line of the traceback of an error of ours, wherever Spark has put it.
_OURS = re.compile(r"ripple(?:\.\w+)*\.(?:\w+Error|PipelineFileError): (.*)")
# What else a task, or the JVM, has failed with: the innermost cause is told last.
_SYSTEM = re.compile(r"^(?:OSError|\w*(?:Permission|NotFound|Memory|IO)Error): (.*)", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+\.)?(\w+: .*)", re.MULTILINE)
_PLACE = re.compile(r'\s*File "(?:.*/)?([^"/]+)", line (\d+)')
_NUMBER = re.compile(r"^\[Errno \d+\] ")
# What py4j says where it asks a JVM that is not there any more.
_ENDED = "py4j does not exist in the JVM"
_MISSING = re.compile(r"ModuleNotFoundError: (No module named '[\w.]+'|.* needs .*)")

# What a JVM says beside its errors is for who administers one.
_QUIET = (Path(__file__).parent / "log4j2.properties").as_uri()
# A JVM that only starts tasks never earns back what its second compiler takes: half of its time.
_BRIEF = "-XX:TieredStopAtLevel=1"

# What Spark says where a Python process that it has started says nothing for 10 s.
_SILENT = re.compile(r"Python worker (?:failed )?to connect back")

_NO_FORMAT = re.compile(r"Failed to find the data source: (\w+)")


class SparkJobError(RippleError):
    """A job on Spark failed; the text is what went wrong in the task."""


def register(spark: SparkSession) -> None:
    """Let a session read ``ripple.log`` and ``ripple.checkpoint``.

    It also lets Python data sources take conditions, which Spark does not by default.
    """
    spark.conf.set(PUSHDOWN, "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # registered before
        for source in (LogSource, CheckpointSource):
            spark.dataSource.register(source)


def session(
    master: str | None = None, *, name: str = "ripple", is_brief: bool = False, **settings: str
) -> Any:
    """Return a session for a command: that of spark-submit's settings, or one of its own.

    master: ``local[*]`` by default, unless the environment says otherwise. is_brief: whether it
    ends soon, and its JVM has no rows to move. Raises InputError where there is no Java.
    """
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise InputError("Spark needs Java 17 or later: install it, or set JAVA_HOME")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Of Spark itself, about a newer pandas, which nothing here uses.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    given = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if master is not None:
        given["spark.master"] = master
    elif not os.environ.get("MASTER") and not os.environ.get("SPARK_REMOTE"):
        given["spark.master"] = "local[*]"
    own_log = "spark.driver.extraJavaOptions" in settings or "SPARK_CONF_DIR" in os.environ
    if not own_log:
        options = [f"-Dlog4j2.configurationFile={_QUIET}", *([_BRIEF] if is_brief else [])]
        given["spark.driver.extraJavaOptions"] = " ".join(options)
    given |= settings
    jvm.launch(given)
    builder = SparkSession.builder.appName(name)
    for key, value in given.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


@contextmanager
def blaming() -> Iterator[None]:
    """Turn what Spark says of a failed job into one line. Raises SparkJobError."""
    try:
        yield
    except ConnectionError as error:  # py4j asks it at an address where nobody is
        raise SparkJobError("the JVM in which Spark runs has ended") from error
    except Exception as error:
        if not isinstance(error, PySparkException) and not _is_of_java(error):
            raise
        text = str(error)
        if type(error).__name__ == "Py4JNetworkError" or text == _ENDED:
            raise SparkJobError("the JVM in which Spark runs has ended") from error
        ours = _OURS.findall(text)
        if ours:
            raise SparkJobError(_NUMBER.sub("", ours[-1])) from error
        missing = _MISSING.findall(text)
        if missing:
            raise SparkJobError(
                f"an executor cannot import what it needs ({missing[-1]}): install the same "
                "version of ripple-stream, and what the pipeline file imports, for the Python that "
                "executors run (PYSPARK_PYTHON)"
            ) from error
        unknown = _NO_FORMAT.search(text)
        if unknown:
            raise SparkJobError(
                f"Spark knows no format {unknown[1]!r}: give the package that has it, as "
                "--conf spark.jars.packages=GROUP:NAME:VERSION"
            ) from error
        if _SILENT.search(text):
            raise SparkJobError(
                "Spark has waited in vain for a Python process that it started: its machine is too "
                "busy, or the Python of executors (PYSPARK_PYTHON) begins too slowly; try again"
            ) from error
        causes = _SYSTEM.findall(text) or _raised(text) or _CAUSE.findall(text)
        lines = causes[-1:] or [line.strip() for line in text.splitlines() if line.strip()]
        why = _NUMBER.sub("", lines[0]) if lines else type(error).__name__
        raise SparkJobError(f"Spark: {why}") from error


def _raised(text: str) -> list[str]:
    """Return what a task has raised last, and where; nothing where it was the JVM that failed."""
    _, begun, rest = text.rpartition("Traceback (most recent call last):\n")
    places: list[str] = []
    for line in rest.splitlines() if begun else ():
        if line[:1].strip():
            at = f" (in a task, at {places[-1]})" if places else ""
            return [f"{line}{at}"]
        place = _PLACE.match(line)
        places += [f"{place[1]}:{place[2]}"] if place is not None else []
    return []


def _is_of_java(error: Exception) -> bool:
    """Tell whether it is an error of the JVM that PySpark has not made one of its own."""
    return type(error).__module__.startswith("py4j.")
