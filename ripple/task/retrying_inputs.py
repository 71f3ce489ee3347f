"""Inputs that wait for their server: the task reconnects, and resumes as a restarted one would."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING

from ripple.connectors.inputs import Signal
from ripple.connectors.passed_inputs import PassedInputs
from ripple.core.errors import InputAwayError, InputError
from ripple.core.events import EventListener, InputBack, InputWaits, no_listener
from ripple.world.pauses import doubling

if TYPE_CHECKING:
    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker

PAUSE_S, PAUSE_S_MAX = 0.1, 30.0
STEADY_S = 5.0  # an absence after so long is a new one: pauses begin anew
PATIENCE_S = 180.0  # as commits have it
EMIT_FIRST_S, EMIT_INTERVAL_S = 5.0, 30.0  # a wait is reported after so long, and then so often


class RetryingInputs(PassedInputs):
    """A wrapper around inputs that retries; see Inputs.

    An InputAwayError after the first opening ends nothing. After a pause, which grows, the inputs
    are checked against the input read before and opened at the task's cut, as a restarted task
    does: so the same inputs are rejected in both cases, and nothing is read from an input that was
    replaced. Before the first opening a mistake is more likely, and the error is raised.

    Invariants: while ``_return`` is set the inputs are between two openings, and only it calls
    them.
    """

    def __init__(self, inputs: Inputs, *, patience_s: float | None = None) -> None:
        """patience_s: how long to wait for an input that is away; None: without end."""
        super().__init__(inputs)
        self._patience_s = patience_s
        self.emit: EventListener = no_listener
        """Takes what happens."""
        self._opening: tuple[int, Cut | None] | None = None
        self._return: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._pauses_s = doubling(PAUSE_S, PAUSE_S_MAX)
        self._away_at_s, self._back_at_s = 0.0, -inf

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end; see Inputs."""
        if self._return is not None:
            raise InputAwayError("the input is away, so its end is unknown")
        return await super().bounds()

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        await self._give_up()
        was_open, self._opening = self._opening is not None, (rows, stop)
        try:
            await self._inputs.open(cut, rows, stop)
        except InputAwayError as error:
            if not was_open:
                raise
            self._lose(cut, error)

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the next entry after ``cut``, and its input; or why there is none."""
        if self._return is not None:
            if not self._return.done():
                return Signal.WAITING
            back, self._return = self._return, None
            back.result()
        try:
            return self._inputs.next(cut)
        except InputAwayError as error:
            self._lose(cut, error)
            return Signal.WAITING

    async def more(self) -> None:
        """Wait until ``next``, which said WAITING, may have more to say; it may be too early."""
        if self._return is None:
            await self._inputs.more()
        elif not self._return.done():
            await self._woken.wait()
        self._woken.clear()

    def wake(self) -> None:
        """Let ``more`` return, or its next call if there is no waiter."""
        self._woken.set()
        self._inputs.wake()

    async def close(self) -> None:
        """Release all resources; closing twice is allowed."""
        await self._give_up()
        await super().close()

    # --- away and back ---

    def _lose(self, cut: Cut, error: InputAwayError) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._back_at_s > STEADY_S:
            self._away_at_s = now_s
            self._pauses_s = doubling(PAUSE_S, PAUSE_S_MAX)
        self._return = asyncio.create_task(self._come_back(dict(cut), error))
        self._return.add_done_callback(lambda _: self._woken.set())

    async def _come_back(self, cut: Cut, error: InputAwayError) -> None:
        """Open the inputs again at the task's cut. Raises as a restarted task would."""
        assert self._opening is not None
        loop, emitted_at_s = (
            asyncio.get_running_loop(),
            self._away_at_s + EMIT_FIRST_S - EMIT_INTERVAL_S,
        )
        read = await self._inputs.identities(cut)
        while True:
            now_s = loop.time()
            if now_s - emitted_at_s >= EMIT_INTERVAL_S:
                self.emit(InputWaits(now_s - self._away_at_s, str(error)))
                emitted_at_s = now_s
            if self._patience_s is not None and now_s - self._away_at_s >= self._patience_s:
                raise InputError(
                    f"{error}; the run has waited {self._patience_s:.0f} s. Start it again once "
                    "the input is there: it resumes"
                ) from error
            await asyncio.sleep(next(self._pauses_s))
            try:
                await self._inputs.check(cut, read)
                await self._inputs.open(cut, *self._opening)
            except InputAwayError as again:
                error = again
                continue
            self._back_at_s = loop.time()
            self.emit(InputBack(self._back_at_s - self._away_at_s))
            return

    async def _give_up(self) -> None:
        back, self._return = self._return, None
        if back is not None:
            back.cancel()
            await asyncio.wait([back])
            if not back.cancelled():
                back.exception()  # mark it as retrieved
