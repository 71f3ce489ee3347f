"""The promises of every source (ripple.connectors.contract.Source), a rule a function."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.connectors.connector import Reading
from ripple.connectors.installed import load
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.source_inputs import ended, is_readable
from ripple.model.batch import Batch
from ripple.model.records import checks_of, schema_of
from ripple.task.one_shot import at_once, entries
from ripple.testing.connectors.outside import Ahead, nothing_left
from ripple.testing.connectors.rows import Tick, is_bad, ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ripple.connectors.connector import Connector
    from ripple.connectors.inputs import Inputs
    from ripple.model.batch import Marker

ROWS = 100
BATCH_ROWS = 7
SIZES = (1, 10, ROWS - 1, ROWS, 10 * ROWS)
LONG_ROWS, LONG_BYTES = 12_000, 2000
AHEAD_BYTES_MAX = 16 << 20


class SourceSubject:
    """A connector under test: its source, and how records reach it.

    put, changes, away: see ``source_suite``. record: the class of records; the expected rows are
    known for Tick alone.
    """

    def __init__(
        self,
        connector: Connector,
        put: Callable[..., str],
        record: type | None = None,
        changes: Mapping[str, Callable[[Path], object]] | None = None,
        away: Callable[[Path], AbstractContextManager[object]] | None = None,
    ) -> None:
        self.connector = connector
        self.put = put
        self.changes = changes or {}
        self.away = away
        self.is_known = record is None
        declared = record or Tick
        self.shape = RecordShape(schema_of(declared), checks_of(declared))

    def reading(self, batch_rows: int = BATCH_ROWS, **asked: Any) -> Reading:
        """Return the request of a source."""
        return Reading("ticks", self.shape, batch_rows, **asked)

    def open(self, path: str, batch_rows: int = BATCH_ROWS) -> Inputs:
        """Open the source."""
        assert self.connector.source is not None
        opens = load(self.connector.scheme, self.connector.package, self.connector.source.opens)
        source = opens(path, self.reading(batch_rows, one_shot=True))
        assert is_readable(source), (
            f"{type(source).__name__} is no Inputs, and has no name, batches and close"
        )
        return ended(source, "ticks")

    def read(self, path: str, batch_rows: int = BATCH_ROWS, from_offset: int | None = None) -> Read:
        """Open the source, read it to its end and close it."""
        source = self.open(path, batch_rows)
        cut = None if from_offset is None else {"ticks": from_offset}
        try:
            return Read.of(entries(source, batch_rows, cut))
        finally:
            at_once(source.close())


class Read(NamedTuple):
    """A read's results: (offset, values); (offset, reason, raw); ends of batches and markers."""

    rows: list[tuple[int, dict[str, Any]]]
    rejected: list[tuple[int, str, bytes]]
    ends: list[int]
    entries: list[Batch | Marker]

    @classmethod
    def of(cls, entries: Iterable[Batch | Marker]) -> Read:
        """Read entries to their end."""
        read = cls([], [], [], [])
        for entry in entries:
            read.add(entry)
        return read

    def add(self, entry: Batch | Marker) -> None:
        """Add the next batch or marker."""
        self.entries.append(entry)
        self.ends.append(entry.next_offset)
        if isinstance(entry, Batch):
            rows = entry.records.to_pylist()
            self.rows.extend(zip(map(int, entry.offsets()), rows, strict=True))
            self.rejected.extend((one.offset, one.reason, one.raw) for one in entry.rejected)

    def after(self, offset: int) -> Read:
        """Return the part from ``offset`` on."""
        return Read(
            [one for one in self.rows if one[0] >= offset],
            [one for one in self.rejected if one[0] >= offset],
            [end for end in self.ends if end > offset],
            [],
        )

    def same(self, other: Read) -> bool:
        """Whether two readings came to the same records, and the same refused ones."""
        return repr(self.rows) == repr(other.rows) and self.rejected == other.rejected  # with NaN


def every_record_comes_once_and_in_order(subject: SourceSubject, folder: Path) -> None:
    """Records come as they were put, in the columns that were asked for, with rising offsets."""
    read = subject.read(subject.put(folder, ticks(0, ROWS)))
    check_records(subject, read, ROWS)


def reading_from_any_offset_equals_the_first_read(subject: SourceSubject, folder: Path) -> None:
    """From any offset come the same records, refused ones and ends of batches as at first."""
    path = subject.put(folder, ticks(0, ROWS))
    first = subject.read(path)
    for offset in [at for end in first.ends for at in (end - 1, end)]:
        again, wanted = subject.read(path, from_offset=offset), first.after(offset)
        assert again.same(wanted), f"replay: from offset {offset} come other records than at first"
        assert again.ends == wanted.ends, (
            f"replay: from offset {offset} batches end at {again.ends}, and at first they ended at "
            f"{wanted.ends}"
        )


