"""A user's function of a state and a row, of ``.scan(...)``, called for one row."""

from __future__ import annotations

from collections.abc import Sized
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ripple.engine.kernels.state_call import Filled, GivenRows, StateCall
from ripple.engine.operators.rows import as_list, attributes_of, made_by
from ripple.engine.operators.step_columns import plain_kind
from ripple.model.expression.bound import Values
from ripple.model.pipeline.nodes import type_of
from ripple.model.pipeline.waiting_nodes import LIST_MAX, PositionScan
from ripple.model.records.instances import instances_of
from ripple.model.schema.columns import fitted
from ripple.model.schema.logical.fields import has_logical
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.logical.values import numbers_of, values_of
from ripple.model.schema.nested import paths_in
from ripple.model.schema.types import Dict, List, Logical, Option, bare_type
from ripple.model.window.watermark import EVENT_TIME_NS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from ripple.engine.operators.position_step import PositionStep
    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.nodes import Fields
    from ripple.model.pipeline.waiting_nodes import StepScan
    from ripple.model.schema.types import FieldType

    Call: TypeAlias = Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, Any]]
    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

Stored: TypeAlias = tuple[Any, ...]
"""A state, or a row's new fields, as plain values in the order of their declaration."""


class Applied(NamedTuple):
    """What rows became at once: their columns, which have one, and why some failed."""

    columns: dict[str, Any]
    kept: Mask
    failed: Mapping[int, Exception]


class StateStep:
    """Calls the function with a state that it may change, and returns the new state and the result.

    A value is stored as a checkpoint gives it back, so that no restart shows in a result.
    The objects of state and row are the same in all calls, and hold nothing between them.
    """

    def __init__(self, node: StepScan) -> None:
        names = tuple(field.name for field in node.fields_in)
        self.call = _call_of(node, node.function, _rows_of(node.row, names))
        """Takes a state and a row's values; returns the state after it, and the values of its
        result, None for no row. Raises any error of the function, and TypeError for values that do
        not fit."""
        self._node = node

    def given(self, columns: Mapping[str, Any]) -> GivenRows:
        """Return the values of rows, by their fields."""
        fields = self._node.fields_in
        return GivenRows([list(values_of(as_list(columns[one.name]), one.type)) for one in fields])

    def make(self, rows: Rows, made: Sequence[Stored]) -> None:
        """Replace each row by its result."""
        rows.take_made(self._node, made)

    def apply(self, states: list[Stored], slots: Ints, begins: Mask, rows: Rows) -> Applied | None:
        """Apply all rows at once, where the step can: it cannot."""
        del states, slots, begins, rows
        return None

    def state_of(self, values: Stored) -> Stored:
        """Return a state as it is kept, of the values of a checkpoint."""
        return values

    def result_of(self, values: Stored) -> Stored:
        """Return a result as it is kept, of the same."""
        return values


def step_of(node: StepScan) -> StateStep | PositionStep:
    """Return the step of a scan."""
    if isinstance(node, PositionScan):
        # Few scans are of positions.
        from ripple.engine.operators.position_step import PositionStep  # noqa: PLC0415

        return PositionStep(node)
    return StateStep(node)


def timer_calls(node: StepScan) -> tuple[Call, ...]:
    """Return the calls of a scan's timers: each takes a state and the time, in a tuple."""
    return tuple(_call_of(node, function, itemgetter(0)) for _, function in node.timers)


def _call_of(
    node: StepScan, function: Callable[[Any, Any], Any], row: Filled | Callable[[Any], Any]
) -> Call:
    """Return a call of a function with a state and a row; row: makes it of its values."""
    made = tuple(made_by(node))
    wanted = tuple(field.name for field in made)
    call = StateCall(
        function,
        Filled(_changeable(node.state), tuple(field.name for field in node.state_fields)),
        row,
        _kinds_of(node.state_fields),
        wanted,
        _kinds_of(made),
        _Fitting(node.state_fields, "the state's field", LIST_MAX),
        _Fitting(made, "the field"),
        partial(attributes_of, names=wanted),
    )
    given = (*node.state_fields, *node.fields_in)
    can_change = any(isinstance(bare_type(one.type), List | Dict) for one in given)
    copied = _with_copies(call) if can_change else call
    return _with_timers(node, copied) if node.timers else copied


