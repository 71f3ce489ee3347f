"""Users' own aggregates, in Python."""

from __future__ import annotations

import builtins
import datetime as dt
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.arguments import need_function, need_text, shown
from ripple.core.calls import called
from ripple.core.errors import PlanError, is_of_machine
from ripple.model.aggregate.contract import Aggregate, Bound, Column, Input, Slots, State, Values
from ripple.model.aggregate.errors import AggregateError, StateError
from ripple.model.aggregate.parts import listed
from ripple.model.aggregate.portable import of_text, to_text
from ripple.model.schema.columns import fitted
from ripple.model.schema.logical.values import values_of
from ripple.model.schema.types import (
    Bool,
    Bytes,
    Date,
    DateTime,
    FieldType,
    Float,
    Int64,
    Option,
    String,
    Uuid,
)
from ripple.model.schema.values import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

PYTHON_TYPES: dict[type, FieldType] = {
    bool: Bool(),
    float: Float(),
    int: Int64(),
    str: String(),
    dt.date: Date(),
    dt.datetime: DateTime(),
    uuid.UUID: Uuid(),
    bytes: Bytes(),
}
STATE_BYTES = 200  # a guess for one small Python state


@called("rp.custom", '"FIELD"')
def custom(
    *inputs: Input,
    init: Callable[[], Any],
    add: Callable[..., Any],
    result: Callable[[Any], Any],
    type: FieldType | type,  # noqa: A002 - reads as a declaration where it is called
    remove: Callable[..., Any] | None = None,
    merge: Callable[[Any, Any], Any] | None = None,
    name: str = "custom",
) -> Aggregate:
    """Make an aggregate of your own.

    ``init()`` returns an empty state, ``add(state, *values)`` and ``remove(state, *values)``
    return the state with one row more or less, ``merge(state, state)`` that of both rows, and
    ``result(state)`` the result of ``type`` (bool, int, float, str, date, datetime, UUID, a decimal
    as a record declares it, or a field type); None means none, for an ``Option``. ``remove`` must
    undo ``add`` exactly, in any order: :func:`check_inverse` tests that. Without it, the aggregate
    serves where nothing is retracted; without ``merge``, where windows do not merge. States are
    kept in checkpoints, so they consist of the types in :mod:`ripple.model.aggregate.portable`.

    ``result`` may raise: then the group has no row until it can be read again. Over the results of
    another fold, ``add`` may raise for values that it refuses in any state: then their row is not
    folded. Otherwise ``add``, ``remove`` and ``merge`` must not raise; the run would end.

    >>> spread = custom("price", init=lambda: 0, add=lambda s, x: s ^ x,
    ...                 remove=lambda s, x: s ^ x, result=lambda s: s, type=int, name="xor")
    """
    need_text("custom: name", name)
    needed = {"init": init, "add": add, "result": result}
    for argument, function in (*needed.items(), ("remove", remove), ("merge", merge)):
        if argument in needed or function is not None:
            need_function(f"{name}: {argument}", function)
    of = PYTHON_TYPES.get(type) if isinstance(type, builtins.type) else type
    for extra in getattr(type, "__metadata__", ()):  # of Annotated[decimal.Decimal, ...]
        of = extra
    if not isinstance(of, FieldType):
        raise PlanError(
            f"{name}: type must be bool, int, float, str, date, datetime, UUID, a decimal such as"
            f" rp.Decimal(18, 4) or a field type, not {shown(type)}"
        )
    return Custom(inputs, name, init, add, result, of, remove, merge)


@dataclass(frozen=True)
class Custom(Aggregate):
    """Four functions and a name."""

    name: str  # type: ignore[misc]  # each has its own
    init: Callable[[], Any]
    step: Callable[..., Any]
    read: Callable[[Any], Any]
    of: FieldType
    unstep: Callable[..., Any] | None
    join: Callable[[Any, Any], Any] | None

    @property
    def decomposes(self) -> bool:
        """With ``merge=``, for states of any size."""
        return self.join is not None

    @property
    def merges(self) -> bool:
        """Whether there is ``merge=``."""
        return self.join is not None

    def _bind(self, *types: FieldType) -> Bound:
        def make(retractable: bool) -> State:
            if retractable and self.unstep is None:
                raise PlanError(f"{self} cannot retract: give it remove=, which undoes add")
            return CustomState(self, types)

        return Bound((("", self.of),), make)


