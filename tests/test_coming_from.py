"""The pages for users of other libraries: each job runs, and gives the same rows."""

from __future__ import annotations

import runpy
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.coming_from import BARS, PAGES, Bar, code, write_trades


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_pages_have_one_job(folder: Path) -> None:
    pages = sorted(path.stem for path in PAGES.glob("*.md"))
    assert pages == ["bytewax", "csp", "flink", "polars", "quix"]
    assert len({code(page, "ripple") for page in pages}) == 1
    assert len({str(write_trades(page, folder)) for page in pages}) == 1


def test_ripple_and_polars_have_the_same_bars(folder: Path) -> None:
    write_trades("polars", folder)
    (folder / "bars.py").write_text(code("polars", "ripple") + code("polars", "ripple, continued"))
    names = runpy.run_path("bars.py", run_name="bars")
    found = [
        Bar.of(symbol, datetime.fromtimestamp(start_ns // 10**9, UTC), vwap, volume)
        for symbol, start_ns, _, vwap, volume in names["frame"].iter_rows()
    ]
    assert found == BARS
    (folder / "frame.py").write_text(code("polars", "polars"))
    found = runpy.run_path("frame.py")["bars"].iter_rows()
    assert [Bar.of(*row) for row in found] == BARS


def test_pandas_has_the_same_bars(folder: Path) -> None:
    write_trades("polars", folder)
    (folder / "frame.py").write_text(code("polars", "pandas"))
    found = runpy.run_path("frame.py")["bars"].itertuples()
    assert [Bar.of(*one.Index, one.vwap, one.volume) for one in found] == BARS
