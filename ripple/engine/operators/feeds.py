"""What a node waits for: the inputs and nodes whose rows come to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.engine.operators.waiting import Mark


class Ending(Protocol):
    """An input, which may end: ``watermark_ns`` is END then, ``before_end_ns`` that before."""

    watermark_ns: int
    before_end_ns: int


class Feeds:
    """The inputs and nodes whose rows come to a node.

    Windows and rows go by ``watermark_ns``, where the end of an input is after all times. Keys with
    a ttl and timers go by ``open_ns``, for which the end of all inputs is no time.
    """

    def __init__(self, marks: Sequence[Mark], inputs: Sequence[Ending]) -> None:
        """Have these inputs and nodes. inputs: all of the partition."""
        self.marks = marks
        self._inputs = inputs

    @property
    def watermark_ns(self) -> int:
        """No row on time is missing below it."""
        return min(one.watermark_ns for one in self.marks)

    @property
    def open_ns(self) -> int:
        """The watermark; once all inputs have ended, how far the last of them can have brought it.

        Any of them can have been the last, and the furthest decides: so it is a function of the
        inputs, in whatever order they ended, and never below a watermark that was there before.
        """
        whole_ns = self.watermark_ns
        if whole_ns != watermark.END:
            return whole_ns
        found_ns = watermark.NONE
        for one in self._inputs:
            if one.watermark_ns == watermark.END:
                one.watermark_ns = one.before_end_ns  # as if it were the last, for a moment
                alone_ns = self.watermark_ns
                one.watermark_ns = watermark.END
                if alone_ns != watermark.END:
                    found_ns = max(found_ns, alone_ns)
        return found_ns
