"""Each part of Ripple on Spark works with the oldest PySpark that is supported.

$RIPPLE_SPARK_VERSIONS: other versions, as ``make test-spark-versions`` has them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.services.cache import fetch, kept
from tests.services.jars import java
from tests.services.missing import MissingError, skip

ROOT = Path(__file__).parents[2]
OLDEST = "4.0.5"

pytestmark = pytest.mark.services


def pyspark(version: str) -> Path:
    """Return the folder of a PySpark. Raises MissingError."""

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        wanted = f"pyspark=={version}"
        fetch([*pip, "--no-compile", "--target", str(folder), wanted], folder, wanted)

    return kept(f"pyspark-{version}", install)


@pytest.mark.parametrize("version", os.environ.get("RIPPLE_SPARK_VERSIONS", OLDEST).split())
def test_each_part_works(version: str, tmp_path: Path) -> None:
    try:
        java("Spark")
        installed = pyspark(version)
    except MissingError as error:
        skip(error)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.services.spark_everywhere", str(tmp_path)],
        env={
            **os.environ,
            "PYTHONPATH": f"{installed}{os.pathsep}{ROOT}",
            "PYSPARK_PYTHON": sys.executable,
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE_S,
        check=False,
    )
    said = ended.stdout.splitlines()
    assert len(said) == 9, ended.stderr
    assert [one for one in said if not one.startswith(f"PySpark {version}: ")] == []
    assert [one for one in said if not one.endswith(": as expected")] == [], ended.stderr
