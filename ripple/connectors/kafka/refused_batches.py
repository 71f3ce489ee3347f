"""Rejections of unreadable batches: one per offset, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.world.broker import Read, Records, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

AT_ONCE = 1000
REFUSALS_MAX = 10_000
"""What one batch may make of itself: a few bytes may say that they are millions of records."""

_NO_OFFSETS = np.empty(0, np.int64)
_NO_RECORDS = Records.of(())


def refused(first: int, behind: int, reason: str, said: str) -> Iterator[Read]:
    """Yield the rejections of a batch: its offsets from ``first`` to before ``behind``.

    reason: one of a few phrases. said: the details of this one. Of more offsets than
    REFUSALS_MAX the last rejection stands for the rest, and says so.
    """
    end = min(behind, first + REFUSALS_MAX)
    raw, last = said.encode(), said.encode()
    if end < behind:
        last = f"{said}; this stands for {behind - end + 1} offsets, up to {behind - 1}".encode()
    for begin in range(first, end, AT_ONCE):
        until = min(begin + AT_ONCE, end)
        offsets = range(begin, until)
        found = [Refusal(at, reason, last if at == end - 1 else raw) for at in offsets]
        yield Read(_NO_OFFSETS, _NO_RECORDS, behind if until == end else until, found)
