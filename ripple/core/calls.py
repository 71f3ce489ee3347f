"""Calls that do not fit a function: the error has the way to write them."""

from __future__ import annotations

from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ripple.core.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_P = ParamSpec("_P")
_R = TypeVar("_R")
_LIKE = 0.8  # a letter more or less


def called(name: str, *first: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator: a call without an argument, or with another one, raises PlanError.

    name: of the function or the class for users. first: how its first arguments are written; that
    of ``__init__`` is the instance, and has none.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                    raise  # within the function
            form = signature(function)
            unknown = _unknown(form, kwargs)
            try:
                if unknown:
                    raise TypeError(unknown)
                form.bind(*args, **kwargs)
            except TypeError as error:
                is_init = function.__name__ == "__init__"
                way = written(name, form, len(first) + is_init, first)
                raise PlanError(f"{name}: {error}: write {way}") from None
            raise AssertionError("a call that fits was refused")

        return checked

    return decorate


def _unknown(form: Signature, given: Iterable[str]) -> str:
    """Return what is wrong with the first name that a call does not take; "" where none is.

    A mistyped name also leaves another argument missing, which alone would not tell it.
    """
    if any(one.kind is Parameter.VAR_KEYWORD for one in form.parameters.values()):
        return ""
    for name in given:
        if name not in form.parameters:
            from difflib import get_close_matches  # noqa: PLC0415 - only errors say it

            near = get_close_matches(name, form.parameters, n=1, cutoff=_LIKE)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            return f"got an unexpected keyword argument {name!r}{meant}"
    return ""


def written(call: str, form: Signature, skipped: int, first: tuple[str, ...]) -> str:
    """Return a call as text: what it must have, then what it may have.

    first: the texts of arguments that stand for the ``skipped`` first parameters.
    """
    needed, more = list(first), []
    for name, parameter in list(form.parameters.items())[skipped:]:
        if parameter.kind is Parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is Parameter.VAR_KEYWORD:
            needed.append("FIELD=...")
        elif parameter.default is not Parameter.empty:
            more.append(f"{name}=")
        else:
            is_unnamed = parameter.kind is Parameter.POSITIONAL_ONLY
            needed.append(name if is_unnamed else f"{name}=...")
    return f"{call}({', '.join(needed)})" + (f", optionally with {', '.join(more)}" * bool(more))
