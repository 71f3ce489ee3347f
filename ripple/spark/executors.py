"""A check of executors before the first job: Python, the package and its version.

One task for each executor; each executor of a session is asked once.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import ripple
from ripple.core.errors import InputError
from ripple.spark import executor_probe
from ripple.spark.environment import is_this_python

if TYPE_CHECKING:
    from collections.abc import Mapping

# Spark's error about another Python of an executor.
PYTHON_DIFFERS = re.compile(
    r"Python in worker has different version:? ([\d.]+) than that in driver:? ([\d.]+)"
)
_asked: set[tuple[str, str]] = set()


def why_not(told: Mapping[str, Any], *, python: str, ours: str) -> str | None:
    """Return why an executor cannot run Ripple, None if it can.

    told: as of ``executor_probe``. python, ours: the versions of the driver.
    """
    name = told["name"]
    if told["python"] != python:
        return another_python(name, told["python"], python)
    missing = ([] if told["ripple"] else ["ripple-stream"]) + told["missing"]
    if missing:
        return (
            f"{name} lacks the package {missing[0]}: install ripple-stream {ours} for the Python "
            "that executors run (PYSPARK_PYTHON), or ship it as an archive (spark.archives)"
        )
    if told["ripple"] != ours:
        return (
            f"{name} has ripple-stream {told['ripple']}, and the driver {ours}: install the same "
            "version everywhere"
        )
    return None


def check_executors(spark: Any) -> None:
    """Raise InputError for the first executor that cannot run Ripple, and pass on Spark's errors.

    On Spark Connect, and for executors that start later, the job itself tells it.
    """
    context = getattr(spark, "_sc", None)
    if context is None or _is_own_python(context):
        return
    application = str(context.applicationId)
    names = {one: at for one, at in _executors(context).items() if (application, one) not in _asked}
    if not names:
        return
    python = ".".join(map(str, sys.version_info[:2]))
    found = _found(context, names)
    for one in sorted(found, key=lambda one: str(one["name"])):
        problem = why_not(one, python=python, ours=ripple.__version__)
        if problem is not None:
            raise InputError(problem)
    _asked.update((application, one) for one in names)


def _is_own_python(context: Any) -> bool:
    """Return whether tasks run the Python of this process, in its environment."""
    if not str(context.master).startswith("local") or "local-cluster" in str(context.master):
        return False
    return is_this_python(str(context.pythonExec))


def _executors(context: Any) -> dict[str, str]:
    """Return executors by name, with their location for the scheduler."""
    active = context._jsc.sc().statusStore().executorList(True)
    found = {}
    for one in map(active.apply, range(active.length())):
        host = str(one.hostPort()).rpartition(":")[0]
        if one.id() != "driver" or str(context.master).startswith("local"):
            found[f"executor {one.id()} on {host}"] = f"executor_{host}_{one.id()}"
    return found


def _found(context: Any, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the reports of executors. Raises InputError naming one with a failed task."""
    try:
        return [json.loads(text) for text in _told(context, names)]
    except Exception as error:  # those of PySpark and of py4j have no class in common
        if len(names) > 1:  # Spark does not tell which
            return [one for name, at in names.items() for one in _found(context, {name: at})]
        other = PYTHON_DIFFERS.search(str(error))
        if other is None:
            raise
        (name,) = names
        raise InputError(another_python(name, other[1], other[2])) from error


def another_python(name: str, found: str, python: str) -> str:
    """Return the error of an executor with another minor version of Python than the driver's."""
    return (
        f"{name} runs Python {found}, and the driver {python}: set PYSPARK_PYTHON to a Python "
        f"{python} that has ripple-stream"
    )


def _told(context: Any, names: Mapping[str, str]) -> list[str]:
    """Run a task on each executor."""
    from pyspark import cloudpickle  # noqa: PLC0415 - errors are told without PySpark
    from pyspark.core.rdd import RDD  # noqa: PLC0415 - not there with Spark Connect alone
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415 - likewise

    jvm = context._jvm
    seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq
    placed = [jvm.scala.Tuple2(name.encode(), seq([where])) for name, where in names.items()]
    rows = context._jsc.sc().makeRDD(seq(placed), jvm.scala.reflect.ClassTag.AnyRef())
    # Spark pickles the functions of tasks: this one by its code, for an executor without ripple.
    cloudpickle.register_pickle_by_value(executor_probe)
    try:
        told = RDD(rows.toJavaRDD(), context, NoOpSerializer()).mapPartitions(executor_probe.told)
        return list(told.collect())
    finally:
        cloudpickle.unregister_pickle_by_value(executor_probe)
