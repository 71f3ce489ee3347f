"""Events before a commit of their table: in a temporary file, since there may be many."""

from __future__ import annotations

import tempfile
from typing import IO, TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from ripple.connectors.tables.table import Rows


class PendingEvents:
    """All events since the last commit, in a temporary file that ends with the process.

    Invariant: ``_file`` and ``_writer`` are both there, or there are no events.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchWriter | None = None

    def add(self, events: pa.RecordBatch) -> None:
        """Add events, in the types of the table."""
        if self._writer is None:
            self._file = tempfile.TemporaryFile(prefix="ripple-")  # noqa: SIM115 - until ``close``
            how = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_stream(self._file, self._schema, options=how)
        rows = pa.Table.from_batches([events.select(self._schema.names)]).cast(self._schema)
        self._writer.write_table(rows)

    def taken(self) -> Rows:
        """Return the events, as they are read from the file; an empty table of none."""
        if self._file is None or self._writer is None:
            return self._schema.empty_table()
        self._file.flush()
        self._file.seek(0)
        return pa.ipc.open_stream(self._file)

    def clear(self) -> None:
        """Forget all."""
        file, self._file, self._writer = self._file, None, None
        if file is not None:
            file.close()

    close = clear
