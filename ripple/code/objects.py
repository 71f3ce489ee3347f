"""Classes, and objects by the attributes that they hold."""

from __future__ import annotations

import copyreg
import functools
import struct
from collections.abc import Callable, Iterator, Mapping
from enum import EnumType
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

import numpy as np

from ripple.code.attributes import attributes
from ripple.code.data import array
from ripple.code.names import library
from ripple.code.owner import is_compiled, is_python, library_of_module
from ripple.code.place import within
from ripple.errors import PlanError
from ripple.sexp import Sexp
from ripple.topology import canonical

if TYPE_CHECKING:
    from ripple.code.form import Reading

_METHODS = (
    *(FunctionType, BuiltinFunctionType, MethodType, staticmethod, classmethod, property),
    *(functools.partial, functools.partialmethod),
)
_SLOTS = (GetSetDescriptorType, MemberDescriptorType)
# What an object of a class below one of these holds as such, whatever its own class does.
_HELD: dict[type, Callable[[Any], Any]] = {
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    int: int.__index__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
}
# Cython's functions are of classes that belong to no module.
CYTHON = ("cython_function_or_method", "fused_cython_function")
_NOISE = ("random.", "numpy.random.")
_MADE = {"__reduce__", "__reduce_ex__"}


def class_form(reading: Reading, value: type, place: str) -> Sexp:
    """Return the form of a class where it is used."""
    package = reading.owner(value)
    if package is None:
        return reading.number(value, value.__qualname__.rpartition("<locals>.")[2] or place)
    return library(reading, package, value.__qualname__)


