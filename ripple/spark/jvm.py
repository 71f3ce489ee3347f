"""The JVM of a command: terminal signals do not reach it, and its output is filtered.

A JVM that ends with its driver prints long reports of unfinished work; the command reports failures
of its jobs itself, in one line.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from ripple.core.extras import needed

with needed("spark", "ripple.spark"):
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

if TYPE_CHECKING:
    from collections.abc import Mapping

# The first lines of each JVM of Spark.
_ALWAYS = b"WARNING: Using incubator modules"
_LAST_WORDS_S = 2.0


class JvmOutput:
    """Copies a JVM's output to standard error, line by line, until it is hushed."""

    def __init__(self, reading: int) -> None:
        """Take the reading end of a pipe."""
        self._file = open(reading, "rb")  # noqa: SIM115 - as long as the JVM
        self._is_hushed = False
        self._thread = threading.Thread(target=self._pass_on, name="ripple-jvm", daemon=True)
        self._thread.start()

    def hush(self, *, is_hushed: bool = True) -> None:
        """Suppress the output, or show it again for another job."""
        self._is_hushed = is_hushed

    def join(self) -> None:
        """Wait for the rest of the output of an ended JVM."""
        self._thread.join(_LAST_WORDS_S)

    def _pass_on(self) -> None:
        with self._file:
            for line in self._file:  # to the end: a JVM blocks on an unread pipe
                if not self._is_hushed and not line.startswith(_ALWAYS):
                    try:
                        _write_all(line)
                    except OSError:  # our own standard error is closed
                        self._is_hushed = True


def _write_all(line: bytes) -> None:
    while line:
        line = line[os.write(2, line) :]


_speeches: list[JvmOutput] = []


def launch(settings: Mapping[str, str]) -> None:
    """Start a JVM, unless one is running here or elsewhere. Raises PySpark's errors."""
    is_elsewhere = os.environ.get("SPARK_REMOTE") or os.environ.get("PYSPARK_GATEWAY_PORT")
    if is_elsewhere or SparkContext._gateway is not None:
        for speech in _speeches:
            speech.hush(is_hushed=False)
        return
    reading, writing = os.pipe()
    speech = JvmOutput(reading)
    way = {"stdout": writing, "stderr": writing, "process_group": 0}
    try:
        gateway = launch_gateway(SparkConf().setAll(list(settings.items())), way)
    except BaseException:
        os.close(writing)
        speech.join()
        raise
    os.close(writing)
    _speeches.append(speech)
    SparkContext._ensure_initialized(gateway=gateway)


def hush() -> None:
    """Suppress the JVM's output: it is ending, or its job has failed."""
    for speech in _speeches:
        speech.hush()
