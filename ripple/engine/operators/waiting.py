"""Nodes that give rows by the watermark: what the engine asks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.engine.operators.rows import RejectedRow, Rows
    from ripple.engine.operators.stream_rows import StreamRows


class Mark(Protocol):
    """What has a watermark: an input, or a node that waits."""

    @property
    def watermark_ns(self) -> int:
        """No row of it on time is missing below it."""


class Waiting(Mark, Protocol):
    """A node whose rows enter a stream by the watermark of what it waits for, each once."""

    given: int
    """The rows taken since the partition was restored here."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""

    def take(self) -> Rows | None:
        """Return the rows that follow by now, in their order; None if there are none."""

    def show(self, stream: StreamRows, name: str, rows: Rows) -> None:
        """Show some of the rows taken last, after steps; name: of the node in the plan."""

    def lose(self, refused: Iterable[RejectedRow]) -> None:
        """Count some of the rows taken last, which a step cannot take, and name the first."""


def settled_ns(watermark_ns: int, lateness_ns: int) -> int:
    """Return up to where nothing changes any more, by a watermark."""
    if watermark_ns in (watermark.NONE, watermark.END):
        return watermark_ns
    return max(watermark_ns - lateness_ns, watermark.NONE)
