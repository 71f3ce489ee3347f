"""Where a join is, and each side of it."""

from __future__ import annotations

from typing import NamedTuple


class SideState(NamedTuple):
    """Where one side of a join is.

    reads: its node. rows: held, or kept for later matches; of a table, all. watermark_ns: None of a
    table. is_behind: whether fewer rows can follow for this side than for the other.
    """

    reads: str
    rows: int
    watermark_ns: int | None = None
    is_behind: bool = False


class JoinState(NamedTuple):
    """Where a join is, its left side first.

    matched, unmatched: the rows of the left side that went on or were dropped, with and without a
    partner, since the partition was restored here; None of tables.
    """

    sides: tuple[SideState, SideState]
    matched: int | None = None
    unmatched: int | None = None
