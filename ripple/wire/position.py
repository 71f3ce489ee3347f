"""How far a consumer has followed each stream, and what a range of changes means to it.

A stream is one output of one partition. Its table is a function of the cut, so a position is a
cut, fenced by the partition's epoch; numbers of messages would name different content after a
restart.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from ripple import cut as cuts
from ripple.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.wire.messages import Cut


class Stream(NamedTuple):
    """One output of one partition."""

    output: str
    partition: int

    def __str__(self) -> str:
        return f"{self.output}/{self.partition}"


def is_within(cut: Cut, other: Cut) -> bool:
    """Say whether ``cut`` is a prefix of ``other``: no input of it reaches further.

    This is the product order on next offsets; an input that a cut does not name has offset 0.
    It is partial: two cuts may each lead on another input, then neither is within the other.
    """
    return cut == other or cuts.is_within(dict(cut), dict(other))


def is_same(cut: Cut, other: Cut) -> bool:
    """Say whether both cuts stop at the same offset of every input."""
    return is_within(cut, other) and is_within(other, cut)


@dataclass(frozen=True, slots=True)
class Position:
    """The highest epoch seen on a stream and the cut that our table of it stands at.

    ``cut`` is None while there is no table yet.
    """

    epoch: int
    cut: Cut | None


class Verdict(Enum):
    """What a message is, seen from a position."""

    STALE = auto()  # from an epoch below the fence: a superseded owner speaks
    NEWER = auto()  # from an epoch above the fence: a new owner, whose table we do not have
    NEXT = auto()  # starts exactly where we stand
    REPEAT = auto()  # ends within what we have
    SHORT = auto()  # ends before our cut on one input, beyond it on another
    GAP = auto()  # reaches beyond us but does not start where we stand: hole or overlap


NO_EPOCH = -1


class Positions:
    """The position of each stream: what survives a connection and is shared by all links.

    Invariants: an epoch never falls; a cut is only ever replaced by one that it is within.
    ``streams_max`` bounds the memory that peers can make us spend on streams they name.
    """

    def __init__(
        self, known: Mapping[Stream, Position] | None = None, *, streams_max: int = 65_536
    ) -> None:
        self._known = dict(known or {})
        self._streams_max = streams_max

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._known)

    def __getitem__(self, stream: Stream) -> Position:
        return self._known.get(stream, Position(NO_EPOCH, None))

    def judge_epoch(self, stream: Stream, epoch: int) -> Verdict:
        """Return STALE, NEWER, or NEXT for the epoch that we follow."""
        fence = self[stream].epoch
        if epoch == fence:
            return Verdict.NEXT
        return Verdict.STALE if epoch < fence else Verdict.NEWER

    def judge(self, stream: Stream, epoch: int, from_cut: Cut, to_cut: Cut) -> Verdict:
        """Say what the changes in ``(from_cut, to_cut]`` are to us.

        An overlap counts as a gap: changes are the difference of two tables, so a value that
        changed and changed back within the range is not in it, and applying the range to a
        table that stands in the middle would keep the wrong value.
        """
        verdict = self.judge_epoch(stream, epoch)
        if verdict is not Verdict.NEXT:
            return verdict
        cut = self[stream].cut
        if cut is None:
            return Verdict.GAP
        if is_within(to_cut, cut):
            return Verdict.REPEAT
        if not is_within(cut, to_cut):
            return Verdict.SHORT
        return Verdict.NEXT if is_same(from_cut, cut) else Verdict.GAP

    def fence(self, stream: Stream, epoch: int) -> None:
        """From now on refuse epochs below ``epoch``; the table and its cut stay."""
        position = self[stream]
        if epoch > position.epoch:
            self._put(stream, Position(epoch, position.cut))

    def may_adopt(self, stream: Stream, cut: Cut) -> bool:
        """Say whether a table at ``cut`` would not take us back on any input."""
        ours = self[stream].cut
        return ours is None or is_within(ours, cut)

    def advance(self, stream: Stream, cut: Cut) -> None:
        """Move to ``cut``; the caller has judged that this is forward."""
        assert self.may_adopt(stream, cut)
        self._put(stream, Position(self[stream].epoch, cut))

    def _put(self, stream: Stream, position: Position) -> None:
        if stream not in self._known and len(self._known) >= self._streams_max:
            raise LimitError(
                f"stream {stream} would be number {len(self._known) + 1}; "
                f"streams_max is {self._streams_max}"
            )
        self._known[stream] = position
