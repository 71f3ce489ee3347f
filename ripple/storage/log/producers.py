"""Deduplication of retried appends, by producer and sequence."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ripple.storage.log.errors import SequenceError, StaleEpochError
from ripple.storage.log.frame import NO_PRODUCER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.storage.log.frame import Header

# A producer with more appends in flight than this cannot retry the oldest of them.
REMEMBERED = 5


class Stamp(NamedTuple):
    """A producer, its epoch, and its append's sequence number in this partition, from 0."""

    producer: int
    epoch: int
    sequence: int


class Stored(NamedTuple):
    """One stored append."""

    sequence: int
    first_offset: int
    record_count: int


@dataclass(slots=True)
class _State:
    """Invariant: the sequences of ``appends`` are consecutive, the last one is the latest."""

    epoch: int
    appends: deque[Stored] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class Producers:
    """The last appends of each producer: a function of the log, and bounded.

    Invariant: ordered by the latest append, the longest silent producer first; it is evicted when
    there are more than ``producers_max``.
    """

    def __init__(self, producers_max: int) -> None:
        self._producers_max = producers_max
        self._states: dict[int, _State] = {}

    def __len__(self) -> int:
        return len(self._states)

    def find(self, stamp: Stamp, record_count: int) -> Stored | None:
        """Return the append if it is stored already, None if it is new.

        Raises StaleEpochError and SequenceError. Changes nothing.
        """
        if stamp.producer < 0 or stamp.epoch < 0 or stamp.sequence < 0:
            raise SequenceError(f"producer, epoch and sequence are not negative: {stamp}")
        state = self._states.get(stamp.producer)
        if state is not None and stamp.epoch < state.epoch:
            raise StaleEpochError(
                f"producer {stamp.producer} appends with epoch {stamp.epoch}, but epoch "
                f"{state.epoch} has appended: this instance was replaced and must stop"
            )
        is_new = state is None or stamp.epoch > state.epoch
        expected = 0 if state is None or is_new else state.appends[-1].sequence + 1
        if stamp.sequence == expected:
            return None
        if state is None or is_new or stamp.sequence > expected:
            raise SequenceError(
                f"producer {stamp.producer} (epoch {stamp.epoch}) appends with sequence "
                f"{stamp.sequence} where {expected} is next: append the missing ones first, or "
                "begin a new epoch"
            )
        for stored in state.appends:
            if stored.sequence == stamp.sequence:
                if stored.record_count != record_count:
                    raise SequenceError(
                        f"producer {stamp.producer} gave sequence {stamp.sequence} to a batch of "
                        f"{stored.record_count} records and now to one of {record_count}"
                    )
                return stored
        raise SequenceError(
            f"producer {stamp.producer} repeats sequence {stamp.sequence}: it is stored, but only "
            f"the last {REMEMBERED} appends are remembered, so its offsets are not known"
        )

    def note(self, header: Header) -> None:
        """Remember a stored append."""
        if header.producer == NO_PRODUCER:
            return
        state = self._states.pop(header.producer, None)
        if state is None or header.epoch > state.epoch:
            state = _State(header.epoch)
        state.appends.append(Stored(header.sequence, header.first_offset, header.record_count))
        self._put(header.producer, state)

    def items(self) -> Iterator[tuple[int, int, list[Stored]]]:
        """Yield (producer, epoch, its last appends), the longest silent producer first."""
        for producer, state in self._states.items():
            yield producer, state.epoch, list(state.appends)

    def restore(self, producer: int, epoch: int, appends: list[Stored]) -> None:
        """Restore an item of ``items``."""
        self._put(producer, _State(epoch, deque(appends, maxlen=REMEMBERED)))

    def copy(self) -> Producers:
        """Return an independent copy."""
        other = Producers(self._producers_max)
        for producer, epoch, appends in self.items():
            other.restore(producer, epoch, appends)
        return other

    def _put(self, producer: int, state: _State) -> None:
        self._states[producer] = state
        while len(self._states) > self._producers_max:
            del self._states[next(iter(self._states))]
