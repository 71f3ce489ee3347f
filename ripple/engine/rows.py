"""Rows on their way through the steps of a pipeline: columns, and where each row came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.errors import NodeError
from ripple.expression.bound import Bound, Values, numbers
from ripple.expression.typed import Kind, kind_of
from ripple.plan import Derive, Filter, Map, Step, type_of
from ripple.schema.types import Field

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_NUMERIC = {Kind.FLOAT: np.float64, Kind.INT: np.int64, Kind.BOOL: np.bool_}
_INT64 = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that a step could not process: its index in the batch, the step, and why."""

    row: int
    step: str
    reason: str


class Rows:
    """Columns of equal length.

    columns: by name, whatever form an expression takes. times_ns, offsets: of events, their event
    time and their place in the log. origin: the index in the batch of each row, None while it is
    the identity. rejected: rows that steps refused, in batch positions.
    """

    __slots__ = ("_seen", "columns", "count", "offsets", "origin", "rejected", "times_ns")

    def __init__(
        self,
        columns: dict[str, Any],
        count: int,
        times_ns: Ints | None = None,
        offsets: Ints | None = None,
    ) -> None:
        self.columns = columns
        self.count = count
        self.times_ns = times_ns
        self.offsets = offsets
        self.origin: Ints | None = None
        self.rejected: list[RejectedRow] = []
        self._seen: dict[str, Values] = {}

    def evaluate(self, bound: Bound) -> Values:
        """Return the expression over all rows; equal expressions are computed once."""
        values = self._seen.get(bound.canonical)
        if values is None:
            kind = kind_of(bound.type)[0]
            if bound.tree.operation == "col" and kind in _NUMERIC:
                values = numbers(self.columns[bound.tree.value], kind)
            else:
                values = bound.evaluate(self.columns, self.count)
            self._seen[bound.canonical] = values
        return values

    def keep(self, mask: Mask) -> None:
        """Drop the rows for which ``mask`` is false."""
        if mask.all():
            return
        self.columns = {name: select(column, mask) for name, column in self.columns.items()}
        origin = np.arange(self.count) if self.origin is None else self.origin
        self.origin = origin[mask]
        if self.times_ns is not None:
            self.times_ns = self.times_ns[mask]
        if self.offsets is not None:
            self.offsets = self.offsets[mask]
        self.count = len(self.origin)
        self._seen = {}

    def reject(self, failed: Mapping[int, str], step: str) -> None:
        """Drop the failed rows and remember why."""
        if not failed:
            return
        mask = np.ones(self.count, np.bool_)
        for row, reason in failed.items():
            mask[row] = False
            at = row if self.origin is None else int(self.origin[row])
            self.rejected.append(RejectedRow(at, step, reason))
        self.keep(mask)

    def reject_nulls(self, fields: Sequence[Field], step: str) -> None:
        """Drop rows in which one of these fields is null."""
        for field in fields:
            column = self.columns[field.name]
            valid = column.valid if isinstance(column, Values) else _valid(column)
            if valid is not None and not valid.all():
                reason = f"the field {field.name!r} is null"
                self.reject(dict.fromkeys(np.flatnonzero(~valid).tolist(), reason), step)

    def run(self, steps: Sequence[Step]) -> None:
        """Pass the rows through ``steps``."""
        for step in steps:
            if isinstance(step, Filter):
                self._filter(step)
            elif isinstance(step, Derive):
                self._derive(step)
            elif step.batch:
                self._map_batch(step)
            else:
                self._map_rows(step)

    def _filter(self, step: Filter) -> None:
        kept = self.evaluate(step.condition)
        truth = kept.truth()
        if kept.failed:
            truth = np.delete(truth, list(kept.failed))
            self.reject(kept.failed, step.name)
        self.keep(truth)

    def _derive(self, step: Derive) -> None:
        derived = {name: self.evaluate(bound) for name, bound in step.exprs}
        failed = {row: why for values in derived.values() for row, why in values.failed.items()}
        self.columns = {**self.columns, **derived}
        self._seen = {}
        self.reject(dict(sorted(failed.items())), step.name)

    def _map_batch(self, step: Map) -> None:
        given = {field.name: self._array(field) for field in step.fields_in}
        try:
            returned = step.function(given)
        except Exception as error:
            raise NodeError(
                f"map {step.name!r}: the function raised {type(error).__name__}: {error}"
            ) from error
        columns: dict[str, Any] = {name: self.columns[name] for name in step.kept}
        for field in _made_by(step):
            if field.name not in returned or len(returned[field.name]) != self.count:
                raise NodeError(
                    f"map {step.name!r}: the function must return {self.count} values for the "
                    f"field {field.name!r}"
                )
            columns[field.name] = _as_column(returned[field.name], field)
        self.columns = columns
        self._seen = {}
        required = [field for field in _made_by(step) if not kind_of(type_of(field))[1]]
        self.reject_nulls(required, step.name)

    def _map_rows(self, step: Map) -> None:
        names = [field.name for field in step.fields_in]
        make = step.row or SimpleNamespace
        made: list[tuple[Any, ...]] = []
        failed: dict[int, str] = {}
        fields = _made_by(step)
        blank = (None,) * len(fields)
        for at, values in enumerate(self._each(step.fields_in)):
            try:
                result = step.function(make(**dict(zip(names, values, strict=True))))
                made.append(tuple(_checked(result, field) for field in fields))
            except Exception as error:  # whatever a user's function raises
                failed[at] = f"{type(error).__name__}: {error}"
                made.append(blank)
        kept = {name: self.columns[name] for name in step.kept}
        lists = {f.name: [row[i] for row in made] for i, f in enumerate(fields)}
        # Rows that failed hold None everywhere; they must go before the columns are typed.
        self.columns = {**kept, **lists}
        self._seen = {}
        self.reject(failed, step.name)
        typed = {f.name: _as_column(self.columns[f.name], f) for f in fields}
        self.columns = {**self.columns, **typed}

    def _array(self, field: Field) -> npt.NDArray[Any]:
        """Return a column as a user's batch function gets it: NumPy, objects for text."""
        column = self.columns[field.name]
        kind, nullable = kind_of(type_of(field))
        if kind in _NUMERIC and not nullable:
            values: npt.NDArray[Any] = numbers(column, kind).values
            return values
        return np.array(as_list(column), object)

    def _each(self, fields: Sequence[Field]) -> Iterator[tuple[Any, ...]]:
        lists = [as_list(self.columns[field.name]) for field in fields]
        return zip(*lists, strict=True)


