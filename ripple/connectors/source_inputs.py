"""Inputs of a one-shot run, made of any source: they end and never wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from ripple.connectors.contract import check_not_async, is_source
from ripple.connectors.inputs import Signal, is_inputs
from ripple.core.errors import InputError
from ripple.model.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.connectors.contract import Source
    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.batch import Marker


def is_readable(value: object) -> TypeGuard[Source | Inputs]:
    """Tell whether a one-shot run can read this."""
    return is_source(value) or is_inputs(value)


def ended(opened: Source | Inputs, name: str) -> Inputs:
    """Return the inputs of a one-shot run: they end, and never wait.

    name: of the only input of a source.
    """
    if not is_inputs(opened):
        assert is_source(opened)
        return SourceInputs(opened, name=name)
    if getattr(opened, "never_waits", False):
        return opened
    from ripple.connectors.blocking_inputs import BlockingInputs  # noqa: PLC0415 - slow to import

    return BlockingInputs(opened)


class SourceInputs:
    """A source as an input that ends, read when asked: files, tables.

    Its batches are those of the source, with the size set when it was made. It cannot detect
    changes of the source.
    """

    never_waits = True

    def __init__(self, source: Source, *, name: str | None = None) -> None:
        """Read ``source`` as the input ``name``, by default the source's own.

        Raises InputError for a source with an async method, which no caller would await.
        """
        check_not_async("source", source, InputError)
        self.name = source.name
        self._name = source.name if name is None else name
        self._source = source
        self._entries: Iterator[Batch | Marker] = iter(())
        self._stop: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self._name,)

    @property
    def fraction_read(self) -> float | None:
        """How much of the source was read, 0.0 to 1.0; None where that is unknown."""
        return getattr(self._source, "fraction_read", None)

    def file_at(self, _name: str, offset: int) -> str | None:
        """Return the file with a record that was read; see FiledInputs."""
        found = getattr(self._source, "file_at", None)
        return None if found is None else found(offset)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return its beginning; its end is unknown."""
        return {self._name: 0}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Accept: changes cannot be detected."""

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return no identity."""
        return dict.fromkeys(cut, "")

    async def open(self, cut: Cut, _rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``."""
        self._entries = iter(self._source.batches(cut[self._name]))
        self._stop = None if stop is None else stop[self._name]

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the next batch; raises as the source does."""
        if self._stop is not None and cut[self._name] >= self._stop:
            return Signal.ENDED
        entry = self._take()
        if isinstance(entry, Signal):
            return entry
        return self._name, entry if self._stop is None else self._until_stop(entry)

    def _take(self) -> Batch | Marker | Signal:
        return next(self._entries, Signal.ENDED)

    async def more(self) -> None:
        """Return: it never waits."""

    def wake(self) -> None:
        """Do nothing: there is no waiting caller."""

    async def sync(self) -> None:
        """Do nothing: the caller owns the source."""

    async def close(self) -> None:
        """Close the source."""
        self._source.close()
        self._entries = iter(())

    def _until_stop(self, entry: Batch | Marker) -> Batch | Marker:
        if self._stop is None or not isinstance(entry, Batch) or entry.next_offset <= self._stop:
            return entry
        if entry.first_offset >= self._stop:  # after a hole that contains the stop
            return Batch(entry.records.slice(0, 0), self._stop, (), entry.offsets()[:0])
        return entry.split_at(self._stop)[0]
