"""One input partition as the engine sees it: how far it was read, and its own watermark."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ripple.errors import InputError
from ripple.window import watermark


@dataclass(slots=True)
class Input:
    """The position and the watermark of one input partition.

    Invariants: next_offset never goes back; watermark_ns never goes back, and it is a function of
    the events below next_offset.
    """

    name: str
    out_of_order_ns: int
    future_ns_max: int
    next_offset: int = 0
    watermark_ns: int = watermark.NONE

    def advance_to(self, next_offset: int, rows: int) -> int:
        """Move past a batch of ``rows`` rows; return how many records it skipped.

        Raises :class:`InputError` when the batch does not follow the last one: the offsets below
        next_offset that are not rows of the batch were rejected by the source.
        """
        skipped = next_offset - self.next_offset - rows
        if skipped < 0:
            raise InputError(
                f"input {self.name!r}: a batch of {rows} rows ends before offset {next_offset}, "
                f"but the next offset to read is {self.next_offset}: batches must follow each other"
            )
        self.next_offset = next_offset
        return skipped

    def judge(
        self, times_ns: npt.NDArray[np.int64], lateness_ns: int, future_ns: int
    ) -> tuple[npt.NDArray[np.uint8], int, int, int, int]:
        """Judge the next events and move the watermark past them.

        Returns (verdicts uint8[n], mildly late, very late, future, refused).
        """
        judged = watermark.judge(
            times_ns,
            self.watermark_ns,
            self.out_of_order_ns,
            lateness_ns,
            future_ns,
            self.future_ns_max,
        )
        self.watermark_ns = judged[0]
        return judged[1:]

    def raise_watermark(self, watermark_ns: int) -> None:
        """Promise that no event below ``watermark_ns`` follows; going back is ignored."""
        self.watermark_ns = max(self.watermark_ns, watermark_ns)
