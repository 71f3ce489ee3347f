"""The rows that a live table shows, as texts and numbers."""

from __future__ import annotations

from html import escape
from typing import Any

from ripple.core.frozen import frozen

EXACT = 1 << 53  # beyond it, a browser's numbers are not exact


@frozen
class View:
    """Rows at one moment.

    columns: their names, of the key first. keys: how many of them are the key; None of events.
    rows: of texts, numbers and truth values, None for null. count: of all rows, changes: of all so
    far. line: the column to draw.
    """

    columns: tuple[str, ...] = ()
    keys: int | None = None
    rows: tuple[tuple[Any, ...], ...] = ()
    count: int = 0
    changes: int = 0
    line: str | None = None
    has_ended: bool = False

    def message(self) -> dict[str, Any]:
        """Return the view as JSON has it."""
        return {
            "columns": list(self.columns),
            "keys": self.keys,
            "rows": [list(map(_for_a_browser, row)) for row in self.rows],
            "count": self.count,
            "changes": self.changes,
            "line": self.line,
            "has_ended": self.has_ended,
        }

    @property
    def summary(self) -> str:
        """The numbers of rows and changes, as a text."""
        shown = f", {len(self.rows):,} of them shown" if len(self.rows) < self.count else ""
        state = "" if self.has_ended else ", running"
        return f"{self.count:,} rows{shown}, {self.changes:,} changes{state}"


def html_of(view: View) -> str:
    """Return a view as a table of HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in view.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_text(value)}</td>" for value in row) + "</tr>" for row in view.rows
    )
    caption = f"<caption>{escape(view.summary)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _text(value: object) -> str:
    return "" if value is None else escape(str(value))


def _for_a_browser(value: Any) -> Any:
    """Return a value that JSON has, and a browser reads without loss."""
    if isinstance(value, float) and value - value != 0:  # NaN, infinities
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT:
        return str(value)
    return value
