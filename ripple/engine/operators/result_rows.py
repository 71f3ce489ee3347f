"""From the results of a fold to the rows that its column shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ripple.core.errors import is_of_machine
from ripple.engine.graph.canonical import Form
from ripple.engine.kernels.columns import picked
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.rows import Rows, as_list
from ripple.engine.operators.uncomputable import Failure
from ripple.engine.snapshots.internal import internal
from ripple.model.aggregate import AggregateError
from ripple.model.expression.bound import Values, numbers
from ripple.model.expression.typed import Kind, kind_of
from ripple.model.keys.space import key_columns
from ripple.model.pipeline.nodes import EventNode, Filter, Fold, Map, type_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.column import Column, InputColumn
    from ripple.engine.kernels.states import States
    from ripple.model.aggregate.integers import Counts
    from ripple.model.keys.slots import SlotSet

    Ints = npt.NDArray[np.int64]
    # Slots that have a row, then per field the values and the masks (None: no nulls) of those rows.
    Computed = tuple[Ints, list[Any], list[Any]]
    Bounds = Callable[[Ints], dict[str, Any]]

_NO_BOUNDS: dict[str, Any] = {}

SHOWN = internal("shown")

COLUMN_KINDS = {Kind.FLOAT: "float", Kind.INT: "int", Kind.BOOL: "bool"}


class Results(Protocol):
    """State by slot, of which rows are made."""

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots with results, those by field, why there are none by slot)."""


class ShownField(NamedTuple):
    """A field as Arrow's only column, and its kind."""

    schema: pa.Schema
    kind: tuple[Kind, bool]


