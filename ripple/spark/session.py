"""Spark sessions with Ripple's data sources, and one-line errors of jobs."""

from __future__ import annotations

import logging
import os
import re
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
    from pyspark.sql.functions import udtf

from ripple.spark import jvm
from ripple.spark.dataframe.table_function import NAME, ReplayFunction
from ripple.spark.environment import check_java, why_no_jvm
from ripple.spark.executors import PYTHON_DIFFERS, another_python, check_executors
from ripple.spark.sources import CheckpointSource, LogSource

if TYPE_CHECKING:
    from collections.abc import Iterator

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
# The last line of the traceback of one of our errors, anywhere in Spark's text.
_OURS = re.compile(r"ripple(?:\.\w+)*\.(?:\w+Error|PipelineFileError): (.*)")
# Other failures of a task or the JVM: the innermost cause comes last.
_SYSTEM = re.compile(r"^(?:OSError|\w*(?:Permission|NotFound|Memory|IO)Error): (.*)", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+\.)?(\w+: .*)", re.MULTILINE)
_CALLED = re.compile(r"^: (?:[\w.$]+\.)?(\w+: .*)", re.MULTILINE)
_PLACE = re.compile(r'\s*File "(?:.*/)?([^"/]+)", line (\d+)')
_NUMBER = re.compile(r"^\[Errno \d+\] ")
# py4j's text when the JVM has gone.
_ENDED = "py4j does not exist in the JVM"
_CANCELLED = re.compile(r"SPARK_JOB_CANCELLED|\bJob \d+ cancelled\b")
_NO_JVM = "JAVA_GATEWAY_EXITED"
# Spark's name of the executor of a failed task.
_EXECUTOR = re.compile(r"\((\S+) executor (\w+)\)")
# Spark's text when a Python ends before it has begun, with its traceback, indented.
_NO_WORKER = re.compile(
    r"Error from python worker:\n((?: .*\n|\n)*)|"
    r"(?:EOFException occurred while reading the port|Cannot run program|Cannot launch).*(?:\n|$)"
)
_MISSING = re.compile(r"ModuleNotFoundError: (No module named '[\w.]+'|.* needs .*)")

# A JVM's other messages are for administrators.
_QUIET = (Path(__file__).parent / "log4j2.properties").as_uri()
# In a JVM that only starts tasks the second compiler never pays off: it takes half of the time.
_BRIEF = "-XX:TieredStopAtLevel=1"

_GROUP = ("spark.jobGroup.id", "spark.job.interruptOnCancel")
_DESCRIPTION = "spark.job.description"

# Spark's text when a Python process does not respond for 10 s after its start.
_SILENT = re.compile(r"Python worker (?:failed )?to connect back")

_NO_SYSTEM = re.compile(r"Class (\S+FileSystem) not found|No FileSystem for (scheme \S+)")
_NO_FORMAT = re.compile(r"Failed to find the data source: (\w+)")
_PACKAGE = "give the package that has it, as --conf spark.jars.packages=GROUP:NAME:VERSION"


class SparkJobError(RippleError):
    """A job on Spark failed; the text is the task's error."""


