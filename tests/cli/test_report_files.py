"""Files that a command writes at its end are looked at before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ripple.cli.lib.report_files import check_files
from ripple.core.errors import OutputError


def test_files_that_can_be_written_pass_and_are_left_as_they_are(tmp_path: Path) -> None:
    there = tmp_path / "verdict.json"
    there.write_text("before")
    check_files(None, str(there), str(tmp_path / "new.html"), "verdict.json")
    assert there.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["verdict.json"]


@pytest.mark.parametrize(
    ("place", "why"), [("", "it is a folder"), ("no/v.json", "there is no folder .*/no$")]
)
def test_unwritable_output_is_named_before_the_run_begins(
    tmp_path: Path, place: str, why: str
) -> None:
    with pytest.raises(OutputError, match=f"^cannot write {tmp_path}.*: {why}"):
        check_files(None, str(tmp_path / place))
