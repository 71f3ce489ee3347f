"""The job of ``docs/coming-from`` in each library, and its rows."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

PAGES = Path(__file__).parents[1] / "docs/coming-from"


class Bar(NamedTuple):
    """A symbol's minute. at: its begin; vwap: rounded, since libraries sum floats as they like."""

    symbol: str
    at: datetime
    vwap: float
    volume: int

    @classmethod
    def of(cls, symbol: str, at: datetime, vwap: Any, volume: Any) -> Bar:
        utc = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        return cls(symbol, utc, round(float(vwap), 9), int(volume))


BARS = [
    Bar.of("AAPL", datetime(2024, 2, 27, 2, 13, tzinfo=UTC), 452 / 3, 300),
    Bar.of("AAPL", datetime(2024, 2, 27, 2, 14, tzinfo=UTC), 150, 150),
    Bar.of("MSFT", datetime(2024, 2, 27, 2, 13, tzinfo=UTC), 410.75, 40),
    Bar.of("MSFT", datetime(2024, 2, 27, 2, 15, tzinfo=UTC), 412.5, 20),
]


def code(page: str, library: str) -> str:
    """Return the block of a page that begins with a library's name."""
    text = (PAGES / f"{page}.md").read_text()
    (found,) = re.findall(rf"```python\n# {library}\n(.*?)```", text, re.DOTALL)
    return str(found)


def write_trades(page: str, folder: Path) -> list[dict[str, Any]]:
    """Write a page's trades as ``trades.csv``; return them as records."""
    (text,) = re.findall(r"```text\n(.*?)```", (PAGES / f"{page}.md").read_text(), re.DOTALL)
    (folder / "trades.csv").write_text(text)
    return [
        row | {"price": float(row["price"]), "size": int(row["size"])}
        for row in csv.DictReader(text.splitlines())
    ]
