"""Generations of a pipeline: clusters of different code, one of which serves.

Generation 1 has the store that all of them name, generation N a prefix of it. A fenced chain in
that store says which one serves, and how far its epochs are above those of its assignments.

Invariant: each entry is above all epochs that the generation serving before can have claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.control.assignment.chain import AssignmentChain
from ripple.control.assignment.epoch import VERSION_MAX
from ripple.control.assignment.errors import AssignmentError
from ripple.storage.fenced import Chain
from ripple.world.ports import Guards, all_guards

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore

PREFIX = "cluster/serving/"
FIRST = 1
GENERATION_MAX = 9_999
# Versions that a generation may go on to while its successor's entry is written, and not yet read.
VERSIONS_AHEAD = 10_000


@dataclass(frozen=True, slots=True)
class Serving:
    """The generation that serves.

    entry: the number of the chain's entry, 0 for none. generation: which serves. above: its
    partitions' epochs are those of so many versions of the assignment later. newest: the highest
    generation that has served. before: the one that served before it.
    """

    entry: int = 0
    generation: int = FIRST
    above: int = 0
    newest: int = FIRST
    before: int = FIRST

    def next(self, generation: int, version: int) -> Serving:
        """Return the entry after which another generation serves.

        version: the newest version of the assignment of the generation that serves. Raises
        AssignmentError where no epoch is left.
        """
        above = self.above + version + VERSIONS_AHEAD
        if above > VERSION_MAX - VERSIONS_AHEAD:
            raise AssignmentError(
                f"no epochs are left for a switch: the next would begin above version {above}; "
                "begin another cluster, with another store and other outputs"
            )
        newest = max(self.newest, generation)
        return Serving(self.entry + 1, generation, above, newest, self.generation)


@dataclass(frozen=True)
class _ServingContent:
    """Entries as JSON fields."""

    def to_fields(self, content: Serving) -> Mapping[str, Any]:
        return {
            "generation": content.generation,
            "above": content.above,
            "newest": content.newest,
            "entry": content.entry,
            "before": content.before,
        }

    def from_fields(self, fields: Mapping[str, Any]) -> Serving:
        names = ("entry", "generation", "above", "newest", "before")
        found = [one for one in map(fields.get, names) if type(one) is int and one >= 0]
        if set(fields) != set(names) or len(found) < len(names):
            raise AssignmentError(
                f"an entry of {PREFIX} has the fields {', '.join(sorted(fields))}: upgrade what is "
                "older"
            )
        return Serving(*found)


class ServingChain:
    """Reads and writes which generation serves. store: the one that all generations name."""

    def __init__(self, store: ObjectStore, nonce: str = "", *, guards: Guards = all_guards) -> None:
        self._nonce = nonce
        self._chain = Chain(store, PREFIX, _ServingContent(), guards=guards)

    async def newest(self) -> Serving:
        """Return the newest entry.

        Raises AssignmentError where the newest cannot be read, since an older one no longer holds;
        ChainError and StoreError.
        """
        reading = await self._chain.newest()
        if reading.damaged:
            raise AssignmentError(
                f"{reading.damaged[0]}: it says which generation serves; restore it"
            )
        return Serving() if reading.entry is None else reading.entry.content

    async def put(self, before: Serving, after: Serving) -> bool:
        """Add ``after``, if ``before`` is still the newest; return whether it was added.

        Raises AssignmentError, ChainError and StoreError.
        """
        reading = await self._chain.newest()
        now = Serving() if reading.entry is None else reading.entry.content
        if now != before or reading.damaged or after.entry != reading.newest_number + 1:
            return False
        entry = reading.next(self._nonce, after, self._chain.codec)
        there = await self._chain.create(entry)
        if there is None or (there.owner, there.content) != (entry.owner, entry.content):
            return False
        await self._chain.forget(entry)
        return True


def store_of(place: str, generation: int) -> str:
    """Return the store of a generation. place: the store that all generations name."""
    return place if generation == FIRST else f"{place}/{prefix_of(generation)}"


def prefix_of(generation: int) -> str:
    """Return the prefix of the store of a later generation."""
    return f"cluster/g{generation}"


def previews_of(store: str, outputs: Iterable[str]) -> dict[str, str]:
    """Return the URIs of what a generation writes before it serves. store: its own folder."""
    return {name: f"log:{store}/outputs/{name}" for name in outputs}


async def newest_version(store: ObjectStore) -> int:
    """Return the newest version of a generation's assignment, 0 for none. store: its own."""
    return (await AssignmentChain(store).newest()).newest_number
