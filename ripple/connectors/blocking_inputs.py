"""Inputs as a one-shot run reads them: they end, and never wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ripple.connectors.background import Background
from ripple.connectors.inputs import Signal

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from typing import Any

    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker

T = TypeVar("T")


class BlockingInputs:
    """Inputs for a caller without an event loop: they read in a thread, which is waited for.

    They come through the same cuts as in a durable run.
    """

    never_waits = True

    def __init__(self, inputs: Inputs) -> None:
        """Take them; nothing is asked yet."""
        self._inputs = inputs
        self._thread: Background | None = None
        self._bounds: tuple[Cut, Cut] = {}, {}
        self._at: Cut = {}
        self._is_closed = False

    @property
    def fraction_read(self) -> float | None:
        """The share of ``bounds`` already handed out, 0.0 to 1.0; None if unknown."""
        first, end = self._bounds
        length = sum(end.values()) - sum(first.values())
        if not self._at or not end or length <= 0:
            return None
        return min((sum(self._at.values()) - sum(first.values())) / length, 1.0)

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, in the order in which they were declared."""
        return self._inputs.names

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return their first and next offsets now; see Inputs."""
        self._bounds = self._called(self._inputs.bounds())
        return self._bounds

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the partitions are the same; see Inputs."""
        self._called(self._inputs.check(cut, identities))

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return the identity of each input; see Inputs."""
        return self._called(self._inputs.identities(cut))

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        self._called(self._inputs.open(cut, rows, stop))

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the batch after ``cut``, once it is there, or that all have ended."""
        self._at = cut
        return self._called(self._step(cut))

    async def _step(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        while (found := self._inputs.next(cut)) is Signal.WAITING:
            await self._inputs.more()
        return found

    async def more(self) -> None:
        """Return: ``next`` has waited."""

    def wake(self) -> None:
        """Do nothing: no caller waits between two calls."""

    async def sync(self) -> None:
        """Do nothing: nothing is stored."""

    async def close(self) -> None:
        """Stop reading, and end the thread; closing twice is allowed."""
        if self._is_closed:
            return
        self._is_closed = True
        # They are closed as well if nothing was asked of them.
        with self._thread or Background() as thread:
            thread.call(self._inputs.close())

    def _called(self, asked: Coroutine[Any, Any, T]) -> T:
        if self._thread is None:
            self._thread = Background()
        return self._thread.call(asked)
