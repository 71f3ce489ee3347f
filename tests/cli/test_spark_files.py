"""Where a command on Spark could not write what it found, it says so before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ripple.cli.spark_session import check_files
from ripple.errors import OutputError


def test_places_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    check_files(None, str(tmp_path / "report.json"), "report.json")
    for place, why in [
        (tmp_path, "it is a folder"),
        (tmp_path / "none" / "report.json", "there is no folder"),
    ]:
        with pytest.raises(OutputError, match=f"cannot write {place}: {why}"):
            check_files(str(place))
