"""The ordered parts by type: their contents and their dumps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.model.aggregate.contract import Column, Slots, Values, is_float, is_integer
from ripple.model.aggregate.ordered import OrderedEvents, OrderedValues
from ripple.model.aggregate.parts import numpy_of
from ripple.model.aggregate.plain import PlainEvents, PlainValues
from ripple.model.aggregate.running import Running, RunningEvents, RunningValues
from ripple.model.schema.types import TEXTS, Bool, FieldType

if TYPE_CHECKING:
    from collections.abc import Mapping


class NumberValues(OrderedValues):
    """Ordered numbers, dumped as lists of values and of counts."""

    def largest(self, slots: Slots, limit: int) -> pa.Array:
        """Return up to ``limit`` largest values of each slot, descending, as lists."""
        offsets, values = self.upper(slots, limit)
        return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return sorted values and their counts as lists."""
        offsets, values, counts = self.encode(slots)
        return lists(offsets, values=values, counts=counts)

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' values by dumped ones."""
        kind = np.int64 if self.integer else np.float64
        offsets, values = unlisted(arrays["values"], kind)
        self.decode(slots, offsets, values, unlisted(arrays["counts"], np.int64, offsets)[1])


class NumberEvents(OrderedEvents):
    """Ordered events, dumped as lists of places, values and counts."""

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return sorted events and their counts as lists."""
        offsets, values, time_ns, offset, counts = self.encode(slots)
        return lists(offsets, time_ns=time_ns, offset=offset, values=values, counts=counts)

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' events by dumped ones."""
        kind = np.int64 if self.integer else np.float64
        offsets, values = unlisted(arrays["values"], kind)
        rest = [unlisted(arrays[k], np.int64, offsets)[1] for k in ("time_ns", "offset", "counts")]
        self.decode(slots, offsets, values, *rest)


class ExtremeValues(RunningValues):
    """Running extremes, dumped as one column with nulls."""

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return one column, null where nothing was added."""
        values, valid = self.result(slots)
        return {"": pa.array(values, mask=~valid)}

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' extremes by dumped ones."""
        self.clear(slots)
        held = present(arrays[""])
        kind = np.int64 if self.integer else np.float64
        self.add(slots[held], numpy_of(arrays[""].filter(pa.array(held)), kind))


class EdgeEvents(RunningEvents):
    """Running first or last events, dumped as columns with nulls."""

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return place and value, null where nothing was added."""
        values, valid = self.result(slots)
        _, places, _ = self.encode(slots)
        columns = {"time_ns": places[0], "offset": places[1], "values": values}
        return {name: pa.array(column, mask=~valid) for name, column in columns.items()}

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' events by dumped ones."""
        self.clear(slots)
        held = present(arrays["values"])
        kinds = (np.int64 if self.integer else np.float64, np.int64, np.int64)
        columns = [
            numpy_of(arrays[name].filter(pa.array(held)), kind)
            for name, kind in zip(("values", "time_ns", "offset"), kinds, strict=True)
        ]
        self.add(slots[held], *columns)


def ordered_values(of: FieldType) -> NumberValues | PlainValues:
    """Return empty multisets of values of this type."""
    if isinstance(of, (*TEXTS, Bool)):
        return PlainValues(of)
    return NumberValues(integer=is_integer(of))


def ordered_events(of: FieldType) -> NumberEvents | PlainEvents:
    """Return empty multisets of events with values of this type."""
    if isinstance(of, (*TEXTS, Bool)):
        return PlainEvents(of)
    return NumberEvents(integer=is_integer(of))


def extremes(
    of: FieldType, *, last: bool, retractable: bool
) -> tuple[Any, Callable[[Slots], Column]]:
    """Return a part that knows the smallest or largest value, and how to read that."""
    if not retractable and (is_float(of) or is_integer(of)):
        running = ExtremeValues(integer=is_integer(of), last=last)
        return running, running.result
    if not retractable:
        from ripple.model.aggregate.best_texts import BestValues  # noqa: PLC0415 - most are of numbers

        best = BestValues(of, last=last)
        return best, best.result
    part = ordered_values(of)
    return part, lambda slots: end_of(part, slots, last=last)


def end_of(part: NumberValues | PlainValues, slots: Slots, *, last: bool) -> Column:
    """Read the smallest or largest values of ordered ones."""
    ranks = np.full(len(slots), -1 if last else 0, np.int64)
    return part.select(slots, ranks), part.distinct(slots) > 0


def edges(of: FieldType, *, last: bool, retractable: bool) -> tuple[Any, Callable[[Slots], Column]]:
    """Return a part that knows the first or last event, and how to read its value."""
    if not retractable and (is_float(of) or is_integer(of)):
        running: Running = EdgeEvents(integer=is_integer(of), last=last)
        return running, running.result
    if not retractable:
        from ripple.model.aggregate.best_texts import BestEvents  # noqa: PLC0415 - most are of numbers

        best = BestEvents(of, last=last)
        return best, best.result
    part = ordered_events(of)
    return part, lambda slots: part.edge(slots, last)


def lists(offsets: Slots, **columns: Any) -> dict[str, pa.Array]:
    """Return one list column for each column, all with the same offsets."""
    starts = pa.array(offsets)
    return {
        name: pa.LargeListArray.from_arrays(starts, pa.array(column))
        for name, column in columns.items()
    }


def unlisted(array: pa.Array, kind: type[Any], like: Slots | None = None) -> tuple[Slots, Any]:
    """Return the offsets, from 0, and the values of a list column; raises ``ValueError``."""
    if array.null_count:
        raise ValueError(f"{array.null_count} nulls where none may be")
    offsets = array.offsets.to_numpy().astype(np.int64)
    offsets -= offsets[0]
    if like is not None and not np.array_equal(offsets, like):
        raise ValueError("columns of unequal lengths")
    return offsets, numpy_of(array.flatten(), kind)


def taken(values: Values, rows: Slots) -> Values:
    """Return the values at these rows."""
    if isinstance(values, list):
        return [values[row] for row in rows]
    return values.take(pa.array(rows)) if isinstance(values, pa.Array) else values[rows]


def present(array: pa.Array) -> Any:
    """Return the mask of an Arrow array's values that are not null."""
    return array.is_valid().to_numpy(zero_copy_only=False)
