"""What Spark needs on the driver's machine: a known PySpark, and Java."""

from __future__ import annotations

import os
import re
import shutil
import sys

from ripple.core.errors import InputError

PYSPARK_MIN, PYSPARK_BELOW = (4, 0), (5, 0)  # as in pyproject.toml
JAVA = "Java 17 or later"


def check_pyspark(version: str) -> None:
    """Raise InputError for a version of PySpark that is not supported."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or not PYSPARK_MIN <= (int(found[1]), int(found[2])) < PYSPARK_BELOW:
        raise InputError(
            f"PySpark {version} is installed, and ripple.spark needs one of 4.0 to 4.x: "
            "pip install 'ripple-stream[spark]'"
        )


def check_java() -> None:
    """Raise InputError unless there is a Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(os.path.join(home, "bin", "java"), os.X_OK):
        raise InputError(
            f"JAVA_HOME is {home}, where there is no bin/java: name the folder of {JAVA}, or "
            "unset it for the java of the PATH"
        )
    if not home and shutil.which("java") is None:
        raise InputError(f"Spark needs {JAVA}: install it, or set JAVA_HOME")


def is_this_python(command: str) -> bool:
    """Return whether a command starts the Python of this process."""
    return shutil.which(command) == sys.executable


def why_no_jvm() -> str:
    """Return the likely cause of a JVM that has ended while Spark started."""
    command = shutil.which("java") or "java"
    home = os.environ.get("JAVA_HOME")
    used = os.path.join(home, "bin", "java") if home else command
    return (
        f"the JVM of Spark has ended before it began ({used}; its messages are above): Spark 4 "
        f"needs {JAVA}, and the settings given as --conf must be valid"
    )
