"""The form of a user's code: operations and values read, as one digest and the parts of it.

A digest is equal in every process for code that means the same: it does not depend on memory
addresses, on ``hash()``, on the order of a set, on a module's name or path, nor
on comments, docstrings and lines. It does depend on Python's minor version.
"""

from __future__ import annotations

import hashlib
import re
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cached_property, partial, partialmethod
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from ripple.core.frozen import frozen
from ripple.core.sexp import Sexp
from ripple.model.code_fingerprint import data, names, objects
from ripple.model.code_fingerprint.bytecode import operations
from ripple.model.code_fingerprint.owner import is_python, library_of_module

# For one code, with the values it reads.
VALUES_MAX = 100_000
BYTES_MAX = 256 << 20  # of texts and arrays
OPERATIONS_MAX = 100_000  # of Python's machine, about ten a line
_MAXIMA = {"values": VALUES_MAX, "bytes": BYTES_MAX, "operations": OPERATIONS_MAX}
NESTING_MAX = 30  # tuples in tuples, or objects that a library made of each other
PARTS_MAX = 500  # in larger code the changed parts are not named
SETS_MAX = 2  # objects in sets in objects in sets

BEYOND = "beyond"
# Packages with functions that are given to pipelines and are no part of the user's program.
_NOBODYS = frozenset({"ripple", "numpy", "pyarrow"})
_PART_BYTES = 4
_NUMBER = re.compile(r"(?<=\['object', ')(\d+)(?='\])")
_MEANINGFUL_FLAGS = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200  # *a, **k, generator, coroutines


@frozen
class CodeForm:
    """The identity of some code.

    digest: of all of it, 32 hexadecimal digits. parts: (place, 8 digits) of everything in it, where
    the place is a name as the code would say it, "" for the code itself; none if they are too many.
    unseen: values read that are not in the digest, and why. libraries: the packages that it
    takes by their names, other than Python's own.
    """

    digest: str
    parts: tuple[tuple[str, str], ...]
    unseen: tuple[str, ...]
    libraries: tuple[str, ...]


def code_form(roots: Mapping[str, object]) -> CodeForm:
    """Return the form of functions, and of all used with them, by their places."""
    packages = {package for root in roots.values() if (package := _package(root))}
    return Reading(frozenset(packages)).read(roots)


def joined(one: CodeForm | None, other: CodeForm) -> CodeForm:
    """Return the form of two codes that make up one step, with both digests."""
    if one is None:
        return other
    parts = dict(one.parts)
    for place, form in other.parts:
        parts[place] = _short(parts[place] + form) if place in parts else form
    return CodeForm(
        one.digest + other.digest,
        tuple(parts.items()),
        tuple(dict.fromkeys(one.unseen + other.unseen)),
        tuple(sorted({*one.libraries, *other.libraries})),
    )


def _package(root: Any) -> str | None:
    """Return the package of a function or a class that is given: it is the user's anywhere."""
    while type(root) in (partial, MethodType):
        root = root.func if type(root) is partial else root.__func__
    if type(root) is FunctionType:
        module = root.__globals__.get("__name__", "")
    else:
        module = (root if issubclass(type(root), type) else type(root)).__module__
    package = str(module).partition(".")[0]
    return None if package in _NOBODYS or is_python(package) else package


