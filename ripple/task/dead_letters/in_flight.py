"""Notes of the records that a partition is applying: a killed task cannot report them."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from ripple.connectors.letter import REASON_CHARACTERS_MAX
from ripple.core.errors import InputError, RippleError, is_used_up
from ripple.core.events import (
    Applying,
    FailedBefore,
    ManyQuarantined,
    NotesLost,
    NotesUnwritten,
    Quarantined,
    RecoveryStalled,
    Stabilizing,
    UnskippableRecord,
)
from ripple.core.hashing import xxh64_of
from ripple.task.dead_letters.notes import NotesDamagedError
from ripple.task.dead_letters.suspicion import DEATHS_MAX, End, Range, Suspicion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ripple.core.events import Event
    from ripple.task.dead_letters.notes import Notes
    from ripple.task.dead_letters.suspicion import Entry

# Beyond, the file begins anew with what still matters.
FILE_BYTES_MAX = 1 << 20
# So many killers are no accident of the data.
QUARANTINED_MAX = 100
# The careful mode ends after this many records past an output's cut, or at the end of the input
# when it began: the record that killed is among them.
CAREFUL_RECORDS = 1 << 16
_PASSING = ("begin", "stabilizing", "idle")


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The records that are left out, and why: by input and offset."""

    reasons: Mapping[str, Mapping[int, str]]

    @classmethod
    def of(cls, data: bytes | None) -> Quarantine:
        """Return the quarantine in notes of any owner; an empty one where they are damaged.

        Raises InputError for those of a later release.
        """
        try:
            entries = _entries_of(data)
        except NotesDamagedError:
            entries = []
        return cls(_reasons(Suspicion.of(entries)))

    def quarantined(self, name: str) -> Mapping[int, str]:
        """Return the offsets of input ``name`` that must be skipped, and why."""
        return self.reasons.get(name, {})

    def pieces(self, name: str, first_offset: int, next_offset: int) -> list[Range]:
        """Return the pieces in which to apply these records: one."""
        return [Range(name, first_offset, next_offset)]


