"""The tasks of a newcomer: the programs of Ripple and Polars have the rows of plain Python."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from bench import newcomer
from bench.newcomer import data


def test_the_programs_have_the_rows_of_plain_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = data.write(tmp_path)
    for task in newcomer.TASKS:
        for library in ("ripple", "polars"):
            runpy.run_path(str(newcomer.HERE / library / f"{task}.py"))
            found = newcomer.rows_of(tmp_path / "out.csv", task)
            newcomer.check(f"{library} {task}", found, expected[task])
    with pytest.raises(RuntimeError, match="rows in place of"):
        newcomer.check("e", found[1:], expected["e"])
    with pytest.raises(RuntimeError, match="in place of"):
        newcomer.check("e", [(*found[0][:-1], 0.0), *found[1:]], expected["e"])


def test_joined_and_distinct_rows_take_twenty_lines() -> None:
    assert max(newcomer.count("ripple", task) for task in "de") <= newcomer.LINES_MAX
