"""Records and changes held in memory, and records that come from an iterator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.connectors.arrow_items import of_arrow
from ripple.connectors.contract import BasicSink
from ripple.connectors.cutting import recut
from ripple.connectors.handover import LiveItems, Pause
from ripple.connectors.record_shape import arrow_schema_of
from ripple.connectors.row_items import ColumnsFound, as_mapping, of_rows
from ripple.connectors.validation import screened
from ripple.core.errors import InputError
from ripple.model.schema.python_rows import python_rows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    import pyarrow as pa

    from ripple.connectors.contract import Commit
    from ripple.connectors.record_columns import RecordColumns
    from ripple.connectors.record_shape import RecordShape
    from ripple.model.batch import Batch

ROWS_AT_ONCE = 1000  # of an iterator, that are brought to their types together
ROWS_HELD = 4000  # the same of a list: more would keep other threads from their turn


class MemorySource:
    """Record batches, tables, mappings or instances of a record class, in order, as ``shape`` says.

    Mappings may have members that are no fields. A value of its field's type that the field cannot
    hold rejects its record; one of another type, such as 1.5 for an integer, is an error.
    Raises SchemaError at once when a column is missing or has another type, or a mapping a value of
    another type; InputError for items that are no records, and for damaged Arrow data.
    """

    def __init__(
        self,
        records: Iterable[Any],
        shape: RecordShape,
        *,
        name: str = "records",
        batch_rows: int | None = 1000,
    ) -> None:
        self.name = name
        self._shape = shape
        self._batch_rows = batch_rows
        self._held = list(_held(records, shape, ROWS_HELD, None))

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        return recut(_screened(self._held, self._shape), self._batch_rows, from_offset)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class IteratorSource:
    """Rows of an iterator as a source: read once, few rows in memory at a time.

    A thread reads it, so that a batch ends where it pauses.
    A column is missing if none of the first ROWS_AT_ONCE mappings has it. Errors come from the
    iterator of ``batches``.
    """

    def __init__(
        self,
        records: Iterable[Any],
        shape: RecordShape,
        *,
        name: str = "records",
        batch_rows: int | None = 1000,
    ) -> None:
        self.name = name
        self._shape = shape
        self._batch_rows = batch_rows
        self._items: Iterable[Any] = records
        if not isinstance(records, (Sequence, LiveItems)):  # a list of one stream is all there
            self._items = LiveItems(iter(records), ROWS_AT_ONCE, rows_in)
        self._held = _held(self._items, shape, ROWS_AT_ONCE, ROWS_AT_ONCE)
        self._is_read = False

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on, once; see Source."""
        if self._is_read:
            raise InputError(f"{self.name}: an iterator can be read once")
        self._is_read = True
        return recut(_screened(self._held, self._shape), self._batch_rows, from_offset)

    def end(self) -> None:
        """Let a thread that waits for an item find the end."""
        if isinstance(self._items, LiveItems):
            self._items.end()

    def close(self) -> None:
        """Let go of the iterator."""
        self._held.close()
        if isinstance(self._items, LiveItems):
            self._items.close()


class MemorySink(BasicSink):
    """Keeps the changes it is given. finished: whether they were committed."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.finished = False

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Keep one batch of changes."""
        self.batches.append(changes)

    def commit(self, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Record the commit."""
        self.finished = True

    def close(self) -> None:
        """Forget all uncommitted rows, as a file would be gone."""
        if not self.finished:
            self.batches.clear()

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows in order, with their ``op`` where the batches have one."""
        return [row for batch in self.batches for row in python_rows(batch)]


class _Failure(NamedTuple):
    """The error of an iterator, after its items."""

    error: Exception


def _screened(held: Iterable[RecordColumns | None], shape: RecordShape) -> Iterator[Batch | None]:
    offset = 0
    for one in held:
        if one is None:
            yield None
            continue
        batch = screened(one.records, shape, offset, one.refused, one.shown)
        offset = batch.next_offset
        if batch.span:
            yield batch


def _held(
    records: Iterable[Any], shape: RecordShape, rows_at_once: int, judged_rows: int | None
) -> Generator[RecordColumns | None, None, None]:
    """Bring every item into columns; None where no more items are there for now.

    rows_at_once: the rows of a batch of single items. judged_rows: see ColumnsFound.
    """
    schema = arrow_schema_of(shape.schema.fields)
    columns = ColumnsFound(shape, judged_rows)
    rows: list[Mapping[str, Any]] = []
    number = 0
    for item in _to_its_end(records):
        is_row = isinstance(item, Mapping) or not _is_other(item)
        if rows and (not is_row or len(rows) == rows_at_once):
            columns.look(rows)
            yield of_rows(rows, shape, number - len(rows))
            rows = []
        if is_row:
            rows.append(as_mapping(item, number))
            number += 1
        elif isinstance(item, _Failure):
            raise item.error
        elif item is Pause.PAUSE:
            yield None
        else:
            number += 1
            yield from of_arrow(item, schema, shape)
    if rows:
        columns.look(rows)
    columns.check()
    if rows:
        yield of_rows(rows, shape, number - len(rows))


def _to_its_end(records: Iterable[Any]) -> Iterator[Any]:
    """Yield the records, and the error of their iterator: those before it count."""
    try:
        yield from records
    except Exception as error:  # any error of a user's iterator
        yield _Failure(error)


def _is_other(item: Any) -> bool:
    """Tell whether an item stands for other than one row."""
    return isinstance(item, (Pause, _Failure)) or hasattr(item, "__arrow_c_stream__")


def rows_in(item: Any) -> int:
    """Return the number of rows in an item of an iterator; an estimate if it does not tell."""
    if not hasattr(item, "__arrow_c_stream__"):
        return 1
    return max(len(item), 1) if hasattr(item, "__len__") else ROWS_AT_ONCE
