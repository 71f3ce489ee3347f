"""``ripple pipeline``: its record, and refused stores."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ripple.cli.main import main
from ripple.control.assignment.founding import found
from ripple.world import LiveRandom
from tests.coordinator.test_pipelines import store_at

FILE = """import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    size: int


pipeline = (
    rp.Pipeline("totals").source("trades", Trade).partition("by-symbol", key="symbol")
    .fold("totals", n=rp.count()).sink("rows")
)
"""
ADD = ["pipeline", "add", "totals.py", "--source", "log:../in", "--sink", "log:../out"]
ADD += ["--store", "../state"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/totals.py").write_text(FILE)
    monkeypatch.chdir(tmp_path / "files")
    about = "--schema totals.py --partitions 2 --key symbol"
    assert main(f"log create ../in {about}".split()) == 0
    return tmp_path


def test_relative_places_are_recorded_by_their_full_paths(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "state").mkdir()
    assert main(ADD) == 0
    capfd.readouterr()
    assert main(["pipeline", "list", "--store", "../state", "--format", "json"]) == 0
    (one,) = json.loads(capfd.readouterr().out)["pipelines"]
    assert (one["source"], one["sinks"]) == (f"log:{folder}/in", [f"rows=log:{folder}/out"])


@pytest.mark.parametrize("words", [ADD, ["pipeline", "list", "--store", "../state"]])
def test_a_store_that_is_not_there_is_not_created(
    words: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) != 0
    assert "../state, and there is no such folder" in capfd.readouterr().err
    assert not (folder / "state").exists()


def test_a_store_of_one_pipeline_is_refused(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(found(store_at(str(folder / "state")), "ripple", LiveRandom()))
    assert main(ADD) != 0
    assert "which has the cluster of one pipeline" in capfd.readouterr().err
