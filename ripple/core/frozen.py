"""Values: immutable classes of annotated fields that cost little to import.

``@dataclass(frozen=True, slots=True)`` compiles six methods of each class from text, which takes
half a millisecond, and a command imports a hundred classes. Classes made by ``@frozen`` behave the
same, but share their methods, and ``__init__`` is compiled when the first instance is made.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from inspect import Signature, signature
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

C = TypeVar("C", bound=type)


@overload
def frozen(cls: C, /) -> C: ...


@overload
def frozen(*, eq: bool = True, kw_only: bool = False) -> Any: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type | None = None, /, *, eq: bool = True, kw_only: bool = False) -> Any:
    """Make a class of values: a dataclass for the functions of ``dataclasses``.

    eq: without it, an instance equals itself alone. kw_only: fields are given by name.
    """

    def decorate(cls: type) -> Any:
        own = set(cls.__dict__)
        made: Any = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
        methods = {"__init__": _first_init(made), "__repr__": _repr}
        methods |= {"__getstate__": _values, "__setstate__": _put_all}
        if eq:
            methods |= _equality(made)
        for name, method in methods.items():
            if name not in own:
                setattr(made, name, method)
        made.__signature__ = _Signature()
        made.__setattr__, made.__delattr__ = _refuse_to_assign, _refuse_to_delete
        return made

    return decorate if cls is None else decorate(cls)


def _first_init(cls: Any) -> Any:
    """Return an ``__init__`` that compiles the one of ``cls``, which takes its place."""

    def first_init(self: Any, *given: Any, **named: Any) -> None:
        cls.__init__ = _compiled_init(cls)
        cls.__init__(self, *given, **named)

    return first_init


class _Signature:
    """A class's signature for ``inspect``, also before the first instance."""

    def __get__(self, _: Any, cls: Any) -> Signature:
        init = cls.__init__
        if init.__name__ == "first_init":
            init = _compiled_init(cls)
        own = signature(init)
        return own.replace(parameters=list(own.parameters.values())[1:])


def _compiled_init(cls: Any) -> Any:
    names: dict[str, Any] = {"MISSING": MISSING, "put": object.__setattr__}
    by_place, by_name, body = ["self"], ["*"], []
    for each in fields(cls):
        name = each.name
        parameter, value = name, name
        if each.default_factory is not MISSING:
            names[f"make_{name}"] = each.default_factory
            parameter, value = f"{name}=MISSING", f"make_{name}() if {name} is MISSING else {name}"
        elif each.default is not MISSING:
            names[f"default_{name}"] = each.default
            parameter = f"{name}=default_{name}"
        if each.init:
            (by_name if each.kw_only else by_place).append(parameter)
            body.append(f"put(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(by_place + (by_name if len(by_name) > 1 else []))
    exec(f"def __init__({parameters}): {'; '.join(body) or 'pass'}", names)  # noqa: S102 - our own text
    init = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _equality(cls: Any) -> dict[str, Any]:
    compared = [each.name for each in fields(cls) if each.compare]
    values = attrgetter(*compared) if compared else _nothing

    def equal(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def __hash__(self: Any) -> int:  # noqa: N807 - it becomes the class's
        return hash(values(self))

    return {"__eq__": equal, "__hash__": __hash__}


def _repr(self: Any) -> str:
    shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _values(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _put_all(self: Any, values: list[Any]) -> None:
    for each, value in zip(fields(self), values, strict=True):
        object.__setattr__(self, each.name, value)


def _refuse_to_assign(_: Any, name: str, __: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _nothing(_: Any) -> tuple[()]:
    return ()
