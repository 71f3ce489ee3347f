"""Values and record keys as changes of a table: rows, and deletions of the rows of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.connectors.formats.contract import at_rows
from ripple.connectors.formats.envelopes import Envelopes
from ripple.connectors.formats.record_keys import RecordKeys
from ripple.model.batch import RAW_BYTES_MAX, Batch, Rejected
from ripple.model.pipeline.nodes import DELETED

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.formats.contract import Values
    from ripple.connectors.formats.record_keys import KeyForm
    from ripple.connectors.record_shape import RecordShape
    from ripple.model.pipeline.nodes import TableSpec
    from ripple.world.broker import Read

NO_KEY = "the value is null, and there is no record key: it names no row to delete"


class TableValues:
    """A format of a table's values, in a system whose records have keys too."""

    def __init__(
        self,
        rows: Values,
        table: TableSpec,
        form: KeyForm,
        *,
        keys: Callable[[bytes], Any] | None = None,
        envelopes: Callable[[bytes], Any] | None = None,
    ) -> None:
        """rows: the format of row values. form: of the record keys.

        keys, envelopes: read the ones in other formats than JSON; see AvroObjects.
        """
        self._rows = rows
        self._table = table
        names = set(table.key)
        members = [one for one in table.fields if one.name in names]
        self._keys = RecordKeys(members, table.key, form, keys)
        self._asks = keys is not None
        self._envelopes = None
        if table.format:
            self._envelopes = Envelopes(table, self._keys, envelopes, rows.shape.logical)

    @property
    def at_once(self) -> bool:
        """Whether it needs no object per record, nor I/O; see Values."""
        return self._rows.at_once and not self._table.format and not self._asks

    @property
    def shape(self) -> RecordShape:
        """The shape of the records."""
        return self._rows.shape

    def batch(self, values: pa.Array) -> Batch:
        """Return the rows of values; see Values."""
        return self._rows.batch(values)

    def changes(self, read: Read, where: str) -> Batch:
        """Return fetched records as changes, at their offsets; ``where`` names their partition.

        Every offset is a row, a deletion, rejected, or rejected already. Raises InputError for a
        truncated table, if that stops the run.
        """
        values, offsets = read.records.values, read.offsets
        refused: dict[int, str] = {}
        keys: dict[int, dict[str, Any]] = {}
        if self._envelopes is not None:
            values = self._envelopes.opened(read, where, keys, refused)
        is_row = np.ones(len(values), np.bool_)
        if values.null_count:
            is_row = np.asarray(values.is_valid())
        is_row[[*refused]] = False
        for row in np.flatnonzero(~is_row).tolist():
            if row not in refused and row not in keys:
                self._note_key(read.records.keys[row].as_py(), row, keys, refused)
        deleted = [row for row in np.flatnonzero(~is_row).tolist() if row not in refused]
        rows = self._rows.batch(values.filter(pa.array(is_row)))
        gone = self._deletions([keys[row] for row in deleted])
        bad = [Rejected(row, None, reason, b"") for row, reason in refused.items()]
        parts = [(rows, np.flatnonzero(is_row)), (gone, np.array(deleted, np.int64))]
        whole = at_rows(parts, bad, len(offsets), self.shape)
        rejected = [
            Rejected(int(offsets[one.offset]), None, one.reason, _raw(read, one.offset))
            for one in whole.rejected
        ]
        rejected += [Rejected(at, None, reason, raw) for at, reason, raw in read.refused]
        return Batch(
            self._marked(whole, deleted),
            read.next_offset,
            tuple(sorted(rejected, key=lambda one: one.offset)),
            offsets[whole.offsets()],
        )

    def _note_key(
        self,
        key: bytes | None,
        row: int,
        keys: dict[int, dict[str, Any]],
        refused: dict[int, str],
    ) -> None:
        if key is None:
            refused[row] = NO_KEY
            return
        try:
            keys[row] = self._keys.fields_of(key)
        except ValueError as error:
            refused[row] = str(error)

    def _deletions(self, keys: list[dict[str, Any]]) -> Batch:
        """Return a deletion of each row; fields but the key's are null."""
        mark = {} if self._table.deleted == DELETED else {self._table.deleted: True}
        named = [{**key, **mark} for key in keys]
        return Batch(pa.RecordBatch.from_pylist(named, self.shape.arrow_schema()), len(named))

    def _marked(self, batch: Batch, deleted: list[int]) -> pa.RecordBatch:
        """Return the records with the mark of deletions; ``deleted``: their rows."""
        if self._table.deleted != DELETED:
            return batch.records
        mark = np.isin(batch.offsets(), deleted)
        return batch.records.append_column(pa.field(DELETED, pa.bool_()), pa.array(mark))


def _raw(read: Read, row: int) -> bytes:
    value = read.records.values[row].as_buffer()
    return b"" if value is None else value[:RAW_BYTES_MAX].to_pybytes()
