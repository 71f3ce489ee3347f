"""A source that is read once, as what a life reads, without an event loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ripple.connectors.inputs import Signal

if TYPE_CHECKING:
    from ripple.batch import Batch, Marker
    from ripple.connectors.contract import MarkedSource
    from ripple.cut import Cut


class OneSource:
    """A source that is read once, from its beginning to its end, as the only input of a life."""

    def __init__(self, name: str, source: MarkedSource) -> None:
        """Read ``source``, which is opened, as the input ``name``."""
        self._name = name
        self._source = source
        self._entries: Iterator[Batch | Marker] = iter(())

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self._name,)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return its beginning: nobody knows its end."""
        return {self._name: 0}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Do nothing: what is read once is not compared with anything."""

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return that nothing is known of what was read."""
        return dict.fromkeys(cut, "")

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:  # noqa: ARG002 - of Inputs
        """Begin; the source knows how much it gives at a time."""
        self._entries = self._source.batches()

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:  # noqa: ARG002 - of Inputs
        """Return what comes next, or that nothing does any more."""
        for entry in self._entries:
            return self._name, entry
        return Signal.ENDED

    async def more(self) -> None:
        """Do nothing: it never waits."""

    def wake(self) -> None:
        """Do nothing: nobody waits."""

    async def sync(self) -> None:
        """Do nothing: nobody comes back to it."""

    async def close(self) -> None:
        """Close the source."""
        self._source.close()
