"""The form of code that checkpoints know which were written before code was followed.

It has what a function's own code does, its defaults, and its closure as far as that is plain; of an
object in it only the class, and nothing of the globals that it reads. A checkpoint with it is taken
as it was meant: where this form is equal, the state is kept.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from ripple.core.errors import PlanError
from ripple.core.sexp import Sexp
from ripple.model.canonical import canonical


def former(value: Any) -> Sexp:
    """Return the form of a function, a class, or anything else that can be called."""
    for kinds, form in _FORMS:
        if isinstance(value, kinds):
            found: Sexp = form(value)
            return found
    call = type(value).__call__
    code = former(call) if isinstance(call, types.FunctionType) else "compiled"
    return ["callable", former(type(value)), str(getattr(value, "__name__", "")), code]


def _function(function: types.FunctionType) -> Sexp:
    return [
        "function",
        str(function.__module__),
        function.__qualname__,
        _code(function.__code__),
        canonical(function.__defaults__, former),
        canonical(function.__kwdefaults__, former),
        ["closure", *map(_cell, function.__closure__ or ())],
    ]


def _code(code: types.CodeType) -> Sexp:
    constants = [canonical(constant, former) for constant in code.co_consts]
    return ["code", code.co_code.hex(), ["names", *code.co_names], ["constants", *constants]]


def _cell(cell: types.CellType) -> Sexp:
    try:
        value = cell.cell_contents
    except ValueError:  # a name that is assigned later
        return "unassigned"
    return _owner(value)


def _owner(value: object) -> Sexp:
    try:
        return canonical(value, former)
    except PlanError:
        return ["instance", former(type(value))]


def _partial(value: functools.partial[Any]) -> Sexp:
    parts = (value.func, value.args, value.keywords)
    return ["partial", *(canonical(part, former) for part in parts)]


def _method(value: types.MethodType) -> Sexp:
    return ["method", _owner(value.__self__), former(value.__func__)]


def _builtin(value: types.BuiltinFunctionType) -> Sexp:
    owner = value.__self__
    module = isinstance(owner, (types.ModuleType, types.NoneType))
    return ["builtin", str(value.__module__) if module else _owner(owner), value.__qualname__]


_FORMS: tuple[tuple[Any, Any], ...] = (
    (type, lambda value: ["class", value.__module__, value.__qualname__]),
    (functools.partial, _partial),
    (types.CodeType, _code),
    (types.FunctionType, _function),
    (types.MethodType, _method),
    (types.BuiltinFunctionType, _builtin),
    (types.ModuleType, lambda value: ["module", value.__name__]),
)
