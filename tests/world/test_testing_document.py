"""The Python in the guide to simulation runs as it stands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.examples import SPARSE

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


@pytest.fixture(scope="module")
def guide() -> Iterator[Any]:
    """What the document defines, as a module: annotations of record classes are looked up there."""
    code = "".join(re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL))
    made: Any = ModuleType("guide")
    made.said = []
    made.print = lambda *words: made.said.append(" ".join(map(str, words)))
    sys.modules["guide"] = made
    exec(compile(code, str(DOCUMENT), "exec"), vars(made))
    yield made
    del sys.modules["guide"]


def test_testing_document_runs(guide: Any) -> None:
    assert guide.said == [
        "fsync_file is missed: 1 fault is enough",
        "fsync_folder is missed: 1 fault is enough",
    ]


def test_pipeline_of_the_document_survives_every_crash(guide: Any) -> None:
    guide.crash_test = partial(guide.crash_test, every=SPARSE**2)
    guide.test_vwap_survives_every_crash()


def test_pipeline_of_the_document_survives_on_a_cluster(guide: Any) -> None:
    guide.test_vwap_survives_on_a_cluster()
