"""The JVM of a command: signals at the terminal do not reach it, and it speaks through us.

A JVM that is told to end with its driver says at length what it could not finish any more, and what
its jobs have failed with is said by the command, in a line.
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

# What each JVM of Spark begins with.
_ALWAYS = b"WARNING: Using incubator modules"
_LAST_WORDS_S = 2.0


class Speech:
    """What comes out of a JVM, line by line, on standard error, until it is hushed."""

    def __init__(self, reading: int) -> None:
        """Take the end of a pipe to read from."""
        self._file = open(reading, "rb")  # noqa: SIM115 - as long as the JVM
        self._is_hushed = False
        self._thread = threading.Thread(target=self._pass_on, name="ripple-jvm", daemon=True)
        self._thread.start()

    def hush(self, *, is_hushed: bool = True) -> None:
        """Let nobody hear it any more; or again, where it has another job."""
        self._is_hushed = is_hushed

    def join(self) -> None:
        """Wait for the last words of a JVM that has ended."""
        self._thread.join(_LAST_WORDS_S)

    def _pass_on(self) -> None:
        with self._file:
            for line in self._file:  # to the end: a JVM that nobody reads from stands still
                if not self._is_hushed and not line.startswith(_ALWAYS):
                    try:
                        _write_all(line)
                    except OSError:  # whoever listened went away
                        self._is_hushed = True


def _write_all(line: bytes) -> None:
    while line:
        line = line[os.write(2, line) :]


_speeches: list[Speech] = []


def launch(settings: Mapping[str, str]) -> None:
    """Start a JVM, unless there is one or it is elsewhere. Raises what PySpark does."""
    is_elsewhere = os.environ.get("SPARK_REMOTE") or os.environ.get("PYSPARK_GATEWAY_PORT")
    if is_elsewhere or SparkContext._gateway is not None:
        for speech in _speeches:
            speech.hush(is_hushed=False)
        return
    reading, writing = os.pipe()
    speech = Speech(reading)
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
    """Let nobody hear the JVM any more: it is ending, or its job has failed."""
    for speech in _speeches:
        speech.hush()
