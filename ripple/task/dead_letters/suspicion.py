"""Finds the record that kills the process, from the records in flight at each death."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ripple.core.errors import InputError

DEATHS_MAX = 3
# A range up to this length is taken record by record once the process has died in it; a longer one
# in this many pieces, which costs one more death.
PIECES_MAX = 4096

Entry = list[Any]
"""An entry in plain values: a word and its arguments."""


@dataclass(frozen=True, slots=True)
class Range:
    """Records of an input that follow each other."""

    input: str
    first_offset: int
    next_offset: int

    @property
    def span(self) -> int:
        """The number of offsets."""
        return self.next_offset - self.first_offset

    def overlaps(self, other: Range) -> bool:
        """Return whether any record is in both."""
        return (
            self.input == other.input
            and self.first_offset < other.next_offset
            and other.first_offset < self.next_offset
        )

    def without(self, other: Range) -> Iterator[Range]:
        """Yield the rest of this range outside of the other."""
        if not self.overlaps(other):
            yield self
            return
        if self.first_offset < other.first_offset:
            yield replace(self, next_offset=other.first_offset)
        if other.next_offset < self.next_offset:
            yield replace(self, first_offset=other.next_offset)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A range in which tasks ended that has not been passed since; the reason of one of them."""

    range: Range
    deaths: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """How a task ended. reason: its note, empty in good order; None without one.

    at: it was applying these records, or stabilizing the views at this cut.
    """

    at: Range | dict[str, int] | None
    reason: str | None


