"""A PySpark or a Java that cannot work is named in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ripple
from ripple.core.errors import InputError
from ripple.spark.environment import check_java, check_pyspark
from ripple.spark.executor_probe import told as told_by_executor
from ripple.spark.executors import why_not
from tests.cli.processes import RIPPLE
from tests.patience import PATIENCE_S


@pytest.mark.parametrize("version", ["4.0.0", "4.1.4", "4.3.0.dev1", "4.10"])
def test_every_pyspark_4_is_taken(version: str) -> None:
    check_pyspark(version)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, None),
        ({"python": "3.12"}, "e runs Python 3.12, and the driver 3.11: set PYSPARK_PYTHON"),
        ({"ripple": None}, "e lacks the package ripple-stream: install ripple-stream 0.1.0 for"),
        ({"missing": ["numpy"]}, "e lacks the package numpy: install ripple-stream 0.1.0 for the"),
        ({"ripple": "0.0.9"}, "e has ripple-stream 0.0.9, and the driver 0.1.0: install the same"),
    ],
)
def test_what_an_executor_lacks_is_named(told: dict[str, Any], message: str | None) -> None:
    whole = {"name": "e", "python": "3.11", "ripple": "0.1.0", "missing": [], **told}
    found = why_not(whole, python="3.11", ours="0.1.0")
    assert found is None if message is None else str(found).startswith(message)


def test_an_executor_tells_its_packages() -> None:
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    (text,) = told_by_executor([bytearray(b"e")])
    about = {"name": "e", "python": python, "ripple": ripple.__version__, "missing": []}
    assert json.loads(text) == about


@pytest.mark.parametrize("version", ["3.5.6", "5.0.0", "unknown"])
def test_other_pyspark_is_refused(version: str) -> None:
    with pytest.raises(InputError, match=f"^PySpark {version} is installed, and ripple.spark need"):
        check_pyspark(version)


def test_missing_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InputError, match=r"^Spark needs Java 17 or later: install it, or set"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match=rf"^JAVA_HOME is {tmp_path}, where there is no bin/java"):
        check_java()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(0o755)
    check_java()


@pytest.mark.services
def test_java_that_cannot_run_spark_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho UnsupportedClassVersionError >&2\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "trades.csv").touch()
    ended = subprocess.run(
        [*RIPPLE, "spark", "replay", "examples/vwap.py", "--source", f"{tmp_path}/trades.csv",
         "--digest-only"],
        env={**os.environ, "JAVA_HOME": str(tmp_path), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    said = ended.stderr.splitlines()
    assert said[0] == "UnsupportedClassVersionError"
    assert "the JVM of Spark has ended before it began" in said[-1]
    assert str(java) in said[-1]
    assert "Traceback" not in ended.stderr