class CustomState(State):
    """One Python object a slot."""

    may_refuse = True

    def __init__(self, aggregate: Custom, types: tuple[FieldType, ...]) -> None:
        self._aggregate, self._types = aggregate, types
        self._states: list[Any] = []

    def resize(self, slots: int) -> None:
        """Set the number of slots; new ones are empty."""
        del self._states[slots:]
        while len(self._states) < slots:
            self._states.append(self._empty())

    def add(self, slots: Slots, *values: Values) -> None:
        """Call ``add`` for each row."""
        self._each("add", self._aggregate.step, slots, values)

    def remove(self, slots: Slots, *values: Values) -> None:
        """Call ``remove`` for each row."""
        self._each("remove", self._aggregate.unstep, slots, values)

    def _each(
        self, what: str, function: Callable[..., Any] | None, slots: Slots, columns: Any
    ) -> None:
        if function is None:
            raise AggregateError(f"{self._aggregate} has no {what}=: give it one")
        for slot, row in zip(slots.tolist(), _rows(len(slots), columns, self._types), strict=True):
            self._states[slot] = self._call(what, function, self._states[slot], *row)

    def _empty(self) -> Any:
        return self._call("init", self._aggregate.init)

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            shown = ", ".join(map(repr, arguments))
            raise AggregateError(f"{self._aggregate}: {what}({shown}) raised {error!r}") from error

    def refused(self, rows: int, *values: Values) -> dict[int, str]:
        """Call ``add`` with an empty state for each row."""
        add, found = self._aggregate.step, {}
        for at, row in enumerate(_rows(rows, values, self._types)):
            empty = self._empty()  # without it no record is to blame
            try:
                self._call("add", add, empty, *row)
            except AggregateError as error:
                if is_of_machine(error):
                    raise
                found[at] = str(error)
        return found

    def merge(self, into: Slots, source: Slots) -> None:
        """Call ``merge`` for each pair; the source starts again."""
        join = self._aggregate.join
        if join is None:
            raise AggregateError(f"{self._aggregate} cannot be merged: give it merge=")
        for to, slot in zip(into.tolist(), source.tolist(), strict=True):
            if to != slot:
                self._states[to] = self._call("merge", join, self._states[to], self._states[slot])
                self._states[slot] = self._empty()

    def clear(self, slots: Slots) -> None:
        """Start again."""
        for slot in slots.tolist():
            self._states[slot] = self._empty()

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Call ``result`` for each slot."""
        read, of = self._aggregate.read, self._aggregate.of
        found = [self._call("result", read, self._states[slot]) for slot in slots.tolist()]
        column = fitted(found, of, f"{self._aggregate}: the result")
        for reason in column.misfits.values():
            raise AggregateError(reason)
        if isinstance(of, Option):
            return ((column.values, column.valid),)
        if column.valid is not None:
            raise AggregateError(f"{self._aggregate}: the result must be {name_of(of)}, not None")
        return ((column.values, None),)

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return the states as text, canonical as far as the user's states are."""
        texts = [to_text(self._states[slot]) for slot in slots.tolist()]
        return {"state": pa.array(texts, pa.large_string())}

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' states by dumped ones; raises ``StateError``."""
        if "state" not in arrays or len(arrays["state"]) != len(slots):
            raise StateError(f"{self._aggregate}: the dump has no state for each slot")
        for slot, text in zip(slots.tolist(), arrays["state"].to_pylist(), strict=True):
            self._states[slot] = of_text(text)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held, estimated."""
        return STATE_BYTES * len(self._states)


def _rows(
    count: int, columns: tuple[Values, ...], types: tuple[FieldType, ...]
) -> Iterable[tuple[Any, ...]]:
    """Return rows as functions of users have them: dates, and not their numbers."""
    values = [values_of(listed(one), of) for one, of in zip(columns, types, strict=True)]
    return zip(*values, strict=True) if columns else [()] * count
