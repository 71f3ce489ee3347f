"""The state of a hot standby: a copy of another process's partition.

It is restored from the newest checkpoint without a claim, and takes in the input without output, up
to each cut that the outputs have committed. There the digests of its tables must be the recorded
ones. The owner is not disturbed, and does not notice.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.inputs import Signal
from ripple.core import cut as cuts
from ripple.core.events import no_listener
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.model.pipeline.input_names import answers_of, markers_of
from ripple.task.dead_letters.in_flight import Quarantine
from ripple.task.dead_letters.notes import notes_in
from ripple.task.drive import Drive
from ripple.task.marker_input import checkpoints_with, commit_with, has_answers, has_markers
from ripple.task.restore import first_cut, restore
from ripple.task.several_sources import read_by_watermarks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from typing import TypeAlias

    from ripple.connectors.contract import Commit
    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.engine.machine import Engine
    from ripple.storage.checkpoint import Checkpoints
    from ripple.task.asks.answer_log import AnswerLog
    from ripple.task.logged_inputs import LoggedInputs
    from ripple.task.marker_log import MarkerLog
    from ripple.task.restore import StartingPoint
    from ripple.task.settings import Settings
    from ripple.task.spec import TaskSpec
    from ripple.world.ports import World

    Look: TypeAlias = Callable[[], Awaitable[Mapping[str, Commit | None]]]

LOOK_S = 0.1
# How long the next owner waits for a commit, and how often it looks.
NEAR_S, NEAR_LOOK_S = 0.3, 0.01
NS = 1_000_000_000
RESTORES_MAX = 3


class StandbyState(NamedTuple):
    """The state from which a partition resumes: an engine, and the records that it left out."""

    engine: Engine
    quarantine: Quarantine


class StandbyDivergedError(SnapshotError):
    """A standby computes something else than its owner has committed."""


class Standby:
    """Follows the owner of a partition; ``follow`` is called once.

    After a stop the inputs stay open, at their position, for the next owner. ``behind``: how many
    of the observed commits it has not reached; None until it has reached the first.
    """

    def __init__(
        self,
        spec: TaskSpec,
        checkpoints: Checkpoints,
        reached: Look,
        world: World,
        *,
        settings: Settings,
        turn: AbstractAsyncContextManager[object],
    ) -> None:
        """Touch nothing yet.

        reached: asks the cut that each output has committed, again and again, without blocking the
        event loop. turn: held while input is applied.
        """
        self.behind: int | None = None
        self.state: StandbyState | None = None
        self._spec, self._plan, self.inputs = spec, spec.plan, spec.inputs
        self._logs: dict[str, MarkerLog | AnswerLog] = {}
        self._logged: list[LoggedInputs] = []  # the inputs with the first of these logs, and so on
        self._checkpoints = checkpoints
        self._reached = reached
        self._world = world
        self._settings = settings
        self._turn = turn
        self._stopped, self._ended = asyncio.Event(), asyncio.Event()
        self._job: asyncio.Task[object] | None = None
        self._is_nearing = False
        self._committed_ns = 0  # when it was seen last that more was
        self._ahead: list[Mapping[str, Commit | None]] = []

    async def end(self, *, near: bool) -> StandbyState | None:
        """Let ``follow`` return; return the state, None if it is not restored, or has failed.

        near: first reach the outputs' present commit. That costs no pause while the owner runs;
        work left for later does. If cancelled, it cancels ``follow``, too, which would open
        the inputs again.
        """
        if self.state is not None:
            self._is_nearing = near
            self._stopped.set()
            self._reading.wake()
        elif self._job is not None:
            self._job.cancel()
        try:
            await self._ended.wait()
        except asyncio.CancelledError:
            if self._job is not None:
                self._job.cancel()
            raise
        return self.state

    async def follow(self, restored: Callable[[], None] = lambda: None) -> None:
        """Follow until stopped; then the owner of the inputs closes them.

        restored: called once the state is restored. Raises StandbyDivergedError where a digest is
        not the recorded one, SnapshotError where the outputs go back, and the errors of restoring
        and reading. Then none of its state can be used.
        """
        self._job = asyncio.current_task()
        try:
            engine, drive = await self._restore()
            restored()
            while not self._stopped.is_set():
                await self._look(engine.cut)
                if self._ahead:
                    await self._go_to(self._ahead[0], drive)
                else:
                    self.behind = 0
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await self._stopped.wait()
            if self._is_nearing:
                await self._near(drive)
            for one in self._logged:
                await one.give_up()
        except BaseException:
            self.state = None
            await self._reading.close()
            raise
        finally:
            self._ended.set()

    @property
    def _reading(self) -> Inputs:
        return self._logged[-1] if self._logged else self.inputs

    async def _near(self, drive: Drive) -> None:
        """Reach the outputs' present commit, and the next commit, if that comes soon.

        An owner that is stopped right after a commit leaves least undone: no transaction is open,
        and readers have not waited yet.
        """
        clock, interval_ns = self._world.clock, self._settings.commit_interval_ns
        began_ns = clock.monotonic_ns()
        await self._come(drive)
        is_at_work = began_ns - self._committed_ns < 2 * interval_ns + LOOK_S * NS
        if not is_at_work or interval_ns > NEAR_S * NS:
            return
        while clock.monotonic_ns() - began_ns < NEAR_S * NS:
            await clock.sleep(NEAR_LOOK_S)
            if await self._come(drive):
                return

    async def _come(self, drive: Drive) -> bool:
        """Advance to the committed cut of the outputs; return whether it moved."""
        await self._look(drive.engine.cut)
        self._ahead = self._ahead[-1:]
        if not self._ahead:
            return False
        await self._go_to(self._ahead[0], drive)
        return True

    async def _restore(self) -> tuple[Engine, Drive]:
        checkpoints = self._checkpoints
        notes = await notes_in(checkpoints.store, self._plan.name, checkpoints.partition)
        quarantine = Quarantine.of(notes)
        for _ in range(RESTORES_MAX):
            engine, present, base = await self._restored()
            # Its owner may have deleted what is passed over, since there is a newer one.
            if not base.skipped:
                break
        if base.changed:
            raise SnapshotError(
                "the checkpoint is of other code, from which only an owner can resume"
            )
        self._check(present, engine)
        read_by_watermarks(self._reading, engine)
        self.state = StandbyState(engine, quarantine)
        return engine, Drive(engine, quarantine)

    async def _restored(self) -> tuple[Engine, Mapping[str, Commit | None], StartingPoint]:
        checkpoints = self._checkpoints
        listed = await checkpoints.list()
        # After the list: no checkpoint is ahead of what the outputs have committed by then.
        present = await self._reached()
        known = [one.cut for one in (*listed, *present.values()) if one is not None]
        self._logs, self._logged = {}, []
        if self._plan.asks or has_answers(known):
            await self._answer()
        if self._plan.is_idle or has_markers(known):
            await self._mark()
        for name in self._logs:
            listed = checkpoints_with(name, listed)
        present = self._named(present)
        inputs = self._reading
        start = await first_cut(listed, any(present.values()), inputs)
        engine, base = await restore(
            self._plan,
            checkpoints,
            listed,
            _Within(present, start),
            inputs,
            executor=checkpoints.executor,
            start=start,
            rebuild=(),
            staged=self._spec.staged,
            make=self._spec.engine,
        )
        return engine, present, base

    async def _mark(self) -> None:
        """Add the log of markers to the inputs, as their owner does, and read it."""
        from ripple.task.marked_inputs import MarkedInputs  # noqa: PLC0415 - few pipelines have it
        from ripple.task.marker_log import MarkerLog  # noqa: PLC0415

        checkpoints, world = self._checkpoints, self._world
        log = MarkerLog(checkpoints.store, self._plan.name, checkpoints.partition)
        await log.read()
        marked = MarkedInputs(
            self._reading,
            self._plan,
            name := markers_of(checkpoints.partition),
            log,
            world.clock,
            emit=no_listener,
            guards=world.guards,
            replay="marker_follow",
        )
        self._logs[name] = log
        self._logged.append(marked)

    async def _answer(self) -> None:
        """Add the log of answers to the inputs; calls are made by the owner alone."""
        from ripple.task.asks.answer_log import AnswerLog  # noqa: PLC0415 - few pipelines have it
        from ripple.task.asks.answered_inputs import AnsweredInputs  # noqa: PLC0415

        checkpoints, world = self._checkpoints, self._world
        partition = checkpoints.partition
        log = AnswerLog(checkpoints.store, self._plan.name, partition)
        await log.read()
        answered = AnsweredInputs(
            self._reading,
            self._plan,
            world.clock,
            world.random,
            log,
            partition=partition,
            guards=world.guards,
            replay="answer_follow",
        )
        self._logs[answers_of(partition)] = log
        self._logged.append(answered)

    def _named(self, reached: Mapping[str, Commit | None]) -> Mapping[str, Commit | None]:
        """Return commits whose cuts name the logs that are inputs."""
        for name in self._logs:
            reached = {output: commit_with(name, one) for output, one in reached.items()}
        return reached

    async def _look(self, cut: Cut) -> None:
        """Note the commits of the outputs since the last look."""
        now = self._named(await self._reached())
        lowest = _lowest(now)
        newest = (_lowest(self._ahead[-1]) if self._ahead else None) or cut
        if lowest is None or dict(lowest) == dict(newest):
            return
        if not cuts.is_within(newest, lowest):
            raise SnapshotError(
                f"the outputs have gone from {cuts.text(newest)} to {cuts.text(lowest)}: another "
                "owner has taken them over"
            )
        self._ahead.append(now)
        self._committed_ns = self._world.clock.monotonic_ns()
        if self.behind is not None:
            self.behind = len(self._ahead)

    async def _go_to(self, target: Mapping[str, Commit | None], drive: Drive) -> None:
        """Advance to the cut that all outputs have committed, and compare digests there."""
        engine, plan, inputs = drive.engine, self._plan, self._reading
        frees = plan.frees_rows
        stop = _lowest(target)
        assert stop is not None
        for name, log in self._logs.items():
            if stop[name] > log.end:
                await log.read()
                log.check(stop[name])
        # No more at once than its neighbours, which are live, do: it shares their loop. And all
        # others that follow have their turn before its next one.
        await inputs.open(engine.cut, self._settings.batch_rows, stop)
        while True:
            async with self._turn:
                found = inputs.next(engine.cut)
                if not isinstance(found, Signal):
                    drive.apply(*found)
                    if frees:
                        drive.stabilize()
                    await self._world.clock.sleep(0)
            if found is Signal.ENDED:
                break
            if found is Signal.WAITING:
                await inputs.more()
            if self._stopped.is_set() and not self._is_nearing:
                drive.stabilize()
                return
        drive.stabilize()
        del self._ahead[0]
        self._check(target, engine)
        self.behind = len(self._ahead)

    def _check(self, target: Mapping[str, Commit | None], engine: Engine) -> None:
        for output, commit in target.items():
            if commit is None or dict(commit.cut) != engine.cut or not commit.digest:
                continue
            found = engine.digests[output]
            if found != commit.digest and self._world.guards("warm_digest"):
                raise StandbyDivergedError(
                    f"output {output!r} at {cuts.text(commit.cut)} has digest {commit.digest}, and "
                    f"its hot standby computes {found}: the inputs, the checkpoint or the code "
                    "differ; its owner continues"
                )


class _Within:
    """Checkpoints that are not ahead of an output."""

    def __init__(self, reached: Mapping[str, Commit | None], start: Cut) -> None:
        self._reached = [start if one is None else one.cut for one in reached.values()]

    def accepts(self, cut: Cut, *, begins_new: bool = False) -> bool:  # noqa: ARG002 - see the next
        return all(cuts.is_within(cut, one) for one in self._reached)

    def begin_new_at(self, cut: Cut) -> None:
        """Do nothing: outputs begin with their owner."""


def _lowest(reached: Mapping[str, Commit | None]) -> Cut | None:
    """Return the cut that all outputs have committed; None while one has committed nothing."""
    found = [None if one is None else one.cut for one in reached.values()]
    known = [one for one in found if one is not None]
    return cuts.in_order(known)[0] if known and len(known) == len(found) else None
