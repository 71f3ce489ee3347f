"""A user's function of a state and a row, of ``.scan(...)``, called for one row."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.core.arguments import shown
from ripple.engine.operators.rows import as_list, attributes_of, made_by
from ripple.model.expression.bound import Values
from ripple.model.pipeline.nodes import type_of
from ripple.model.records.instances import instances_of
from ripple.model.schema.columns import fitted
from ripple.model.schema.held import has_held
from ripple.model.schema.nested import paths_in
from ripple.model.schema.types import Bool, Float, Int, Int64, Option, String
from ripple.model.schema.values import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ripple.model.pipeline.nodes import Fields, StepScan
    from ripple.model.schema.types import FieldType

Stored: TypeAlias = tuple[Any, ...]
"""A state, or a row's new fields, as plain values in the order of their declaration."""

_PYTHON: dict[type, type] = {Float: float, Int: int, Int64: int, Bool: bool, String: str}


class StateStep:
    """Calls the function with a state that it may change, and returns what became of both.

    A value is stored as what a checkpoint would give back, so that no restart shows in a result.
    The objects of state and row are the same in all calls, and hold nothing between them.
    """

    def __init__(self, node: StepScan) -> None:
        self._function = node.function
        self._state = _Loaded(node.state, node.state_fields)
        names = tuple(field.name for field in node.fields_in)
        self._instance: Callable[[Sequence[Any]], Any] = _reused(node.row, names)
        made = made_by_fields(node)
        self._wanted = [field.name for field in made]
        self._fit_state = _Fitting(node.state_fields, "the state's field")
        self._fit_row = _Fitting(made, "the field")

    def __call__(self, before: Stored, row: Sequence[Any]) -> tuple[Stored, Stored | None]:
        """Return the state after a row, and the fields of its result, None for no row.

        Raises any error of the function, and TypeError for values that do not fit; then nothing
        has changed.
        """
        state = self._state.load(before)
        result = self._function(state, self._instance(row))
        after = self._fit_state(self._state.values())
        if result is None:
            return after, None
        return after, self._fit_row(attributes_of(result, self._wanted))


def made_by_fields(node: StepScan) -> Fields:
    """Return the fields of a row that the function decides: those of ``into`` without the key."""
    return tuple(made_by(node))


class _Loaded:
    """An instance of a state's class, whose fields may be set also where the class is frozen."""

    def __init__(self, cls: type, fields: Fields) -> None:
        self._names = tuple(field.name for field in fields)
        namespace = {
            "__slots__": (),
            "__setattr__": object.__setattr__,
            "__delattr__": object.__delattr__,
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
        }
        self._one: Any = object.__new__(type(cls)(cls.__name__, (cls,), namespace))
        self._has_dict = hasattr(self._one, "__dict__")
        get = attrgetter(*self._names)
        self._get: Callable[[Any], Stored] = get
        if len(self._names) == 1:
            self._get = lambda one: (get(one),)

    def load(self, values: Stored) -> Any:
        """Return the instance with these values."""
        one = self._one
        if self._has_dict:
            one.__dict__ = dict(zip(self._names, values, strict=True))
        else:
            for name, value in zip(self._names, values, strict=True):
                setattr(one, name, value)
        return one

    def values(self) -> Stored:
        """Return the values now. Raises TypeError for an attribute that is not declared."""
        one = self._one
        if self._has_dict and len(one.__dict__) > len(self._names):
            extra = next(name for name in one.__dict__ if name not in self._names)
            raise TypeError(f"the step sets {extra!r}, which the state does not declare")
        return self._get(one)


class _Fitting:
    """Checks values of fields, and returns them as they are stored."""

    def __init__(self, fields: Fields, what: str) -> None:
        self._fields, self._what = fields, what
        kinds = [_kind_of(field.type) for field in fields]
        self._plain = tuple(kinds)
        self._ints = [at for at, kind in enumerate(kinds) if kind is int]
        self._texts = [at for at, kind in enumerate(kinds) if kind is str]

    def __call__(self, values: Stored) -> Stored:
        """Return the values. Raises TypeError for one that does not fit."""
        if tuple(map(type, values)) != self._plain:
            values = tuple(map(self._fitted, self._fields, values))
        for at in self._ints:
            value = values[at]
            if value is not None and not -INT64_MAX - 1 <= value <= INT64_MAX:
                raise TypeError(self._misfit(at, value))
        for at in self._texts:
            value = values[at]
            if value is not None and not value.isascii():
                value.encode()  # half a surrogate pair has no form in UTF-8
        return values

    def _misfit(self, at: int, value: object) -> str:
        return f"{self._what} {self._fields[at].name!r} does not fit 64 bits: {shown(value)}"

    def _fitted(self, field: Any, value: Any) -> Any:
        of = type_of(field)
        if value is None:
            if isinstance(of, Option):
                return None
            raise TypeError(f"{self._what} {field.name!r} is None, and not declared so")
        found = fitted([value], of, f"{self._what} {field.name!r}", 1)
        for reason in found.misfits.values():
            raise TypeError(reason)
        if isinstance(found.values, list):
            return found.values[0]
        if has_held(of):
            return value  # which becomes a number together with the others
        return as_list(Values(found.values, found.valid))[0]


def _kind_of(of: FieldType) -> type:
    """Return the Python type of which every value is taken as it is; ``object`` for none."""
    return _PYTHON.get(type(of), object)


def _reused(cls: type | None, names: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """Return a function from a row's values to an object with them, the same one in each call."""
    is_dataclass = cls is not None and "__dataclass_fields__" in vars(cls)
    if cls is None or not is_dataclass or paths_in(names) or hasattr(cls, "__post_init__"):
        return instances_of(cls, names)
    one: Any = object.__new__(cls)
    if not hasattr(one, "__dict__"):
        return instances_of(cls, names)

    def filled(values: Sequence[Any]) -> Any:
        object.__setattr__(one, "__dict__", dict(zip(names, values, strict=True)))
        return one

    return filled
