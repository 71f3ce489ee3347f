"""The inputs of a task together with the recorded markers of silent inputs.

The log of markers is one input more. A marker counts at one offset of its input, so no record
behind that offset is read before it; everything else is read in the order of the inputs. While the
task is live, the clock says which inputs are silent. Their markers are made durable first, and
count then: their effects are a function of inputs that a replay finds again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.connectors.inputs import Signal
from ripple.core.errors import InputAwayError, InputError
from ripple.core.events import EventListener, InputIdle, Silences
from ripple.model.pipeline.input_names import of_sources
from ripple.model.window import watermark
from ripple.task.idleness import Idleness
from ripple.task.logged_inputs import FAR, LoggedInputs
from ripple.world.together import called_off

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, IdleMarker, Marker
    from ripple.model.pipeline.plan import Plan
    from ripple.task.marker_log import MarkerLog
    from ripple.world.ports import Clock, Guards

_NS = 1_000_000_000


class MarkedInputs(LoggedInputs):
    """A wrapper around inputs with a log of markers; see Inputs.

    Invariants: while ``_job`` is set, it alone calls the inputs, and no record is handed out, so
    that markers count where they say. ``_barriers``: per input, the offset up to which the inputs
    were opened because a marker counts there; ``_is_passed`` once one has: more can be read.
    """

    _waiting = "markers of idle inputs wait for the store, and records for them"

    def __init__(
        self,
        inputs: Inputs,
        plan: Plan,
        name: str,
        log: MarkerLog,
        clock: Clock,
        *,
        emit: EventListener,
        guards: Guards,
        replay: str = "marker_replay",
    ) -> None:
        """name: of the log as an input. log: opened, or read where no marker is to be added.

        replay: the safeguard that markers of others count.
        """
        super().__init__(inputs, name, clock, emit)
        self._replay = replay
        self._log = log
        self._guards = guards
        self._idleness = Idleness(plan, of_sources(inputs.names))
        self._silent: set[str] = set()
        self._cut: Cut = {}
        self._rows = 1
        self._barriers: dict[str, int] = {}
        self._is_passed = self._is_live = self._is_waiting = False
        # Since the inputs were last read. Where markers take longer than ``idle`` they would never
        # be, and nor would answers, whose rows hold windows up.
        self._has_looked = False
        self._job: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self.waiting_count: Callable[[], int] = int
        """Returns how many windows, keys that end and rows wait for a watermark in the engine, at
        the cut of ``next``; a task sets it."""
        self.is_awaited = False
        """Whether something may wait in later stages, too; a task sets it."""

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end; see Inputs."""
        first, end = await self._inputs.bounds()
        return {**first, self._name: self._log.first}, {**end, self._name: self._log.end}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the inputs and the log of markers reach ``cut``; see Inputs."""
        self._log.check(cut.get(self._name, 0))
        await self._inputs.check(self._own(cut), self._own(identities))

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs. Without ``stop``, markers are added from now on."""
        await self.give_up()
        self._log.check_first(cut[self._name])
        self._rows, self._stop, self._cut = rows, stop, cut
        self._is_live = stop is None
        if self._is_live:
            self._idleness.begin(self._clock.monotonic_ns())
        await self._reopen()

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the marker that counts at ``cut``, or else the next entry of the inputs."""
        self._cut = cut
        if self._job is not None:
            if not self._job.done():
                return Signal.WAITING
            job, self._job = self._job, None
            job.result()
            self._has_looked = True
        marker = self._next_marker(cut)
        if marker is not None and self._counts(marker, cut):
            self._is_passed = self._is_passed or bool(self._barriers)
            if not self._is_live and not self._guards(self._replay):
                marker = replace(marker, watermark_ns=watermark.NONE)
            return self._name, marker
        now_ns = self._clock.monotonic_ns() if self._is_live else 0
        is_due = self._is_live and not self._has_looked and self._is_due(now_ns)
        if self._is_passed or is_due:
            return Signal.WAITING  # ``more`` reads on, or adds markers
        found = self._inputs.next(self._own(cut))
        self._has_looked = False
        self._is_waiting = found is Signal.WAITING
        if isinstance(found, Signal):
            if found is Signal.ENDED and marker is not None:
                raise InputError(
                    f"a marker of an idle input counts after offset {marker.offset} of "
                    f"{marker.input}, and the input ends before it, at {cut[marker.input]}"
                )
            return found
        if self._is_live:
            self._idleness.came(found[0], now_ns)
            if found[0] in self._silent:
                self._silent.discard(found[0])
                self._emit(Silences(self._idleness.by_source(self._silent), {}))
        return found

    async def more(self) -> None:
        """Wait until there may be more, or until an input has been silent for too long."""
        if self._job is None and self._is_passed:
            self._job = asyncio.create_task(self._reopen())
        while self._job is None:
            now_ns, due_s = self._clock.monotonic_ns(), None
            if self._is_live and self._is_due(now_ns):
                self._job = asyncio.create_task(self._look(now_ns))
                break
            if self._is_live and (due_ns := self._idleness.due_ns) is not None:
                due_s = max(0, due_ns - now_ns) / _NS
            with suppress(TimeoutError):
                async with asyncio.timeout(due_s):
                    await self._inputs.more()
                    return
        self._job.add_done_callback(lambda _: self._woken.set())
        await self._woken.wait()
        self._woken.clear()

    def wake(self) -> None:
        """Let ``more`` return; see Inputs."""
        self._woken.set()
        self._inputs.wake()

    async def give_up(self) -> None:
        """Add no more markers."""
        self._is_live = False
        job, self._job = self._job, None
        if job is not None:
            await called_off(job)

    # --- reading markers ---

    def _next_marker(self, cut: Cut) -> IdleMarker | None:
        """Return the next marker, unless it is behind the stop."""
        marker = self._log.after(cut[self._name])
        is_read = marker is not None and marker.next_offset <= self._log_stop
        return marker if is_read else None

    def _counts(self, marker: IdleMarker, cut: Cut) -> bool:
        return cut[marker.input] >= marker.offset or not self._guards("marker_place")

    async def _reopen(self) -> None:
        """Open the inputs up to the stop, and to where the next markers count."""
        stop, cut = self._stop, self._cut
        barriers = self._log.barriers(cut[self._name], None if stop is None else stop[self._name])
        if not self._guards("marker_barrier"):
            barriers = {}
        limit = stop
        if barriers:
            ends = dict.fromkeys(self._inputs.names, FAR) if stop is None else self._own(stop)
            limit = {name: min(end, barriers.get(name, FAR)) for name, end in ends.items()}
        limit = None if limit is None else self._own(limit)
        await self._inputs.open(self._own(cut), self._rows, limit)
        self._barriers, self._is_passed = barriers, False

    # --- adding markers ---

    def _is_due(self, now_ns: int) -> bool:
        """Return whether to look for markers to add: inputs are silent by now, and it may help.

        Where no window, key that ends or row is held, nothing waits for one: a long silence takes
        no markers, or few where other processes may hold some. Recorded markers count first: one
        behind them would bind an input that is open past it. And no input is asked for its end
        where others hold the watermark up.
        """
        silent = self._idleness.silent(now_ns)
        if not silent:
            return False
        is_held = self.waiting_count() > 0
        is_wanted = not self._barriers and (is_held or self.is_awaited)
        if is_wanted and self._idleness.may_rise(silent, self._watermarks_ns()):
            return True
        self._idleness.looked(now_ns, is_seldom=self.is_awaited and not is_held)
        return False

    async def _look(self, now_ns: int) -> None:
        """Add markers of the inputs that are silent by now, where they raise a watermark."""
        self._idleness.looked(now_ns, is_seldom=self.is_awaited and not self.waiting_count())
        # The clock before the ends: no later record is judged by a time after they were asked for.
        wall_ns = self._clock.now_ns()
        silent = await self._at_their_ends(self._idleness.silent_at(now_ns))
        markers = self._idleness.markers(
            silent, self._cut, self._watermarks_ns(), wall_ns, self._log.end
        )
        for one in markers:
            if one.input not in self._silent:
                self._emit(InputIdle(one.input, one.offset, one.watermark_ns))
        self._silent.update(one.input for one in markers)
        if markers:
            # A marker behind records that a power cut takes would wait for others in their place.
            await self._inputs.sync()
            await self._stored(lambda: self._log.add(markers))
            recorded = self._idleness.by_source(one.input for one in markers)
            self._emit(Silences(self._idleness.by_source(self._silent), recorded))
            await self._stored(self._log.tidy)

    async def _at_their_ends(self, silent: set[str]) -> set[str]:
        """Return inputs that were read to their end: an input with unread records is not silent."""
        try:
            _, end = await self._inputs.bounds()
        except InputAwayError:
            return set()
        # Where the end is unknown, the last answer tells.
        unknown = FAR if not self._is_waiting else 0
        return {name for name in silent if end.get(name, unknown) <= self._cut[name]}
