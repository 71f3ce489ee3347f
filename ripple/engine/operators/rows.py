"""Rows on their way through the steps of a pipeline: columns, and where each row came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.arguments import shown
from ripple.core.errors import NodeError, SchemaError, is_of_machine
from ripple.core.frozen import frozen
from ripple.engine.kernels.columns import Columns, Held
from ripple.engine.operators.constant_rows import found_in, rows_at
from ripple.engine.operators.items import items_of
from ripple.engine.operators.step_columns import plain_column
from ripple.model.expression.bound import Bound, Values, numbers
from ripple.model.expression.typed import Kind, kind_of
from ripple.model.pipeline.nodes import (
    FLAT_ROWS_MAX,
    ConstantJoin,
    Derive,
    EventNode,
    Explode,
    Filter,
    FlatMap,
    Map,
    type_of,
)
from ripple.model.pipeline.waiting_nodes import Ask, StepScan
from ripple.model.records.instances import instances_of
from ripple.model.schema.columns import Fitted, called, fitted, objects, read_only
from ripple.model.schema.logical.fields import has_logical
from ripple.model.schema.logical.values import array_of, values_of
from ripple.model.schema.types import Field

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

TOO_MANY_ROWS = f"more than {FLAT_ROWS_MAX} rows were made of the record"

_AS_THEY_ARE = {pa.int64(), pa.float64()}
_NUMERIC = {Kind.FLOAT: np.float64, Kind.INT: np.int64, Kind.BOOL: np.bool_}


@frozen
class RejectedRow:
    """A row that a step could not process: its index in the batch, the step, and why."""

    row: int
    step: str
    reason: str


class Rows(Held):
    """``columns`` of equal length, ``count``: a dict of them, or a record batch's.

    times_ns, offsets: of events, their event time and their place in the log. origin: the index in
    the batch of each row, None while it is the identity. rejected: rows that steps refused, in
    batch positions. seen: results of expressions, by their canonical form.
    """

    __slots__ = ()

    @property
    def origins(self) -> Ints:
        """The index in the batch of each row."""
        return np.arange(self.count) if self.origin is None else self.origin

    def branch(self) -> Rows:
        """Return the rows for another branch, where other ones of them are dropped."""
        rows = Rows(self.columns.copy(), self.count, self.offsets)
        rows.times_ns, rows.origin, rows.seen = self.times_ns, self.origin, dict(self.seen)
        return rows

    def evaluate(self, bound: Bound) -> Values:
        """Return the expression over all rows; equal expressions are computed once."""
        values: Values | None = self.seen.get(bound.canonical)
        if values is None:
            tree = bound.tree
            if tree.operation == "col" and tree.kind in _NUMERIC:
                values = numbers(self.columns[tree.value], tree.kind)
            else:
                values = bound.evaluate(self.columns, self.count)
            self.seen[bound.canonical] = values
        return values

    def keep(self, mask: Mask) -> None:
        """Drop the rows for which ``mask`` is false."""
        kept = np.flatnonzero(mask)
        if len(kept) == self.count:
            return
        self.columns.keep(kept)
        self.origin = kept if self.origin is None else self.origin[kept]
        if self.times_ns is not None:
            self.times_ns = np.asarray(self.times_ns)[kept]
        if self.offsets is not None:
            self.offsets = self.offsets[kept]
        self.count = len(kept)
        self.seen = {}

    def reject(self, failed: Mapping[int, str], step: str) -> None:
        """Drop the failed rows and remember why."""
        if not failed:
            return
        mask = np.ones(self.count, np.bool_)
        for row, reason in failed.items():
            mask[row] = False
            at = row if self.origin is None else int(self.origin[row])
            # A user's message may hold half a surrogate pair, which no file can.
            said = reason.encode("utf-8", "backslashreplace").decode()
            self.rejected.append(RejectedRow(at, step, said))
        self.keep(mask)

    def reject_nulls(
        self, names: Iterable[str], step: str, but: npt.NDArray[np.bool_] | np.bool_ = np.False_
    ) -> None:
        """Drop rows in which one of these fields is null, except for the rows ``but``."""
        for name in self.columns.nullable(names):
            valid = self.columns.valid(name)
            if valid is not None and not (valid := valid | but).all():
                reason = f"the field {name!r} is null"
                self.reject(dict.fromkeys(np.flatnonzero(~valid).tolist(), reason), step)

    def run(self, steps: Sequence[EventNode]) -> None:
        """Pass the rows through ``steps``, of which none is a union."""
        for step in steps:
            if isinstance(step, Filter):
                self._filter(step)
            elif isinstance(step, Derive):
                self._derive(step)
            elif isinstance(step, ConstantJoin):
                self._join_constant(step)
            elif isinstance(step, FlatMap):
                self._flat_map(step)
            elif isinstance(step, Explode):
                self._explode(step)
            elif isinstance(step, Map):
                self._map_batch(step) if step.batch else self._map_rows(step)

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
        self.columns.add(derived)
        self.seen = {}
        self.reject(dict(sorted(failed.items())), step.name)

    def _join_constant(self, step: ConstantJoin) -> None:
        found = found_in(step.constant, self.columns, step.on)
        if step.how == "inner":
            self.keep(found >= 0)
            found = found[found >= 0]
        shown = zip(step.taken, step.added, strict=True)
        self.columns.add({field.name: rows_at(step.constant, name, found) for name, field in shown})
        self.seen = {}

    def _map_batch(self, step: Map) -> None:
        wanted = [field.name for field in made_by(step)]
        given: dict[str, npt.NDArray[Any]] = {}
        # A function need not handle the case of no rows, which only some batches have.
        if self.count:
            given = {field.name: read_only(self._array(field)) for field in step.fields_in}
            returned = self._returned(step, given, wanted)
        else:
            returned = {name: [] for name in wanted}
        try:
            self._take_over(step, returned, given)
        except SchemaError as error:
            raise NodeError(f"map {step.name!r}: {error}") from error

    def _returned(
        self, step: Map, given: Mapping[str, npt.NDArray[Any]], wanted: Sequence[str]
    ) -> Mapping[str, Any]:
        """Return the columns from a user's batch function, by field."""
        try:
            returned = called(step.function, given)
        except (Exception, SystemExit) as error:
            raise NodeError(
                f"map {step.name!r}: the function raised {type(error).__name__}: {error}"
            ) from error
        if not isinstance(returned, Mapping):
            raise NodeError(
                f"map {step.name!r}: the function must return a dict of arrays by field, not "
                f"{shown(returned)}"
            )
        for name in wanted:
            if name not in returned:
                raise NodeError(
                    f"map {step.name!r}: the function returned nothing for the field {name!r}"
                )
        return returned

    def _map_rows(self, step: Map) -> None:
        function = step.function
        instance = instances_of(step.row, [field.name for field in step.fields_in])

        def result_of(values: Sequence[Any]) -> Any:
            return function(instance(values))

        self._take_results(step, self._each(step.fields_in), result_of)

    def take_returned(self, step: Ask, returned: Sequence[Any]) -> None:
        """Replace each row by the result of a user's function for it."""
        self._take_results(step, returned, lambda result: result)

    def take_made(self, step: StepScan, made: Sequence[tuple[Any, ...]]) -> None:
        """Replace each row by its values of the fields that ``step`` decides, beside ``kept``."""
        given: dict[str, Any] = {}
        fits: dict[str, Any] = {}
        for at, field in enumerate(made_by(step)):
            column = plain_column(made, at, field)
            if column is None:
                given[field.name] = [row[at] for row in made]
            else:
                fits[field.name] = column
        self._take_over(step, given, {}, fits)

    def take_columns(self, step: StepScan, columns: dict[str, Any]) -> None:
        """Replace each row by these fields, which fit ``step``, beside ``kept``."""
        self.columns = Columns({name: self.columns[name] for name in step.kept} | columns)
        self.seen = {}

    def _take_results(
        self, step: Map | Ask, given: Iterable[Any], result_of: Callable[[Any], Any]
    ) -> None:
        """Replace each row by its result, made of ``given``; reject the rows without one."""
        wanted = [field.name for field in made_by(step)]
        made: list[tuple[Any, ...]] = []
        failed: dict[int, str] = {}
        for at, one in enumerate(given):
            try:
                made.append(attributes_of(result_of(one), wanted))
            except (Exception, SystemExit) as error:  # any of a user's function or attribute
                failed[at] = refusal_of(step.name, error)
        self.reject(failed, step.name)
        self._take_over(step, {name: [row[i] for row in made] for i, name in enumerate(wanted)}, {})

    def _flat_map(self, step: FlatMap) -> None:
        """Replace each row by the rows that a function makes of it, each with its place."""
        instance = instances_of(step.row, [field.name for field in step.fields_in])
        wanted = [field.name for field in step.schema.fields]
        made: list[tuple[Any, ...]] = []
        counts: list[int] = []
        failed: dict[int, str] = {}
        for at, values in enumerate(self._each(step.fields_in)):
            try:
                rows = step.function(instance(values))
                several = islice(_several(rows), FLAT_ROWS_MAX + 1)
                found = [attributes_of(row, wanted) for row in several]
                if len(found) > FLAT_ROWS_MAX:
                    raise ValueError(f"the function returned more than {FLAT_ROWS_MAX} rows")
                made += found
                counts.append(len(found))
            except (Exception, SystemExit) as error:  # any error of a user's function
                failed[at] = refusal_of(step.name, error)
        self.reject(failed, step.name)
        over = self._repeat(np.array(counts, np.int64))
        self.columns = Columns({})
        self.reject(over, step.name)
        made = [row for at, row in enumerate(made) if at not in over]
        self._take_over(step, {name: [row[i] for row in made] for i, name in enumerate(wanted)}, {})

    def _explode(self, step: Explode) -> None:
        """Replace each row by a row for each item of a list, each with its place."""
        (field,) = (one for one in step.fields_in if one.name == step.column)
        counts, items = items_of(self.columns[step.column], field)
        long = np.flatnonzero(counts > FLAT_ROWS_MAX)
        if len(long):
            kept = pa.array(np.repeat(counts <= FLAT_ROWS_MAX, counts))
            items = [one.filter(kept) for one in items]
            counts = np.delete(counts, long)
            self.reject(dict.fromkeys(long.tolist(), TOO_MANY_ROWS), step.name)
        self.columns.keep(np.repeat(np.arange(self.count), counts))
        over = self._repeat(counts)
        self.columns.add(dict(zip(step.into, items, strict=True)))
        self.seen = {}
        self.reject(over, step.name)

    def _repeat(self, counts: Ints) -> dict[int, str]:
        """Let each row be there so many times, at places that tell its index in its record.

        Returns the rows of records that have become too many.
        """
        at = np.repeat(np.arange(self.count), counts)
        self.origin = at if self.origin is None else self.origin[at]
        if self.times_ns is not None:
            self.times_ns = np.asarray(self.times_ns)[at]
        assert self.offsets is not None, "rows that multiply have places"
        self.offsets, over = renumbered(self.offsets[at], self.origin)
        self.count = len(at)
        return dict.fromkeys(over, TOO_MANY_ROWS)

    def _take_over(
        self,
        step: Map | FlatMap | Ask | StepScan,
        returned: Mapping[str, Any],
        given: Mapping[str, Any],
        fits: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Set the columns that a user's function returned; reject the rows that do not fit.

        given: its arguments. fits: columns that need no check. Raises SchemaError for a column that
        does not fit as a whole.
        """
        columns = {name: self.columns[name] for name in step.kept}
        misfits: dict[int, str] = {}
        for field in made_by(step):
            if field.name in fits:
                columns[field.name] = fits[field.name]
                continue
            what = f"the field {field.name!r}"
            if kind_of(type_of(field))[0] is Kind.TEXT and not has_logical(field.type):
                texts = self._texts(returned[field.name], given)
                if texts is not None:
                    columns[field.name] = texts
                    continue
            found = fitted(returned[field.name], type_of(field), what, self.count)
            columns[field.name] = _as_column(found, field)
            misfits = {**found.misfits, **misfits}
        self.columns = Columns(columns)
        self.seen = {}
        self.reject(dict(sorted(misfits.items())), step.name)
        required = [field.name for field in made_by(step) if not kind_of(type_of(field))[1]]
        self.reject_nulls(required, step.name)

    def _texts(self, returned: Any, given: Mapping[str, Any]) -> Any:
        """Return a function's texts, if they need no check.

        These are one of its arguments, which are read-only, and an array of Arrow's.
        """
        for name, array in given.items():
            if array is returned:
                column = self.columns[name]
                return column if isinstance(column, pa.StringArray) else None
        if isinstance(returned, pa.StringArray) and len(returned) == self.count:
            try:
                returned.validate(full=True)
            except pa.ArrowInvalid:
                return None
            return returned
        return None

    def _array(self, field: Field) -> npt.NDArray[Any]:
        """Return a column as a user's batch function gets it: NumPy, objects for text."""
        column = self.columns[field.name]
        kind, nullable = kind_of(type_of(field))
        if kind in _NUMERIC and not nullable:
            values: npt.NDArray[Any] = numbers(column, kind).values
            return array_of(values, field.type)
        if isinstance(column, pa.StringArray) and not (nullable and has_logical(field.type)):
            return array_of(column.to_numpy(zero_copy_only=False), field.type)
        return objects(values_of(as_list(column), field.type))

    def _each(self, fields: Sequence[Field]) -> Iterator[tuple[Any, ...]]:
        lists = [values_of(as_list(self.columns[field.name]), field.type) for field in fields]
        return zip(*lists, strict=True)


def refusal_of(step: str, error: BaseException) -> str:
    """Return the error of a user's function as a reason, for the record's dead letter.

    Raises NodeError, which ends the run, for an error of the machine.
    """
    reason = reason_of(error)
    if is_of_machine(error):
        raise NodeError(
            f"step {step!r}: the function raised {reason}: that is no fault of the record, so the "
            "run ends"
        ) from error
    return reason


def reason_of(error: BaseException) -> str:
    """Return why a user's function made no row."""
    try:
        said = str(error)
    except Exception as other:  # any error of a user's exception
        said = f"its text raised {type(other).__name__}"
    return f"{type(error).__name__}: {said}"


def made_by(step: Map | FlatMap | Ask | StepScan) -> list[Field]:
    """Return the fields that the function decides; the others are carried over."""
    return [field for field in step.schema.fields if field.name not in step.kept]


def renumbered(places: Ints, origins: Ints) -> tuple[Ints, list[int]]:
    """Return places, by record, with new indexes in their records; and which rows are too many.

    origins: the index in the batch of each row, which does not fall.
    """
    records = places // FLAT_ROWS_MAX
    index = np.arange(len(records)) - np.searchsorted(origins, origins)
    return records * FLAT_ROWS_MAX + index, np.flatnonzero(index >= FLAT_ROWS_MAX).tolist()


def _several(rows: Any) -> Iterator[Any]:
    """Return the rows from a flat_map's function."""
    try:
        if not isinstance(rows, (str, Mapping)):
            return iter(rows)
    except TypeError:
        pass
    raise TypeError(f"the function must return a list of rows, or yield them, not {_kind(rows)}")


def attributes_of(row: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """Return the fields of a row from a user's function.

    Errors have no values, so that records with one cause have one reason.
    """
    try:
        if isinstance(row, dict):
            return tuple([row[name] for name in names])
        return tuple([getattr(row, name) for name in names])
    except (AttributeError, KeyError):
        has = row.__contains__ if isinstance(row, dict) else partial(hasattr, row)
        missing = next((name for name in names if not has(name)), "")
        if isinstance(row, dict) or any(has(name) for name in names):
            raise TypeError(f"the function returned a {_kind(row)} without {missing!r}") from None
        raise TypeError(
            f"the function must return a dict or an object with {', '.join(names)}, not "
            f"{_kind(row)}"
        ) from None


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


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
        if column.type in _AS_THEY_ARE and not column.null_count:
            return list(column.to_numpy().tolist())
        return list(column.to_pylist())
    return list(column)


def _as_column(found: Fitted, field: Field) -> Any:
    """Return a user's result as a column of the field's type."""
    if kind_of(type_of(field))[0] is Kind.TEXT:
        return pa.array(found.values, pa.string())
    return Values(found.values, found.valid)