def size_of_batches_changes_nothing(subject: SourceSubject, folder: Path) -> None:
    """Records, offsets and rejections are the same for any length of batches."""
    path = subject.put(folder, ticks(0, ROWS))
    first = subject.read(path)
    for batch_rows in SIZES:
        assert subject.read(path, batch_rows).same(first), (
            f"batches: in batches of {batch_rows} come other records than in batches of "
            f"{BATCH_ROWS}"
        )


def batches_end_at_multiples_of_their_size(subject: SourceSubject, folder: Path) -> None:
    """A batch ends at a multiple of its size, unless it is the last or a marker follows."""
    path = subject.put(folder, ticks(0, ROWS))
    for batch_rows in (BATCH_ROWS, *SIZES):
        check_ends(subject.read(path, batch_rows), batch_rows)


def closing_at_any_time_leaves_nothing(subject: SourceSubject, folder: Path) -> None:
    """A source is closed unread, half-read and twice, and no file and no thread is left."""
    path = subject.put(folder, ticks(0, ROWS))
    subject.read(path)  # imports stay
    with nothing_left("close"):
        for count in range(4):
            source = subject.open(path)
            read = entries(source, BATCH_ROWS)
            for _ in range(count):
                next(read)
            at_once(source.close())
            at_once(source.close())
            del read, source


def bad_records_are_refused_one_by_one(subject: SourceSubject, folder: Path) -> None:
    """A record that breaks a check costs itself: it has an offset, a reason and its text."""
    read = subject.read(subject.put(folder, ticks(0, ROWS)))
    check_rejected(read, ROWS)


def read_ahead_is_bounded(subject: SourceSubject, folder: Path) -> None:
    """With a reader that does nothing, a large input is not read into memory."""
    path = subject.put(folder, ticks(0, LONG_ROWS, "x" * LONG_BYTES))
    with Ahead() as ahead:
        source = subject.open(path, 10)
        next(entries(source, 10))
        held = ahead.held_bytes()
        at_once(source.close())
    assert held < AHEAD_BYTES_MAX, (
        f"back-pressure: {held >> 20} MiB of {LONG_ROWS * LONG_BYTES >> 20} are held while the "
        f"reader has asked for one batch; at most {AHEAD_BYTES_MAX >> 20} may be"
    )


def check_records(subject: SourceSubject, read: Read, rows: int) -> None:
    """Raise AssertionError unless records are the put ones, each once and in order."""
    at = [offset for offset, _ in read.rows]
    assert all(one < other for one, other in pairwise(at)), (
        "offsets: they do not rise from record to record"
    )
    for entry in read.entries:
        if isinstance(entry, Batch):
            assert entry.records.schema == subject.shape.arrow_schema(), (
                f"columns: a batch has {entry.records.schema}, not {subject.shape.arrow_schema()}"
            )
    if subject.is_known:
        found = [row for _, row in read.rows]
        wanted = [row for row in ticks(0, rows) if not is_bad(row["number"])]
        assert found == wanted, "records: those read are not those put there, once and in order"


def check_ends(read: Read, batch_rows: int) -> None:
    """Raise AssertionError where batches are longer or shorter than they may be."""
    before = 0
    for entry, after in zip(read.entries, [*read.entries[1:], None], strict=True):
        if not isinstance(entry, Batch):
            before = entry.next_offset
            continue
        offsets = [*map(int, entry.offsets()), *(bad.offset for bad in entry.rejected)]
        assert offsets or entry.next_offset > before, "batches: one is empty"
        # After its records a batch may say how far a hole reaches.
        first = min(offsets, default=before)
        end = (first // batch_rows + 1) * batch_rows
        assert max(offsets, default=first) < end, (
            f"batches: one of {batch_rows} reaches from offset {first} beyond {end}"
        )
        is_short = entry.next_offset < end
        assert not is_short or not isinstance(after, Batch), (
            f"batches: one of {batch_rows} ends at offset {entry.next_offset}, before {end}"
        )
        before = entry.next_offset


def check_rejected(read: Read, rows: int) -> None:
    """Raise AssertionError unless exactly the bad records were refused, as they should be."""
    wanted = [number for number in range(rows) if is_bad(number)]
    assert len(read.rejected) == len(wanted), (
        f"bad records: {len(wanted)} were put, and {len(read.rejected)} refused"
    )
    taken = {offset for offset, _ in read.rows}
    for offset, reason, raw in read.rejected:
        assert offset not in taken, f"bad records: offset {offset} is of a good record, too"
        assert reason, f"bad records: the one at offset {offset} is refused without a reason"
        assert raw, f"bad records: nothing is kept of the one at offset {offset}"
    assert len({offset for offset, _, _ in read.rejected}) == len(wanted), (
        "bad records: some have the same offset"
    )


ALWAYS = (
    every_record_comes_once_and_in_order,
    size_of_batches_changes_nothing,
    closing_at_any_time_leaves_nothing,
)
OF_REPLAYED = (
    reading_from_any_offset_equals_the_first_read,
    batches_end_at_multiples_of_their_size,
)
OF_KNOWN = (bad_records_are_refused_one_by_one, read_ahead_is_bounded)
"""Rules of sources into which records can be put."""