class Reading:
    """Goes through objects from the roots on, numbers them as it meets them, and describes each.

    Immutable values (a number, a text, a tuple) stand where they are used; mutable ones (a
    function, a class, a list) are described once, and stand elsewhere as their number. So cycles
    end, and shared objects are described once.
    """

    def __init__(self, own: frozenset[str], sets: int = 0) -> None:
        self._own = own
        self._sets = sets
        self._owners: dict[type, str | None] = {}
        self._numbers: dict[object, int] = {}
        self._met: list[tuple[Any, str]] = []  # kept: no other object must get the identity of one
        # Code is described before data, so that a large table hides no code.
        self._code: deque[int] = deque()
        self._data: deque[int] = deque()
        self._depth = 0
        self._left = dict(_MAXIMA)
        self._refused = 0
        self._exhausted: set[str] = set()
        self._unseen: dict[str, None] = {}
        self._libraries: dict[str, None] = {}
        self._has_decimals = False

    def read(self, roots: Mapping[str, object]) -> CodeForm:
        """Return the form of all objects reached from ``roots``."""
        whole = hashlib.blake2b(digest_size=16)
        found: dict[str, list[str]] = {}

        def take(parts: Iterable[tuple[str, Sexp]]) -> None:
            for place, form in parts:
                text = ascii(form)  # the fastest text that is the same everywhere
                whole.update(f"{len(text)}:{text}".encode())
                if len(found) <= PARTS_MAX:
                    # Numbers shift when something new is met earlier: names do not.
                    found.setdefault(place, []).append(_NUMBER.sub(self._named, text))
            whole.update(b"end")

        take((place, self.form(root, place)) for place, root in roots.items())
        while self._code or self._data:
            value, place = self._met[(self._code or self._data).popleft()]
            try:
                take(self._described(value, place))
            except Exception as error:  # as in ``form``
                take([(place, self.blind(place, f"{type(error).__name__} when it was read"))])
        if self._has_decimals and (context := names.decimal_context()):
            take([("decimal", [self.blind("decimal", names.DECIMALS), *context])])
        parts = ((place, _short("".join(texts))) for place, texts in found.items())
        return CodeForm(
            whole.hexdigest(),
            tuple(parts) if len(found) <= PARTS_MAX else (),
            tuple(self._unseen),
            tuple(sorted(self._libraries)),
        )

    def _named(self, reference: re.Match[str]) -> str:
        return self._met[int(reference[1])][1]

    # --- where a value is used ---

    def form(self, value: Any, place: str) -> Sexp:
        """Return the form of ``value`` where it is used."""
        if not self.affords("values", 1, place):
            return BEYOND
        if (plain := data.plain(self, value, place)) is not None:
            return plain
        if self._depth > NESTING_MAX:
            return self.blind(place, f"nested more than {NESTING_MAX} deep")
        self._depth += 1
        try:
            return self._form(value, place)
        except Exception as error:  # any error of an object of the user's
            return self.blind(place, f"{type(error).__name__} when it was read")
        finally:
            self._depth -= 1

    def _form(self, value: Any, place: str) -> Sexp:
        kind = type(value)
        if kind in _CHANGING or self.is_own(value):
            return self.number(value, place)
        return next(form for of, form in _FORMS if issubclass(kind, of))(self, value, place)

    def is_own(self, value: Any) -> bool:
        """Tell whether it is an object of a class of the user's; not a class, nor a member."""
        kind = type(value)
        is_apart = issubclass(kind, (type, Enum)) or kind.__name__ in objects.CYTHON
        return not is_apart and self.owner(kind) is None

    def owner(self, kind: type) -> str | None:
        """Return the library that a class is from, None for the user's."""
        if kind not in self._owners:
            module = kind.__module__
            is_made = module == "types" and not hasattr(types, kind.__qualname__)
            known = isinstance(module, str) and not is_made  # by make_dataclass or new_class
            self._owners[kind] = library_of_module(module if known else None)
        return self.library(self._owners[kind])

    def number(self, value: Any, place: str, key: object = None) -> Sexp:
        """Return the number of an object, which is described in its turn.

        key: its identity among others, by default ``id``.
        """
        key = id(value) if key is None else key
        if key not in self._numbers:
            number = self._numbers[key] = len(self._met)
            self._met.append((value, place))
            (self._code if issubclass(type(value), _CODE) else self._data).append(number)
        return ["object", str(self._numbers[key])]

    def set_form(self, values: Any, place: str) -> Sexp:
        """Return the form of a set, without its order."""
        refused = self._refused
        forms = [self._apart(value, place) for value in values]
        if self._refused == refused:
            return ["set", *sorted(forms, key=ascii)]
        # How far that went depends on the order.
        self._left = dict.fromkeys(self._left, 0)
        return ["set", str(len(values))]

    def _apart(self, value: Any, place: str) -> Sexp:
        """Return a form that does not depend on which objects were met before."""
        if (plain := data.plain(self, value, place)) is not None:
            return plain if self.affords("values", 1, place) else BEYOND
        if self._sets == SETS_MAX:
            return self.blind(place, f"in more than {SETS_MAX} sets")
        apart = Reading(self._own, self._sets + 1)
        apart._left, apart._depth = self._left, self._depth
        apart._exhausted, apart._owners = self._exhausted, self._owners
        found = apart.read({place: value})
        self._refused += apart._refused
        self._unseen.update(dict.fromkeys(found.unseen))
        self._libraries.update(dict.fromkeys(found.libraries))
        return found.digest

    def code(self, code: CodeType, place: str) -> Sexp:
        """Return the form of a code: its parameters and operations."""
        if not self.affords("operations", len(code.co_code) // 2, place):
            return BEYOND
        named = code.co_argcount + code.co_kwonlyargcount
        counts = [code.co_posonlyargcount, code.co_argcount, code.co_kwonlyargcount]
        does: list[Sexp] = []
        for one in operations(code):
            argument = self.form(one.argument, place) if one.is_constant else str(one.argument)
            does.append([one.name, argument, *map(str, one.then), *map(str, one.handler or ())])
        flags = str(code.co_flags & _MEANINGFUL_FLAGS)
        return ["code", *map(str, counts), flags, [*code.co_varnames[:named]], does]

    # --- objects ---

    def _described(self, value: Any, place: str) -> Iterator[tuple[str, Sexp]]:
        kind = type(value)
        if kind is not names.Imported and self.is_own(value):
            return objects.parts(self, value, place)
        return next(parts for of, parts in _PARTS if issubclass(kind, of))(self, value, place)

    # --- unseen parts ---

    def blind(self, place: str, why: str) -> Sexp:
        """Note that the value at ``place`` is not seen; return its substitute."""
        self._unseen[f"{place or 'it'} ({why})"] = None
        return "unseen"

    def affords(self, what: str, count: int, place: str) -> bool:
        """Take so many more values, bytes or operations; if they are too many, note it."""
        if not self.fits(what, count, place):
            return False
        self._left[what] -= count
        return True

    def fits(self, what: str, count: int, place: str) -> bool:
        """Tell whether so many more could be taken; if not, note it."""
        if count <= self._left[what]:
            return True
        # Once nothing is left, everything is refused: the first is said.
        if count > 1 or what not in self._exhausted:
            self.blind(place, f"more than {_MAXIMA[what]} {what} in all")
        self._refused += 1
        if count == 1:
            self._exhausted.add(what)
        return False

    def library(self, package: str | None) -> str | None:
        """Return the library that ``package`` is, None for the user's; note which are used."""
        if package is None or package in self._own:
            return None
        self._has_decimals = self._has_decimals or package == "decimal"
        if package != "ripple" and not is_python(package):
            self._libraries[package] = None
        return package


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_PART_BYTES).hexdigest()


