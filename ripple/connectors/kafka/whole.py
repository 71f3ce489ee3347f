"""All partitions of a topic as the source of a one-shot run, up to their present ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.background import Background
from ripple.connectors.inputs import Signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker


class WholeTopic:
    """Inputs that end, for a run that never waits: they read in a thread, which is waited for.

    start: where they begin. They come through the same cuts as in a run that is gone on with.
    """

    def __init__(self, inputs: Inputs) -> None:
        """Ask where they begin. Raises InputError."""
        self._inputs = inputs
        self._is_closed = False
        self._background = Background()
        try:
            self.start, _ = self._background.call(inputs.bounds())
        except BaseException:
            self._background.close()
            raise

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, in the order in which they were declared."""
        return self._inputs.names

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return where they begin and end now; see Inputs."""
        return self._background.call(self._inputs.bounds())

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the partitions are the same; see Inputs."""
        self._background.call(self._inputs.check(cut, identities))

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return the identity of each input; see Inputs."""
        return self._background.call(self._inputs.identities(cut))

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        self._background.call(self._inputs.open(cut, rows, stop))

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the batch after ``cut``, once it is there, or that all have ended."""
        return self._background.call(self._step(cut))

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
        if not self._is_closed:
            self._is_closed = True
            self._background.call(self._inputs.close())
            self._background.close()
