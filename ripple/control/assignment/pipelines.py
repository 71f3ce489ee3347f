"""The pipelines of a cluster of several: their files, sources, outputs, and states.

Each is a separate cluster, in a prefix of the common store.

Invariant: no two pipelines of a cluster have a name, a number or an output in common.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ripple.core.errors import InputError
from ripple.core.named_uris import name_and_uri

if TYPE_CHECKING:
    from collections.abc import Callable

# Data ports of pipelines are 20 apart, and those of a worker's processes 500.
PIPELINES_MAX = 24
PORTS_APART = 20
TEXT_MAX = 4096

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Hosted:
    """A pipeline. file: as FILE.py[:NAME], in the folder of pipelines of each worker.

    number: unique, from 1. source, sinks: as workers take them. partitions: of the first stage of a
    new cluster; needs_one: whether it must be one. revision: of this pipeline; each change raises
    it, and restarts the processes.
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
        """Return a pipeline. Raises InputError with the names of all pipelines."""
        for one in self.all:
            if one.name == name:
                return one
        there = f"it has {', '.join(self.names)}" if self.all else "it has none yet"
        raise InputError(f"the cluster has no pipeline {name}: {there}")

    def added(self, one: Hosted) -> Pipelines:
        """Return them with one more, under a free number. Raises InputError."""
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
        """Return them with one stopped or started; no revision if it is so already.

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
    """Raise InputError for pipelines in conflict with each other."""
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
    """Raise InputError for a pipeline unfit for a cluster of several."""
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


def place_of(store: str, name: str) -> str:
    """Return the store of a pipeline. store: the common one; name: "" for the only pipeline."""
    return f"{store}/pipelines/{name}" if name else store
