"""The plain attributes of an object, read without asking it: nothing of the user's runs."""

from __future__ import annotations

from contextlib import suppress
from types import MemberDescriptorType
from typing import Any


def attributes(value: Any) -> dict[str, Any]:
    """Return an object's attributes in ``__dict__`` and ``__slots__``."""
    found: dict[str, Any] = {}
    for base in reversed(type(value).__mro__):
        if "__slots__" in vars(base):
            slots = ((k, s) for k, s in vars(base).items() if isinstance(s, MemberDescriptorType))
            for name, slot in slots:
                with suppress(AttributeError):  # not assigned
                    found[name] = slot.__get__(value)
    with suppress(AttributeError):  # of which there are none
        found.update(object.__getattribute__(value, "__dict__"))
    return found


def is_plain(value: Any, name: str) -> bool:
    """Return whether ``value.name`` is a stored attribute, and not computed by a class."""
    kind: Any = type(value)
    if kind.__getattribute__ is not object.__getattribute__ or name not in attributes(value):
        return False
    entries = [vars(base)[name] for base in kind.__mro__ if name in vars(base)]
    return all(
        isinstance(entry, MemberDescriptorType) or not hasattr(type(entry), "__set__")
        for entry in entries
    )
