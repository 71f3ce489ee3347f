"""The rows of order books by key: their best levels, where messages change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.order_book import Books, Messages
from ripple.engine.operators.rows import RejectedRow, Rows, renumbered
from ripple.engine.operators.scan_rows import ScanRows
from ripple.engine.snapshots.internal import internal
from ripple.model.expression.bound import Values, numbers
from ripple.model.expression.typed import Kind, kind_of
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX, type_of
from ripple.model.pipeline.waiting_nodes import BookScan
from ripple.model.running.order_book import (
    ACTIONS,
    CHECKSUMS,
    KEPT_MAX,
    REASONS,
    RULES,
    SIDES,
    STATUSES,
    scale_of,
)
from ripple.model.schema.types import Decimal, Float, bare_type
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.operators.feeds import Feeds
    from ripple.engine.operators.waiting import ByInput
    from ripple.model.schema.types import Field, FieldType

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.uint8]
    _Parts = list[Any]

_PARTS = ("book", "resting", "kept", "shown")  # of the state, as tables have it
_SIDES, _STATUSES = pa.array(["B", "A"]), pa.array(STATUSES)
_NUMBERS = ("price", "size", "order", "sequence", "previous", "checksum")
COLUMNS = 3 + 2 * len(_NUMBERS)  # of a message, as numbers


class BookScanRows(ScanRows[BookScan]):
    """Applies each final message to the book of its key, and gives the rows that it changes."""

    def __init__(self, node: BookScan, feeds: Feeds, by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, feeds, by_input)
        book = node.book
        self._roles = dict(node.roles)
        self._shows_levels = book.show == "levels"
        self._books = self.empty_books()

    def empty_books(self) -> Books:
        """Return no books, of this kind."""
        book = self.node.book
        return Books(
            book.depth,
            0 if book.rule is None else RULES.index(book.rule) + 1,
            book.order is not None,
            book.begins == "empty",
            book.strict,
            KEPT_MAX,
            self._shows_levels,
            _most_of(type_of(self._roles["size"])),
            FLAT_ROWS_MAX,
            0 if book.checksum_rule is None else CHECKSUMS.index(book.checksum_rule) + 1,
            scale_of(type_of(self._roles["price"])),
            scale_of(type_of(self._roles["size"])),
            book.venue_depth or 0,
        )

    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        begins, times = np.zeros(rows.count, np.uint8), np.asarray(rows.times_ns)
        if self.node.ttl_ns is None:
            self._last[slots] = times  # of the messages of a key the last one's remains
        else:
            by_slot = self._by_slot(slots, times)
            begins[by_slot.order] = self._begins(by_slot)
        messages = Messages(*self._read(rows.columns, rows.count))
        assert rows.offsets is not None, "rows of records have places"
        records = rows.offsets // FLAT_ROWS_MAX if self._shows_levels else None
        shown, words, failed, faults = self._books.take(slots, begins, messages, records)
        if self.node.is_eager:
            return None
        if len(failed):
            reasons = [REASONS[fault] for fault in faults.tolist()]
            each = zip(failed.tolist(), reasons, strict=True)
            self._lose(rows, [RejectedRow(at, self.node.name, why) for at, why in each])
        if not len(shown):
            return None
        table = words.reshape(len(shown), -1)
        return (
            self._levels(rows, shown, table)
            if self._shows_levels
            else self._tops(rows, table, shown)
        )

    def _read(self, columns: Columns, count: int) -> tuple[Flags, Flags, Flags, _Parts, _Parts]:
        """Return the fields that a book reads, as ``Messages`` takes them."""
        actions = np.full(count, ACTIONS["S"], np.uint8)
        if (action := self._roles.get("action")) is not None:
            actions = _ACTIONS.of(columns.arrow(action.name))
        lasts = np.ones(count, np.uint8)
        if (last := self._roles.get("last")) is not None:
            found = numbers(columns[last.name], Kind.BOOL)
            lasts = np.ascontiguousarray(found.truth()).view(np.uint8)
        sides = _OF_SIDES.of(columns.arrow(self._roles["side"].name))
        read, there = [], []
        for role in _NUMBERS:
            field = self._roles.get(role)
            if field is None:
                read.append(np.zeros(count, np.int64))
                there.append(np.zeros(count, np.uint8))
                continue
            column = numbers(columns[field.name], kind_of(type_of(field))[0])
            valid = np.ones(count, np.bool_) if column.valid is None else column.valid
            values = column.values
            if isinstance(bare_type(field.type), Float):
                valid = valid & np.isfinite(values)
                values = _ordered(values)
            read.append(values)
            there.append(np.ascontiguousarray(valid).view(np.uint8))
        return actions, sides, lasts, read, there

    # --- for a table of rows from the reading of their messages on ---

    def table_of(self, rows: pa.RecordBatch) -> Ints:
        """Return the fields of messages that a book reads: a row of numbers for each."""
        columns = Columns(dict(zip(rows.schema.names, rows.columns, strict=True)))
        actions, sides, lasts, read, there = self._read(columns, rows.num_rows)
        parts = [actions, sides, lasts, *read, *there]
        return np.stack([part.astype(np.int64) for part in parts], axis=1)

    def messages_of(self, table: Ints) -> Messages:
        """Return the messages of such rows."""
        there_at = 3 + len(_NUMBERS)
        at_flags = (0, 1, 2, *range(there_at, COLUMNS))
        flags = [np.ascontiguousarray(table[:, at], np.uint8) for at in at_flags]
        read = [np.ascontiguousarray(table[:, at]) for at in range(3, there_at)]
        actions, sides, lasts, *there = flags
        return Messages(actions, sides, lasts, read, there)

    def lasts_of(self, keys: Sequence[pa.Array]) -> list[int | None]:
        """Return the time of the last message of each key below the last mark."""
        slots = self._keys.known(keys).tolist()
        times = [self._last[slot] if 0 <= slot < len(self._last) else None for slot in slots]
        return [None if time in (None, watermark.NONE) else int(time) for time in times]

    def copy_books(self, keys: Sequence[pa.Array], slots: Sequence[int], to: Books) -> None:
        """Copy the books of keys, after their messages below the last mark, to other slots."""
        known = self._keys.known(keys)
        self._books.copy(known, to, np.array(slots, np.int64))

    # --- rows ---

    def _tops(self, rows: Rows, table: Ints, shown: Ints) -> Rows:
        """Return the rows of messages that changed the best levels."""
        mask = np.zeros(rows.count, np.bool_)
        mask[shown] = True
        rows.keep(mask)
        columns = {one.name: rows.columns[one.name] for one in self.carried}
        made = Rows(Columns({**columns, **self.tops_of(table)}), rows.count, rows.offsets)
        made.times_ns = rows.times_ns
        return made

    def tops_of(self, table: Ints) -> dict[str, Any]:
        """Return the fields that a book makes, of words for each row."""
        depth = self.node.book.depth
        names = iter(self.node.added)
        added: dict[str, Any] = {
            next(names).name: _STATUSES.take(pa.array(table[:, 0])),
            next(names).name: Values(np.ascontiguousarray(table[:, 1])),
        }
        for level in range(depth):
            for side in range(2):
                at, valid = 4 + 2 * (depth * side + level), table[:, 2 + side] > level
                for role in range(2):
                    field = next(names)
                    added[field.name] = Values(_values(table[:, at + role], field), valid)
        return added

    def _levels(self, rows: Rows, at: Ints, table: Ints) -> Rows:
        """Return a row for each changed level, by index in the record of its message."""
        taken = pa.array(at)
        columns: dict[str, Any] = {
            one.name: rows.columns.arrow(one.name).take(taken) for one in self.carried
        }
        side, *rest = self.node.added
        columns[side.name] = _SIDES.take(pa.array(table[:, 0]))
        for number, field in enumerate(rest, 1):
            columns[field.name] = Values(_values(table[:, number], field))
        assert rows.offsets is not None, "rows of records have places"
        records = rows.offsets[at] // FLAT_ROWS_MAX
        origins = np.cumsum(np.append(0, records[1:] != records[:-1])[: len(records)])
        places, _ = renumbered(rows.offsets[at], origins)  # a record has no more rows than it may
        made = Rows(Columns(columns), len(at), places)
        made.times_ns = np.asarray(rows.times_ns)[at]
        return made

    @property
    def carried(self) -> Sequence[Field]:
        """Return the fields of messages that rows have."""
        return self.node.fields_out[: -len(self.node.added)]

    def _grow(self, capacity: int) -> None:
        super()._grow(capacity)
        self._books.grow(capacity)

    def _end(self, slots: Ints) -> None:
        self._books.end(slots)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return super().nbytes + self._books.nbytes

    def _state_columns(self, slots: Ints) -> tuple[list[pa.Field], list[pa.Array]]:
        arrays = [
            pa.LargeListArray.from_arrays(pa.array(bounds), pa.array(words))
            for words, bounds in self._books.dump(slots)
        ]
        titles = [internal(f"state.{part}") for part in _PARTS]
        fields = zip(titles, arrays, strict=True)
        return [pa.field(title, one.type, nullable=False) for title, one in fields], arrays

    def _load_states(self, slots: Ints, columns: Sequence[pa.ChunkedArray]) -> None:
        parts = []
        for column in columns:
            lists = column.combine_chunks()
            if isinstance(lists, pa.ChunkedArray):
                lists = (
                    pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], lists.type)
                )
            bounds = lists.offsets.to_numpy()
            words = lists.flatten().to_numpy()
            parts.append((words, np.ascontiguousarray(bounds - bounds[0])))
        self._books.load(slots, parts)


class _Codes:
    """The numbers of texts; 255 for a text that has none, and for null."""

    def __init__(self, numbers_of: Mapping[str, int]) -> None:
        self._numbers = numbers_of
        self._of_letter = np.full(256, 255, np.uint8)
        for text, number in numbers_of.items():
            if len(text) == 1:
                self._of_letter[ord(text)] = number

    def of(self, texts: pa.Array) -> Flags:
        """Return the number of each text."""
        if isinstance(texts, pa.StringArray) and len(texts) and not texts.null_count:
            _, ends, letters = texts.buffers()
            bounds = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
            if (np.diff(bounds) == 1).all():  # as nearly always
                read = np.frombuffer(letters, np.uint8)[bounds[0] : bounds[-1]]
                return self._of_letter[read]
        encoded = texts.dictionary_encode()
        known = [self._numbers.get(text, 255) for text in encoded.dictionary.to_pylist()]
        indices = np.asarray(encoded.indices.fill_null(len(known)))
        codes: Flags = np.array([*known, 255], np.uint8)[indices]
        return codes


_ACTIONS, _OF_SIDES = _Codes(ACTIONS), _Codes(SIDES)


def _most_of(size: FieldType) -> int:
    """Return the largest sum of sizes, in units."""
    return 10**18 - 1 if isinstance(bare_type(size), Decimal) else (1 << 63) - 1


def _ordered(values: npt.NDArray[np.float64]) -> Ints:
    """Return integers in the order of floats; zero of both signs is 0."""
    return _negatives_turned((values + 0.0).view(np.int64))


def _negatives_turned(words: Ints) -> Ints:
    """Return the bits of floats as integers in their order, and those as the bits."""
    return words ^ ((words >> 63) & np.int64((1 << 63) - 1))


def _values(words: Ints, field: Field) -> npt.NDArray[Any]:
    """Return the values that a book counts as integers."""
    if isinstance(bare_type(type_of(field)), Float):
        return _negatives_turned(words).view(np.float64)
    return np.ascontiguousarray(words)
