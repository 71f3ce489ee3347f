"""The next of several sources to read: a function of the cut and of the watermarks there.

So a restarted run reads in the same order. The source with the lowest watermark comes first, so
that windows over several sources are held no longer than their distance in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable


@frozen
class Reading:
    """How far a source was read.

    rank: its number among the sources. is_timed: whether its records have an event time.
    watermark_ns: the least of its inputs. batches: how many whole ones of its offsets.
    """

    rank: int
    is_timed: bool
    watermark_ns: int
    batches: int


def in_order(readings: Iterable[Reading]) -> list[int]:
    """Return the ranks of sources in their order of reading.

    By the lowest watermark; where a source has no event time, by the fewest batches. readings: of
    all sources, also of ended ones: a restarted run does not know yet which ones have.
    """
    known = list(readings)
    by_time = all(one.is_timed for one in known)

    def key(one: Reading) -> tuple[int, int, int]:
        return (one.watermark_ns if by_time else 0, one.batches, one.rank)

    return [one.rank for one in sorted(known, key=key)]