def _made_by(step: Map) -> list[Field]:
    """Return the fields that the function decides; the others are carried over."""
    return [field for field in step.schema.fields if field.name not in step.kept]


def select(column: Any, mask: Mask) -> Any:
    """Return the rows of a column for which ``mask`` is true."""
    if isinstance(column, Values):
        valid = None if column.valid is None else column.valid[mask]
        return Values(select(column.values, mask), valid)
    if isinstance(column, np.ndarray):
        return column[mask]
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column.filter(pa.array(mask))
    return list(compress(column, mask.tolist()))


def as_list(column: Any) -> list[Any]:
    """Return a column as Python values, None for null."""
    if isinstance(column, Values):
        values = as_list(column.values)
        if column.valid is None:
            return values
        return [v if ok else None for v, ok in zip(values, column.valid.tolist(), strict=True)]
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    if isinstance(column, pa.Array):
        return list(column.to_pylist())
    return list(column)


def _valid(column: Any) -> Mask | None:
    if isinstance(column, pa.Array) and column.null_count:
        valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)
        return valid
    return None


def _as_column(values: Any, field: Field) -> Any:
    """Return what a user's function made as a column of the field's type."""
    kind = kind_of(type_of(field))[0]
    if kind in _NUMERIC and isinstance(values, np.ndarray) and values.dtype != object:
        return np.ascontiguousarray(values, _NUMERIC[kind])
    listed = as_list(values)
    if kind in _NUMERIC:
        return numbers(listed, kind)
    if kind is Kind.TEXT:
        return pa.array(listed, pa.string())
    return listed


def _checked(result: Any, field: Field) -> Any:
    """Return the field of a mapped row; raises TypeError when it has the wrong type."""
    value = getattr(result, field.name)
    kind, nullable = kind_of(type_of(field))
    if value is None:
        if nullable:
            return None
    elif kind is Kind.FLOAT:
        if isinstance(value, (float, int)) and not isinstance(value, bool):
            return float(value)
    elif kind is Kind.INT:
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value in _INT64:
            return int(value)
    elif kind is Kind.BOOL:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
    elif kind is not Kind.TEXT or isinstance(value, str):
        return value
    raise TypeError(f"the field {field.name!r} must be {kind.value}, not {value!r}")
