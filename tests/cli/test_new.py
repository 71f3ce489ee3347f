"""What ``ripple new`` writes works as it is: the pipeline runs, and its test passes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.cli.processes import RIPPLE, ROOT, run

ALONE = (f"PYTHONPATH={ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1")


def begin(folder: Path, name: str):
    return run(RIPPLE, "new", name, folder=folder)


def test_the_pipeline_runs_and_its_test_passes(tmp_path: Path) -> None:
    begun = begin(tmp_path, "my-orders")
    assert begun.code == 0, begun.err
    folder = tmp_path / "my-orders"
    assert {path.name for path in folder.iterdir()} == {
        "my_orders.py",
        "test_my_orders.py",
        "orders.csv",
    }
    here = ["env", "-C", str(folder), *ALONE]
    ran = 0
    for line in begun.rows:
        command = line.split()
        if command[:1] == ["ripple"]:
            ended = run(RIPPLE, *command[1:], folder=folder)
        elif command[:1] == ["python"]:
            ended = run([*here, sys.executable], *command[1:], "-q", "-p", "no:cacheprovider")
        else:
            continue
        assert ended.code == 0, ended.err or ended.out
        ran += 1
        if command[1] == "run":
            assert len(ended.rows) == 4
            assert not {"Rejected", "Future"} & {*re.findall(r"\w+", ended.err)}
    assert ran == 3


def test_generated_test_fails_where_engine_and_pipeline_differ(tmp_path: Path) -> None:
    """A test that is written for somebody must be able to fail."""
    assert begin(tmp_path, "mine").code == 0
    file = tmp_path / "mine" / "mine.py"
    changed = file.read_text().replace('rp.col("quantity")', 'rp.col("quantities")')
    file.write_text(changed)
    test = ["env", "-C", str(tmp_path / "mine"), *ALONE, sys.executable]
    ended = run(test, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert ended.code != 0
    assert "quantities" in ended.out


def test_nothing_is_written_over(tmp_path: Path) -> None:
    assert begin(tmp_path, "mine").code == 0
    (tmp_path / "mine" / "mine.py").write_text("changed")
    again = begin(tmp_path, "mine")
    assert again.code == 1
    assert again.only_line == "ripple: mine exists: choose another name"
    assert (tmp_path / "mine" / "mine.py").read_text() == "changed"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Mine", "invalid name"),
        ("a/b", "invalid name"),
        ("..", "invalid name"),
        ("1st", "invalid name"),
        ("json", "would hide a module"),
        ("class", "is a keyword of Python"),
        ("ripple", "would hide a module"),
    ],
)
def test_invalid_names_are_refused(tmp_path: Path, name: str, why: str) -> None:
    refused = begin(tmp_path, name)
    assert refused.code == 1
    assert why in refused.only_line
    assert list(tmp_path.iterdir()) == []
