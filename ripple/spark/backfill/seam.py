"""The proof that between history and the live log there is neither gap nor overlap.

Both sides are read in order of event time. A record is identified by its time and a hash of its
identity, by default all fields. Then, for the records before the end of history:

- each record of the log *before* the live cut is in history, or there is a gap;
- no record of the log *after* the live cut (a late one) is in history, or there is an overlap;
- at times of which the log is complete, history has no record that the log lacks: it would be a
  duplicate in history, or one that the log never had;
- the log has records before the live cut, or there is no proof that history reaches it.

A log whose first records were removed is complete after its first ones plus the allowed disorder.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ripple.spark.backfill.history import BEFORE, BEHIND, HISTORY

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

PROVEN, NOTHING, UNPROVEN, BROKEN = "proven", "nothing to prove", "unproven", "broken"


@dataclass(slots=True)
class Side:
    """One input's seam. rows: of history; before, behind: of the log, before the end of history.

    whole_ns: the time from which on the log is complete, None if it has nothing before the end of
    history. is_written: whether the log has ever had a record. first_ns, last_ns: of history's
    first and last record. missing, doubled, unknown: the numbers of records in the log only, on
    both sides, in history only; ``at_ns``: the time of the first of each.
    """

    name: str
    whole_ns: int | None
    is_written: bool = True
    rows: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    before: int = 0
    behind: int = 0
    missing: int = 0
    doubled: int = 0
    unknown: int = 0
    at_ns: dict[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """PROVEN, NOTHING, UNPROVEN or BROKEN; without comparisons nothing is proven."""
        if self.missing or self.doubled or self.unknown:
            return BROKEN
        if self.before:
            return PROVEN
        return UNPROVEN if self.rows or self.is_written else NOTHING

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON fields."""
        return {**asdict(self), "verdict": self.verdict}


class Seam:
    """The inputs of one partition. Invariant: buffered records are of one time, the latest."""

    def __init__(self, sides: Iterable[Side], *, is_identity: bool) -> None:
        """Begin with empty sides. is_identity: whether no two records have the same hash."""
        self.sides = list(sides)
        self._is_identity = is_identity
        self._waiting: tuple[Ints, Ints, Ints, Ints] = (_NONE, _NONE, _NONE, _NONE)

    def take(self, inputs: Ints, times_ns: Ints, hashes: Ints, sides: Ints) -> None:
        """Take records, in order of time. inputs: positions among the names."""
        if not len(times_ns):
            return
        given = (inputs, times_ns, hashes, sides)
        whole = tuple(np.concatenate(pair) for pair in zip(self._waiting, given, strict=True))
        until = int(np.searchsorted(whole[1], times_ns[-1]))
        self._compare(*(column[:until] for column in whole))
        a, b, c, d = (column[until:] for column in whole)
        self._waiting = a, b, c, d

    def end(self) -> list[Side]:
        """Compare the rest, and return the sides."""
        self._compare(*self._waiting)
        self._waiting = (_NONE, _NONE, _NONE, _NONE)
        return self.sides

    def _compare(self, inputs: Ints, times_ns: Ints, hashes: Ints, sides: Ints) -> None:
        for at, side in enumerate(self.sides):
            own = inputs == at
            if own.any():
                self._compare_one(side, times_ns[own], hashes[own], sides[own])

    def _compare_one(self, side: Side, times_ns: Ints, hashes: Ints, sides: Ints) -> None:
        is_history = sides == HISTORY
        of_history = times_ns[is_history]
        if len(of_history):
            side.rows += len(of_history)
            side.last_ns = int(of_history[-1])
            if side.first_ns is None:
                side.first_ns = int(of_history[0])
        side.before += int((sides == BEFORE).sum())
        side.behind += int((sides == BEHIND).sum())
        is_within = side.whole_ns is not None and times_ns[-1] > side.whole_ns
        if is_history.all() and not is_within and not self._is_identity:
            return
        order = np.lexsort((hashes, times_ns))
        times_ns, hashes, sides = times_ns[order], hashes[order], sides[order]
        starts = np.flatnonzero(
            np.r_[True, (times_ns[1:] != times_ns[:-1]) | (hashes[1:] != hashes[:-1])]
        )
        counts = {
            one: np.add.reduceat((sides == one).astype(np.int64), starts)
            for one in (HISTORY, BEFORE, BEHIND)
        }
        there, before, behind = counts[HISTORY], counts[BEFORE], counts[BEHIND]
        at_ns = times_ns[starts]
        self._note(side, "missing", at_ns, np.maximum(before - there, 0))
        self._note(side, "doubled", at_ns, np.where((there > 0) & (behind > 0), behind, 0))
        unknown = np.maximum(there - before, 0)
        if self._is_identity:
            twice = there > 1
            unknown = np.where(twice, there - 1, unknown)
        else:
            twice = np.zeros(len(there), np.bool_)
        if side.whole_ns is None:
            unknown[~twice] = 0
        else:
            unknown[~twice & (at_ns <= side.whole_ns)] = 0
        unknown[behind > 0] = 0
        self._note(side, "unknown", at_ns, unknown)

    @staticmethod
    def _note(side: Side, what: str, at_ns: Ints, counts: Ints) -> None:
        found = np.flatnonzero(counts)
        if len(found):
            setattr(side, what, getattr(side, what) + int(counts[found].sum()))
            side.at_ns.setdefault(what, int(at_ns[found[0]]))


_NONE: Ints = np.empty(0, np.int64)
