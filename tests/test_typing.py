"""mypy helps users: a misspelt field of a record class is found before the program runs."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

PIPELINE = """
import datetime as dt
import decimal
from typing import Annotated

import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    price: float = rp.field(finite=True)
    size: int = rp.field(gt=0)
    timestamp_ns: rp.Timestamp
    sent: dt.datetime
    day: dt.date
    fee: Annotated[decimal.Decimal, rp.Decimal(12, 4)]
    venue: str = rp.field(default="")

pipeline = (
    rp.Pipeline({name})
    .source("trades", Trade)
    .filter("real", Trade.size > 0)
    .filter("known", Trade.symbol != "")
    .filter("new", Trade.day >= dt.date(2026, 1, 1))
    .filter("fresh", Trade.sent >= dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    .derive("value", notional=Trade.price * Trade.size, other=rp.col("price") / 2)
    .derive("fees", fees=Trade.fee * Trade.size, month=rp.col("day").dt.truncate("1mo"))
    .partition("by-symbol", key=Trade.symbol)
    .window("1min", rp.Tumbling("60s"))
    .fold("f", a=rp.{aggregate}(Trade.{field}), b=rp.vwap("price", "size"))
    .sink("out")
)
trade = Trade("A", 1.0, 2, 3, dt.datetime.now(dt.UTC), dt.date(2026, 1, 1), decimal.Decimal(1))
fee: decimal.Decimal = trade.fee
price: float = trade.price
"""


RIGHT = {"name": '"p"', "field": "size", "aggregate": "sum"}
WRONG = {"name": "1", "field": "sise", "aggregate": "summ"}


def _user_file(folder: Path, name: str, spelling: dict[str, str]) -> Path:
    text = PIPELINE
    for place, word in spelling.items():
        text = text.replace(f"{{{place}}}", word)
    (folder / f"{name}.py").write_text(text)
    return folder / f"{name}.py"


def _mypy(*files: Path) -> tuple[int, str]:
    """Return what mypy says; what it knows of Ripple it may have from ``make lint``."""
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.returncode, found.stdout


@pytest.mark.services
def test_a_misspelt_name_is_a_type_error_and_a_right_one_is_none(tmp_path: Path) -> None:
    right = _user_file(tmp_path, "right", RIGHT)
    status, report = _mypy(right, _user_file(tmp_path, "wrong", WRONG))
    assert status == 1
    assert str(right) not in report
    assert '"type[Trade]" has no attribute "sise"' in report
    assert 'Module has no attribute "summ"' in report
    assert 'Argument 1 to "Pipeline" has incompatible type "int"' in report
    assert "Found 3 errors in 1 file (checked 2 source files)" in report


def test_the_same_pipeline_runs(tmp_path: Path) -> None:
    pipeline = runpy.run_path(str(_user_file(tmp_path, "user", RIGHT)))["pipeline"]
    text = pipeline.plan().describe()
    assert 'derive value: notional = col("price") * col("size")' in text
    assert 'a = sum(col("size"))' in text
