"""Canonical forms: what a step means, as a text that is the same in every process.

Node keys and the topology hash are BLAKE2b digests of canonical forms, so whatever goes into one
must not depend on memory addresses, on ``hash()``, or on the order of a set.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import types
from collections.abc import Callable, Mapping
from typing import Any

from ripple.errors import PlanError
from ripple.expression.expr import Expr
from ripple.sexp import Sexp, dumps

DIGEST_BYTES = 16


def digest(value: Sexp) -> str:
    """Return the BLAKE2b digest of a canonical form, as 32 hexadecimal digits."""
    return hashlib.blake2b(dumps(value).encode(), digest_size=DIGEST_BYTES).hexdigest()


def node_key(path: tuple[str, ...], upstream: str, meaning: Sexp) -> str:
    """Return ``path#digest`` of a node that does ``meaning`` to what ``upstream`` digests."""
    return f"{'/'.join(path)}#{digest([upstream, meaning])}"


def digest_of(key: str) -> str:
    """Return the digest in a node key: what the node computes, without the names on the way."""
    return key.rpartition("#")[2]


def canonical(value: Any) -> Sexp:
    """Return a form of a step's parameters that is equal for equal meaning.

    Takes plain values, expressions, types, functions and dataclasses of those. Raises
    :class:`PlanError` for an object whose meaning cannot be told from outside.
    """
    for kinds, form in _FORMS:
        if isinstance(value, kinds):
            return form(value)
    if dataclasses.is_dataclass(value):
        return _dataclass_form(value)
    if callable(value):
        return _callable_form(value)
    raise PlanError(
        f"{value!r} ({type(value).__name__}) cannot be part of a pipeline: its meaning cannot be "
        "compared between processes; use plain values, functions or dataclasses of them"
    )


def _set_form(value: frozenset[Any]) -> Sexp:
    return ["set", *sorted((canonical(item) for item in value), key=dumps)]


def _mapping_form(value: Mapping[Any, Any]) -> Sexp:
    pairs: list[Sexp] = [[canonical(key), canonical(item)] for key, item in value.items()]
    return ["map", *sorted(pairs, key=dumps)]


def _dataclass_form(value: Any) -> Sexp:
    members = [member.name for member in dataclasses.fields(value) if member.compare]
    return [
        type(value).__qualname__,
        *([name, canonical(getattr(value, name))] for name in members),
    ]


def _function_form(function: types.FunctionType) -> Sexp:
    """Return where a user's function is defined and what its own code does.

    Functions that it calls are named in its code but not followed. The code is CPython's, so a
    new minor version of Python gives a new form.
    """
    return [
        "function",
        str(function.__module__),
        function.__qualname__,
        _code_form(function.__code__),
        canonical(function.__defaults__),
        canonical(function.__kwdefaults__),
        ["closure", *(_cell_form(cell) for cell in function.__closure__ or ())],
    ]


def _code_form(code: types.CodeType) -> Sexp:
    constants = [canonical(constant) for constant in code.co_consts]
    return ["code", code.co_code.hex(), ["names", *code.co_names], ["constants", *constants]]


def _cell_form(cell: types.CellType) -> Sexp:
    try:
        value = cell.cell_contents
    except ValueError:  # a name that is assigned later
        return "unassigned"
    return _owner_form(value)


def _owner_form(value: object) -> Sexp:
    """Return the form of what a function holds on to, by its class if no more can be told."""
    try:
        return canonical(value)
    except PlanError:
        return ["instance", canonical(type(value))]


def _partial_form(value: functools.partial[Any]) -> Sexp:
    return ["partial", canonical(value.func), canonical(value.args), canonical(value.keywords)]


def _method_form(value: types.MethodType) -> Sexp:
    return ["method", _owner_form(value.__self__), canonical(value.__func__)]


def _builtin_form(value: types.BuiltinFunctionType) -> Sexp:
    owner = value.__self__
    module = isinstance(owner, (types.ModuleType, types.NoneType))
    return ["builtin", str(value.__module__) if module else _owner_form(owner), value.__qualname__]


def _callable_form(value: Any) -> Sexp:
    """Return the form of an object that can be called: its class, its name, what a call does."""
    call = type(value).__call__
    code = canonical(call) if isinstance(call, types.FunctionType) else "compiled"
    return ["callable", canonical(type(value)), str(getattr(value, "__name__", "")), code]


# The first entry that a value is an instance of decides: bool before int, Enum before its base.
_FORMS: tuple[tuple[Any, Callable[[Any], Sexp]], ...] = (
    (Expr, Expr.sexp),
    (enum.Enum, lambda value: ["enum", type(value).__qualname__, value.name]),
    ((types.NoneType, types.EllipsisType, bool, int, str, complex), repr),
    (float, lambda value: ["float", value.hex()]),
    (bytes, lambda value: ["bytes", value.hex()]),
    ((tuple, list), lambda value: ["list", *map(canonical, value)]),
    ((set, frozenset), _set_form),
    (Mapping, _mapping_form),
    (type, lambda value: ["class", value.__module__, value.__qualname__]),
    (functools.partial, _partial_form),
    (types.CodeType, _code_form),
    (types.FunctionType, _function_form),
    (types.MethodType, _method_form),
    (types.BuiltinFunctionType, _builtin_form),
    (types.ModuleType, lambda value: ["module", value.__name__]),
)  # fmt: skip