class InFlight:
    """Notes records before they are applied, so that a task that is killed leaves a trace.

    The calls are, per batch: ``begin`` before each piece is applied, ``stabilizing`` before the
    views are stabilized, ``idle`` before anything else is done (sinks, checkpoints, waiting for
    input). ``blamed`` notes errors of applying and stabilizing, ``ended`` any other end of the
    task: a task without either note was killed.

    Each note is one append without a sync: the system still has the writes of a dead process. Notes
    that are lost, by a power failure, by damage or because of a full disk, cost a count and never
    the run: a quarantined record has a dead letter before any output shows that it was skipped.

    A calm one keeps those notes in memory, where each would take a network, until a killed task has
    got no output any further; then it is careful (it notes each piece) up to where that may have
    been. So a record that kills costs up to two more deaths until it is found, and one kill from
    outside costs nothing. Errors of applying are noted in any case, with the records.

    The file: lines of a checksum and a JSON array; the first says how many lines after it were made
    durable together. Those must be whole; the rest counts up to the first line that is not.
    """

    def __init__(
        self,
        file: Notes,
        *,
        version: str,
        shown: Mapping[str, int] = MappingProxyType({}),
        bytes_max: int = FILE_BYTES_MAX,
        is_calm: bool = False,
        has_survived: bool = False,
        lettered: Mapping[str, Mapping[int, str]] = MappingProxyType({}),
        emit: Callable[[Event], None] = lambda _: None,
    ) -> None:
        """Read the notes of earlier tasks, count the death of the last one, and judge.

        version: the pipeline's topology hash; a new version is not blamed for an old one's deaths.
        shown: per input, the offset up to which an output shows the records: they have been passed
        once, and without them the output could not be continued, so that none is quarantined.
        bytes_max: of the file, beyond which it begins anew. is_calm: see the class.
        has_survived: whether the process of the last task is this one: it has not died, even
        without a note of its end. lettered: by input and offset, the reasons of quarantined
        records, from their dead letters. emit: is given an event where notes cannot be written.
        Raises InputError for a file of a later release.
        """
        self._file = file
        self._bytes_max = bytes_max
        self._emit = emit
        self._is_writable = True
        self._lost = ""
        try:
            entries = _entries_of(file.read())
        except (NotesDamagedError, OSError) as error:
            self._lost, entries = _unread(file, error), []
            file.set_aside()
        try:
            self._suspicion = Suspicion.of(entries)
        except InputError as error:
            raise InputError(f"{file.place} {error}") from error
        for name, reasons in lettered.items():
            for offset, why in reasons.items():
                self._suspicion.note(["quarantined", name, offset, _raised(why)])
        if has_survived and self._suspicion.reason is None:
            self._suspicion.note(["ended", ""])
        before = self._suspicion.shown
        self._suspicion.note(["opened", version])
        self._unwritten: Entry | None = None
        self._is_calm = is_calm
        self._shown = dict(shown)
        self._careful_below: Mapping[str, int] = {}
        if self._suspicion.suspects or (self.was_killed and before == self._shown):
            self._careful_below = {name: offset + CAREFUL_RECORDS for name, offset in shown.items()}
        self._is_noting = self.is_careful
        guilty = self._suspicion.guilty()
        self.newly_quarantined = [one for one in guilty if one[1] >= shown.get(one[0], 0)]
        """(input, offset) of the records that were found guilty just now."""
        self._guilty_but_shown = [one for one in guilty if one not in self.newly_quarantined]
        for name, offset in self.newly_quarantined:
            self._suspicion.note(["quarantined", name, offset])
        self.quarantine = Quarantine(_reasons(self._suspicion))
        self._write()
        if is_calm:
            self._note(["shown", self._shown])

    @property
    def is_careful(self) -> bool:
        """Whether a calm one writes, for now, the notes that it otherwise only holds."""
        return self._is_calm and bool(self._careful_below)

    def limit(self, ends: Mapping[str, int]) -> None:
        """Be careful no further than ``ends``, by input: the record that killed came before."""
        limited = {
            name: min(below, ends.get(name, below)) for name, below in self._careful_below.items()
        }
        self._careful_below = {
            name: below for name, below in limited.items() if below > self._shown[name]
        }
        self._is_noting = self.is_careful

    @property
    def was_killed(self) -> bool:
        """Whether an earlier task left no note of its end."""
        return self._last.reason is None

    @property
    def was_killed_stabilizing(self) -> bool:
        """Whether it was killed during a stabilization."""
        return self.was_killed and isinstance(self._last.at, dict)

    def remarks(self) -> Iterator[Event]:
        """Yield the events of earlier tasks for the user."""
        if self._lost:
            yield NotesLost(self._lost)
        for name, offset in self.newly_quarantined:
            yield Quarantined(name, offset, self.quarantine.reasons[name][offset])
        for name, offset in self._guilty_but_shown:
            yield UnskippableRecord(name, offset)
        if self._last.at is not None and self._last.reason:
            yield FailedBefore(_doing(self._last.at), self._last.reason)
        stuck = self._suspicion.stuck
        if stuck is not None and stuck[1] >= DEATHS_MAX:
            yield RecoveryStalled(*stuck)
        count = sum(map(len, self.quarantine.reasons.values()))
        if count > QUARANTINED_MAX:
            yield ManyQuarantined(count, DEATHS_MAX)

    def quarantined(self, name: str) -> Mapping[int, str]:
        """Return the offsets of input ``name`` that must be skipped, and why."""
        return self.quarantine.quarantined(name)

    def resume(self, cut: Mapping[str, int]) -> None:
        """Note the cut from which the task applies: the records before will not come again."""
        self._note(["resumed", dict(cut)])

    def pieces(self, name: str, first_offset: int, next_offset: int) -> list[Range]:
        """Return the pieces in which to apply these records: one, as long as none is suspect."""
        return self._suspicion.pieces(Range(name, first_offset, next_offset))

    def begin(self, name: str, first_offset: int, next_offset: int) -> None:
        """Note that these records are about to be applied; earlier ones are passed."""
        self._note(["begin", name, first_offset, next_offset])

    def stabilizing(self, cut: Mapping[str, int]) -> None:
        """Note that the views are about to be stabilized at ``cut``."""
        self._note(["stabilizing", dict(cut)])

    def idle(self) -> None:
        """Note that nothing is in flight: if the process dies now, no record is to blame."""
        if self._suspicion.in_flight is not None:
            self._note(["idle"])

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Attribute errors raised within to the records in flight.

        Not errors of the caller or from outside: an InputError, an interrupt, a full disk.
        """
        try:
            yield
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            if is_used_up(error):
                raise
            with suppress(OSError):
                if self._unwritten is not None:
                    self._append(self._unwritten)
                self._note(["failed", _text(error)])
            raise

    def ended(self, error: BaseException | None = None) -> None:
        """Note that the task ends, and by which error if not in good order; no record is to blame.

        The notes of ``blamed`` stand. A disk that takes no note is no error any more.
        """
        if self._suspicion.reason is None:
            with suppress(OSError):
                self._note(["ended", "" if error is None else _text(error)])

    def close(self) -> None:
        """Release the file, with the records in flight standing in it; closing twice is allowed."""
        self._file.close()

    @property
    def _last(self) -> End:
        return self._suspicion.last or End(None, "")

    def _note(self, entry: Entry) -> None:
        self._suspicion.note(entry)
        if self._is_calm and entry[0] in _PASSING and not self._is_to_note(entry):
            self._unwritten = entry if entry[0] != "idle" else None
        else:
            self._unwritten = None
            self._append(entry)

    def _is_to_note(self, entry: Entry) -> bool:
        """Return whether passed ranges are written down, too."""
        was_noting = self._is_noting
        if self._suspicion.suspects:
            self._is_noting = True
        elif entry[0] == "begin":
            name, first_offset = entry[1], entry[2]
            self._is_noting = first_offset < self._careful_below.get(name, 0)
            if was_noting and not self._is_noting:
                self._append(["idle"])  # what was noted last is passed
        return self._is_noting

    def _append(self, entry: Entry) -> None:
        line = _line(entry)
        if self._length + len(line) > self._bytes_max or not self._is_writable:
            self._begin_anew()
        if self._is_writable:
            with self._writing():
                self._file.append(line)
                self._length += len(line)

    def _begin_anew(self) -> None:
        """Forget passed ranges: by truncation, if nothing else has changed."""
        if self._suspicion.entries() == self._kept and self._is_writable:
            self._file.truncate(self._kept_length)
            self._length = self._kept_length
        else:
            self._write()

    def _write(self) -> None:
        """Replace the file by one with the entries that matter, durably."""
        self._kept = self._suspicion.entries()
        data = b"".join(map(_line, [["kept", len(self._kept)], *self._kept]))
        self._length = self._kept_length = len(data)
        with self._writing():
            self._file.replace(data)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Continue where the disk is full: the next task misses the notes that were not written."""
        try:
            yield
            self._is_writable = True
        except OSError as error:
            if self._is_writable:
                self._emit(NotesUnwritten(self._file.place, error))
            self._is_writable = False


