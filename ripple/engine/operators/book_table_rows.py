"""The rows of order books from the reading of their messages on, corrected by late ones."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.row_order import RowOrder
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.book_scan_rows import COLUMNS
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.joins.eager_rows import EagerRows, take_final
from ripple.engine.operators.rows import Rows, as_list
from ripple.model.running.order_book import REASONS

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.book_scan_rows import BookScanRows
    from ripple.model.pipeline.nodes import RowTable

    Ints = npt.NDArray[np.int64]

Key: TypeAlias = tuple[Any, ...]
Mark: TypeAlias = tuple[int, int]
"""The time and the place of a message."""


class _Log:
    """The messages of a key that are not final, in their order: of each its slot and its mark.

    book: the slot of the book after all of them. last_ns: the time of the message before them, None
    without one.
    """

    __slots__ = ("book", "last_ns", "marks", "slots")

    def __init__(self, book: int, last_ns: int | None) -> None:
        self.book, self.last_ns = book, last_ns
        self.marks: list[Mark] = []
        self.slots: list[int] = []

    def add(self, mark: Mark, slot: int) -> int:
        """Take a message where it belongs; return its place."""
        at = len(self.marks)
        if self.marks and mark < self.marks[-1]:
            at = bisect_left(self.marks, mark)
        self.marks.insert(at, mark)
        self.slots.insert(at, slot)
        return at

    def drop(self, count: int) -> None:
        """Forget the first, final messages."""
        self.last_ns = self.marks[count - 1][0]
        del self.marks[:count], self.slots[:count]


class _Message(NamedTuple):
    """A message: its key, and the values of the fields that its row has."""

    key: Key
    carried: tuple[Any, ...]


class BookTableRows(EagerRows):
    """A row of each message that changed the best levels, after all messages of its key so far.

    A message in order is applied to the book after those before it. A late one runs its key again,
    from the book of the scan on. Invariants between stabilizations: ``_logs`` has per key the
    messages that are not final, and where ``_books`` has the book after them; ``_messages`` and
    ``_columns`` have them by slot, ``_words`` and ``_reasons`` their outcomes, and ``_ends`` the
    slots by their times.
    """

    def __init__(self, graph: Graph, fold: RowTable, scan: BookScanRows) -> None:
        """Show the rows of ``scan``."""
        super().__init__(graph, fold, scan)
        self._scan, self._node = scan, scan.node
        self._names = [field.name for field in scan.node.key]
        self._carried = scan.carried
        self._width = 4 + 4 * scan.node.book.depth
        self._books = scan.empty_books()
        self._free_books: list[int] = []
        self._logs: dict[Key, _Log] = {}
        self._messages: dict[int, _Message] = {}
        self._columns = np.empty((0, COLUMNS), np.int64)
        self._words: dict[int, Ints] = {}
        self._reasons: dict[int, str] = {}
        self._ends = RowOrder()

    def settle(self, watermark_ns: int) -> None:
        """Take the new messages, run late ones' keys again, and show the changes."""
        del watermark_ns
        news = self._scan.take_news()
        if news is not None:
            self._take(news)
        self._end()

    # --- messages that come ---

    def _take(self, rows: pa.RecordBatch) -> None:
        """Take new messages."""
        slots = self.keys.slots(self._origins(0, rows))
        self.keys.adopt(slots)
        if self.keys.capacity > len(self._columns):
            larger = np.empty((self.keys.capacity, COLUMNS), np.int64)
            larger[: len(self._columns)] = self._columns
            self._columns = larger
        self._columns[slots] = self._scan.table_of(rows)
        times, places = np.asarray(rows.column(TIME)), np.asarray(rows.column(PLACE))
        self._ends.add(np.zeros_like(slots), times, places, slots)
        keys = list(zip(*(rows.column(name).to_pylist() for name in self._names), strict=True))
        self._begin(rows, keys)
        carried = zip(*(as_list(rows.column(one.name)) for one in self._carried), strict=True)
        runs: dict[Key, int] = {}
        lengths = {key: len(self._logs[key].marks) for key in keys}
        marks = zip(times.tolist(), places.tolist(), strict=True)
        for key, mark, slot, own in zip(keys, marks, slots.tolist(), carried, strict=True):
            self._messages[slot] = _Message(key, own)
            at = self._logs[key].add(mark, slot)
            runs[key] = min(runs.get(key, at), at)
        late = [key for key, at in runs.items() if at < lengths[key]]
        self._restart(late)
        runs |= dict.fromkeys(late, 0)
        self._show(np.unique(self._run(runs)))

    def _begin(self, rows: pa.RecordBatch, keys: list[Key]) -> None:
        """Make a log for each key that has none."""
        new = {key: at for at, key in enumerate(keys) if key not in self._logs}
        if not new:
            return
        at = pa.array(new.values())
        lasts = self._scan.lasts_of([rows.column(name).take(at) for name in self._names])
        for key, last_ns in zip(new, lasts, strict=True):
            if not self._free_books:
                used = len(self._logs)
                self._books.grow(2 * used + 16)
                self._free_books += range(used, 2 * used + 16)
            self._logs[key] = _Log(self._free_books.pop(), last_ns)
        self._restart(list(new))

    def _restart(self, keys: list[Key]) -> None:
        """Let the books of keys be those before their messages that are not final."""
        if keys:
            columns = zip(*keys, strict=True)
            kinds = self._scan.key_types.values()
            arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
            self._scan.copy_books(arrays, [self._logs[key].book for key in keys], self._books)

    def _run(self, starts: dict[Key, int]) -> Ints:
        """Apply the messages of keys from a place in their log on; return their slots."""
        slots: list[int] = []
        books: list[int] = []
        begins: list[bool] = []
        ttl_ns = self._node.ttl_ns
        for key, start in starts.items():
            log = self._logs[key]
            own = log.slots[start:]
            slots += own
            books += [log.book] * len(own)
            if ttl_ns is None:
                begins += [False] * len(own)
                continue
            before = log.marks[start - 1][0] if start else log.last_ns
            times = [before, *(time_ns for time_ns, _ in log.marks[start:])]
            begins += [
                last is not None and now is not None and now - last >= ttl_ns
                for last, now in pairwise(times)
            ]
        run = np.array(slots, np.int64)
        for slot in slots:
            self._words.pop(slot, None)
            self._reasons.pop(slot, None)
        messages = self._scan.messages_of(self._columns[run])
        flags = np.array(begins, np.bool_).view(np.uint8)
        shown, words, failed, faults = self._books.take(np.array(books, np.int64), flags, messages)
        rows = words.reshape(len(shown), self._width)
        self._words |= zip(run[shown].tolist(), rows, strict=True)
        for at, fault in zip(run[failed].tolist(), faults.tolist(), strict=True):
            self._reasons.setdefault(at, REASONS[fault])
        return run

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots of rows, their fields by name, why a message has none by slot)."""
        kept = [slot for slot in slots.tolist() if slot in self._words]
        lost = [slot for slot in slots.tolist() if slot not in self._words]
        failed = {slot: self._reasons[slot] for slot in lost if slot in self._reasons}
        values = list(zip(*(self._messages[slot].carried for slot in kept), strict=True))
        columns: dict[str, Any] = {}
        for at, field in enumerate(arrow_fields(self._carried)):
            columns[field.name] = pa.array(values[at] if values else [], field.type)
        words = np.array([self._words[slot] for slot in kept], np.int64).reshape(-1, self._width)
        rows = Rows({**columns, **self._scan.tops_of(words)}, len(kept))
        shown = {field.name: rows.columns[field.name] for field in self._node.fields_out}
        return np.array(kept, np.int64), shown, failed

    # --- messages that leave ---

    def _end(self) -> None:
        """Forget the messages that the scan is about to take: their rows stay."""
        over, self._ends = take_final(self._ends, self._scan.watermark_ns)
        if not len(over):
            return
        ended: list[int] = []
        for key, count in Counter(self._messages[slot].key for slot in over.tolist()).items():
            log = self._logs[key]
            log.drop(count)
            if not log.marks:
                ended.append(log.book)
                del self._logs[key]
        self._books.end(np.array(ended, np.int64))
        self._free_books += ended
        self._over = np.concatenate([self._over, over])

    def free(self, expired: Ints) -> None:
        """Free these slots."""
        if not len(expired):
            return
        self._release(expired)
        for slot in expired.tolist():
            del self._messages[slot]
            self._words.pop(slot, None)
            self._reasons.pop(slot, None)

    @property
    def nbytes(self) -> int:
        """Bytes held, about 500 of them by message, and the books."""
        own = self._ends.nbytes + self.keys.index.nbytes + self.column.nbytes
        return own + self._columns.nbytes + self._books.nbytes + 500 * len(self._messages)

    # --- snapshots: of the scan alone ---

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Show the rows of the messages that the scan holds, which was loaded before."""
        del table, watermark_ns
        for rows in self._scan.held_rows():
            self._take(rows)
