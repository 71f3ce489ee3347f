"""The inputs of a run together with the answers to its rows.

In a durable run the log of answers is an additional input. A new answer is stored there first, then
it counts like every recorded answer, so a replay reads it again and makes no call. A one-shot run
keeps no answers: they count at once.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ripple.connectors.inputs import Signal
from ripple.core.errors import InputAwayError, InputError
from ripple.core.events import Called, no_listener
from ripple.model.batch import Answers
from ripple.model.pipeline.input_names import answers_of
from ripple.model.window import watermark
from ripple.task.asks.answer_log import question_keys
from ripple.task.asks.answer_objects import divided, fitted
from ripple.task.asks.calling import KINDS, Calling
from ripple.task.logged_inputs import FAR, LoggedInputs
from ripple.world.ports import all_guards
from ripple.world.together import called_off

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.core.events import EventListener
    from ripple.engine.machine import Engine
    from ripple.model.batch import Batch, Marker
    from ripple.model.pipeline.plan import Plan
    from ripple.task.asks.answer_log import AnswerLog
    from ripple.world.ports import Clock, Guards, Random

HELD_ROWS_MAX, HELD_BYTES_MAX = 65_536, 64 << 20


class AnsweredInputs(LoggedInputs):
    """A wrapper around inputs that calls for the rows that wait in the engine; see Inputs.

    Invariants: reading stops while held rows are at the limits, and resumes since each call ends.
    No call is made while the log has unread answers, since one may belong to the row of the call.
    At most one ``_putting`` stores answers; later answers wait for the next one. While it syncs the
    inputs, reading stops. Nothing is read while ``_loading`` reads a segment of the log.
    """

    _waiting = "answers wait for the store, and rows for them"

    def __init__(
        self,
        inputs: Inputs,
        plan: Plan,
        clock: Clock,
        random: Random,
        log: AnswerLog | None = None,
        *,
        partition: int = 0,
        emit: EventListener = no_listener,
        guards: Guards = all_guards,
        replay: str = "answer_replay",
    ) -> None:
        """log: opened, or only read by a run without new answers; None in one-shot runs.

        replay: the safeguard by which recorded answers are read.
        """
        super().__init__(inputs, answers_of(partition), clock, emit)
        self._asks = {ask.name: ask for ask in plan.asks}
        self._keys = {} if log is None else question_keys(plan)
        self._log, self._guards, self._replay = log, guards, replay
        self._calling = Calling(plan, clock, random, emit)
        self._new: list[tuple[str, pa.RecordBatch]] = []
        self._putting: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._kept = 0  # the least offset in the log of the kept checkpoints
        self._access = asyncio.Lock()
        self._is_live = log is None
        self._is_reading = self._is_full = False
        self.unanswered: Callable[[], Mapping[str, pa.RecordBatch]] = dict
        """Returns the engine's new rows without an answer."""
        self.held: Callable[[], tuple[int, int]] = lambda: (0, 0)
        """Returns how many rows the engine holds for answers, and their bytes."""

    def ask_for(self, engine: Engine) -> None:
        """Call for the rows that wait in an engine; see AskingInputs."""
        engine.ask_anew()  # it may have had another owner
        self.unanswered, self.held = engine.unanswered, lambda: engine.asked_size

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end; see Inputs."""
        if self._is_full:
            raise InputAwayError("rows wait for answers, and no input is read")
        async with self._access:
            first, end = await self._inputs.bounds()
        log = self._log
        return (
            {**first, self._name: 0 if log is None else log.first},
            {**end, self._name: 0 if log is None else log.end},
        )

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the inputs and the log of answers reach ``cut``; see Inputs."""
        if self._log is not None:
            self._log.check(cut.get(self._name, 0))
            self._log.check_first(cut.get(self._name, 0))
        await self._inputs.check(self._own(cut), self._own(identities))

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs. Without a stop in the log, calls are made from now on."""
        # Markers of idle inputs count at an offset, and inputs are opened anew up to there.
        self._stop = stop
        self._is_live = self._log_stop >= FAR
        if self._log is not None:
            self._log.check_first(cut[self._name])
        async with self._access:
            await self._inputs.open(self._own(cut), rows, None if stop is None else self._own(stop))

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return answers, or else the next entry of the inputs; it makes calls, and never waits."""
        self._is_reading = False
        if self._putting is not None and self._putting.done():
            putting, self._putting = self._putting, None
            putting.result()
        offset = cut[self._name]
        if self._is_to_load(offset):
            return Signal.WAITING
        recorded = self._recorded(cut, offset)
        if isinstance(recorded, Answers):
            return self._name, recorded
        if self._is_live and not recorded:
            self._calling.add(self.unanswered())
            self._calling.step()
            self._tell(is_due=False)
            if not self._new:  # else they stay in Calling, whose limit of bytes stops new calls
                self._new = self._calling.take()
            if self._new and self._log is None:
                ask, rows = self._new.pop(0)
                rows = fitted(rows, self._asks[ask])
                entry = Answers(watermark.NONE, offset + rows.num_rows, ask, rows)
                return self._name, entry
            if self._new and self._putting is None:
                self._putting = asyncio.create_task(self._put())
                self._putting.add_done_callback(lambda _: self._calling.wake())
        rows_held, bytes_held = self.held()
        self._is_full = rows_held >= HELD_ROWS_MAX or bytes_held >= HELD_BYTES_MAX
        is_held = (self._is_full and self._is_live and not recorded) or self._calling.is_owed
        if is_held or self._access.locked():
            return Signal.WAITING
        found = self._inputs.next(self._own(cut))
        self._is_reading = found is Signal.WAITING
        if found is Signal.ENDED and recorded:
            raise InputError(
                f"the log of answers has {recorded} answers to records that were read once, and "
                "the inputs end before them: give the sources that they were recorded with"
            )
        return Signal.WAITING if found is Signal.ENDED and self._is_open else found

    def _is_to_load(self, offset: int) -> bool:
        """Begin to load the next answers unless they are in memory; return whether they are not."""
        if self._loading is not None:
            if not self._loading.done():
                return True
            loading, self._loading = self._loading, None
            loading.result()
        log = self._log
        if log is None or offset >= self._log_stop or log.is_loaded(offset):
            return False
        self._loading = asyncio.create_task(self._stored(lambda: log.load(offset)))
        return True

    def _tell(self, *, is_due: bool) -> None:
        """Emit how many calls were made."""
        counts = self._calling.counts(is_due=is_due)
        if self._log is not None and (counts or is_due):
            calls, retries, failures = (counts.get(kind, {}) for kind in KINDS)
            in_progress = self._calling.in_progress
            self._emit(Called(calls, retries, failures, self._log.length_bytes, in_progress))

    @property
    def _is_open(self) -> bool:
        """Whether more answers are expected."""
        return self._putting is not None or bool(self._new) or self._calling.is_open

    def _recorded(self, cut: Cut, offset: int) -> Answers | int:
        """Return the next recorded answers, or, if their records are unread, their number."""
        log, stop = self._log, self._log_stop
        one = None if log is None or offset >= stop else log.after(offset)
        if one is None or log is None:
            return 0
        rows = one.known(cut, stop)
        if not rows.num_rows:
            return min(stop, log.end) - offset
        next_offset = offset + rows.num_rows
        ask = self._asks.get(one.ask)
        is_read = self._is_live or self._guards(self._replay)
        if ask is None or self._keys[one.ask] != one.question or not is_read:
            return Answers(watermark.NONE, next_offset, "", rows)  # other code had this question
        return Answers(watermark.NONE, next_offset, one.ask, fitted(rows, ask))

    async def more(self) -> None:
        """Wait until a call ends or is due again, an answer is durable, or the inputs have more."""
        if self._loading is not None:
            await self._calling.more([self._loading])
            return
        if not self._is_open:
            await self._inputs.more()
            return
        others: list[asyncio.Future[Any]] = []
        if self._is_reading:
            others.append(asyncio.ensure_future(self._inputs.more()))
        try:
            await self._calling.more(others)
        finally:
            await called_off(*others)

    def wake(self) -> None:
        """Let ``more`` return."""
        self._calling.wake()
        self._inputs.wake()

    async def sync(self) -> None:
        """Make the input read so far durable; see Inputs."""
        async with self._access:
            await self._inputs.sync()

    async def give_up(self) -> None:
        """Make no more calls, and record no more answers."""
        self._is_live = self._is_live and self._log is None
        self._calling.give_up()
        doing = [one for one in (self._putting, self._loading) if one is not None]
        self._putting = self._loading = None
        await called_off(*doing)

    def stored(self, checkpoints: Sequence[tuple[Cut, Mapping[str, str]]]) -> None:
        """Let go of records and answers that no checkpoint needs; see KeepingInputs."""
        self._kept = min((cut.get(self._name, 0) for cut, _ in checkpoints), default=0)
        super().stored([(self._own(cut), self._own(texts)) for cut, texts in checkpoints])

    # --- recording answers ---

    async def _put(self) -> None:
        """Make new answers durable, after the records of their rows."""
        assert self._log is not None
        log = self._log
        # After a power cut, an answer to lost records would count for other ones at their offsets.
        await self.sync()
        self._calling.wake()
        parts, self._new = divided(self._new, self._keys, log.end)
        await self._stored(lambda: log.add(parts))
        self._tell(is_due=True)
        if log.is_untidy:
            firsts: Cut = {}
            with suppress(InputAwayError):
                async with self._access:
                    firsts, _ = await self._inputs.bounds()
            await self._stored(lambda: log.tidy(firsts, self._kept))
