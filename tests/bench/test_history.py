"""A file of figures, completed by a later run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import _measured, _save

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
