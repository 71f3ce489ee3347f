"""Which record kills the process: decided from what was in flight at each death."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

DEATHS_MAX = 3
# A range up to this length is taken record by record once the process has died in it; a longer one
# in this many pieces, which costs one more death.
PIECES_MAX = 4096

Entry = list[Any]
"""What happened, in plain values: a word and its arguments."""


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive records of an input."""

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
        """Yield what is left of this range outside of the other."""
        if not self.overlaps(other):
            yield self
            return
        if self.first_offset < other.first_offset:
            yield replace(self, next_offset=other.first_offset)
        if other.next_offset < self.next_offset:
            yield replace(self, first_offset=other.next_offset)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A range in which the process has died, that has not been passed since."""

    range: Range
    deaths: int


@dataclass(slots=True)
class Suspicion:
    """What the lives so far tell of the records: a function of the entries, in their order.

    A death is a life that ends, by whatever cause, with something in flight; one that ends while
    idle tells nothing. After the first death in a range the next lives take it apart, and a record
    is quarantined when the process has died DEATHS_MAX times with it in flight, at least the last
    two times with it alone. A range that is passed is innocent, and forgotten.

    Kills from outside strike anywhere. To quarantine an innocent record, one must strike in a
    batch, the next while that batch is taken apart, and the third within the fraction of a
    millisecond in which the very same record of thousands is in flight alone: for kills at random
    moments of lives of a second, that is a few in 100,000 per kill, and the record is kept as a
    dead letter that can be retried. A record that takes so long that whoever supervises the process
    gives up on it three times is no innocent.

    Invariants: suspects do not overlap. What is quarantined stays so, whatever version comes,
    because a replay must skip it too.
    """

    version: str = ""
    suspects: list[Suspect] = field(default_factory=list)
    quarantined: dict[str, list[int]] = field(default_factory=dict)
    stuck: tuple[dict[str, int], int] | None = None
    """A cut whose views could not be brought up to date, and how many deaths that took."""

    in_flight: Range | dict[str, int] | None = None

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Suspicion:
        """Return what the entries add up to."""
        found = cls()
        for entry in entries:
            found.note(entry)
        return found

    def note(self, entry: Entry) -> None:
        """Take in what happened next."""
        match entry:
            case ["begin", str() as name, int() as first_offset, int() as next_offset]:
                self._pass()
                self.in_flight = Range(name, first_offset, next_offset)
            case ["stabilizing", dict() as cut]:
                self._pass()
                self.in_flight = cut
            case ["idle"]:
                self._pass()
            case ["opened", str() as version]:
                self._open(version)
            case ["suspect", str() as name, int() as first, int() as end, int() as deaths]:
                self.suspects.append(Suspect(Range(name, first, end), deaths))
            case ["stuck", dict() as cut, int() as deaths]:
                self.stuck = (cut, deaths)
            case ["quarantined", str() as name, int() as offset]:
                self._quarantine(name, offset)
            case _:
                raise ValueError(f"no entry of this release: {entry!r}")

    def entries(self) -> list[Entry]:
        """Return the fewest entries that add up to this, what is in flight left out."""
        kept: list[Entry] = [["opened", self.version]]
        for name, offsets in self.quarantined.items():
            kept += [["quarantined", name, offset] for offset in offsets]
        for one in self.suspects:
            at = one.range
            kept.append(["suspect", at.input, at.first_offset, at.next_offset, one.deaths])
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
        """Divide a range so that the next death in it tells more."""
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
        return pieces

    def _pass(self) -> None:
        """Forget what was suspected of what was in flight."""
        passed, self.in_flight = self.in_flight, None
        if isinstance(passed, Range):
            if self.suspects:
                self._clear(passed)
        elif passed is not None and self.stuck is not None and self.stuck[0] == passed:
            self.stuck = None

    def _clear(self, passed: Range) -> None:
        self.suspects = [
            replace(one, range=rest) for one in self.suspects for rest in one.range.without(passed)
        ]

    def _open(self, version: str) -> None:
        """Count the death before, if there was one; a new version starts with a clean record."""
        died_in, self.in_flight = self.in_flight, None
        if isinstance(died_in, Range):
            self._suspect(died_in)
        elif died_in is not None:
            self.stuck = (died_in, self._deaths_at(died_in) + 1)
        if version != self.version:
            self.version = version
            self.suspects = []
            self.stuck = None

    def _suspect(self, died_in: Range) -> None:
        deaths = 1
        for one in self.suspects:
            if one.range == died_in and died_in.span == 1:
                deaths = one.deaths + 1
            elif one.range.overlaps(died_in):
                # It takes two deaths of a record alone, whatever was learned from ranges.
                deaths = max(deaths, min(one.deaths + 1, DEATHS_MAX - 1))
        self._clear(died_in)
        self.suspects.append(Suspect(died_in, deaths))

    def _deaths_at(self, cut: Mapping[str, int]) -> int:
        return self.stuck[1] if self.stuck is not None and self.stuck[0] == cut else 0

    def _quarantine(self, name: str, offset: int) -> None:
        self._clear(Range(name, offset, offset + 1))
        known = self.quarantined.setdefault(name, [])
        if offset not in known:
            known.append(offset)
            known.sort()
