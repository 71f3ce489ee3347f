"""The effect of a code object, without its line numbers, and the names that it reads.

CPython leaves NOPs and jumps to jumps in a function depending on how its source is broken into
lines, numbers constants by where a docstring stands, and keeps line numbers. None of that is in the
operations returned here: they are numbered in the order in which they are reached, and name their
operands and successors.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, takewhile
from types import CodeType
from typing import Any

from ripple.core.frozen import frozen

_NOTHING = frozenset({"NOP", "EXTENDED_ARG", "CACHE"})
_GO = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})
_END = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})
# What a class body or a module keeps of its source.
_ABOUT_SOURCE = frozenset({"__doc__", "__firstlineno__", "__static_attributes__"})
# Tests of the value on top of the stack: (the truth that jumps, whether the value is popped).
_TESTS = {
    **{
        f"POP_JUMP_{way}IF_{truth}": (truth == "TRUE", True)
        for way in ("", "FORWARD_", "BACKWARD_")
        for truth in ("TRUE", "FALSE")
    },
    "JUMP_IF_TRUE_OR_POP": (True, False),
    "JUMP_IF_FALSE_OR_POP": (False, False),
}
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_FREE = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})

Chain = tuple[str, ...]


@frozen
class Operation:
    """One operation.

    argument: a name, a number or, with ``is_constant``, any value of the code. then: the numbers of
    the operations after it: the next one, or for a test those if false and if true, or for another
    jump the next one and its target; last, the handler if it is in a ``try``. handler: how deep the
    stack is there, and whether the place is kept.
    """

    name: str
    argument: Any
    is_constant: bool
    then: tuple[int, ...]
    handler: tuple[int, bool] | None


@dataclass(slots=True)
class Reads:
    """The names that a code and the codes in it read from outside.

    certain: the globals that are no names of a class body. chains: per name of a global or a free
    variable, the attributes that are read from it one from the other; empty where the value itself
    is used. imports: (level, names, module) as in ``from`` statements.
    attributes: the names of all attributes read, of any object.
    """

    certain: set[str] = field(default_factory=set)
    globals: dict[str, set[Chain]] = field(default_factory=dict)
    free: dict[str, set[Chain]] = field(default_factory=dict)
    imports: set[tuple[int, Chain, str]] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)


def operations(code: CodeType) -> list[Operation]:
    """Return the operations of ``code``, from the first on."""
    return list(_Flow(code).operations())


def reads(code: CodeType) -> Reads:
    """Return the outside names that ``code`` reads, with the functions and classes inside it."""
    found = Reads()
    for one in _codes(code):
        _read(one, found)
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _read(code: CodeType, found: Reads) -> None:
    steps = [one for one in _disassembled(code)[0] if one.opname not in _NOTHING]
    for at, one in enumerate(steps):
        if one.opname in _GLOBALS or one.opname in _FREE:
            after = takewhile(lambda step: step.opname in _ATTRIBUTES, islice(steps, at + 1, None))
            names = found.free if one.opname in _FREE else found.globals
            names.setdefault(one.argval, set()).add(tuple(step.argval for step in after))
            if one.opname == "LOAD_GLOBAL":
                found.certain.add(one.argval)
        elif one.opname in _ATTRIBUTES:
            found.attributes.add(one.argval)
        elif one.opname == "IMPORT_NAME":
            level, names_from = (before.argval for before in steps[at - 2 : at])
            found.imports.add((level or 0, tuple(names_from or ()), one.argval))


@lru_cache(maxsize=256)  # asked for operations, and then for names
def _disassembled(code: CodeType) -> tuple[list[dis.Instruction], list[Any]]:
    found: Any = dis.Bytecode(code)  # typeshed does not know all of it
    return list(found), found.exception_entries


class _Flow:
    """The operations of a code as a graph."""

    def __init__(self, code: CodeType) -> None:
        self._constants = code.co_consts
        self._steps, self._tries = _disassembled(code)
        self._at = {one.offset: at for at, one in enumerate(self._steps)}
        self._dropped = set(self._about_source())

    def _about_source(self) -> Iterator[int]:
        for at, one in enumerate(self._steps):
            if one.opname == "STORE_NAME" and one.argval in _ABOUT_SOURCE and at:
                yield from (at - 1, at)

    def operations(self) -> Iterator[Operation]:
        """Yield all that are reached, each after some operation that leads to it."""
        numbers: dict[int, int] = {}
        after: dict[int, list[int]] = {}
        waiting = [self._reached(0)]
        while waiting:
            at = waiting.pop()
            if at not in numbers:
                numbers[at] = len(numbers)
                after[at] = self._after(at)
                waiting += reversed(after[at])
        for at, then in after.items():
            yield self._operation(at, tuple(numbers[next_at] for next_at in then))

    def _operation(self, at: int, then: tuple[int, ...]) -> Operation:
        one, entry = self._steps[at], self._try(at)
        handler = None if entry is None else (entry.depth, entry.lasti)
        if one.opname in _TESTS:
            gone = tuple(self._tested(at, truth)[0] for truth in (False, True))
            return Operation("TEST", gone, False, then, handler)
        name = one.opname.replace("BACKWARD_", "").replace("FORWARD_", "")
        if one.opcode in dis.hasconst:  # dis does not look up all of them
            return Operation(name, self._constants[one.arg or 0], True, then, handler)
        argument = one.argval if one.opcode in dis.hasname else one.arg
        return Operation(name, None if one.opcode in _JUMPS else argument, False, then, handler)

    def _after(self, at: int) -> list[int]:
        """Return the successors of an operation; last, the handler."""
        one, entry = self._steps[at], self._try(at)
        if one.opname in _TESTS:
            then = [self._tested(at, truth)[1] for truth in (False, True)]
        else:
            goes_on = one.opname not in _END and one.opname not in _GO
            then = [self._reached(at + 1)] if goes_on else []
            if one.opcode in _JUMPS:
                then.append(self._target(at))
        return then if entry is None else [*then, self._reached(self._at[entry.target])]

    def _tested(self, at: int, truth: bool) -> tuple[bool, int]:
        """Return whether the value is popped, and the next operation, if it is ``truth``."""
        seen = {at}
        while True:
            jumps_if, is_gone = _TESTS[self._steps[at].opname]
            if truth != jumps_if:
                return True, self._reached(at + 1)
            next_at = self._target(at)
            # A value that is kept is the same when it is tested again at once.
            if is_gone or next_at in seen or self._steps[next_at].opname not in _TESTS:
                return is_gone, next_at
            seen.add(next_at)
            at = next_at

    def _target(self, at: int) -> int:
        return self._reached(self._at[self._steps[at].argval])

    def _reached(self, at: int) -> int:
        """Return the first operation from ``at`` on that does something."""
        seen = set()
        while at not in seen:
            seen.add(at)
            one = self._steps[at]
            if one.opname in _NOTHING or at in self._dropped:
                at += 1
            elif one.opname in _GO:
                at = self._at[one.argval]
        return at

    def _try(self, at: int) -> Any:
        if not self._tries:
            return None
        offset = self._steps[at].offset
        return next((one for one in self._tries if one.start <= offset < one.end), None)
