"""Rows of a stream on their way to outputs, which receive each of them once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.hashing import mix_each, xxh64_of
from ripple.core.row_ops import OP, OP_SET
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.model.pipeline.nodes import ROW_KEY
from ripple.model.row_identity import mix_in
from ripple.model.schema.exported import Part
from ripple.model.schema.types import Field

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.nodes import Fields

    Ints = npt.NDArray[np.int64]


def identified_schema(fields: Fields) -> pa.Schema:
    """Return the columns of rows with their identities: input, offset, index, ``op``, the fields.

    The identity is named as ROW_KEY is, with underscores behind where a field has such a name.
    """
    tail, taken = "", {field.name for field in fields}
    while any(f"{one.name}{tail}" in taken for one in ROW_KEY):
        tail += "_"
    own = arrow_fields([Field(f"{one.name}{tail}", one.type) for one in ROW_KEY])
    return pa.schema([*own, pa.field(OP, pa.int8(), nullable=False), *arrow_fields(fields)])


class StreamRows:
    """A view of a stream: the rows since the last ``take``, and the digest of all rows ever.

    Such a row stays as it is, so that no state is kept of it but its part of the digest: the sum,
    modulo 2^64, of the hashes of identities (input, offset, index) and fields.
    """

    removed = 0

    def __init__(self, fields: Fields) -> None:
        """Show rows of a stream with these fields."""
        self.schema = pa.schema(arrow_fields(fields))
        self.digest = self.final_digest = 0
        self.count = 0
        """Rows since the partition was restored here."""
        self.identified: pa.Schema | None = None
        """The columns of ``take_identified``, once it is used."""
        self._fields = fields
        self._waiting: dict[str, list[pa.RecordBatch]] = {}
        self._identified: dict[str, list[pa.RecordBatch]] = {}
        self._nothing = Part.of_all(pa.RecordBatch.from_pylist([], self.schema))

    def add(self, name: str, rows: Rows, offsets: Ints, indexes: Ints) -> None:
        """Add rows of input ``name``, each of the record at an offset, with its index there."""
        if not rows.count:
            return
        columns = [arrow_column(rows.columns[field.name], field.type) for field in self.schema]
        hashes = np.full(rows.count, xxh64_of(name.encode()), np.uint64)
        for identity in (offsets, indexes):
            mix_each(hashes, np.ascontiguousarray(identity).view(np.uint64))
        for column in columns:
            mix_in(hashes, column)
        self.digest = self.final_digest = (self.digest + int(hashes.sum())) % (1 << 64)
        self.count += rows.count
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        self._waiting.setdefault(name, []).append(batch)
        if self.identified is not None:
            inputs = pa.repeat(name, rows.count)
            ops = pa.repeat(pa.scalar(OP_SET, pa.int8()), rows.count)
            own = [inputs, pa.array(offsets), pa.array(indexes), ops]
            identified = pa.RecordBatch.from_arrays([*own, *columns], schema=self.identified)
            self._identified.setdefault(name, []).append(identified)

    def take(self) -> Part:
        """Return the rows since the last call, by input and in its order.

        So they stand in one order between two cuts, however inputs interleave: a sink with
        some of them continues with the others.
        """
        waiting, self._waiting = self._waiting, {}
        batches = [one for name in sorted(waiting) for one in waiting[name]]
        if not batches:
            return self._nothing
        return Part.of_all(batches[0] if len(batches) == 1 else pa.concat_batches(batches))

    def identify(self) -> pa.Schema:
        """Let ``take_identified`` return the rows from now on, and return its columns."""
        if self.identified is None:
            self.identified = identified_schema(self._fields)
        return self.identified

    def take_identified(self) -> pa.RecordBatch | None:
        """Return the rows since the last call with their identities, in the order of ``take``."""
        came, self._identified = self._identified, {}
        batches = [one for name in sorted(came) for one in came[name]]
        if len(batches) < 2:
            return batches[0] if batches else None
        return pa.concat_batches(batches)

    def take_retracted(self) -> pa.RecordBatch:
        """Return no rows: none was taken back."""
        return self._nothing.arrow()

    def live_digest(self) -> int:
        """Return 0, the digest of live rows: there are none."""
        return 0

    def table(self) -> pa.Table:
        """Return no rows: none is kept."""
        return pa.Table.from_batches([self._nothing.arrow()])
