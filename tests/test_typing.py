"""mypy helps users: a misspelt field of a record class is found before the program runs."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

PIPELINE = """
import ripple.aggregate as rpa
from ripple.expression import col
from ripple.pipeline import Pipeline
from ripple.schema import Timestamp, field, record
from ripple.window import Tumbling

@record(version=1)
class Trade:
    symbol: str
    price: float = field(finite=True)
    size: int = field(gt=0)
    timestamp_ns: Timestamp
    venue: str = field(default="")

pipeline = (
    Pipeline("p")
    .source("trades", Trade)
    .filter("real", Trade.size > 0)
    .filter("known", Trade.symbol != "")
    .derive("value", notional=Trade.price * Trade.size, other=col("price") / 2)
    .partition("by-symbol", key=Trade.symbol)
    .window("1min", Tumbling("60s"))
    .fold("f", a=rpa.sum(Trade.{field}), b=rpa.vwap("price", "size"))
    .sink("out")
)
trade = Trade("A", 1.0, 2, 3)
price: float = trade.price
"""


def _mypy(folder: Path, field: str) -> tuple[int, str]:
    file = folder / "user.py"
    file.write_text(PIPELINE.replace("{field}", field))
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.returncode, found.stdout


def test_a_misspelt_field_is_a_type_error_and_a_right_one_is_none(tmp_path: Path) -> None:
    assert _mypy(tmp_path, "size")[0] == 0, _mypy(tmp_path, "size")
    status, report = _mypy(tmp_path, "sise")
    assert status == 1
    assert '"type[Trade]" has no attribute "sise"' in report
    assert "Found 1 error" in report


def test_the_same_pipeline_runs(tmp_path: Path) -> None:
    file = tmp_path / "user.py"
    file.write_text(PIPELINE.replace("{field}", "size"))
    text = runpy.run_path(str(file))["pipeline"].plan().describe()
    assert 'derive value: notional = col("price") * col("size")' in text
    assert 'a = sum(col("size"))' in text
