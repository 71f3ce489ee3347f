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
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any

import numpy as np

from ripple.core.errors import PlanError
from ripple.core.sexp import Sexp
from ripple.model.canonical import canonical
from ripple.model.code_fingerprint.attributes import attributes
from ripple.model.code_fingerprint.data import array
from ripple.model.code_fingerprint.names import library
from ripple.model.code_fingerprint.owner import is_compiled, is_python, library_of_module
from ripple.model.code_fingerprint.place import within

if TYPE_CHECKING:
    from ripple.model.code_fingerprint.form import Reading

_METHODS = (
    *(FunctionType, BuiltinFunctionType, MethodType, staticmethod, classmethod, property),
    *(functools.partial, functools.partialmethod),
)
_SLOTS = (GetSetDescriptorType, MemberDescriptorType)
# The contents of instances of subclasses of these, for any subclass.
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
# Written into a class by Python, and by libraries without a metaclass: no part of its behaviour,
# or seen in the functions that they make of it.
_NOTES = {
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__slots__", "__hash__"),
    *("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
    *("__conditional_annotations__", "__static_attributes__", "__firstlineno__", "__classcell__"),
    *(
        "__abstractmethods__",
        "__orig_bases__",
        "__parameters__",
        "__type_params__",
        "__classdict__",
    ),
    *("__classdictcell__", "__dataclass_fields__", "__dataclass_params__", "__protocol_attrs__"),
    *("__non_callable_proto_members__", "__final__", "__total__", "__required_keys__"),
    *(
        "__optional_keys__",
        "__readonly_keys__",
        "__mutable_keys__",
        "__closed__",
        "__extra_items__",
    ),
    *("__objclass__", "__members__", "__signature__", "__ripple_record__"),
    "__is_pydantic_dataclass__",
}
_NOTES_OF = ("__attrs_", "__pydantic_")
# Of the members of an enumeration: its identity, or given by its class.
_OF_MEMBERS = {"_value_", "_name_", "__objclass__", "_sort_order_", "_inverted_"}
_CHECKS = "ripple.checks"  # in the metadata of a field: a part of the plan by themselves
_NOISE = ("random.", "numpy.random.")
_MADE = {"__reduce__", "__reduce_ex__"}


def class_form(reading: Reading, value: type, place: str) -> Sexp:
    """Return the form of a class where it is used."""
    package = reading.owner(value)
    if package is None:
        return reading.number(value, value.__qualname__.rpartition("<locals>.")[2] or place)
    return library(reading, package, value.__qualname__)


def class_parts(reading: Reading, value: type, place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield the parts of a class: its bases, and the definitions of its body."""
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
    package = reading.owner(made_by)
    is_librarys = package is not None and not is_python(package)
    for name, held in sorted(vars(value).items()):
        if not _is_about(value, name, held, is_librarys=is_librarys):
            yield within(place, name), [name, reading.form(held, within(place, name))]
    for one in vars(value).get("__dataclass_fields__", {}).values():
        notes = {key: held for key, held in one.metadata.items() if key != _CHECKS}
        if notes:
            at = within(place, one.name)
            yield at, ["metadata", one.name, reading.form(notes, at)]


def _is_about(of: Any, name: str, held: Any, *, is_librarys: bool) -> bool:
    """Tell whether an entry of a class is Python's or a library's note on it, no part of it.

    is_librarys: whether a library's metaclass made the class, with unlisted notes.
    """
    kind = type(held)
    if issubclass(kind, _SLOTS) or name == "_abc_impl":
        return True
    if issubclass(type(of), EnumType) and _is_of_enum(of, name, kind):
        return True
    if not (name.startswith("__") and name.endswith("__")) or issubclass(kind, _METHODS):
        return False
    if name == "__match_args__":
        return bool(held == _match_args(of))
    return is_librarys or name in _NOTES or name.startswith(_NOTES_OF)


def _is_of_enum(of: Any, name: str, kind: type) -> bool:
    """Return whether an entry of an enumeration is a member, or part of its machinery."""
    if name.startswith("__"):
        return issubclass(kind, (MethodDescriptorType, WrapperDescriptorType))  # of int, or str
    is_own = name.startswith("_") and name.endswith("_") and not issubclass(kind, _METHODS)
    return is_own or name in of.__members__


def _match_args(of: Any) -> object:
    """Return the attributes by which Python, or a library, matches patterns."""
    if "__dataclass_fields__" in vars(of):
        fields = vars(of)["__dataclass_fields__"].values()
        return tuple(one.name for one in fields if one.init and not one.kw_only)
    return getattr(of, "_fields", None)  # of a named tuple


def _members(reading: Reading, value: Any, place: str) -> Iterator[tuple[str, Sexp]]:
    for name, member in value.__members__.items():
        at = within(place, name)
        yield at, [name, member.name, reading.form(member.value, at)]
        for key, held in sorted(vars(member).items()):
            if key not in _OF_MEMBERS:
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
    """Return the form of a class body's descriptors of functions."""
    if isinstance(value, functools.partialmethod):
        return ["partialmethod", partial(reading, value, place)]
    if isinstance(value, property):
        functions = [value.fget, value.fset, value.fdel]
    else:
        functions = [getattr(value, "func", None) or value.__func__]
    return [type(value).__name__, *(reading.form(each, place) for each in functions)]


def partial(
    reading: Reading, value: functools.partial[Any] | functools.partialmethod[Any], place: str
) -> Sexp:
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
    """Yield the contents of an object of the user's."""
    kind = type(value)
    yield place, ["instance", reading.form(kind, place)]
    yield from _inherited(reading, value, place)
    for name, item in sorted(attributes(value).items(), key=lambda pair: str(pair[0])):
        yield within(place, str(name)), [str(name), reading.form(item, within(place, str(name)))]


def _inherited(reading: Reading, value: Any, place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield the contents of an object as an instance of a library's class."""
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
    except Exception:  # any error of an object that cannot be copied
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
