"""A sink that shows the rows of its output in a notebook, as they change."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from ripple.client.live.newest import Newest
from ripple.client.live.view import View, html_of
from ripple.connectors.contract import BasicSink
from ripple.core.arguments import need_text, need_whole
from ripple.core.errors import OutputError

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.client.live.widget import Widget
    from ripple.connectors.contract import Commit

INTERVAL_S = 0.2
COST_SHARE = 0.1  # of a run's time, at most, for the display


# Invariant: everything but ``shown`` is touched with the lock alone.
class LiveTable(BasicSink):
    """A sink of one output: in a notebook, its rows as a table that changes during the run.

    rows: the number shown, 20 by default. by: the column to sort by, descending with ``-`` before
    its name; by default the key, or of an output of events the newest rows. line: a column whose
    values are also drawn as lines, one for each row shown.

    It shows five times a second at most, and less often if that took more than a tenth of the run's
    time. In memory is each key's last row, or of events the shown ones. Jupyter needs
    ``pip install 'ripple-stream[notebook]'``; without it a table shows its rows at that
    moment. A LiveTable is for one run. Raises OutputError for an unknown column.
    """

    name = "a live table"
    promise = "rows are shown, and not kept"

    def __init__(self, *, rows: int = 20, by: str | None = None, line: str | None = None) -> None:
        """Show nothing yet."""
        need_whole("rows", rows, 1)
        for what, column in (("by", by), ("line", line)):
            if column is not None:
                need_text(what, column)
        self._rows, self._by, self._line = rows, by, line
        self._lock = threading.Lock()
        self._newest: Newest | None = None
        self._due: threading.Timer | None = None
        self._next_s = 0.0
        self._widget: Widget | None = None
        self.shown = View()

    # --- the sink ---

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Take changes, and show them if it is time, or else a moment later."""
        with self._lock:
            if self.shown.has_ended:
                raise OutputError(
                    "a LiveTable is for one run, and this one's has ended: make another"
                )
            if self._newest is None:
                self._newest = Newest(changes.schema, self._rows, self._by, self._line)
            self._newest.apply(changes)
            wait_s = self._next_s - time.monotonic()
            if wait_s <= 0:
                self._show()
            elif self._due is None:
                self._due = threading.Timer(wait_s, self._show_later)
                self._due.daemon = True
                self._due.start()

    def commit(self, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Show all changes."""
        with self._lock:
            self._show()

    def close(self) -> None:
        """Show the last changes, and that the run has ended."""
        with self._lock:
            self._show(has_ended=True)

    def _show_later(self) -> None:
        with self._lock:
            if self._due is not None:
                self._show()

    def _show(self, *, has_ended: bool = False) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        began_s = time.monotonic()
        if self._newest is not None:
            self.shown = self._newest.view(has_ended=has_ended)
        elif has_ended:
            self.shown = View(has_ended=True)
        if self._widget is not None:
            self._widget.show(self.shown)
        now_s = time.monotonic()
        self._next_s = now_s + max(INTERVAL_S, (now_s - began_s) / COST_SHARE)

    # --- the notebook ---

    def _repr_mimebundle_(self, **asked: Any) -> Any:
        """Return the widget, or the rows where there is no anywidget."""
        if self._widget is None:
            try:
                from ripple.client.live.widget import Widget  # noqa: PLC0415 - an extra
            except ImportError:
                return {"text/html": self._repr_html_(), "text/plain": repr(self)}
            with self._lock:
                self._widget = Widget()
                self._widget.show(self.shown)
        return self._widget.bundle(**asked)

    def _repr_html_(self) -> str:
        """Return the current rows."""
        return html_of(self.shown)

    def __repr__(self) -> str:
        """Return the number of rows."""
        count = self.shown.count
        return f"<LiveTable of {count:,} row{'' if count == 1 else 's'}>"
