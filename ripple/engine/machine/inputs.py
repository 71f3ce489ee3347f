"""One input partition as the engine sees it: how far it was read, and its own watermark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ripple.core.errors import InputError
from ripple.model.window import watermark

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.schema.exported import Lent


@dataclass(slots=True)
class Input:
    """The position and the watermark of one input partition.

    offset_max: the limit of next_offset. before_end_ns: of an input that has ended, the watermark
    before. Invariants: next_offset never goes back; watermark_ns never goes back, and it is a
    function of the events below next_offset.
    """

    name: str
    out_of_order_ns: int
    future_ns_max: int
    next_offset: int = 0
    watermark_ns: int = watermark.NONE
    offset_max: int = watermark.END
    before_end_ns: int = watermark.NONE

    @classmethod
    def of(cls, source: SourceSpec, name: str, next_offset: int, offset_max: int) -> Input:
        """Return an input of a source."""
        ahead_ns = source.reject_future_ns
        ahead_ns = watermark.ANY_FUTURE_NS if ahead_ns is None else ahead_ns
        return cls(name, source.out_of_order_ns, ahead_ns, next_offset, offset_max=offset_max)

    def __post_init__(self) -> None:
        self._check_offset(self.next_offset)

    def advance_to(self, next_offset: int, rows: int, rejected: int | None = None) -> int:
        """Move past a batch of ``rows`` rows; return how many records the source rejected.

        Those are ``rejected`` of the offsets below next_offset that are not rows of the batch, and
        the others are holes; None: they are all of them. Raises :class:`InputError` when the batch
        does not follow the last one.
        """
        if type(next_offset) is not int or not 0 <= next_offset <= self.offset_max:
            self._check_offset(next_offset)
        skipped = next_offset - self.next_offset - rows
        if skipped < 0:
            raise InputError(
                f"input {self.name!r}: a batch of {rows} rows ends before offset {next_offset}, "
                f"but the next offset to read is {self.next_offset}: batches must follow each other"
            )
        if rejected is None:
            rejected = skipped
        elif not 0 <= rejected <= skipped:
            raise InputError(
                f"input {self.name!r}: of the {skipped} offsets up to {next_offset} that are no "
                f"rows of the batch, {rejected} cannot have been rejected"
            )
        self.next_offset = int(next_offset)
        return rejected

    def check_offsets(self, offsets: npt.NDArray[np.int64], next_offset: int, rows: int) -> None:
        """Raise InputError unless these are rising offsets of ``rows`` records before next_offset.

        They begin at this input's next offset or later.
        """
        self._check_offset(next_offset)
        if offsets.dtype != np.int64 or offsets.shape != (rows,):
            raise InputError(
                f"input {self.name!r}: a batch of {rows} rows needs as many int64 offsets, not "
                f"{offsets.dtype}{list(offsets.shape)}"
            )
        if rows and not (
            self.next_offset <= offsets[0]
            and (offsets[1:] > offsets[:-1]).all()
            and offsets[-1] < next_offset
        ):
            raise InputError(
                f"input {self.name!r}: the offsets of a batch must rise from {self.next_offset}, "
                f"the next one to read, to below {next_offset}"
            )

    def check_marker(self, watermark_ns: int, next_offset: int) -> None:
        """Raise InputError unless a marker with this promise may end before ``next_offset``."""
        if not _is_whole(watermark_ns) or not watermark.NONE <= watermark_ns <= watermark.END:
            raise InputError(
                f"input {self.name!r}: a watermark is a whole number of nanoseconds in 64 bits, "
                f"not {watermark_ns!r}"
            )
        self._check_offset(next_offset)
        if not self.next_offset <= next_offset <= self.next_offset + 1:
            raise InputError(
                f"input {self.name!r}: a marker takes one offset, so after it comes "
                f"{self.next_offset + 1}, not {next_offset}: apply the records between first"
            )

    def judge(
        self, times_ns: npt.NDArray[np.int64] | Lent, lateness_ns: int, future_ns: int
    ) -> tuple[npt.NDArray[np.uint8] | None, int, int, int, int]:
        """Judge the next events and move the watermark past them.

        Returns (verdicts uint8[n] or None, mildly late, very late, future, refused).
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
        if watermark_ns == watermark.END != self.watermark_ns:
            self.before_end_ns = self.watermark_ns
        self.watermark_ns = max(self.watermark_ns, int(watermark_ns))

    def _check_offset(self, offset: int) -> None:
        if not _is_whole(offset) or not 0 <= offset <= self.offset_max:
            raise InputError(
                f"input {self.name!r}: an offset is a whole number from 0 to {self.offset_max}, "
                f"not {offset!r}"
            )


def _is_whole(number: object) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)
