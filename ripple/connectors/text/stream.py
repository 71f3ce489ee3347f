"""Lines to a stream, by a pipeline that may be restarted: nobody knows what has arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.text.sink import TextLines

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from ripple.connectors.contract import Commit
    from ripple.connectors.target import Target
    from ripple.connectors.text.sink import TextFormat


class StreamCutSink:
    """A CutSink that writes lines through at once and keeps nothing."""

    records_cut = False
    committed: Commit | None = None
    unfinished: Mapping[str, int] | None = None
    cut_off_bytes = 0
    promise = "lines written since the last checkpoint may be written again after a restart"

    def __init__(self, target: Target, text_format: TextFormat) -> None:
        self.name = target.name
        self._target = target
        self._lines = TextLines(text_format, target.name)
        self._is_first = True

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - CutSink's
        """Write one line per row."""
        lines = self._lines.of(changes, is_first=self._is_first)
        self._is_first = False
        if lines:
            self._target.write(lines)

    def commit(self, reached: Commit) -> None:
        """Do nothing: what was written is on its way."""

    def close(self) -> None:
        """Close the stream."""
        self._target.finish()
