"""Inputs of a life up to a cut that is moved on, micro-batch by micro-batch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.connectors.inputs import Signal
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.task.passed_inputs import PassedInputs

if TYPE_CHECKING:
    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker


class Sliced(PassedInputs):
    """What ``inputs`` have up to ``stop``; there it waits until that is moved, and never ends.

    The life that it belongs to tells by what it asks for how far it has come: ``is_at_stop``.
    """

    def __init__(self, inputs: Inputs, stop: Cut) -> None:
        """Take inputs that are not followed. stop: of all of them."""
        super().__init__(inputs)
        self._stop = {name: stop[name] for name in inputs.names}
        self._is_moved = False
        self._is_ending = True  # at a stop that the life has asked for itself
        self._cut: Cut = {}
        self._rows = 1
        self._woken = asyncio.Event()

    @property
    def is_at_stop(self) -> bool:
        """Whether the life has come to where the present micro-batch ends, or further."""
        return not self._is_ending and cuts.is_within(self._stop, self._cut)

    def go_to(self, stop: Cut) -> None:
        """Let the life go on up to another cut; one that is behind changes nothing."""
        self._stop = {name: max(offset, stop[name]) for name, offset in self._stop.items()}
        self._is_moved = True
        self.wake()

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``, up to ``stop`` where the life says one: there it has an end."""
        self._cut, self._rows, self._is_ending = dict(cut), rows, stop is not None
        self._is_moved = self._is_moved and self._is_ending
        await self._inputs.open(cut, rows, self._until(cut) if stop is None else stop)

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return what comes after ``cut``. Raises InputError where less is there than there was."""
        self._cut = dict(cut)
        if not self._is_ending and (self._is_moved or self.is_at_stop):
            return Signal.WAITING
        found = self._inputs.next(cut)
        if found is Signal.ENDED and not self._is_ending:
            raise InputError(
                f"the input ends at {cuts.text(cut)}, and had {cuts.text(self._stop)} before: it "
                "is another one, or somebody has cut it"
            )
        return found

    async def more(self) -> None:
        """Wait until the stop is moved, or what is before it has been read."""
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
