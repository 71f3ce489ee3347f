"""Markers of an idle input among its entries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ripple.core.errors import InputError
from ripple.model.batch import Batch, Marker
from ripple.model.pipeline.input_names import is_markers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ripple.spark.shares import Share


class Mark(NamedTuple):
    """A recorded marker of an idle input: after the records before ``offset``.

    number: how many markers of its log have counted with it; a cut says how many have.
    """

    offset: int
    watermark_ns: int
    number: int = 0


def with_marks(
    given: Iterable[Batch | Marker], marks: Iterable[Mark], at: int, end: int | None
) -> Iterator[Batch | Marker]:
    """Yield the entries of an input from offset ``at`` on, with each mark where it counts.

    A batch is divided there. end: where the input ends, None if that is unknown.
    """
    left = iter(marks)
    mark = next(left, None)
    for each in given:
        entry = each
        while mark is not None and mark.offset < entry.next_offset:
            if isinstance(entry, Batch) and entry.first_offset < mark.offset:
                head, entry = entry.split_at(mark.offset)
                yield head
                at = mark.offset
            yield Marker(mark.watermark_ns, at)
            mark = next(left, None)
        yield entry
        at = entry.next_offset
    while mark is not None and (end is None or mark.offset <= end):
        yield Marker(mark.watermark_ns, at)
        mark = next(left, None)


def counted(shares: Iterable[Share], cut: Mapping[str, int]) -> list[Share]:
    """Return shares with the marks counted at a cut, by the entry of their log in it.

    Raises InputError where marks are missing.
    """
    given = list(shares)
    read = next((count for name, count in cut.items() if is_markers(name)), 0)
    known = max((mark.number for share in given for mark in share.marks), default=0)
    if read > known:
        have = f"hold {known} of them" if known else "were not given"
        raise InputError(
            f"the live run has judged records by {read} markers of idle inputs, and its markers "
            f"{have}: give --markers DIR (markers=), the folder of its checkpoints or the store of "
            "the cluster"
        )
    return [
        replace(one, marks=tuple(mark for mark in one.marks if mark.number <= read))
        if one.marks
        else one
        for one in given
    ]
