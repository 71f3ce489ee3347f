"""What a life reads, and a source that is read once as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ripple.batch import Batch, Marker
    from ripple.connectors.contract import MarkedSource
    from ripple.cut import Cut


class Feed(Protocol):
    """The inputs of a partition, in an order that depends on the cut alone."""

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, in the order in which they were declared."""
        ...

    def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end."""
        ...

    def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the inputs reach ``cut``, by what was read when it was stored."""
        ...

    def identities(self, cut: Cut) -> dict[str, str]:
        """Return per input a text that tells what was read up to ``cut``."""
        ...

    def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; ``next`` goes on from there, ``rows`` at a time, up to ``stop``."""
        ...

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | None:
        """Return what comes after ``cut``, and of which input; None if nothing is there yet."""
        ...

    def sync(self) -> None:
        """Make durable what was read, before a cut that includes it is stored."""
        ...

    def close(self) -> None:
        """Release what is open."""
        ...


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

    def bounds(self) -> tuple[Cut, Cut]:
        """Return its beginning: nobody knows its end."""
        return {self._name: 0}, {self._name: 0}

    def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Do nothing: what is read once is not compared with anything."""

    def identities(self, cut: Cut) -> dict[str, str]:
        """Return that nothing is known of what was read."""
        return dict.fromkeys(cut, "")

    def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:  # noqa: ARG002 - Feed's
        """Begin; the source knows how much it gives at a time."""
        self._entries = self._source.batches()

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | None:  # noqa: ARG002 - Feed's
        """Return what comes next, None at the end."""
        for entry in self._entries:
            return self._name, entry
        return None

    def sync(self) -> None:
        """Do nothing: nobody comes back to it."""

    def close(self) -> None:
        """Close the source."""
        self._source.close()
