"""Checks on Spark hold for what is right, find what is broken, and say where."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripple.cli.main import main
from ripple.model.batch import Batch
from ripple.model.pipeline.file import load_plan
from ripple.spark.log_table import open_topic
from ripple.storage.log import PartitionReader, PartitionWriter
from ripple.world import LiveClock
from tests.patience import PATIENCE_S
from tests.services.package import ROOT
from tests.services.spark_session import quick, spark
from tests.services.test_spark import file, pytestmark, trades
from tests.spark.graph_places import OUTPUTS
from tests.spark.graph_places import Place as Graph
from tests.spark.logs import topic_of

__all__ = ["file", "pytestmark", "spark"]


@pytest.fixture
def live(file: Path, tmp_path: Path) -> str:
    """A log, and a run over it that has kept checkpoints and written a log."""
    plan = load_plan(f"{file}:whole")
    place = topic_of(tmp_path / "lg", plan, trades(1000), partitions=2, key=("symbol",))
    assert main(["run", f"{file}:whole", "--source", place, "--sink", f"log:{tmp_path}/lg/out",
                 "--checkpoint-dir", f"{tmp_path}/kept"]) == 0  # fmt: skip
    return place


def falsified(out: str, column: str) -> dict[str, Any]:
    """Give the last row of an output another number, and return the row as it was."""
    topic, _ = open_topic(out)
    with PartitionReader(topic, 0) as reader:
        last = [entry for entry in reader.read() if isinstance(entry, Batch)][-1]
        notes = reader.notes_at(reader.range()[1] - 1)
    row: dict[str, Any] = last.records.slice(last.records.num_rows - 1).to_pylist()[0]
    wrong = pa.RecordBatch.from_pylist([{**row, column: -1}], last.records.schema)
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(wrong, notes=notes)
    return row


def test_correct_run_holds_in_every_report_format(
    spark: Any, file: Path, live: str, tmp_path: Path
) -> None:
    from ripple.spark import validate

    written = (f"log:{tmp_path}/lg/out", f"checkpoints:{tmp_path}/kept")
    heard: list[Any] = []
    verdict = validate(
        spark,
        f"{file}:whole",
        live,
        crashes=30,
        oracle_rows=300,
        against=written,
        seed=3,
        show=heard.append,
    )
    assert heard[-1].fraction == 1.0
    assert heard[-1].rows > 300
    assert verdict.holds, verdict.text()
    assert {one["check"] for one in verdict.findings} == {
        "crashes", "oracle", "outputs", "checkpoints",
    }  # fmt: skip
    assert sum(one["cases"] for one in verdict.findings if one["check"] == "crashes") == 32
    assert verdict.text().endswith("\nholds")
    page = verdict.html()
    assert page.count("<circle") == 30
    assert not re.findall(r'(?:src|href)="', page)


def test_a_broken_engine_is_found_with_its_key_and_events(
    spark: Any, file: Path, live: str
) -> None:
    from ripple.spark import validate

    verdict = validate(
        spark,
        f"{file}:whole",
        live,
        crashes=20,
        oracle_rows=300,
        engine="tests.spark.broken:Inflates",
    )
    assert not verdict.holds
    checks = {where.split()[0] for where, _ in verdict.differences}
    assert "oracle" in checks
    first = verdict.differences[0][1]
    assert first["expected"] != first["found"]
    assert first["key"] in verdict.text()
    assert all(event["symbol"] in first["key"] for event in first["events"])
    assert "does not hold" in verdict.html()
    json.dumps(verdict.as_dict())


def test_checks_that_cannot_be_made_are_said(spark: Any, file: Path, live: str) -> None:
    from ripple.core.errors import InputError
    from ripple.spark import validate

    with pytest.raises(InputError, match="nothing to check"):
        validate(spark, f"{file}:whole", live, crashes=0, oracle_rows=0)
    with pytest.raises(InputError, match="there is no such file"):
        validate(spark, f"{file}:whole", live, against=("out.csv",))
    with pytest.raises(InputError, match=r"has the fields .*: name the right output"):
        validate(spark, f"{file}:whole", live, crashes=0, oracle_rows=0, against=(live,))


def test_executors_of_their_own_come_to_the_same(
    spark: Any, file: Path, live: str, tmp_path: Path
) -> None:
    """As users call it, with executors that are processes beside the driver."""
    from ripple.spark import Replay

    command = ["spark", "replay", f"{file}:whole", "--source", live, "--sink", "rows",
               "--master", "local-cluster[2,1,1024]", "--conf", "spark.driver.memory=1g",
               "--conf", "spark.executor.memory=1g", "--report", "report.json",
               *quick()]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "ripple.cli.main", *command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = Replay(spark, f"{file}:whole", live).report()
    assert json.loads((tmp_path / "report.json").read_text())["digest"] == report.digest
    assert pq.read_table(tmp_path / "rows").num_rows == report.rows["sums-sink"] > 0
    assert not list(tmp_path.glob(".*.draft"))


def test_watch_reports_the_first_wrong_row_in_metrics_and_text(
    spark: Any, file: Path, live: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from ripple.cli.spark.watch import _Report
    from ripple.spark.sampling import Sample
    from ripple.spark.validating import Watching

    out = f"log:{tmp_path}/lg/out"
    watching = Watching(spark, f"{file}:whole", live, against=(out,), sample=Sample.of_share("50%"))
    told = _Report("trades", "text")
    for _ in range(2):
        told.round(watching)
    assert re.search(r"part 2 of 2: \d+ compared, all equal", capfd.readouterr().err)
    assert 'ripple_validate_holds{pipeline="trades"} 1.0' in told.page().body
    row = falsified(out, "top")
    for _ in range(2):
        told.round(watching)
    said = capfd.readouterr()
    assert said.err.count("1 differ") == said.err.count("all equal") == 1
    assert f"key ({row['symbol']!r},)" in said.out
    page = told.page().body
    assert 'ripple_validate_rounds_total{pipeline="trades"} 4.0' in page
    assert 'ripple_validate_differences_total{pipeline="trades"} 1.0' in page
    assert told.differed


def test_a_run_of_several_sources_is_validated(spark: Any, tmp_path: Path) -> None:
    from ripple.spark import validate

    place = Graph(tmp_path, "united", (2, 2))
    place.run(place.whole, "state")
    verdict = validate(
        spark,
        place.file,
        place.whole,
        crashes=4,
        oracle_rows=100,
        against=(
            *(f"{name}=log:{tmp_path}/out-state/{name}" for name in OUTPUTS),
            f"checkpoints:{tmp_path}/state",
        ),
    )
    assert verdict.holds, verdict.text()
    assert verdict.source == ", ".join(place.whole.values())
    assert sum(one["check"] == "oracle" for one in verdict.findings) == 2
