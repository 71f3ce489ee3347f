"""A source into which a program pushes rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.arrow_items import of_arrow
from ripple.connectors.python_values import plain_types
from ripple.connectors.record_shape import RecordShape, arrow_schema_of
from ripple.connectors.row_items import ColumnsFound, as_mapping, of_rows
from ripple.connectors.stream_channel import StreamChannel
from ripple.connectors.stream_inputs import StreamInputs
from ripple.connectors.transforms.forms import as_written
from ripple.core.arguments import need_whole
from ripple.core.calls import called
from ripple.core.errors import InputError
from ripple.model.pipeline.checks import checks_in, flat_record_of

if TYPE_CHECKING:
    from ripple.connectors.stream_buffer import Pushed
    from ripple.model.schema.types import Schema


class Stream:
    """Rows that a program pushes to a run, as they happen.

    Any thread may push, and any event loop wait. The rows are in order of their pushes, and each
    has an offset. A run reads a stream once. One that resumes from a checkpoint begins with the
    offset after the checkpoint's: ``opened`` returns it, and rows from there on are pushed again.

    ``max_rows`` pushed rows wait at most. ``push`` waits for room, but not where an event loop
    runs, which it would block: there it raises LimitError, and ``await apush`` waits.
    """

    @called("rp.Stream")
    def __init__(self, record: type | Schema, *, max_rows: int = 10_000) -> None:
        """Take the record class of the source. max_rows: that wait at most.

        Raises SchemaError unless ``record`` is a record class or a flat schema.
        """
        cls, schema, _ = flat_record_of(record, "record")
        self._max_rows = need_whole("max_rows", max_rows, 1)
        self._record_shape = RecordShape(schema, checks_in(cls, schema))
        self._shape = as_written(self._record_shape)
        self._plain = plain_types(self._shape.schema.fields)
        self._channel = StreamChannel(self._max_rows)

    def push(self, row: Any) -> None:
        """Push a row, a mapping or an instance of the record class, or a table of rows.

        Waits where ``max_rows`` wait already, in order of pushes. A value that its field cannot
        hold makes a dead letter. Raises SchemaError for one of another type and for an absent
        field, InputError for no row, and once the stream is closed or the run has ended;
        LimitError where an event loop runs and there is no room.
        """
        for item in self._checked(row):
            self._channel.push(item)

    async def apush(self, row: Any) -> None:
        """Push a row or a table as ``push`` does, and let the event loop go on where it waits."""
        for item in self._checked(row):
            await self._channel.apush(item)

    async def opened(self) -> int:
        """Wait until a run reads the stream; return the offset of the first row to push."""
        return await self._channel.opened()

    async def drained(self) -> None:
        """Wait until all rows pushed so far are computed, and their changes given to the outputs.

        Raises InputError if the run ends before.
        """
        await self._channel.drained()

    def close(self) -> None:
        """Push nothing more: the run ends after the rows that are there."""
        self._channel.close()

    @property
    def next_offset(self) -> int | None:
        """The offset of the next row to push; None until a run reads the stream."""
        return self._channel.next_offset

    def inputs(self, name: str, shape: RecordShape) -> StreamInputs:
        """Return the stream as the inputs of one run, as the source ``name`` of a pipeline.

        Raises InputError where its records are others than ``shape`` says, or it was read before.
        """
        if shape.schema.fields != self._shape.schema.fields:
            raise InputError(
                f"the stream has records {self._record_shape.schema.name!r}, and source {name!r} "
                f"reads {shape.schema.name!r}: make it of the same class"
            )
        return StreamInputs(self._channel, name, shape)

    def _checked(self, row: Any) -> list[Pushed]:
        """Return a row, or the batches of a table. Raises as ``push`` does."""
        shape = self._shape
        if hasattr(row, "__arrow_c_stream__") or isinstance(row, pa.RecordBatch):
            schema = arrow_schema_of(shape.schema.fields)
            held = of_arrow(row, schema, shape)
            return [part for one in held for part in _parts(one.records, self._max_rows)]
        taken = dict(as_mapping(row, self._channel.pushed))
        if not all(type(taken.get(name, ...)) in types for name, types in self._plain.items()):
            columns = ColumnsFound(shape, None)
            columns.look([taken])
            columns.check()
            of_rows([taken], shape, self._channel.pushed)
        return [taken]


def _parts(records: pa.RecordBatch, rows: int) -> list[pa.RecordBatch]:
    """Return a batch in parts of some rows at most."""
    return [records.slice(at, rows) for at in range(0, records.num_rows, rows)]
