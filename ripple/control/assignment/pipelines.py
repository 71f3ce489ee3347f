"""The pipelines of a cluster of several: which run, from which file, with which source and outputs.

Each is a cluster of its own, whose store is a prefix of the one that all name. A fenced chain there
is the record of them; each entry holds all pipelines.

Invariant: no two pipelines of an entry have a name, a number or an output in common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ripple.control.assignment.errors import AssignmentError
from ripple.core.errors import InputError
from ripple.core.named_uris import name_and_uri
from ripple.storage.fenced import Chain

if TYPE_CHECKING:
    from ripple.storage.fenced import Reading
    from ripple.world.ports import ObjectStore

PREFIX = "cluster/pipelines/"
# Data ports of pipelines are 20 apart, and those of a worker's processes 500.
PIPELINES_MAX = 24
PORTS_APART = 20
TEXT_MAX = 4096
ATTEMPTS_MAX = 16

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Hosted:
    """A pipeline. file: as FILE.py[:NAME], in the folder of pipelines of each worker.

    number: from 1, which no other has. source, sinks: as workers take them. partitions: of the
    first stage of a new cluster; needs_one: whether it must be one. revision: of this pipeline,
    which rises with each change: its processes start again.
    """

    name: str
    number: int
    file: str
    source: str
    sinks: tuple[str, ...]
    partitions: int
    needs_one: bool = False
    is_stopped: bool = False
    revision: int = 1


@dataclass(frozen=True, slots=True)
class Pipelines:
    """All pipelines, by number. entry: the chain's, 0 for none."""

    entry: int = 0
    all: tuple[Hosted, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return sorted(one.name for one in self.all)

    def get(self, name: str) -> Hosted:
        """Return a pipeline. Raises InputError, which names those that are there."""
        for one in self.all:
            if one.name == name:
                return one
        there = f"it has {', '.join(self.names)}" if self.all else "it has none yet"
        raise InputError(f"the cluster has no pipeline {name}: {there}")

    def added(self, one: Hosted) -> Pipelines:
        """Return them with one more, which gets a number. Raises InputError."""
        if one.name in self.names:
            raise InputError(
                f"the cluster has a pipeline {one.name} already: ripple pipeline change gives it "
                "another file, source or output"
            )
        if len(self.all) == PIPELINES_MAX:
            raise InputError(
                f"the cluster has {PIPELINES_MAX} pipelines, as many as it may: remove one with "
                "ripple pipeline remove, or begin another cluster"
            )
        taken = {each.number for each in self.all}
        number = next(n for n in range(1, PIPELINES_MAX + 1) if n not in taken)
        return self._with((*self.all, replace(one, number=number)))

    def changed(self, name: str, change: Callable[[Hosted], Hosted]) -> Pipelines:
        """Return them with one changed, in its next revision. Raises InputError."""
        before = self.get(name)
        after = change(before)
        after = replace(after, number=before.number, revision=before.revision + 1)
        return self._with(tuple(after if one is before else one for one in self.all))

    def stopped(self, name: str, *, is_stopped: bool) -> Pipelines:
        """Return them with one stopped or started; if it is so already, its processes go on.

        Raises InputError.
        """
        if self.get(name).is_stopped == is_stopped:
            return self
        return self.changed(name, lambda one: replace(one, is_stopped=is_stopped))

    def removed(self, name: str) -> Pipelines:
        """Return them without one. Raises InputError."""
        gone = self.get(name)
        return self._with(tuple(one for one in self.all if one is not gone))

    def _with(self, pipelines: tuple[Hosted, ...]) -> Pipelines:
        after = Pipelines(self.entry, tuple(sorted(pipelines, key=lambda one: one.number)))
        check(after)
        return after


def check(pipelines: Pipelines) -> None:
    """Raise InputError for pipelines that cannot be run beside each other."""
    owners: dict[str, str] = {}
    for one in pipelines.all:
        check_one(one)
        for text in one.sinks:
            place = name_and_uri(text)[1]
            if place in owners:
                raise InputError(
                    f"pipelines {owners[place]} and {one.name} both write {place}: give one of "
                    "them another output"
                )
            owners[place] = one.name


def check_one(one: Hosted) -> None:
    """Raise InputError for a pipeline that cannot be one of several."""
    if not _NAME.fullmatch(one.name):
        raise InputError(
            f"the pipeline is called {one.name!r}: one of several has a name of letters, digits, "
            "'.', '_' and '-', at most 64, as in rp.Pipeline('vwap')"
        )
    path = PurePosixPath(one.file.partition(":")[0])
    if path.is_absolute() or ".." in path.parts or path.suffix != ".py":
        raise InputError(
            f"pipeline {one.name}: {one.file} is no FILE.py in the folder of pipelines: give its "
            "path from there"
        )
    for text in (one.file, one.source, *one.sinks):
        if len(text) > TEXT_MAX:
            raise InputError(
                f"pipeline {one.name}: {text[:60]}… has {len(text)} characters, at most {TEXT_MAX}"
            )


_FIELDS = {one.name: str(one.type) for one in fields(Hosted)}
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: type(value) is int and 0 < value < 1 << 53,
    "bool": lambda value: isinstance(value, bool),
    "tuple[str, ...]": lambda value: (
        isinstance(value, list) and all(isinstance(one, str) for one in value)
    ),
}