def register(spark: SparkSession) -> None:
    """Register ``ripple.log`` and ``ripple.checkpoint``, and the table function ``ripple_replay``.

    Also enables filter pushdown for Python data sources, which is off by default.
    """
    spark.conf.set(PUSHDOWN, "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # registered before
        for source in (LogSource, CheckpointSource):
            spark.dataSource.register(source)
        spark.udtf.register(NAME, udtf(ReplayFunction))


def session(
    master: str | None = None, *, name: str = "ripple", is_brief: bool = False, **settings: str
) -> Any:
    """Return a session for a command, with spark-submit's settings or its own.

    master: ``local[*]`` unless set in the environment. is_brief: whether it ends soon, and its JVM
    moves no rows. Raises InputError without Java, and SparkJobError for settings that Spark
    refuses.
    """
    if not os.environ.get("SPARK_REMOTE"):
        check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Spark's own, about a newer pandas, which is not used here.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    # Its stacks of errors, as JSON; the command tells the error in a line.
    for one in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(one).setLevel(logging.CRITICAL + 1)
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
    try:
        jvm.launch(given)
    except PySparkException as error:
        if _NO_JVM not in str(error):
            raise
        raise InputError(why_no_jvm()) from error
    builder = SparkSession.builder.appName(name)
    for key, value in given.items():
        builder = builder.config(key, value)
    with blaming():
        spark = builder.getOrCreate()
    register(spark)
    return spark


@contextmanager
def jobs(spark: Any, pipeline: str, phase: str) -> Iterator[None]:
    """Describe the jobs of this thread in Spark's UI, and turn their errors into one line.

    They get the group ``ripple-PIPELINE``, by which they can be cancelled, unless the caller's own
    has been set; on Spark Connect a tag of that name. Raises SparkJobError, and InputError for an
    executor that cannot run Ripple.
    """
    group, text = f"ripple-{pipeline}", f"ripple {pipeline}: {phase}"
    context = getattr(spark, "_sc", None)
    with blaming():
        check_executors(spark)
        if context is None:  # Spark Connect
            spark.addTag(group)
            try:
                yield
            finally:
                spark.removeTag(group)
            return
        before = {name: context.getLocalProperty(name) for name in (*_GROUP, _DESCRIPTION)}
        if before[_GROUP[0]] is None:
            context.setJobGroup(group, text, interruptOnCancel=True)
        context.setLocalProperty(_DESCRIPTION, text)
        try:
            yield
        finally:
            for name, value in before.items():
                context.setLocalProperty(name, value)


@contextmanager
def blaming() -> Iterator[None]:
    """Turn Spark's error of a failed job into one line. Raises SparkJobError."""
    try:
        yield
    except ConnectionError as error:  # py4j's, when the JVM's port is closed
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
        if _CANCELLED.search(text):
            raise SparkJobError("its job was cancelled in Spark") from error
        _blame_python(text, error)
        unknown = _NO_FORMAT.search(text)
        if unknown:
            raise SparkJobError(f"Spark knows no format {unknown[1]!r}: {_PACKAGE}") from error
        system = _NO_SYSTEM.search(text)
        if system:
            raise SparkJobError(
                f"Spark cannot read or write where {system[1] or system[2]} is needed: {_PACKAGE}"
            ) from error
        if _SILENT.search(text):
            raise SparkJobError(
                "Spark has waited in vain for a Python process that it started: its machine is too "
                "busy, or the Python of executors (PYSPARK_PYTHON) begins too slowly; try again"
            ) from error
        causes = (
            _SYSTEM.findall(text) or _raised(text) or _CAUSE.findall(text) or _CALLED.findall(text)
        )
        lines = causes[-1:] or [line.strip() for line in text.splitlines() if line.strip()]
        why = _NUMBER.sub("", lines[0]) if lines else type(error).__name__
        raise SparkJobError(f"Spark: {why}") from error


def _blame_python(text: str, error: Exception) -> None:
    """Raise SparkJobError where the Python of an executor or a missing import is to blame."""
    named = _EXECUTOR.findall(text)
    where = f"executor {named[-1][1]} on {named[-1][0]}" if named else "an executor"
    python = PYTHON_DIFFERS.search(text)
    if python:
        raise SparkJobError(another_python(where, python[1], python[2])) from error
    begun = _NO_WORKER.search(text)
    if begun:
        said = [line.strip() for line in (begun[1] or begun[0]).splitlines() if line.strip()]
        raise SparkJobError(
            f"{where} cannot begin its Python ({said[-1] if said else 'it said nothing'}): name "
            f"one of version {'.'.join(map(str, sys.version_info[:2]))} with ripple-stream "
            "(PYSPARK_PYTHON)"
        ) from error
    missing = _MISSING.findall(text)
    if missing:
        raise SparkJobError(
            f"{where} cannot import {missing[-1]}: install the same version of ripple-stream, "
            "and the imports of the pipeline file, for the Python that executors run "
            "(PYSPARK_PYTHON)"
        ) from error


def _raised(text: str) -> list[str]:
    """Return the last error of a task and its location; empty if the JVM failed."""
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
    """Return whether it is an error of the JVM that PySpark has not converted."""
    return type(error).__module__.startswith("py4j.")