_CODE = (FunctionType, type, names.Imported)
# Mutable, and described once.
_CHANGING = frozenset({list, dict, set, bytearray})
# How everything else stands where it is used. The first that fits counts.
_FORMS: tuple[tuple[Any, Callable[[Reading, Any, str], Sexp]], ...] = (
    (tuple, data.sequence),
    (frozenset, Reading.set_form),
    (CodeType, Reading.code),
    (type, objects.class_form),
    (Enum, objects.member),
    (FunctionType, names.function),
    (MethodType, objects.method),
    ((BuiltinFunctionType, MethodWrapperType), objects.builtin),
    ((MethodDescriptorType, ClassMethodDescriptorType, WrapperDescriptorType), objects.descriptor),
    ((staticmethod, classmethod, property, cached_property, partialmethod), objects.wrapper),
    (partial, objects.partial),
    (ModuleType, names.module),
    (MappingProxyType, objects.proxy),
    (np.ndarray, Reading.number),
    (np.generic, data.scalar),
    (data.ARROW, data.arrow),
    (object, objects.instance),
)
# What those hold that stand as a number.
_PARTS: tuple[tuple[Any, Callable[[Reading, Any, str], Iterator[tuple[str, Sexp]]]], ...] = (
    (names.Imported, names.imported),
    (FunctionType, names.function_parts),
    (type, objects.class_parts),
    (list, data.items),
    (dict, data.pairs),
    (set, data.elements),
    (bytearray, data.content),
    (np.ndarray, data.array),
)