@dataclass(frozen=True)
class _Content:
    """Entries as JSON fields."""

    def to_fields(self, content: Pipelines) -> Mapping[str, Any]:
        listed = [asdict(one) | {"sinks": list(one.sinks)} for one in content.all]
        return {"pipelines": listed, "entry": content.entry}

    def from_fields(self, fields: Mapping[str, Any]) -> Pipelines:
        listed, entry = fields.get("pipelines"), fields.get("entry")
        if set(fields) != {"pipelines", "entry"} or type(entry) is not int:
            raise AssignmentError(f"an entry of {PREFIX} has other fields: upgrade what is older")
        if not isinstance(listed, list) or len(listed) > PIPELINES_MAX:
            raise AssignmentError(f"an entry of {PREFIX} has more than {PIPELINES_MAX} pipelines")
        found = Pipelines(entry, tuple(map(_hosted, listed)))
        try:
            check(found)
        except InputError as error:
            raise AssignmentError(f"an entry of {PREFIX}: {error}") from error
        return found


def _hosted(values: object) -> Hosted:
    if not isinstance(values, dict) or set(values) != set(_FIELDS):
        raise AssignmentError(f"a pipeline in {PREFIX} has other fields: upgrade what is older")
    for name, kind in _FIELDS.items():
        if not _KINDS[kind](values[name]):
            raise AssignmentError(f"a pipeline in {PREFIX} has {name} {values[name]!r:.60}")
    return Hosted(**values | {"sinks": tuple(values["sinks"])})


class PipelineChain:
    """Reads and writes the record. store: the one that all pipelines name."""

    def __init__(self, store: ObjectStore, nonce: str = "") -> None:
        self._nonce = nonce
        self._chain = Chain(store, PREFIX, _Content())

    async def newest(self) -> Pipelines:
        """Return the newest entry.

        Raises AssignmentError where it cannot be read, since an older one may have pipelines that
        were removed; ChainError and StoreError.
        """
        return _newest(await self._chain.newest())

    async def change(self, change: Callable[[Pipelines], Pipelines]) -> Pipelines:
        """Add an entry: the change of the newest; return it.

        Another writer's entry of the same number is changed in its turn. Raises what the change
        raises, AssignmentError, ChainError and StoreError.
        """
        for _ in range(ATTEMPTS_MAX):
            reading = await self._chain.newest()
            after = replace(change(_newest(reading)), entry=reading.newest_number + 1)
            entry = reading.next(self._nonce, after, self._chain.codec)
            there = await self._chain.create(entry)
            if there is not None and (there.owner, there.content) == (entry.owner, after):
                await self._chain.forget(entry)
                return after
        raise AssignmentError(f"{PREFIX} was changed {ATTEMPTS_MAX} times meanwhile: try again")


def _newest(reading: Reading[Pipelines]) -> Pipelines:
    if reading.damaged:
        raise AssignmentError(f"{reading.damaged[0]}: it says which pipelines run; restore it")
    return Pipelines() if reading.entry is None else reading.entry.content


def place_of(store: str, name: str) -> str:
    """Return the store of a pipeline. store: the one that all name; name: "" for the only one."""
    return f"{store}/pipelines/{name}" if name else store