class ResultRows:
    """The fields of a fold's result rows that are not part of the key, and the steps on them."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.shows_all = not fold.steps
        """Whether there are no steps, or filters that each row passes now."""
        in_key = {field.name for field in fold.key}
        if fold.window is not None:
            in_key.add("window_start_ns")
        self.fields = tuple(field for field in fold.row if field.name not in in_key)
        self.arrow_fields = arrow_fields(self.fields)
        self._kinds = [kind_of(type_of(field)) for field in self.fields]
        self.column_fields = column_fields(self.arrow_fields, self._kinds)

    def show(
        self,
        column: InputColumn,
        states: States,
        slots: Ints,
        bounds: Bounds | None = None,
    ) -> dict[int, Failure]:
        """Write the rows of ``slots`` to an input column; return the uncomputable ones."""
        if self.shown_as_they_are(column, states, slots, bounds):
            return {}
        kept, values, valid, failed = self.computed(column, states, slots, bounds)
        if len(kept) < len(slots):
            column.erase(slots[np.isin(slots, kept, invert=True)])
        if len(kept):
            column.write(kept, values, valid)
        return failed

    @property
    def names(self) -> list[str]:
        """The names of the fields."""
        return [field.name for field in self.fields]

    def shown_field(self, name: str) -> ShownField:
        """Return a field by its name."""
        at = self.names.index(name)
        return ShownField(pa.schema([self.arrow_fields[at]]), self._kinds[at])

    def lay_out(self, states: States) -> None:
        """Tell ``states`` which of its results are which fields."""

        def typed(at: int, values: Any, valid: Any) -> tuple[Any, Any]:
            return typed_column(Values(values, valid), *self._kinds[at])

        states.lay_out([field.name for field in self.fields], typed)

    def shown_as_they_are(
        self, column: Column, states: States, slots: Ints, bounds: Bounds | None = None
    ) -> bool:
        """Write the results of ``slots``, unless there are steps on them, or one is not there."""
        if self.fold.steps:
            return False
        try:
            states.show(column, slots, _NO_BOUNDS if bounds is None else bounds(slots))
        except AggregateError as error:
            if is_of_machine(error):
                raise
            return False
        return True

    def shows_touched(
        self,
        column: Column,
        states: States,
        touched: SlotSet,
        members: Counts | None = None,
    ) -> bool:
        """Do the same with the slots of ``touched``, which is empty then; see States."""
        if not self.shows_all:
            return False
        try:
            return states.show_touched(column, touched, members)
        except AggregateError as error:
            if is_of_machine(error):
                raise
            return False

    def computed(
        self, column: Column, states: Results, slots: Ints, bounds: Bounds | None = None
    ) -> tuple[Ints, list[Any], list[Any], dict[int, Failure]]:
        """Return (slots that have a row, values per field, masks per field, failures by slot).

        bounds: returns the window fields of slots, if they have any. A filter on results takes
        rows away. A row that an aggregate or a step cannot compute is a function of its slot's
        state like any other: it is absent, in any batch of rows.
        """
        slots, results, unreadable = states.results(slots)
        failed = {slot: Failure.of(self.fold.name, why) for slot, why in unreadable.items()}
        named: dict[str, Any] = {**(bounds(slots) if bounds else {}), **results}
        if self.fold.steps:
            named = {**key_columns(column.keys, slots), **named}
            pieces = self._stepped(named, slots, failed)
        else:
            pieces = [self._typed(named, slots)]
        return (*(pieces[0] if len(pieces) == 1 else self._joined(pieces)), failed)

    def passes(
        self, column: Column, slots: Ints, named: Mapping[str, Any]
    ) -> tuple[npt.NDArray[np.bool_], dict[int, Failure]]:
        """Return which rows pass the filters, the only steps; and failures by slot.

        named: the fields that the filters read, without the key.
        """
        rows = Rows({**key_columns(column.keys, slots), **named}, len(slots))
        rows.run(self.fold.steps)
        kept = np.zeros(len(slots), np.bool_)
        kept[rows.origins] = True
        return kept, _failed(rows, slots)

    def _stepped(
        self, columns: dict[str, Any], slots: Ints, failed: dict[int, Failure]
    ) -> list[Computed]:
        """Pass rows through the steps; a batch function that raises gets them by halves."""
        rows = Rows(columns, len(slots))
        for step in self.fold.steps:
            if not rows.count:  # functions are never called with no rows
                break
            try:
                rows.run((step,))
            except Exception as error:
                if not isinstance(step, Map) or is_of_machine(error):
                    raise
                if len(slots) == 1:
                    reason = str(error).removeprefix(f"map {step.name!r}: ")
                    failed[int(slots[0])] = Failure.of(step.name, reason)
                    return []
                first = np.arange(len(slots)) < len(slots) // 2
                return [
                    piece
                    for half in (first, ~first)
                    for piece in self._stepped(_chosen(columns, half), slots[half], failed)
                ]
        failed.update(_failed(rows, slots))
        if not rows.count:
            return []
        return [self._typed(rows.columns, slots if rows.origin is None else slots[rows.origin])]

    def _typed(self, named: Mapping[str, Any], slots: Ints) -> Computed:
        kinds = zip(self.fields, self._kinds, strict=True)
        typed = [typed_column(named[field.name], *kind) for field, kind in kinds]
        return slots, [values for values, _ in typed], [valid for _, valid in typed]

    def _joined(self, pieces: list[Computed]) -> Computed:
        """Return any number of pieces as one."""
        slots = np.concatenate([np.empty(0, np.int64), *(piece[0] for piece in pieces)])
        values: list[Any] = []
        valid: list[Any] = []
        for at, (kind, nullable) in enumerate(self._kinds):
            parts = [piece[1][at] for piece in pieces]
            if kind in COLUMN_KINDS:
                values.append(
                    np.concatenate(parts) if parts else typed_column([], kind, nullable)[0]
                )
            else:
                values.append([value for part in parts for value in as_list(part)])
            masks = [
                np.ones(len(piece[0]), np.bool_) if piece[2][at] is None else piece[2][at]
                for piece in pieces
            ]
            whole = np.concatenate([np.empty(0, np.bool_), *masks])
            valid.append(None if whole.all() else whole)
        return slots, values, valid

    def dump(self, column: Column, slots: Ints) -> dict[str, pa.Array]:
        """Return the shown rows of ``slots``: whether there is one, and its fields."""
        shown = column.has_rows(slots)
        arrays = row_arrays(column.rows(slots), shown)
        named = {_shown(f.name): array for f, array in zip(self.fields, arrays, strict=True)}
        return {SHOWN: pa.array(shown), **named}

    def load(self, column: InputColumn, slots: Ints, table: pa.Table) -> None:
        """Load the columns of ``dump``."""
        shown = table.column(SHOWN).to_numpy()
        values, masks = [], []
        for field, kind in zip(self.fields, self._kinds, strict=True):
            array = table.column(_shown(field.name)).combine_chunks().filter(pa.array(shown))
            value, valid = typed_column(array, *kind)
            values.append(value)
            masks.append(valid)
        column.write(slots[shown], values, masks)


def read_by_filters(steps: Sequence[EventNode]) -> set[str] | None:
    """Return the fields that steps read, all of which are filters; None if one is not."""
    filters = [step for step in steps if isinstance(step, Filter)]
    if len(filters) < len(steps):
        return None
    return {name for step in filters for name in step.condition.columns}


def _failed(rows: Rows, slots: Ints) -> dict[int, Failure]:
    return {int(slots[bad.row]): Failure.of(bad.step, bad.reason) for bad in rows.rejected}


def _shown(field: str) -> str:
    return f"{SHOWN}.{field}"


def _chosen(columns: dict[str, Any], mask: npt.NDArray[np.bool_]) -> dict[str, Any]:
    rows = np.flatnonzero(mask)
    return {name: picked(column, rows) for name, column in columns.items()}


def column_fields(
    fields: Sequence[pa.Field], kinds: Sequence[tuple[Kind, bool]]
) -> list[tuple[str, str | Form, bool]]:
    """Return the fields of a column of rows.

    kinds: of their values, and whether these may be null.
    """
    return [
        (field.name, COLUMN_KINDS[kind] if kind in COLUMN_KINDS else Form(field.type), nullable)
        for field, (kind, nullable) in zip(fields, kinds, strict=True)
    ]


def row_arrays(
    gathered: list[tuple[Any, Any]], mask: npt.NDArray[np.bool_] | None
) -> list[pa.Array]:
    """Return gathered columns as Arrow arrays, null where ``mask`` is false or the value is."""
    arrays = []
    for values, valid in gathered:
        present = mask
        if valid is not None:
            own: npt.NDArray[np.bool_] = valid.view(np.bool_)
            present = own if mask is None else own & mask
        null = None if present is None or present.all() else ~present
        if isinstance(values, pa.Array):
            arrays.append(values)  # null in such a row anyway
        else:
            arrays.append(pa.array(values, mask=null))
    return arrays


def typed_column(column: Any, kind: Kind, nullable: bool) -> tuple[Any, Any]:
    """Return values and mask as a column takes them."""
    if kind in COLUMN_KINDS:
        values = numbers(column, kind)
        return values.values, values.valid
    valid = None
    if isinstance(column, Values) and isinstance(column.values, pa.Array):
        column, valid = column.values, column.valid
    if isinstance(column, pa.Array):
        if not nullable:
            return column, None
        there = column.is_valid().to_numpy(zero_copy_only=False)
        return column, there if valid is None else there & valid
    listed = as_list(column)
    if not nullable:
        return listed, None
    return listed, np.array([value is not None for value in listed], np.bool_)
