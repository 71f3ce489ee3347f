"""Validation of a source's rows: required fields, types and checks of its record class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError, SchemaError
from ripple.engine.kernels.screen import Screen
from ripple.engine.operators.arrow_types import arrow_fields, conformed
from ripple.engine.operators.given_rows import batch_of
from ripple.model.pipeline.nodes import DELETED
from ripple.model.schema.exported import Arrangement, as_arrow
from ripple.model.schema.failing import judges_of
from ripple.model.schema.nested import paths_in, with_leaves

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.kernels.columns import Layout
    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.schema.exported import Part


class Admission:
    """Rejects invalid rows of any source, before any step."""

    def __init__(self, source: SourceSpec, layout: Layout) -> None:
        """Judge the rows of ``source``, in batches of this layout."""
        self._name = source.name
        self._judges = judges_of(source.checks, source.fields)
        self._table = source.table
        self._optional = source.optional_records
        self.required = [
            member.name
            for member in source.fields_needed
            if not member.optional or member.name == source.time_field
        ]
        bounds = {name: judge.bounds for name, judge in self._judges.items()}
        needed = {*self.required, *(name for one in self._optional for name in one.required)}
        self.screen = Screen(layout, needed, bounds)
        self.passes = self.screen.passes
        """Whether all rows of a batch count; where not, ``refuse`` looks at each."""

    def refuse(self, rows: Rows) -> None:
        """Drop the rows that do not count, for the first reason in the order of fields.

        A deletion needs its key alone.
        """
        if self._table is None:
            rows.reject_nulls(self.required, self._name)
        else:
            rows.reject_nulls(self._table.key, self._name)
            for name in self.required:
                rows.reject_nulls((name,), self._name, but=self._deleted(rows))
        for one in self._optional:
            for name in one.required:
                absent = ~self._is_there(rows, one.values)
                rows.reject_nulls((name,), self._name, but=absent | self._deleted(rows))
        deleted = self._deleted(rows)
        refused: dict[int, str] = {}
        for name, judge in self._judges.items():
            for reason, failed in judge.failing(rows.columns.arrow(name)):
                for row in np.flatnonzero(failed & ~deleted).tolist():
                    refused.setdefault(row, f"{name} is {reason}")
        if refused:
            rows.reject(dict(sorted(refused.items())), self._name)

    def _is_there(self, rows: Rows, names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        """Return the rows in which one of these fields has a value."""
        there = np.zeros(rows.count, np.bool_)
        for name in names:
            valid = rows.columns.valid(name)
            there |= True if valid is None else valid
        return there

    def _deleted(self, rows: Rows) -> npt.NDArray[np.bool_] | np.bool_:
        """Return which rows are deletions."""
        if self._table is None:
            return np.False_
        mark = rows.columns.arrow(self._table.deleted).fill_null(False)
        deleted: npt.NDArray[np.bool_] = mark.to_numpy(zero_copy_only=False)
        return deleted


class Declared:
    """Batches of one source with exactly its columns.

    Those with the schema of the one before are put together as that one was, where it had each
    column as the source declares it, or had none of a column that may be null.
    """

    def __init__(self, source: SourceSpec) -> None:
        self._source = source
        self._given: pa.Schema | None = None
        self._arrangement: Arrangement | None = None

    def of(self, given: Any) -> pa.RecordBatch | Part:
        """Return rows as a batch with these columns; see ``with_declared``."""
        if not isinstance(given, pa.RecordBatch):
            return with_declared(given, self._source)
        if self._arrangement is not None and given.schema.equals(self._given):
            return self._arrangement.of(given)
        batch = with_declared(given, self._source)
        self._note(given.schema, batch.schema)
        return batch

    def _note(self, given: pa.Schema, made: pa.Schema) -> None:
        names = given.names
        places = [names.index(name) if name in names else -1 for name in made.names]
        is_alike = len(set(names)) == len(names)
        for field, at in zip(made, places, strict=True):
            if at < 0:  # and no part of a record
                is_alike = is_alike and field.name.partition(".")[0] not in names
            else:
                is_alike = is_alike and given.field(at).equals(field)
        self._given = given
        self._arrangement = Arrangement(made, places) if is_alike else None


def with_declared(given: Any, source: SourceSpec) -> pa.RecordBatch:
    """Return rows as a batch with exactly the columns of ``source``, cast where nothing is lost.

    given: as ``batch_of`` takes it, or a Part. Raises InputError.
    """
    declared = pa.schema(arrow_fields(source.fields_taken))
    batch = batch_of(as_arrow(given), source)
    batch = with_leaves(batch, paths_in(declared.names))
    if DELETED in declared.names and DELETED not in batch.schema.names:
        batch = batch.append_column(DELETED, pa.nulls(batch.num_rows, pa.bool_()))
    for member in source.fields_taken:
        if member.optional and member.name not in batch.schema.names:
            batch = batch.append_column(member.name, pa.nulls(batch.num_rows))
    missing = [name for name in declared.names if name not in batch.schema.names]
    if missing:
        raise InputError(
            f"source {source.name!r}: a batch lacks the fields {missing}; "
            f"it has {batch.schema.names}"
        )
    chosen = batch.select(declared.names)
    if chosen.schema.types == declared.types:
        return chosen
    try:
        return conformed(chosen, source.fields_taken)
    except SchemaError as error:
        raise InputError(
            f"source {source.name!r}: a batch does not have the declared types: {error}"
        ) from error
