"""The Python in the guide to simulation runs as it stands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


def test_testing_document_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "".join(re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL))
    # As a module: annotations of record classes are looked up there.
    guide = ModuleType("guide")
    monkeypatch.setitem(sys.modules, "guide", guide)
    exec(compile(code, str(DOCUMENT), "exec"), vars(guide))
    guide.test_vwap_survives_every_crash()
    guide.test_vwap_survives_on_a_cluster()
    assert capsys.readouterr().out.splitlines() == [
        "fsync_file is missed: 1 fault is enough",
        "fsync_folder is missed: 1 fault is enough",
    ]
