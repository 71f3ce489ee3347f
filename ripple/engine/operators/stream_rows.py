"""Rows of a stream on their way to outputs, which receive each of them once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.core.errors import LimitError
from ripple.core.hashing import mix_each, xxh64_of
from ripple.core.row_ops import OP, OP_SET
from ripple.engine.kernels.identities import digest_in_span, digest_of, letters_of
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX, ROW_KEY
from ripple.model.row_identity import mix_in
from ripple.model.schema.exported import Made, Part
from ripple.model.schema.types import Field

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.nodes import Fields

    Ints = npt.NDArray[np.int64]


def identified_schema(fields: Fields) -> pa.Schema:
    """Return the columns of rows with their identities: input, offset, index, ``op``, the fields.

    The identity has the names of ROW_KEY, with underscores appended if a field has such a name.
    """
    tail, taken = "", {field.name for field in fields}
    while any(f"{one.name}{tail}" in taken for one in ROW_KEY):
        tail += "_"
    own = arrow_fields([Field(f"{one.name}{tail}", one.type) for one in ROW_KEY])
    return pa.schema([*own, pa.field(OP, pa.int8(), nullable=False), *arrow_fields(fields)])


class _Part(NamedTuple):
    """Some rows. runs: the inputs that they are of, each with how many rows in a row."""

    runs: list[tuple[str, int]]
    rows: pa.RecordBatch
    offsets: Ints
    indexes: Ints

    @property
    def nbytes(self) -> int:
        held: int = self.rows.get_total_buffer_size()
        # A text and its end, two numbers, op.
        return held + sum((len(name) + 21) * count for name, count in self.runs)


class IdentifiedRows:
    """Rows of a stream with their identities, as one batch from the first read on.

    Most rows are never read, and the columns of their identities cost more than the rows.
    """

    def __init__(self, schema: pa.Schema, parts: list[_Part]) -> None:
        """Hold rows of a stream. schema: with the identity."""
        self.num_rows = sum(part.rows.num_rows for part in parts)
        self._schema, self._parts = schema, parts

    @property
    def nbytes(self) -> int:
        """Bytes that they hold, or that their columns will."""
        return sum(part.nbytes for part in self._parts)

    @property
    def shared_nbytes(self) -> int:
        """The bytes of other rows in the batches of these slices."""
        rows = (part.rows for part in self._parts)
        return sum(one.get_total_buffer_size() - one.nbytes for one in rows)

    def made(self) -> pa.RecordBatch:
        """Return the rows, in the order of ``StreamRows.take``."""
        batches = []
        for runs, rows, offsets, indexes in self._parts:
            names = pa.array([name for name, _ in runs])
            inputs = names.take(pa.array(np.repeat(np.arange(len(runs)), [n for _, n in runs])))
            ops = pa.repeat(pa.scalar(OP_SET, pa.int8()), rows.num_rows)
            columns = [inputs, pa.array(offsets), pa.array(indexes), ops, *rows.columns]
            batches.append(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches)

    def joined(self, others: Iterable[IdentifiedRows]) -> IdentifiedRows:
        """Return these rows and their successors in fewer and larger columns."""
        runs: list[tuple[str, int]] = []
        parts = [part for one in (self, *others) for part in one._parts]
        for name, count in (run for part in parts for run in part.runs):
            if runs and runs[-1][0] == name:
                count += runs.pop()[1]  # noqa: PLW2901 - of the same input
            runs.append((name, count))
        rows = pa.concat_batches([part.rows for part in parts])
        offsets = np.concatenate([part.offsets for part in parts])
        indexes = np.concatenate([part.indexes for part in parts])
        return IdentifiedRows(self._schema, [_Part(runs, rows, offsets, indexes)])


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
        self._letters = letters_of(self.schema)
        self._seeds: dict[str, int] = {}
        self._waiting: dict[str, list[Made | Part]] = {}
        self._identified: dict[str, list[_Part]] = {}
        self._nothing = Part.of_all(pa.RecordBatch.from_pylist([], self.schema))

    def add(self, name: str, rows: Rows, offsets: Ints, indexes: Ints) -> None:
        """Add rows of input ``name``, each of the record at an offset, with its index there."""
        if not rows.count:
            return
        batch: Made | Part | None = rows.columns.made(self.schema)
        if batch is None:
            columns = [arrow_column(rows.columns[field.name], field.type) for field in self.schema]
            batch = Part.of_all(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        hashed = self._hashed(name, batch, offsets, indexes)
        self.digest = self.final_digest = (self.digest + hashed) % (1 << 64)
        self.count += rows.count
        self._waiting.setdefault(name, []).append(batch)
        if self.identified is not None:
            part = _Part([(name, rows.count)], batch.arrow(), offsets, indexes)
            self._identified.setdefault(name, []).append(part)

    def add_placed(self, name: str, rows: Rows, span: tuple[int, int, int]) -> bool:
        """Add rows of input ``name`` that have come as one batch, if all places are in its span.

        span: its first place, the next one, and that of the record at offset 0. Returns whether
        they were added: not if their identities are needed one by one.
        """
        letters, places = self._letters, rows.offsets
        if letters is None or places is None or self.identified is not None:
            return False
        made = rows.columns.made(self.schema)
        if made is None:
            return False
        seed = self._seeds.get(name)
        if seed is None:
            seed = self._seed(name)
        hashed = digest_in_span(made, letters, seed, places, *span, FLAT_ROWS_MAX)
        if hashed is None:
            return False
        self.digest = self.final_digest = (self.digest + hashed) % (1 << 64)
        self.count += rows.count
        waiting = self._waiting.get(name)
        if waiting is None:
            self._waiting[name] = [made]
        else:
            waiting.append(made)
        return True

    def _seed(self, name: str) -> int:
        seed = self._seeds.get(name)
        if seed is None:
            seed = self._seeds[name] = xxh64_of(name.encode())
        return seed

    def _hashed(self, name: str, rows: Made | Part, offsets: Ints, indexes: Ints) -> int:
        """Return the sum of the hashes of rows, modulo 2^64."""
        seed = self._seed(name)
        if self._letters is not None:
            return digest_of(rows, self._letters, seed, offsets, indexes)
        hashes = np.full(rows.num_rows, seed, np.uint64)
        for identity in (offsets, indexes):
            mix_each(hashes, identity.view(np.uint64))
        for column in rows.arrow().columns:
            mix_in(hashes, column)
        return int(hashes.sum())

    def take(self) -> Made | Part:
        """Return the rows since the last call, by input and in its order.

        So they stand in one order between two cuts, however inputs interleave: a sink with
        some of them continues with the others.
        """
        waiting = self._waiting
        if not waiting:
            return self._nothing
        self._waiting = {}
        if len(waiting) == 1:
            (batches,) = waiting.values()
        else:
            batches = [one for name in sorted(waiting) for one in waiting[name]]
        if len(batches) == 1:
            return batches[0]
        return Part.of_all(_one([one.arrow() for one in batches]))

    def identify(self) -> pa.Schema:
        """Let ``take_identified`` return the rows from now on, and return its columns."""
        if self.identified is None:
            self.identified = identified_schema(self._fields)
        return self.identified

    def take_identified(self) -> IdentifiedRows | None:
        """Return the rows since the last call with their identities, in the order of ``take``."""
        if self.identified is None or not self._identified:
            return None
        came, self._identified = self._identified, {}
        parts = [one for name in sorted(came) for one in came[name]]
        return IdentifiedRows(self.identified, parts)

    def take_retracted(self) -> pa.RecordBatch:
        """Return no rows: none was taken back."""
        return self._nothing.arrow()

    def live_digest(self) -> int:
        """Return 0, the digest of live rows: there are none."""
        return 0

    def table(self) -> pa.Table:
        """Return no rows: none is kept."""
        return pa.Table.from_batches([self._nothing.arrow()])


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return all rows between two cuts in one batch, as outputs take them."""
    try:
        return pa.concat_batches(batches)
    except pa.ArrowInvalid as error:
        schema = batches[0].schema
        sizes = [sum(one.column(name).nbytes for one in batches) for name in schema.names]
        longest = schema.names[sizes.index(max(sizes))]
        raise LimitError(
            f"an output would get more than 2 GiB of the field {longest!r} at once: leave such "
            f"fields out before the sink, or fold the rows ({error})"
        ) from error
