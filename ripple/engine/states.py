"""The accumulators of one fold: its aggregates side by side, over one set of slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.aggregate import AggregateError, State
from ripple.engine.uncomputable import lacks_memory
from ripple.expression.bound import Values
from ripple.pipeline.plan import FoldAggregate

if TYPE_CHECKING:
    from ripple.engine.rows import Rows

Ints = npt.NDArray[np.int64]


class States:
    """One accumulator per aggregate and slot."""

    def __init__(self, aggregates: Sequence[FoldAggregate], *, retractable: bool) -> None:
        self._aggregates = aggregates
        self._states = [a.bound.state(retractable=retractable) for a in aggregates]
        inputs = [bound for aggregate in aggregates for bound in aggregate.inputs]
        self._computed = [bound for bound in inputs if bound.tree.operation != "col"]
        self._retractable = retractable
        self._room = 0

    def reserve(self, slots: int) -> None:
        """Make room for slots below ``slots``."""
        if slots > self._room:
            for state in self._states:
                state.resize(slots)
            self._room = slots

    def failed(self, rows: Rows) -> dict[int, str]:
        """Return the rows, with the reason, for which an input cannot be computed.

        If rows can be removed again, also those that a user's aggregate refuses to add to an empty
        state: whether a row is folded must not depend on which others are there.
        """
        failed: dict[int, str] = {}
        for bound in self._computed:
            failed.update(rows.evaluate(bound).failed)
        if self._retractable:
            for aggregate, state in zip(self._aggregates, self._states, strict=True):
                if state.may_refuse:
                    arguments = [rows.evaluate(bound) for bound in aggregate.inputs]
                    at, *values = _without_nulls(np.arange(rows.count), arguments, None)
                    refused = state.refused(len(at), *values)
                    failed.update({int(at[row]): reason for row, reason in refused.items()})
        return dict(sorted(failed.items()))

    def add(self, slots: Ints, rows: Rows, index: npt.NDArray[Any] | None) -> None:
        """Add events to slots; ``index`` says which row each slot gets, None for the same one."""
        for aggregate, state in zip(self._aggregates, self._states, strict=True):
            arguments = [rows.evaluate(bound) for bound in aggregate.inputs]
            if aggregate.aggregate.ordered:
                arguments += [Values(rows.times_ns), Values(rows.offsets)]
            state.add(*_without_nulls(slots, arguments, index))

    def change(self, slots: Ints, rows: Rows, *, remove: bool) -> None:
        """Add rows to slots, or remove them; for aggregates that do not depend on order."""
        for aggregate, state in zip(self._aggregates, self._states, strict=True):
            arguments = [rows.evaluate(bound) for bound in aggregate.inputs]
            (state.remove if remove else state.add)(*_without_nulls(slots, arguments, None))

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Values], dict[int, str]]:
        """Return (slots that can be read, every result column of them by name, why not the others).

        The reasons are by slot.
        """
        try:
            return slots, self._results(slots), {}
        except AggregateError:
            failed: dict[int, str] = {}
            for aggregate, state in zip(self._aggregates, self._states, strict=True):
                for slot, reason in _unreadable(state, slots):
                    failed.setdefault(slot, f"{aggregate.name!r}: {reason}")
            kept = slots[np.isin(slots, list(failed), invert=True)]
            return kept, self._results(kept), failed

    def _results(self, slots: Ints) -> dict[str, Values]:
        named: dict[str, Values] = {}
        for aggregate, state in zip(self._aggregates, self._states, strict=True):
            columns = state.results(slots)
            for (suffix, _), (values, valid) in zip(aggregate.bound.results, columns, strict=True):
                named[f"{aggregate.name}_{suffix}" if suffix else aggregate.name] = Values(
                    values, valid
                )
        return named

    def merge(self, into: Ints, source: Ints) -> None:
        """Move what the source slots hold to their partners."""
        for state in self._states:
            state.merge(into, source)

    def clear(self, slots: Ints) -> None:
        """Empty the slots."""
        for state in self._states:
            state.clear(slots)

    def dump(self, slots: Ints) -> dict[str, pa.Array]:
        """Return the accumulators as Arrow columns named ``aggregate.part``."""
        return {
            f"{aggregate.name}.{part}": array
            for aggregate, state in zip(self._aggregates, self._states, strict=True)
            for part, array in state.dump(slots).items()
        }

    def load(self, slots: Ints, table: pa.Table) -> None:
        """Take over what ``dump`` wrote."""
        for aggregate, state in zip(self._aggregates, self._states, strict=True):
            prefix = f"{aggregate.name}."
            state.load(
                slots,
                {
                    name.removeprefix(prefix): table.column(name).combine_chunks()
                    for name in table.column_names
                    if name.startswith(prefix)
                },
            )

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(state.nbytes for state in self._states)


def _unreadable(state: State, slots: Ints) -> Iterator[tuple[int, str]]:
    """Yield the slots whose results raise, and what: by halves, for they are few."""
    try:
        state.results(slots)
    except AggregateError as error:
        if lacks_memory(error):
            raise
        if len(slots) == 1:
            yield int(slots[0]), str(error)
            return
        middle = len(slots) // 2
        yield from _unreadable(state, slots[:middle])
        yield from _unreadable(state, slots[middle:])


def _without_nulls(
    slots: Ints, arguments: list[Values], index: npt.NDArray[Any] | None
) -> list[Any]:
    """Return slots and values for the rows in which no argument is null."""
    valid: npt.NDArray[np.bool_] | None = None
    for argument in arguments:
        if argument.valid is not None:
            valid = argument.valid if valid is None else valid & argument.valid
    if valid is not None and valid.all():
        valid = None
    values = [argument.values for argument in arguments]
    if index is not None:
        values = [_take(column, index) for column in values]
        valid = None if valid is None else valid[index]
    if valid is not None:
        slots = slots[valid]
        values = [_take(column, valid) for column in values]
    return [slots, *values]


def _take(column: Any, index: npt.NDArray[Any]) -> Any:
    if isinstance(column, pa.Array):
        return column.filter(pa.array(index)) if index.dtype == bool else column.take(index)
    if isinstance(column, list):
        return [column[i] for i in (np.flatnonzero(index) if index.dtype == bool else index)]
    return column[index]