@dataclass(slots=True)
class Suspicion:
    """The evidence of the tasks so far against records: a function of the entries, in their order.

    A death is a task that ends with records in flight: killed, by any cause, or by an error that
    applying them raised, which is then known as the reason. A task that ends while idle, or by an
    error from elsewhere, is no evidence. After the first death in a range the next tasks bisect it,
    and a record is quarantined after DEATHS_MAX deaths with it in flight, at least the last two
    with it alone. A range that is passed is innocent, and forgotten.

    Kills from outside strike anywhere. To quarantine an innocent record, one must strike in a
    batch, the next while that batch is bisected, and the third within the fraction of a millisecond
    in which the very same record of thousands is in flight alone: for kills at random moments of
    tasks of a second, that is a few in 100,000 per kill, and the record is kept as a dead letter
    that can be retried. A record so slow that its supervisor kills the process three times is no
    innocent.

    Kills while the views are stabilized at a cut are only counted: no one record causes them, and
    kills from outside may go on without end.

    Invariants: suspects do not overlap. A quarantined record stays quarantined in every version,
    because a replay must skip it too.
    """

    version: str = ""
    suspects: list[Suspect] = field(default_factory=list)
    quarantined: dict[str, dict[int, str]] = field(default_factory=dict)
    """Per input, the offsets, and what applying the record raised, empty where it killed."""

    stuck: tuple[dict[str, int], int] | None = None
    """A cut at which stabilization never ended, and how many kills struck meanwhile."""

    in_flight: Range | dict[str, int] | None = None
    reason: str | None = None
    """The present task's note of its end."""

    shown: dict[str, int] | None = None
    """The cut that an output showed as the present task began, where noted."""

    last: End | None = field(default=None, compare=False)
    """How the previous task ended, if there was one."""

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Suspicion:
        """Return the sum of the entries."""
        found = cls()
        for entry in entries:
            found.note(entry)
        return found

    def note(self, entry: Entry) -> None:
        """Take in the next event."""
        match entry:
            case ["begin", str() as name, int() as first_offset, int() as next_offset]:
                self._pass()
                self.in_flight = Range(name, first_offset, next_offset)
            case ["stabilizing", dict() as cut]:
                self._pass()
                self.in_flight = cut
            case ["idle"]:
                self._pass()
            case ["failed", str() as reason]:
                self.reason = reason  # what is in flight stays so: it is to blame
            case ["ended", str() as reason]:
                self.in_flight, self.reason = None, reason
            case ["opened", str() as version]:
                self._open(version)
            case ["shown", dict() as cut]:
                self.shown = cut
            case ["resumed", dict() as cut]:
                for name, offset in cut.items():  # what is before will not come again
                    self._clear(Range(name, 0, offset))
            case _:
                self._recall(entry)

    def _recall(self, entry: Entry) -> None:
        """Take in the remaining entries of before the file began anew."""
        match entry:
            case ["suspect", str() as name, int() as first, int() as end, int() as deaths, *why]:
                self.suspects.append(Suspect(Range(name, first, end), deaths, *why))
            case ["stuck", dict() as cut, int() as deaths]:
                self.stuck = (cut, deaths)
            case ["quarantined", str() as name, int() as offset, *why]:
                self._quarantine(name, offset, *why)
            case _:
                raise InputError(f"says {entry!r}, which this release does not know: upgrade it")

    def entries(self) -> list[Entry]:
        """Return the fewest entries that add up to this, without the records in flight."""
        kept: list[Entry] = [["opened", self.version]]
        for name, offsets in self.quarantined.items():
            kept += [["quarantined", name, offset, why] for offset, why in offsets.items()]
        for one in self.suspects:
            at = one.range
            known = [at.input, at.first_offset, at.next_offset, one.deaths, one.reason]
            kept.append(["suspect", *known])
        if self.stuck is not None:
            kept.append(["stuck", *self.stuck])
        return kept

    def guilty(self) -> list[tuple[str, int]]:
        """Return the records to quarantine now: (input, offset)."""
        return [
            (one.range.input, one.range.first_offset)
            for one in self.suspects
            if one.range.span == 1 and one.deaths >= DEATHS_MAX
        ]

    def pieces(self, given: Range) -> list[Range]:
        """Divide a range so that the next death in it narrows it down."""
        if not any(one.range.overlaps(given) for one in self.suspects):
            return [given]
        pieces = []
        at = given.first_offset
        for one in sorted(self.suspects, key=lambda one: one.range.first_offset):
            if not one.range.overlaps(given):
                continue
            first = max(one.range.first_offset, at)
            end = min(one.range.next_offset, given.next_offset)
            if at < first:
                pieces.append(replace(given, first_offset=at, next_offset=first))
            # Of the whole suspect range, so that it does not depend on how batches are cut.
            step = -(-one.range.span // PIECES_MAX)
            pieces += [
                replace(given, first_offset=start, next_offset=min(start + step, end))
                for start in range(first, end, step)
            ]
            at = end
        if at < given.next_offset:
            pieces.append(replace(given, first_offset=at))
        return pieces or [given]  # a batch of a hole alone is of no offsets

    def _pass(self) -> None:
        """Clear the records in flight of suspicion."""
        passed, self.in_flight = self.in_flight, None
        self.reason = None
        if isinstance(passed, Range):
            if self.suspects:
                self._clear(passed)
        elif passed is not None and self.stuck is not None and _reaches(passed, self.stuck[0]):
            self.stuck = None

    def _clear(self, passed: Range) -> None:
        self.suspects = [
            replace(one, range=rest) for one in self.suspects for rest in one.range.without(passed)
        ]

    def _open(self, version: str) -> None:
        """Count the death before, if there was one; a new version starts with a clean record."""
        end = End(self.in_flight, self.reason)
        self.in_flight = self.reason = self.shown = None
        self.last = end if self.version else None
        if isinstance(end.at, Range):
            self._suspect(end.at, end.reason or "")
        elif end.at is not None and end.reason is None:
            self.stuck = (end.at, 1 + (self.stuck[1] if self.stuck is not None else 0))
        if version != self.version:
            self.version = version
            self.suspects = []
            self.stuck = None

    def _suspect(self, died_in: Range, reason: str) -> None:
        deaths = 1
        for one in self.suspects:
            if not one.range.overlaps(died_in):
                continue
            reason = reason or one.reason
            if one.range == died_in and died_in.span == 1:
                deaths = one.deaths + 1
            else:
                # It takes two deaths of a record alone, whatever was learned from ranges.
                deaths = max(deaths, min(one.deaths + 1, DEATHS_MAX - 1))
        self._clear(died_in)
        self.suspects.append(Suspect(died_in, deaths, reason))

    def _quarantine(self, name: str, offset: int, reason: str | None = None) -> None:
        """Set a record aside; the reason is that of the suspicion, unless it is given."""
        alone = Range(name, offset, offset + 1)
        known = next((one.reason for one in self.suspects if one.range == alone), "")
        self._clear(alone)
        offsets = self.quarantined.setdefault(name, {})
        offsets.setdefault(offset, known if reason is None else reason)
        self.quarantined[name] = dict(sorted(offsets.items()))


def _reaches(cut: Mapping[str, int], other: Mapping[str, int]) -> bool:
    return all(cut.get(name, 0) >= offset for name, offset in other.items())
