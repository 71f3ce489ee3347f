"""The Python in the guide to simulation runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


def test_testing_document_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = "".join(re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL))
    exec(compile(code, str(DOCUMENT), "exec"), {"__name__": "guide"})
    assert capsys.readouterr().out.splitlines() == [
        "fsync_file is missed: 1 fault is enough",
        "fsync_folder is missed: 1 fault is enough",
    ]
