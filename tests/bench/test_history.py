"""A file of figures, completed by a later run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ripple
from bench.__main__ import _measured, _save
from bench.releases import FOLDER, history
from tests.bench.command import bench

MACHINE = {"date": "2026-01-01", "load": "0.1", "commit": "abc1234", "python": "3.11"}


def test_figures_of_the_same_machine_and_commit_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "0.1.0.json"
    assert _measured(path, MACHINE) == {}
    _save(path, {"machine": MACHINE, "benchmarks": {"log": [{"name": "append"}], "gone": []}})
    later = {**MACHINE, "date": "2026-01-02", "load": "2.0"}
    assert _measured(path, later) == {"log": [{"name": "append"}]}


@pytest.mark.parametrize("name", ["commit", "python"])
def test_figures_of_another_machine_or_commit_are_not_mixed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "0.1.0.json"
    _save(path, {"machine": MACHINE, "benchmarks": {"log": []}})
    with pytest.raises(SystemExit, match=f"has another {name}: remove it"):
        _measured(path, {**MACHINE, name: "other"})
    with pytest.raises(SystemExit, match="has another commit and python: "):
        _measured(path, {**MACHINE, "commit": "other", "python": "other"})
    assert json.loads(path.read_text())["machine"] == MACHINE


def test_releases_stand_beside_one_another_in_the_order_of_their_versions(tmp_path: Path) -> None:
    assert history(tmp_path) == (
        f"no release has figures in {tmp_path}: make bench-history writes them"
    )
    machine = {"date": "2026-01-01", "load": "0.1 when started", "commit": "abc", "machine": "one"}
    for version, value in (("0.10.0", 3.0), ("0.9.1", 250.0)):
        row = {"name": "append", "value": value, "unit": "ms", "aim": None, "ratio": None}
        figures = {"machine": machine, "benchmarks": {"log": [row], "io": [row] * (value < 9)}}
        (tmp_path / f"{version}.json").write_text(json.dumps(figures))
    assert history(tmp_path).split("\n") == [
        "0.9.1: 2026-01-01, commit abc, one, load 0.1 when started",
        "0.10.0: 2026-01-01, commit abc, one, load 0.1 when started",
        "",
        "benchmark  what    0.9.1  0.10.0",
        "io         append           3.00  ms",
        "log        append    250    3.00  ms",
    ]


def test_this_version_has_its_figures_and_the_command_prints_them() -> None:
    assert (FOLDER / f"{ripple.__version__}.json").exists()
    printed = bench("--history")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert ripple.__version__ in printed.stdout
    assert "pipelines" in printed.stdout
