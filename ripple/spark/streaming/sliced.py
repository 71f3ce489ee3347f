"""Inputs of a task up to a cut that each micro-batch advances."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.connectors.inputs import Signal
from ripple.connectors.passed_inputs import PassedInputs
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.task.logged_inputs import FAR
from ripple.task.several_sources import is_watermarked
from ripple.world.together import called_off

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker


class Sliced(PassedInputs):
    """``inputs`` up to ``stop``; there it waits until the stop is advanced, and never ends.

    The task's progress follows from its requests: ``is_at_stop``. ``_opening`` goes on where a
    timeout of silent inputs ends ``more``.
    """

    def __init__(self, inputs: Inputs, stop: Cut) -> None:
        """Wrap inputs that end. stop: of all of them."""
        super().__init__(inputs)
        self._stop = {name: stop[name] for name in inputs.names}
        self._is_moved = False
        self._is_ending = True  # at a stop that the task itself requested
        self._cut: Cut = {}
        self._rows = 1
        self._woken = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._marked: Cut = {}  # where recorded markers count

    @property
    def watermarks_ns(self) -> Callable[[], Mapping[str, int]]:
        """Returns the watermarks that decide which source is read next."""
        return self._inputs.watermarks_ns if is_watermarked(self._inputs) else dict

    @watermarks_ns.setter
    def watermarks_ns(self, found: Callable[[], Mapping[str, int]]) -> None:
        if is_watermarked(self._inputs):
            self._inputs.watermarks_ns = found

    @property
    def is_at_stop(self) -> bool:
        """Whether the task has reached the end of the present micro-batch, or more."""
        return not self._is_ending and cuts.is_within(self._stop, self._cut)

    def go_to(self, stop: Cut) -> None:
        """Advance the stop; an earlier cut changes nothing."""
        self._stop = {name: max(offset, stop[name]) for name, offset in self._stop.items()}
        self._is_moved = True
        self.wake()

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end; see Inputs."""
        await self._opened()
        return await self._inputs.bounds()

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; with a ``stop`` from the task the inputs end there.

        One that is FAR for some inputs only says where recorded markers count: the others are read
        up to there, and these up to the end of the micro-batch.
        """
        await self._opened()
        ends = {} if stop is None else {name: at for name, at in stop.items() if at < FAR}
        self._is_ending = stop is not None and len(ends) == len(stop)
        self._marked = {} if self._is_ending else ends
        self._stop = {name: max(at, self._marked.get(name, 0)) for name, at in self._stop.items()}
        self._cut, self._rows = dict(cut), rows
        self._is_moved = self._is_moved and self._is_ending
        until = stop if self._is_ending and stop is not None else self._until(cut)
        await self._inputs.open(cut, rows, until)

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the next batch after ``cut``. Raises InputError if the input was shortened."""
        self._cut = dict(cut)
        if not self._is_ending and (self._is_moved or self.is_at_stop):
            return Signal.WAITING
        found = self._inputs.next(cut)
        if found is Signal.ENDED and not self._is_ending:
            raise InputError(
                f"the input ends at {cuts.text(cut)}, and had {cuts.text(self._stop)} before: it "
                "was replaced or truncated"
            )
        return found

    async def more(self) -> None:
        """Wait until the stop is advanced, or records before it have been read."""
        if self._is_moved and not self._is_ending:
            if self._opening is None:
                self._opening = asyncio.ensure_future(self._reopen())
            await self._opened()
        elif self.is_at_stop:
            await self._woken.wait()
            self._woken.clear()
        else:
            await self._inputs.more()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._woken.set()
        self._inputs.wake()

    async def close(self) -> None:
        """Release the inputs; see Inputs."""
        opening, self._opening = self._opening, None
        if opening is not None:
            await called_off(opening)
        await self._inputs.close()

    async def _reopen(self) -> None:
        stop = self._stop
        await self._inputs.open(self._cut, self._rows, self._until(self._cut))
        self._is_moved = self._stop is not stop

    async def _opened(self) -> None:
        """Wait until the inputs are open, also where a former ``more`` was cancelled meanwhile."""
        opening = self._opening
        if opening is None:
            return
        try:
            await asyncio.shield(opening)
        finally:
            if opening.done():
                self._opening = None

    def _until(self, cut: Cut) -> Cut:
        until = {name: max(cut[name], offset) for name, offset in self._stop.items()}
        return {**until, **self._marked}
