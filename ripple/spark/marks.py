"""Markers of an idle input among its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.model.batch import Batch, Marker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Mark(NamedTuple):
    """A recorded marker of an idle input: after the records before ``offset``."""

    offset: int
    watermark_ns: int


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
