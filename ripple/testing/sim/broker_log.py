"""A partition of the simulated broker: records, markers, open transactions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ripple.world.broker import OffsetError, Read, Record, Records, TopicPartition


class Entry(NamedTuple):
    """The entry of one offset. A marker has no record; entries without producer are committed."""

    offset: int
    producer: str
    record: Record | None


class BrokerLog:
    """Invariants: offsets rise; ``_open`` has the first offset of each open transaction.

    A reader sees the records committed before ``stable_end``, for ever the same.
    """

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.start = 0
        self.end = 0
        self._entries: list[Entry] = []
        self._open: dict[str, int] = {}
        self._aborted: dict[int, None] = {}

    @property
    def stable_end(self) -> int:
        """The offset before which everything is decided."""
        return min(self._open.values(), default=self.end)

    def append(self, producer: str, records: tuple[Record, ...]) -> None:
        """Add records, of a transaction if ``producer`` is not ""."""
        if producer:
            self._open.setdefault(producer, self.end)
        for record in records:
            self._add(producer, record)

    def decide(self, producer: str, *, commits: bool) -> None:
        """End a producer's transaction with a marker."""
        first = self._open.pop(producer, self.end)
        if not commits:
            for entry in self._entries[self._index(first) :]:
                if entry.producer == producer:
                    self._aborted[entry.offset] = None
        self._add(producer, None)

    def read(self, offset: int, records_max: int) -> Read:
        """Return the records that a reader sees from ``offset`` on. Raises OffsetError."""
        if not self.start <= offset <= self.end:
            raise OffsetError(self.place, offset, self.start, self.end)
        offsets: list[int] = []
        records: list[Record] = []
        stable_end = self.stable_end
        next_offset = max(offset, stable_end)
        for entry in self._entries[self._index(offset) : self._index(stable_end)]:
            if entry.record is None or entry.offset in self._aborted:
                continue
            if len(records) == records_max:
                next_offset = entry.offset
                break
            offsets.append(entry.offset)
            records.append(entry.record)
        return Read(np.array(offsets, np.int64), Records.of(records), next_offset)

    def remove_before(self, offset: int) -> None:
        """Forget entries before an offset, as retention does; undecided ones stay."""
        self.start = max(self.start, min(offset, self.stable_end))
        self._entries = self._entries[self._index(self.start) :]

    def compact(self) -> None:
        """Keep the last decided record of each key, and records without key."""
        stable_end = self.stable_end
        decided = [entry for entry in self._entries if entry.offset < stable_end]
        seen = [each for each in decided if each.record and each.offset not in self._aborted]
        last = {each.record.key: each.offset for each in seen if each.record is not None}
        kept = [
            each
            for each in seen
            if each.record is not None
            and (each.record.key is None or last[each.record.key] == each.offset)
        ]
        self._entries = kept + self._entries[len(decided) :]

    def _add(self, producer: str, record: Record | None) -> None:
        self._entries.append(Entry(self.end, producer, record))
        self.end += 1

    def _index(self, offset: int) -> int:
        low, high = 0, len(self._entries)
        while low < high:
            middle = (low + high) // 2
            if self._entries[middle].offset < offset:
                low = middle + 1
            else:
                high = middle
        return low