def problems_in(file: Notes) -> list[str]:
    """Return the damage of notes."""
    try:
        Suspicion.of(_entries_of(file.read()))
    except (InputError, OSError) as error:
        return [_unread(file, error)]
    return []


def _unread(file: Notes, error: InputError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{file.place} cannot be read: {error.strerror or error}"
    return f"{file.place} {error}"


def _reasons(suspicion: Suspicion) -> dict[str, dict[int, str]]:
    return {
        name: {offset: _reason(raised) for offset, raised in offsets.items()}
        for name, offsets in suspicion.quarantined.items()
    }


def _reason(raised: str) -> str:
    """Return why a record is set aside. raised: the error of applying it, empty where it killed."""
    if not raised:
        return f"killed the process {DEATHS_MAX} times"
    return f"ended the run {DEATHS_MAX} times: {raised}"


def _raised(reason: str) -> str:
    """Return the argument of ``_reason``."""
    said = _reason("?").removesuffix("?")
    return reason.removeprefix(said) if reason.startswith(said) else ""


def _doing(at: Range | Mapping[str, int]) -> Applying | Stabilizing:
    if isinstance(at, Range):
        return Applying(at.input, at.first_offset, at.next_offset)
    return Stabilizing(at)


def _text(error: BaseException) -> str:
    said = str(error) if isinstance(error, RippleError) else f"{type(error).__name__}: {error}"
    return said[:REASON_CHARACTERS_MAX]


def _line(entry: Entry) -> bytes:
    text = json.dumps(entry).encode()
    return b"%016x %b\n" % (xxh64_of(text), text)


def _entries_of(data: bytes | None) -> list[Entry]:
    if data is None:
        return []
    entries = list(_entries(data))
    match entries:
        case [["kept", int() as count], *rest] if len(rest) >= count:
            return rest
    raise NotesDamagedError("is damaged: its first line does not fit what follows")


def _entries(data: bytes) -> Iterator[Entry]:
    """Yield the entries of the lines, up to the first that is not whole."""
    for line in data.split(b"\n")[:-1]:
        checksum, _, text = line.partition(b" ")
        if checksum != b"%016x" % xxh64_of(text):
            return
        yield json.loads(text)