def class_parts(reading: Reading, value: type, place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield what a class is made of: its bases, and what its body defines."""
    made_by = type(value)
    if is_compiled(value.__module__):
        reading.blind(place, "compiled code")
    if made_by is not type:
        package = reading.owner(made_by)
        if package is not None and not is_python(package):
            reading.blind(place, f"what {package} makes of the class")
    bases = [reading.form(base, place) for base in value.__bases__]
    yield place, ["class", reading.form(made_by, place), *bases]
    if issubclass(made_by, EnumType):
        yield from _members(reading, value, place)
    for name, held in sorted(vars(value).items()):
        if not _is_about(value, name, held):
            yield within(place, name), [name, reading.form(held, within(place, name))]


def _is_about(of: Any, name: str, held: Any) -> bool:
    """Tell whether an entry of a class is Python's or a library's note on it, no part of it."""
    kind = type(held)
    if issubclass(kind, _SLOTS) or name == "_abc_impl":
        return True
    is_enum = issubclass(type(of), EnumType)
    if is_enum and name in of.__members__:
        return True
    mark = "_" if is_enum else "__"
    return name.startswith(mark) and name.endswith(mark) and not issubclass(kind, _METHODS)


def _members(reading: Reading, value: Any, place: str) -> Iterator[tuple[str, Sexp]]:
    for name, member in value.__members__.items():
        at = within(place, name)
        yield at, [name, member.name, reading.form(member.value, at)]
        for key, held in sorted(vars(member).items()):
            if not key.startswith("_"):
                yield within(at, key), [key, reading.form(held, within(at, key))]


def member(reading: Reading, value: Any, place: str) -> Sexp:
    """Return the form of a member of an enumeration, or of several as one."""
    value_of = value.value if value.name is None else value.name
    return ["member", reading.form(type(value), place), reading.form(value_of, place)]


def method(reading: Reading, value: MethodType, place: str) -> Sexp:
    """Return the form of a method of an object."""
    of = reading.form(value.__self__, place)
    return ["method", of, reading.form(value.__func__, place)]


def builtin(reading: Reading, value: Any, place: str) -> Sexp:
    """Return the form of a compiled function, or method of an object."""
    of = getattr(value, "__self__", None)
    if of is not None and not isinstance(of, ModuleType):
        return ["builtin", reading.form(of, place), value.__name__]
    package = reading.library(library_of_module(value.__module__))
    if package is None:
        return ["builtin", reading.blind(place, "compiled code"), value.__qualname__]
    return library(reading, package, value.__qualname__)


def descriptor(reading: Reading, value: Any, place: str) -> Sexp:
    """Return the form of a method of a compiled class, such as ``str.upper``."""
    return ["builtin", reading.form(value.__objclass__, place), value.__name__]


def wrapper(reading: Reading, value: Any, place: str) -> Sexp:
    """Return the form of what a class body makes of functions."""
    if isinstance(value, property):
        functions = [value.fget, value.fset, value.fdel]
    else:
        functions = [getattr(value, "func", None) or value.__func__]
    return [type(value).__name__, *(reading.form(each, place) for each in functions)]


def partial(reading: Reading, value: functools.partial[Any], place: str) -> Sexp:
    """Return the form of a function with some arguments given."""
    given: list[Sexp] = [
        [name, reading.form(held, within(place, name))]
        for name, held in sorted(value.keywords.items())
    ]
    args = [reading.form(held, place) for held in value.args]
    return ["partial", reading.form(value.func, place), args, given]


def proxy(reading: Reading, value: Mapping[Any, Any], place: str) -> Sexp:
    """Return the form of a read-only view of a mapping."""
    return ["proxy", reading.form(dict(value), place)]


def instance(reading: Reading, value: Any, place: str) -> Sexp:
    """Return the form of any other object where it is used."""
    kind = type(value)
    if kind.__name__ in CYTHON:
        return builtin(reading, value, place)
    package = reading.owner(kind)
    if package is None:
        return reading.number(value, place)
    if package == "functools" and "__wrapped__" in attributes(value):  # lru_cache
        return ["cached", reading.form(attributes(value)["__wrapped__"], place)]
    if package == "ripple":
        try:
            return ["ripple", canonical(value, lambda held: reading.form(held, place))]
        except PlanError:
            pass
    return _made(reading, package, value, place)


def parts(reading: Reading, value: Any, place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield what an object of the user's holds."""
    kind = type(value)
    yield place, ["instance", reading.form(kind, place)]
    yield from _inherited(reading, value, place)
    for name, item in sorted(attributes(value).items(), key=lambda pair: str(pair[0])):
        yield within(place, str(name)), [str(name), reading.form(item, within(place, str(name)))]


def _inherited(reading: Reading, value: Any, place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield what an object holds as an instance of a library's class."""
    for base in type(value).__mro__:
        package = reading.owner(base)
        if package is None or base is object:
            continue
        if base in _HELD:
            yield place, reading.form(_HELD[base](value), place)
            return
        if issubclass(base, np.ndarray):
            yield from array(reading, value, place)
            return
        if issubclass(base, BaseException):
            yield place, reading.form(value.args, place)
            return
        if _MADE & vars(base).keys():
            yield place, _made(reading, package, value, place)
            return
    kind = type(value)
    if _hides(kind):
        yield place, reading.blind(place, f"what a compiled class holds in a {kind.__name__}")


def _hides(kind: type) -> bool:
    """Tell whether objects of a class have room for more than their attributes."""
    slots = sum(
        isinstance(entry, MemberDescriptorType)
        for base in kind.__mro__
        if "__slots__" in vars(base)
        for entry in vars(base).values()
    )
    pointers = slots + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    known = object.__basicsize__ + pointers * struct.calcsize("P")
    return kind.__basicsize__ > known or kind.__itemsize__ > 0


def _made(reading: Reading, package: str, value: Any, place: str) -> Sexp:
    """Return how an object of a library's says that it can be made again."""
    kind = type(value)
    about: list[Sexp] = [package, kind.__qualname__]
    if any(f"{base.__module__}.".startswith(_NOISE) for base in kind.__mro__):
        return ["instance", *about, reading.blind(place, "random numbers")]
    if issubclass(kind, np.dtype):
        return ["dtype", str(value)]
    if kind.__module__ == "os":
        return ["instance", *about, reading.blind(place, "variables of the environment")]
    if kind is np.ufunc and getattr(np, value.__name__, None) is not value:
        return ["instance", *about, reading.blind(place, "compiled code")]
    try:
        reduce: Any = copyreg.dispatch_table.get(kind)
        made: Any = reduce(value) if reduce is not None else value.__reduce_ex__(4)
        if isinstance(made, str):
            return ["named", *about, made]
        function, arguments, *rest = made
        state, items, pairs = [*rest, None, None, None][:3]
        listed, paired = list(items or ()), list(pairs or ())
    except Exception:  # whatever it raises that cannot be made again
        return ["instance", *about, reading.blind(place, f"what a {kind.__qualname__} holds")]
    if not reading.fits("values", len(listed) + 2 * len(paired), place):
        return ["instance", *about]
    return [
        *("made", *about),
        reading.form(function, place),
        reading.form(arguments, place),
        _state(reading, state, place),
        [reading.form(item, place) for item in listed],
        [[reading.form(key, place), reading.form(item, place)] for key, item in paired],
    ]


def _state(reading: Reading, state: Any, place: str) -> Sexp:
    if type(state) is tuple and all(one is None or type(one) is dict for one in state):
        return [_state(reading, one, place) for one in state]
    if type(state) is dict and all(type(name) is str for name in state):
        return [
            [name, reading.form(held, within(place, name))] for name, held in sorted(state.items())
        ]
    return reading.form(state, place)
