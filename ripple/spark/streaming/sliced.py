"""Inputs of a task up to a cut that each micro-batch advances."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.connectors.inputs import Signal
from ripple.connectors.passed_inputs import PassedInputs
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.task.several_sources import WatermarkedInputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker


class Sliced(PassedInputs):
    """``inputs`` up to ``stop``; there it waits until the stop is advanced, and never ends.

    The task's progress follows from its requests: ``is_at_stop``.
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

    @property
    def watermarks_ns(self) -> Callable[[], Mapping[str, int]]:
        """Returns the watermarks that decide which source is read next."""
        return self._inputs.watermarks_ns if isinstance(self._inputs, WatermarkedInputs) else dict

    @watermarks_ns.setter
    def watermarks_ns(self, found: Callable[[], Mapping[str, int]]) -> None:
        if isinstance(self._inputs, WatermarkedInputs):
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

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; with a ``stop`` from the task the inputs end there."""
        self._cut, self._rows, self._is_ending = dict(cut), rows, stop is not None
        self._is_moved = self._is_moved and self._is_ending
        await self._inputs.open(cut, rows, self._until(cut) if stop is None else stop)

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
            await self._inputs.open(self._cut, self._rows, self._until(self._cut))
            self._is_moved = False
        elif self.is_at_stop:
            await self._woken.wait()
            self._woken.clear()
        else:
            await self._inputs.more()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._woken.set()
        self._inputs.wake()

    def _until(self, cut: Cut) -> Cut:
        return {name: max(cut[name], offset) for name, offset in self._stop.items()}
