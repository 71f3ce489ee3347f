"""One process's life over a partition: read, apply, bring up, write, until the input ends.

A keeper makes a partition outlive its lives. A plain run is a life without one: it claims nothing
and goes on from nothing, and its outputs commit once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ripple.connectors.endings import Endings
from ripple.connectors.inputs import Signal
from ripple.core.errors import InputError
from ripple.core.events import Tell, untold
from ripple.engine.machine import Engine
from ripple.model.window import OnCount, OnInterval
from ripple.task.loop import TaskLoop, TaskSpec
from ripple.task.report import Report
from ripple.task.settings import Settings

if TYPE_CHECKING:
    from ripple.connectors.commit_group import CommitGroup
    from ripple.connectors.inputs import Inputs
    from ripple.engine.operators.division import Division
    from ripple.model.pipeline.plan import Plan
    from ripple.task.edges import Publisher
    from ripple.task.lanes import Lanes
    from ripple.task.loop import IntakeGate
    from ripple.task.tracing import Traces


@runtime_checkable
class NotifyingInputs(Protocol):
    """Inputs that tell what happens to them; before anybody listens, nobody."""

    tell: Tell


class RunningState(Protocol):
    """A partition that is live, and what its keeper does beside."""

    @property
    def live(self) -> TaskLoop:
        """The partition."""
        ...

    async def catch_up(self) -> bool:
        """Come to where what is new begins; return False if told to stop before."""
        ...

    async def keep(self) -> None:
        """Do what is due, between two batches."""
        ...

    async def wait(self) -> None:
        """Wait until there may be more to read, or something is due."""
        ...

    async def finish(self) -> None:
        """Leave everything in good order: the input has ended, or somebody asked to stop."""
        ...


class StateManager(Protocol):
    """What a life is kept by."""

    def keeping(
        self, parts: TaskSpec, endings: Endings
    ) -> AbstractAsyncContextManager[RunningState]:
        """Make the partition live; endings: what is open, to be released after the life."""
        ...


class ActiveTask:
    """One run over a partition. ``run`` is called once."""

    def __init__(
        self,
        plan: Plan,
        inputs: Inputs,
        outputs: CommitGroup,
        keeper: StateManager,
        *,
        settings: Settings | None = None,
        tell: Tell = untold,
        stop: Callable[[], bool] = lambda: False,
        watch: Callable[[Engine, Report], None] = lambda _, __: None,
        staged: bool = False,
        sends: Publisher | None = None,
        lanes: Lanes | None = None,
        engine: type[Engine] = Engine,
        division: Division | None = None,
        intake: IntakeGate | None = None,
        traces: Traces | None = None,
    ) -> None:
        """Connect the parts; nothing is touched before ``run``.

        outputs: opened when nobody else can be writing any more. tell: takes what happens. stop:
        asked between two batches whether to end in good order; whoever makes it say so while the
        life waits for more calls ``inputs.wake``. watch: called after each batch. staged: whether
        to compute the plan's first stage alone. sends: who follows it, over a state edge. lanes:
        where it is written what the next stage reads. engine: what computes it. division: how the
        input is divided, where that is known. intake: asked before each batch that is new.
        traces: of those batches, None where nobody follows events.
        """
        self.report = Report()
        if isinstance(inputs, NotifyingInputs):
            inputs.tell = tell
        self._keeper = keeper
        self._going: RunningState | None = None
        self._parts = TaskSpec(
            plan,
            inputs,
            outputs,
            settings or Settings(),
            self.report,
            tell,
            stop,
            watch,
            staged,
            sends,
            lanes,
            engine,
            division,
            intake,
            traces,
        )

    @property
    def engine(self) -> Engine:
        """The partition; there is one once ``run`` has restored it."""
        assert self._going is not None, "nothing was restored yet"
        return self._going.live.engine

    @property
    def live(self) -> TaskLoop | None:
        """The partition at work, once it was restored."""
        return None if self._going is None else self._going.live

    async def run(self) -> Report:
        """Restore, catch up, and go on until the input ends or ``stop`` says so.

        Raises DiskLockedError and FencedError when somebody else owns the partition, InputError,
        OutputError, SnapshotError, CheckpointError and OSError. Whatever is raised, what was
        committed stays, and the next life goes on from there; what an output without a record of
        its cut was written is given up.
        """
        self._check_triggers()
        async with Endings() as endings, self._keeper.keeping(self._parts, endings) as going:
            self._going = going
            if await going.catch_up():
                await self._go_on(going)
                await going.finish()
                going.live.end()
        return self.report

    async def _go_on(self, going: RunningState) -> None:
        inputs, stop, live = self._parts.inputs, self._parts.stop, going.live
        intake = self._parts.intake
        while not stop():
            if intake is not None and not await intake.admits():
                await going.keep()
                continue
            entry = inputs.next(live.cut)
            if entry is Signal.ENDED:
                return
            if entry is Signal.WAITING:
                await going.wait()
            else:
                await live.take(*entry)
            await going.keep()

    def _check_triggers(self) -> None:
        """Raise InputError where rows would depend on the order in which inputs were read."""
        window = self._parts.plan.folds[0].window
        is_partial = window is not None and isinstance(window.trigger, OnCount | OnInterval)
        if is_partial and len(self._parts.inputs.names) > 1:
            raise InputError(
                "a window that shows partial results by OnCount or OnInterval cannot be restored "
                "over several partitions: what it shows depends on the order of reading; read one, "
                "as in log:DIR/TOPIC/0"
            )
