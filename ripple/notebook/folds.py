"""Which fold of a column a request is for, and aggregates bound to a column's fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.arguments import need_bool, need_function, shown
from ripple.core.errors import GraphError, PlanError
from ripple.engine.graph.arguments import Options, cell_options
from ripple.model import aggregate as aggregates
from ripple.model.aggregate.contract import Aggregate, is_float, is_integer
from ripple.model.aggregate.single import as_python
from ripple.model.expression import as_column
from ripple.model.expression.bound import Values
from ripple.model.expression.typed import unknown_field
from ripple.model.schema.types import TEXTS, Option
from ripple.notebook.column_fold import AggregateFold, FloatSum, FunctionFold, IntSum, RowCount

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.graph.cell import Cell
    from ripple.model.aggregate.contract import Bound, State
    from ripple.model.expression.bound import Bound as BoundExpr
    from ripple.model.schema.types import FieldType
    from ripple.notebook.keyed import KeyedColumn
    from ripple.notebook.rows import Gathered, RowType

_ZERO = np.zeros(1, np.int64)


def fold(
    column: KeyedColumn[Any, Any],
    what: Any,
    add: Callable[[Any, Any], Any] | None = None,
    remove: Callable[[Any, Any], Any] | None = None,
    *,
    approximate: bool = False,
    **options: Any,
) -> Cell[Any]:
    """Return a cell that folds the rows of ``column``.

    what: an aggregate over its fields, such as ``rp.stddev("price")``; or the initial total, for
    ``add(total, row)`` and ``remove(total, row)``, which must undo ``add`` exactly in any order of
    rows, unless ``approximate``. options: equal or cutoff, name, serializer, as of a cell.
    """
    if isinstance(what, Aggregate):
        if add is not None or remove is not None or approximate:
            raise GraphError(f"fold: {what} knows how to add and remove; give it alone")
        return _aggregate_fold(column, what, "fold", options)
    if add is None or remove is None:
        raise GraphError(
            "fold: what must be an aggregate, or an initial total with add and remove, not "
            f"{shown(what)} alone"
        )
    need_function("fold: add", add, GraphError)
    need_function("fold: remove", remove, GraphError)
    need_bool("fold: approximate", approximate, GraphError)
    return FunctionFold(column, what, add, remove, approximate, *_options("fold", options))


def sum_of(column: KeyedColumn[Any, Any], field: str | None, **options: Any) -> Cell[Any]:
    """Return the exact sum of a field."""
    place, of = _field(column.row_type, field, "sum")
    if is_float(of):
        return FloatSum(column, place, *_options("sum", options))
    if is_integer(of):
        return IntSum(column, place, *_options("sum", options))
    raise aggregates.sum(column.row_type.names[place]).misfit("a number", of)


def count_of(column: KeyedColumn[Any, Any], field: str | None, **options: Any) -> Cell[int]:
    """Return the number of rows, or of those in which a field is not null."""
    if field is None:
        return RowCount(column, *_options("count", options))
    place, _ = _field(column.row_type, field, "count")
    return _aggregate_fold(column, aggregates.count(column.row_type.names[place]), "count", options)


def aggregate_of(
    name: str, column: KeyedColumn[Any, Any], field: str | None, **options: Any
) -> Cell[Any]:
    """Return the aggregate of this name over one field."""
    place, _ = _field(column.row_type, field, name)
    aggregate = getattr(aggregates, name)(column.row_type.names[place])
    return _aggregate_fold(column, aggregate, name, options)


@dataclass(frozen=True, slots=True)
class BoundAggregate:
    """An aggregate over the fields of a column's rows."""

    names: tuple[str, ...]
    types: Mapping[str, FieldType]
    inputs: tuple[BoundExpr, ...]
    bound: Bound

    def state(self) -> State:
        """Return an empty state of one slot."""
        state = self.bound.state(retractable=True)
        state.resize(1)
        return state

    def change(
        self,
        state: State,
        rows: Sequence[Gathered],
        kept: npt.NDArray[np.bool_] | None,
        *,
        remove: bool,
    ) -> None:
        """Add gathered rows, or remove them; only those ``kept``, if given.

        Raises ArithmeticError, before anything was changed, for a row with failed inputs.
        """
        count = len(rows[0][0]) if kept is None else int(np.count_nonzero(kept))
        columns = {
            name: self._column(name, gathered, kept)
            for name, gathered in zip(self.names, rows, strict=True)
        }
        arrays = [bound.evaluate(columns, count) for bound in self.inputs]
        valid = np.ones(count, np.bool_)
        for found in arrays:
            for reason in found.failed.values():
                raise ArithmeticError(reason)
            if found.valid is not None:
                valid &= found.valid
        values = [_taken(found.values, valid) for found in arrays]
        slots = np.zeros(int(np.count_nonzero(valid)), np.int64)
        (state.remove if remove else state.add)(slots, *values)

    def _column(self, name: str, gathered: Gathered, kept: npt.NDArray[np.bool_] | None) -> Values:
        values, valid = gathered
        mask = None if valid is None else valid.view(np.bool_)
        if kept is not None:
            values = _taken(values, kept)
            mask = None if mask is None else mask[kept]
        of = self.types[name]
        if isinstance(of.of if isinstance(of, Option) else of, TEXTS):
            return Values(pa.array(values, pa.string()), mask)
        return Values(values, mask)

    def result(self, state: State) -> Any:
        """Return the result; a dict by suffix for an aggregate with several, None for none."""
        found = {
            suffix: None if valid is not None and not valid[0] else as_python(values[0])
            for (suffix, _), (values, valid) in zip(
                self.bound.results, state.results(_ZERO), strict=True
            )
        }
        return found[""] if list(found) == [""] else found


def _aggregate_fold(
    column: KeyedColumn[Any, Any], aggregate: Aggregate, method: str, options: Mapping[str, Any]
) -> Cell[Any]:
    if aggregate.ordered:
        raise PlanError(f"{aggregate} needs event times, which the rows of a column do not have")
    types = column.row_type.types
    inputs = tuple(as_column(x).bind(types) for x in aggregate.inputs)
    bound = aggregate.bind(tuple(expr.type for expr in inputs))
    over = BoundAggregate(column.row_type.names, types, inputs, bound)
    return AggregateFold(column, over, *_options(method, options))


def _options(method: str, options: Mapping[str, Any]) -> Options:
    for name in options:
        if name not in ("equal", "cutoff", "name", "serializer"):
            raise GraphError(
                f"{method}: there is no option {name!r}; there are equal, cutoff, name, serializer"
            )
    return cell_options(method, **options)


def _field(row_type: RowType, name: str | None, what: str) -> tuple[int, FieldType]:
    """Return the place of a field and its type without Option."""
    if name is None:
        if len(row_type.fields) != 1:
            raise GraphError(f"{what} of which field? There are {', '.join(row_type.names)}")
        name = row_type.names[0]
    if not isinstance(name, str) or name not in row_type.names:
        raise unknown_field(name, row_type.types)
    of = row_type.types[name]
    return row_type.names.index(name), of.of if isinstance(of, Option) else of


def _taken(values: Any, mask: npt.NDArray[np.bool_]) -> Any:
    if mask.all():
        return values
    if isinstance(values, list):
        return [value for value, keep in zip(values, mask.tolist(), strict=True) if keep]
    return values.filter(pa.array(mask)) if isinstance(values, pa.Array) else values[mask]
