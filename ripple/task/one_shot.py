"""A one-shot run: a task with its state in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ripple.connectors.inputs import NO_ORIGINALS, Signal
from ripple.core.causes import Causes
from ripple.core.errors import InputError
from ripple.core.events import Started
from ripple.engine.machine import Engine
from ripple.task.drive import Drive
from ripple.task.live import LivePartition
from ripple.task.outputs import Outputs
from ripple.task.record_intake import RecordIntake

if TYPE_CHECKING:
    from ripple.connectors.dead_letter import DeadLetters
    from ripple.connectors.endings import Endings
    from ripple.connectors.hints import Hints
    from ripple.connectors.inputs import Inputs, Original
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker, Rejected
    from ripple.model.pipeline.plan import Plan
    from ripple.task.lifecycle import PartitionTask
    from ripple.task.rejection_limit import RejectionLimit
    from ripple.task.report import Report
    from ripple.task.spec import TaskContext, TaskSpec

T = TypeVar("T")
_HINTS_AMONG = 100  # rejected records


class EphemeralState:
    """The state manager of a one-shot run: the outputs commit once, at the end."""

    def __init__(self, open_letters: Callable[[], OneShotLetters]) -> None:
        """Keep nothing. open_letters: opens the dead letters, once the outputs are open."""
        self._open_letters = open_letters

    @asynccontextmanager
    async def running_state(
        self, spec: TaskSpec, context: TaskContext, endings: Endings
    ) -> AsyncIterator[OneShotRun]:
        """Begin with nothing; see StateManager."""
        plan, inputs = spec.plan, spec.inputs
        endings.add(inputs.close)
        spec.begin(context.emit)
        first, _ = await inputs.bounds()
        engine = Engine(plan, inputs=inputs.names, start=first)
        context.emit(Started(plan.name, engine.partition, None))
        standings = await spec.outputs.open(None, context.emit)
        endings.add(spec.outputs.close)
        letters = self._open_letters()
        endings.add(letters.close)
        await inputs.open(engine.cut, context.settings.batch_rows)
        live = LivePartition(engine, Outputs(spec.outputs, standings), context)
        intake = RecordIntake(
            Drive(engine), live, spec, context, letters=letters, guards=_all_guards
        )
        yield OneShotRun(live, intake, letters)

    def ask_for_checkpoint(self) -> None:
        """Do nothing: nothing is stored."""


class OneShotRun:
    """A one-shot run in progress; nothing is due before its end. See Run."""

    def __init__(self, live: LivePartition, intake: RecordIntake, letters: OneShotLetters) -> None:
        self._letters = letters
        self._asks = bool(live.engine.plan.asks)
        self.live = live
        self.intake = intake

    async def catch_up(self) -> bool:
        """Do nothing: all is new."""
        return True

    async def keep(self) -> None:
        """Let calls go on, if it makes any."""
        if self._asks:
            import asyncio  # noqa: PLC0415 - slow to import, and few runs need it

            await asyncio.sleep(0)

    async def wait(self) -> None:
        """Wait for calls: its input never waits."""
        await self.intake.more()

    async def finish(self) -> None:
        """Let all windows end, and commit."""
        await self.intake.close()
        self._letters.check(self.live.report.consumed)
        await self.live.commit(self.intake)


def hint_of(hints: Hints | None) -> str:
    """Return the first hint in brackets, "" if there is none."""
    return f" ({hints.first.program})" if hints is not None and hints.first is not None else ""


class OneShotLetters:
    """Rejected records of one source, under its own name or its inputs', for people.

    strict: the first one ends the run, with an InputError that names it, and its ``file`` if there
    is one. limit: how many may be; None for any number. hints: look for them in the first ones.
    """

    def __init__(
        self,
        letters: DeadLetters,
        source_name: str | None,
        file: str | None,
        *,
        strict: bool,
        limit: RejectionLimit | None = None,
        hints: Hints | None = None,
    ) -> None:
        self._limit = limit
        self._hints = hints
        self.counts = Causes()
        self._letters = letters
        self._source_name = source_name
        self._file, self._strict = None if file == "-" else file, strict

    def write(
        self,
        name: str,
        rejected: Iterable[Rejected],
        batch: Batch,  # noqa: ARG002 - likewise
        originals: Mapping[int, Original] = NO_ORIGINALS,  # noqa: ARG002 - likewise
    ) -> None:
        """Count and keep; raises OutputError, which names the target."""
        kept = [*rejected][: 1 if self._strict else None]
        for bad in kept:
            if self._hints is not None and self.counts.total() < _HINTS_AMONG:
                self._hints.look(bad)
            self.counts.add(bad.cause)
        source = self._source_name or name
        self._letters.write(source, kept)
        if self._strict:
            place = f"{self._file or source}, {kept[0].place}"
            raise InputError(f"{place}: {kept[0].cause}{self._hint}")
        if self._limit is not None:
            self._limit.check(self.counts, hint=self._hint)

    def check(self, consumed: int) -> None:
        """Raise InputError if too many of all records were rejected."""
        if self._limit is not None:
            self._limit.check(self.counts, consumed, hint=self._hint)

    @property
    def _hint(self) -> str:
        return hint_of(self._hints)

    def sync(self) -> None:
        """Do nothing: the dead letters are complete at the end, even of a run that fails."""

    def close(self) -> None:
        """Complete the place."""
        self._letters.close()


def entries(
    inputs: Inputs, batch_rows: int, cut: Cut | None = None, stop: Cut | None = None
) -> Iterator[Batch | Marker]:
    """Yield the entries of inputs without waits, from a cut on, by default their beginning."""
    at = dict(at_once(inputs.bounds())[0] if cut is None else cut)
    at_once(inputs.open(at, batch_rows, stop))
    while not isinstance(found := inputs.next(at), Signal):
        name, entry = found
        at[name] = entry.next_offset
        yield entry


def at_once(life: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, such as a one-shot run, to its end.

    It needs no event loop, so a running one, as in a notebook, is not in its way.
    """
    try:
        life.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    life.close()
    raise RuntimeError("a run that never waits has waited")


def to_its_end(life: PartitionTask[TaskSpec], plan: Plan, *, waits: bool = False) -> Report:
    """Run a one-shot run to its end, in an event loop of its own if it makes calls, or waits.

    Raises RuntimeError where another event loop is running then.
    """
    if not plan.asks and not waits:
        return at_once(life.run())
    from ripple.task.blocking import in_own_loop  # noqa: PLC0415 - slow to import

    return in_own_loop(life.run, f"pipeline {plan.name!r} asks, which")


# The one of ripple.world, without the event loop that importing that room brings in.
def _all_guards(_safeguard: str) -> bool:
    return True
