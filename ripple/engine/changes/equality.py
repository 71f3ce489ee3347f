"""Equality of values, to the bit: the cutoff below every diff.

Numbers are the same when their type and their bits are: NaN is the same as that NaN, -0.0 is
not 0.0, and neither ``True`` nor ``1.0`` is ``1``. Python's ``==`` says otherwise on each, and a
diff that trusted it would lose a change or repeat one for ever.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_bits = struct.Struct("<d").pack

# Of these, == of two of one type is right, and they are most values of records.
_PLAIN = frozenset({str, int, bool, bytes})


def same(a: Any, b: Any) -> bool:
    """Tell whether ``a`` and ``b`` are the same value, to the bit, at any depth.

    Maps are the same when their entries are, in any order; their keys compare as Python
    compares them. Records are the same when their class and their fields are.
    """
    if a is b:
        return True
    if type(a) is type(b) and type(a) in _PLAIN:
        return bool(a == b)
    if isinstance(a, float) and isinstance(b, float):
        return _bits(a) == _bits(b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return len(a) == len(b) and all(key in b and same(a[key], b[key]) for key in a)
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    names = field_names(a)
    if names is not None:
        return all(same(getattr(a, name), getattr(b, name)) for name in names)
    return bool(a == b)


def field_names(value: Any) -> tuple[str, ...] | None:
    """Return the fields of a record instance, or None for a value of any other kind."""
    cls: Any = type(value)
    return class_field_names(cls)


@lru_cache(maxsize=1024)
def class_field_names(cls: Any) -> tuple[str, ...] | None:
    """Return the fields of a record class, or None for a class of any other kind."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    for names in ("__struct_fields__", "__pydantic_fields__"):  # msgspec's and pydantic's
        if hasattr(cls, names):
            return tuple(getattr(cls, names))
    return None