def _with_timers(node: StepScan, call: Call) -> Call:
    """Return a call that refuses a timer beyond the times of events."""
    names = [field.name for field in node.state_fields]
    each = [(names.index(name), name) for name, _ in node.timers]

    def checked(before: Stored, row: Stored) -> tuple[Stored, Stored | None]:
        after, result = call(before, row)
        for at, name in each:
            if after[at] is not None and abs(after[at]) > EVENT_TIME_NS_MAX:
                raise TypeError(
                    f"the timer {name!r} is {after[at]} ns since 1970: no event is then"
                )
        return after, result

    return checked


def _with_copies(call: Call) -> Call:
    """Return a call that gives the function its own copies of lists and maps, to be changed.

    A default is one object for all keys, a call that fails leaves the state as it was, and a held
    row is given again after a late event.
    """

    def copied(before: Stored, row: Stored) -> tuple[Stored, Stored | None]:
        return call(_own(before), _own(row))

    return copied


def _own(values: Stored) -> Stored:
    return tuple(x.copy() if isinstance(x, list | dict) else x for x in values)


def _changeable(cls: type) -> Any:
    """Return an instance of a state's class with fields that may be set, even of a frozen one."""
    setter: Any = cls.__setattr__
    if setter is object.__setattr__:
        return object.__new__(cls)
    namespace = {
        "__slots__": (),
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
    }
    return object.__new__(type(cls)(cls.__name__, (cls,), namespace))


class _Fitting:
    """Checks values of fields one by one, and returns the stored values."""

    def __init__(self, fields: Fields, what: str, lists_max: int | None = None) -> None:
        self._fields, self._what, self._lists_max = fields, what, lists_max

    def __call__(self, values: Stored) -> Stored:
        """Return the values. Raises TypeError for one that does not fit."""
        return tuple(map(self._fitted, self._fields, values))

    def _fitted(self, field: Any, value: Any) -> Any:
        of = type_of(field)
        if value is None:
            if isinstance(of, Option):
                return None
            raise TypeError(f"{self._what} {field.name!r} is None, and not declared so")
        bare = bare_type(of)
        what = f"{self._what} {field.name!r}"
        self._refuse_long(what, value, bare)
        if isinstance(bare, Logical):
            number = rule_of(bare).number(value)
            if number is not None:
                return rule_of(bare).value(number)
        found = fitted([value], of, what, 1)
        for reason in found.misfits.values():
            raise TypeError(reason)
        if isinstance(bare, List):
            if has_logical(of):
                return values_of(numbers_of([value], of), of)[0]
            return list(as_list(found.values)[0])
        if has_logical(of):
            return value  # converted to its stored form with the others
        if isinstance(found.values, list):
            return found.values[0]
        return as_list(Values(found.values, found.valid))[0]

    def _refuse_long(self, what: str, items: Any, of: FieldType) -> None:
        if (
            self._lists_max is None
            or not isinstance(of, List | Dict)
            or not isinstance(items, Sized)
        ):
            return
        if len(items) > self._lists_max:
            kind = "list" if isinstance(of, List) else "map"
            raise TypeError(
                f"{what} has {len(items)} items: a state keeps up to {self._lists_max} of a {kind}"
            )


def _kinds_of(fields: Fields) -> tuple[tuple[type | None, bool], ...]:
    """Return of fields the Python type of values that need no conversion, and if None is one."""
    types = [type_of(field) for field in fields]
    return tuple((plain_kind(of), isinstance(of, Option)) for of in types)


def _rows_of(cls: type | None, names: tuple[str, ...]) -> Filled | Callable[[Sequence[Any]], Any]:
    """Return a function that makes an object of a row's values, the same in each call if it can."""
    is_dataclass = cls is not None and "__dataclass_fields__" in vars(cls)
    if cls is None or not is_dataclass or paths_in(names) or hasattr(cls, "__post_init__"):
        return instances_of(cls, names)
    one: Any = object.__new__(cls)
    return Filled(one, names) if hasattr(one, "__dict__") else instances_of(cls, names)
