"""Each part of Ripple on Spark works with the oldest PySpark, on Spark Connect, and with tables.

$RIPPLE_SPARK_VERSIONS: other versions, as ``make test-spark-versions`` has them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.services.cache import fetch, kept
from tests.services.jars import Jars, java
from tests.services.missing import MissingError, skip

ROOT = Path(__file__).parents[2]
OLDEST = "4.0.5"
TABLES = Jars(
    "spark-tables",
    # Both have versions for Spark 4.0, later ones not in Maven's repository.
    (
        "io.delta:delta-spark_2.13:4.0.0",
        "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    ),
    "14e27025094b3fff3ddd1e6c378a41ebe2db74b5065ae6c9c25ebe84e5663575",
    ("org.antlr:antlr4-runtime", "org.scala-lang:scala-library"),
)
CONNECT = ("--no-deps", "grpcio-status")  # of pyspark[connect] alone

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
    check_parts(version, (installed,), tmp_path)


def test_each_part_works_on_spark_connect(tmp_path: Path) -> None:
    import pyspark as newest

    version = str(newest.__version__)

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        fetch([*pip, "--no-compile", "--target", str(folder), *CONNECT], folder, "grpcio-status")

    try:
        java("Spark")
        needed = () if find_spec("grpc_status") else (kept("grpcio-status", install),)
    except MissingError as error:
        skip(error)
    check_parts(version, needed, tmp_path, "--connect")


def test_versions_of_tables_are_replayed_and_outputs_merged_into_tables(tmp_path: Path) -> None:
    try:
        java("Spark")
        installed, jars = pyspark(OLDEST), TABLES.classpath()
    except MissingError as error:
        skip(error)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.services.spark_tables", str(tmp_path), jars],
        env={**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{ROOT}"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE_S,
        check=False,
    )
    assert ended.stdout.splitlines() == ["delta: as expected", "iceberg: as expected"], ended.stderr


def check_parts(version: str, packages: tuple[Path, ...], folder: Path, *more: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.services.spark_everywhere", str(folder), *more],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (*packages, ROOT))),
            "PYSPARK_PYTHON": sys.executable,
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE_S,
        check=False,
    )
    said = [one for one in ended.stdout.splitlines() if one.startswith("PySpark ")]
    assert len(said) == 12, ended.stdout + ended.stderr
    assert [one for one in said if not one.startswith(f"PySpark {version}: ")] == []
    assert [one for one in said if not one.endswith(": as expected")] == [], ended.stderr
