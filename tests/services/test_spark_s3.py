"""Checkpoints in S3 as a table of Spark, and checked there; executors open the store themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ripple.cli.main import main
from ripple.core.errors import InputError
from ripple.model.pipeline.file import load_plan
from ripple.spark.checkpoint_table import CheckpointTable
from ripple.storage.checkpoint import CheckpointError
from ripple.storage.store import StoreRefusedError
from tests.patience import PATIENCE_S
from tests.services.package import ROOT
from tests.services.s3 import PASSWORD, ObjectServer
from tests.services.spark_session import options, quick, spark
from tests.services.test_spark import file, pytestmark, trades
from tests.spark.kept import falsify
from tests.spark.logs import topic_of

__all__ = ["file", "pytestmark", "spark"]

URL = "s3://bucket/prefix"
EXECUTORS = "local-cluster[1,1,1024]"
READS = """
import sys

import ripple.spark
from ripple.spark.session import session

executors, place, java = sys.argv[1:]
given = {"spark.executor.memory": "1g", "spark.executor.extraJavaOptions": java}
spark = session(executors, is_brief=True, **given)
table = spark.read.format("ripple.checkpoint").option("path", place).load()
table.select("`ripple.cut`", "symbol").write.mode("overwrite").json("rows")
print(table._jdf.queryExecution().toString())
"""


@pytest.fixture
def live(file: Path, s3_server: ObjectServer, tmp_path: Path) -> str:
    """A log, and a run over it that has kept its checkpoints in S3."""
    plan = load_plan(f"{file}:whole")
    place = topic_of(tmp_path / "lg", plan, trades(1000), partitions=2, key=("symbol",))
    assert main(["run", f"{file}:whole", "--source", place, "--sink", f"log:{tmp_path}/lg/out",
                 "--checkpoint-dir", URL]) == 0  # fmt: skip
    return place


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python as a user does: executors have the environment of the one who starts them."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=2 * PATIENCE_S,  # of all that Spark is
        check=False,
    )


def test_state_in_s3_is_a_table_whose_plan_says_no_more_than_the_place(
    live: str, tmp_path: Path
) -> None:
    done = python(tmp_path, "-c", READS, EXECUTORS, URL, options())
    assert done.returncode == 0, done.stderr
    lines = [line for part in (tmp_path / "rows").glob("*.json") for line in part.open()]
    rows = [json.loads(line) for line in lines]
    assert {row["symbol"] for row in rows} == {f"S{n}" for n in range(30)}
    assert {sum(json.loads(row["ripple.cut"]).values()) for row in rows} == {1000}
    assert "symbol" in done.stdout
    assert PASSWORD not in done.stdout + done.stderr


def test_a_checkpoint_in_s3_that_no_engine_has_computed_is_found(
    file: Path, live: str, tmp_path: Path
) -> None:
    command = ["-m", "ripple.cli.main", "spark", "validate", f"{file}:whole", "--source", live,
               "--crashes", "0", "--oracle", "0", "--against", f"checkpoints:{URL}",
               "--master", EXECUTORS, "--conf", "spark.executor.memory=1g", *quick()]  # fmt: skip
    done = python(tmp_path, *command)
    assert (done.returncode, done.stdout.endswith("\nholds\n")) == (0, True), done.stderr
    wrong = falsify(URL, load_plan(f"{file}:whole").name, "sum_exponent")
    done = python(tmp_path, *command)
    assert done.returncode == 1, done.stderr
    assert f"checkpoint {wrong}" in done.stdout
    assert done.stdout.endswith("\ndoes not hold\n")


def test_unreadable_store_is_reported_in_one_line(
    file: Path, live: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(path: str, **more: str) -> None:
        CheckpointTable.of({"path": path, **more})

    with pytest.raises(CheckpointError, match=r"there are no checkpoints below s3://bucket/empty$"):
        look("s3://bucket/empty")
    with pytest.raises(CheckpointError, match=rf"no such checkpoints below {URL}: there are .*/0$"):
        look(URL, pipeline="other")
    with pytest.raises(StoreRefusedError, match="404 NoSuchBucket: make the bucket nobucket"):
        look("s3://nobucket/prefix")
    with pytest.raises(InputError, match="'s3a://bucket/prefix' is neither a folder nor s3://"):
        look("s3a://bucket/prefix")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    with pytest.raises(StoreRefusedError, match="403 SignatureDoesNotMatch: check the cred"):
        look(URL)


def test_check_of_an_unreadable_store_fails_before_it_computes(
    spark: object, file: Path, live: str
) -> None:
    from ripple.spark import validate

    for place, why in (
        ("s3://nobucket/prefix", "make the bucket nobucket"),
        ("s3://bucket/empty", "s3://bucket/empty has no checkpoints of pipeline"),
    ):
        with pytest.raises((InputError, StoreRefusedError), match=why):
            validate(spark, f"{file}:whole", live, against=(f"checkpoints:{place}",))
