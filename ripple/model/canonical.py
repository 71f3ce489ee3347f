"""Canonical forms: the meaning of a step, as a text that is the same in every process.

Node keys and the topology hash are BLAKE2b digests of canonical forms, so they must not depend on
memory addresses, on ``hash()``, or on the order of a set. Code has forms of its own, which the
caller passes in.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ripple.core.errors import PlanError
from ripple.core.sexp import Sexp, dumps
from ripple.model.expression.expr import Expr

OfCode: TypeAlias = Callable[[Any], Sexp]

DIGEST_BYTES = 16


def digest(value: Sexp) -> str:
    """Return the BLAKE2b digest of a canonical form, as 32 hexadecimal digits."""
    return hashlib.blake2b(dumps(value).encode(), digest_size=DIGEST_BYTES).hexdigest()


def node_key(path: str, upstream: str, meaning: Sexp) -> str:
    """Return ``path#digest`` of a node that does ``meaning`` to the rows behind ``upstream``."""
    return f"{path}#{digest([upstream, meaning])}"


def name_of(key: str) -> str:
    """Return the name of a node in its pipeline: the last part of its key's path."""
    return key.rpartition("#")[0].rpartition("/")[2]


def digest_of(key: str) -> str:
    """Return the digest in a node key: the node's computation, without the names in its path."""
    return key.rpartition("#")[2]


def canonical(value: Any, of_code: OfCode) -> Sexp:
    """Return a form of a step's parameters that is equal for equal meaning.

    Takes plain values, expressions, dataclasses of those, and code, of which ``of_code`` gives the
    form: functions, classes and other objects that can be called. Raises :class:`PlanError` for an
    object of unknown meaning.
    """
    for kinds, form in _FORMS:
        if isinstance(value, kinds):
            return form(value, of_code)
    if dataclasses.is_dataclass(value):
        return _dataclass_form(value, of_code)
    if callable(value):
        return of_code(value)
    raise PlanError(
        f"{value!r} ({type(value).__name__}) cannot be part of a pipeline: its meaning cannot be "
        "compared between processes; use plain values, functions or dataclasses of them"
    )


def _set_form(value: frozenset[Any], of_code: OfCode) -> Sexp:
    return ["set", *sorted((canonical(item, of_code) for item in value), key=dumps)]


def _mapping_form(value: Mapping[Any, Any], of_code: OfCode) -> Sexp:
    pairs: list[Sexp] = [
        [canonical(key, of_code), canonical(item, of_code)] for key, item in value.items()
    ]
    return ["map", *sorted(pairs, key=dumps)]


def _dataclass_form(value: Any, of_code: OfCode) -> Sexp:
    members = [member.name for member in dataclasses.fields(value) if member.compare]
    return [
        type(value).__qualname__,
        *([name, canonical(getattr(value, name), of_code)] for name in members),
    ]


# The first entry that a value is an instance of decides: bool before int, Enum before its base.
_FORMS: tuple[tuple[Any, Callable[[Any, OfCode], Sexp]], ...] = (
    (Expr, lambda value, _: value.sexp()),
    (enum.Enum, lambda value, _: ["enum", type(value).__qualname__, value.name]),
    ((types.NoneType, types.EllipsisType, bool, int, str, complex), lambda value, _: repr(value)),
    (float, lambda value, _: ["float", value.hex()]),
    (bytes, lambda value, _: ["bytes", value.hex()]),
    ((tuple, list), lambda value, of: ["list", *(canonical(item, of) for item in value)]),
    ((set, frozenset), _set_form),
    (Mapping, _mapping_form),
    ((type, types.CodeType, types.ModuleType), lambda value, of: of(value)),
)
