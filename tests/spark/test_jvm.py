"""What a JVM says is passed on, and read to its end when nobody listens any more."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S

pytest.importorskip("pyspark", reason="a JVM is of Spark")
pytestmark = pytest.mark.services

SPEAKS = """
import os
from ripple.spark.jvm import JvmOutput
reading, writing = os.pipe()
speech = JvmOutput(reading)
os.write(writing, b"WARNING: Using incubator modules: x\\none\\n")
{closed}
for _ in range(1000):  # more than a pipe holds
    os.write(writing, b"x" * 1023 + b"\\n")
os.write(writing, b"the last\\n")
os.close(writing)
speech.join()
print("alive" if speech._thread.is_alive() else "ended")
"""
CLOSED = """
unread, error = os.pipe()
os.dup2(error, 2)
os.close(unread)
"""


def speak(closed: str) -> tuple[str, list[str]]:
    ended = subprocess.run(
        [sys.executable, "-c", SPEAKS.format(closed=closed)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return ended.stdout.strip(), ended.stderr.splitlines()


def test_jvm_output_is_passed_on_without_its_standard_lines() -> None:
    ended, lines = speak("")
    assert ended == "ended"
    assert (lines[0], lines[-1], len(lines)) == ("one", "the last", 1002)


def test_a_closed_standard_error_stops_no_jvm() -> None:
    assert speak(CLOSED)[0] == "ended"
