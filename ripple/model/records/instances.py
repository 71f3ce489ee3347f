"""Rows as users' functions get them: instances, with the records in them that paths tell of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ripple.core.frozen import frozen
from ripple.model.records.members import members_of, record_class_in, unwrap
from ripple.model.schema.nested import paths_in

Made = Callable[[Sequence[Any]], Any]


def instances_of(cls: type | None, names: Sequence[str]) -> Made:
    """Return a function from a row's values, in the order of ``names``, to an instance.

    cls: the record class, None for an object with the fields as attributes. Of a class, an optional
    record without any value is None.
    """
    paths = paths_in(names)
    if not paths:
        make = cls or SimpleNamespace
        return lambda values: make(**dict(zip(names, values, strict=True)))
    return _maker(cls, [(paths.get(name, (name,)), at) for at, name in enumerate(names)])


@frozen
class _Instance:
    """How an instance is made: of values by their places, and of instances in it."""

    make: Callable[..., Any]
    values: tuple[tuple[str, int], ...]
    inner: tuple[tuple[str, _Instance], ...]
    may_lack: bool

    def __call__(self, row: Sequence[Any]) -> Any:
        given = {name: row[at] for name, at in self.values}
        given |= {name: one(row) for name, one in self.inner}
        if self.may_lack and all(value is None for value in given.values()):
            return None
        return self.make(**given)


def _maker(
    cls: type | None, leaves: list[tuple[tuple[str, ...], int]], *, may_lack: bool = False
) -> _Instance:
    members = {} if cls is None else {one.name: one for one in members_of(cls)}
    groups: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    values = []
    for path, at in leaves:
        if len(path) == 1:
            values.append((path[0], at))
        else:
            groups.setdefault(path[0], []).append((path[1:], at))
    inner = []
    for name, below in groups.items():
        member = members.get(name)
        of = None if member is None else record_class_in(member.annotation)
        lacks = member is not None and unwrap(member.annotation)[0] is not of
        inner.append((name, _maker(of, below, may_lack=lacks)))
    return _Instance(cls or SimpleNamespace, tuple(values), tuple(inner), may_lack)
