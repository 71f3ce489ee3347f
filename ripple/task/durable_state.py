"""The durable state of a partition: claimed, opened, restored and maintained, phase by phase.

After a crash at any moment the next task resumes so that every sink holds the same data as without
it:

- A sink knows the cut that its data reach. A checkpoint is taken only of a cut that all sinks have
  committed, so it is never ahead of them: it is a cache.
- A task takes the newest checkpoint that is not ahead of a sink, or the beginning of the log,
  replays the log up to each sink's cut without output, and compares digests there.
- Cuts lie on a grid of offsets, and the rows of a cut have an order of their own, so a restarted
  run writes the same bytes as an undisturbed one.
- An earlier task that is still there can change nothing: it holds the lock, or has lost the fence.
- Where an assignment gives the epoch, nothing is locked: a frozen owner would hold the lock for
  ever. The manifest's fence and the seals of the outputs shut it out (docs/seals.md). An owner goes
  on until its successor opens the outputs, and the successor does all slow work before that.

Each phase is made of the one before, so that none can be entered too early: Claimed, Opened,
DurableRun.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ripple.connectors.commit_group import PreparedGroup
from ripple.connectors.inputs import RecordingInputs, recorded_of
from ripple.core.errors import InputError, OutputError
from ripple.core.events import DeadLettersLost
from ripple.model.pipeline.input_names import answers_of, markers_of
from ripple.storage.checkpoint import without_begun
from ripple.storage.checkpoint.checkpoints import prefix_of
from ripple.storage.fenced.errors import FencedError
from ripple.task.checkpointing import CheckpointWriter
from ripple.task.dead_letters.hint_store import HintStore
from ripple.task.dead_letters.in_flight import InFlight
from ripple.task.dead_letters.log import DeadLetterLog
from ripple.task.dead_letters.notes import NoteFile, in_flight_path
from ripple.task.drive import Drive
from ripple.task.durable_run import DurableRun
from ripple.task.live import LivePartition
from ripple.task.marker_input import checkpoints_with, commit_with, has_answers, has_markers
from ripple.task.marker_log import MarkerLog
from ripple.task.owned_state import ALONE, OwnedState, Ownership
from ripple.task.record_intake import RecordIntake
from ripple.task.replay import Replay
from ripple.task.replayed_outputs import ReplayedOutputs
from ripple.task.restore import (
    StartingPoint,
    changed,
    check_holders,
    first_cut,
    holders,
    let_go,
    notes,
    origin_of,
    restore,
)
from ripple.task.standby import StandbyState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.commit_group import OutputStatus
    from ripple.connectors.endings import Endings
    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.core.events import EventListener
    from ripple.engine.machine import Engine
    from ripple.storage.checkpoint import Checkpoint, Checkpoints, Owner
    from ripple.task.asks.answer_log import AnswerLog
    from ripple.task.file_log import FileLog
    from ripple.task.read_ahead import ReadAhead
    from ripple.task.spec import TaskContext, TaskSpec
    from ripple.task.standby import Standby
    from ripple.world.ports import World


class DurableState(OwnedState):
    """The store of a partition's state, and the way to resume from it.

    Many may be at work in one process: everything they hold is named by pipeline and partition.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        world: World,
        ownership: Ownership = ALONE,
        *,
        standby: Standby | None = None,
    ) -> None:
        """Keep the partition of ``checkpoints``; nothing is touched before ``claim``.

        standby: follows the owner until then.
        """
        super().__init__(checkpoints, world, ownership)
        self.standby = standby
        self.left: StandbyState | None = None
        """The state of a demoted task, as of a standby."""
        self.has_noted = False
        """Whether this process wrote the newest notes of records in flight."""
        self._durable: DurableRun | None = None

    async def take_over(self) -> StandbyState | None:
        """Return the present state: the previous run's, or the standby's.

        The previous owner continues until this returns: slow waits happen here.
        """
        await self.ownership.ready()
        standby, self.standby = self.standby, None
        followed = (
            None if standby is None else await standby.end(near=self.ownership.is_handed_over)
        )
        left, self.left = self.left, None
        return left or followed

    async def close_inputs(self, spec: TaskSpec) -> None:
        """Close a run's inputs, unless the standby still reads them, and closes them itself."""
        if self.standby is None or self.standby.inputs is not spec.inputs:
            await spec.inputs.close()

    @property
    def is_settled(self) -> bool:
        """Whether everything taken in is committed, and no checkpoint is in progress."""
        return self._durable is not None and self._durable.is_settled

    @asynccontextmanager
    async def running_state(
        self, spec: TaskSpec, context: TaskContext, endings: Endings
    ) -> AsyncIterator[DurableRun]:
        """Become the owner, open everything, restore; see StateManager."""
        spec.begin(context.emit)
        claimed = await self.claim(spec, context, endings)
        opened = await claimed.open(endings)
        async with opened.answered_for():
            durable, intake = await opened.restore()
            self._durable = durable
            try:
                async with durable.abandoned_on_failure():
                    yield durable
            finally:
                if self.ownership.is_demoted():
                    self.left, self.has_noted = opened.left(intake), False  # the next owner notes

    async def claim(self, spec: TaskSpec, context: TaskContext, endings: Endings) -> Claimed:
        """Fence every earlier task, after all checks that change nothing.

        Raises DiskLockedError, FencedError, OutputError and OSError.
        """
        world, plan = self.world, spec.plan
        if self.ownership.is_on_disk:
            folder = prefix_of(plan.name, self.partition).rstrip("/")
            world.disk.make_folder(folder)
            endings.add(world.disk.lock(f"{folder}/life.lock", self.ownership.holder).release)
        # Whoever is refused has changed nothing.
        endings.add(spec.outputs.close)
        place = self.open_place(plan.name)
        asked = [place.newest_epoch]
        asked += [self.marker_log(plan.name).newest_epoch] if plan.is_idle else []
        asked += [self.answer_log(plan.name).newest_epoch] if plan.asks else []
        asked += [log.newest_epoch for log in self.file_logs(spec, context.emit).values()]

        async def newest_epoch() -> int:
            return max([await one() for one in asked])

        owner = await self.own(spec.outputs, context, newest_epoch)
        return Claimed(self, spec, context, owner, await self.checkpoints.begin(), place)

    def marker_log(self, pipeline: str) -> MarkerLog:
        """Return the log of the partition's markers."""
        store, guards = self.checkpoints.store, self.world.guards
        return MarkerLog(store, pipeline, self.partition, guards=guards)

    def answer_log(self, pipeline: str) -> AnswerLog:
        """Return the log of the partition's answers."""
        # Few pipelines have it.
        from ripple.task.asks.answer_log import AnswerLog  # noqa: PLC0415

        store, guards = self.checkpoints.store, self.world.guards
        return AnswerLog(store, pipeline, self.partition, guards=guards)

    def file_logs(self, spec: TaskSpec, emit: EventListener) -> dict[str, FileLog]:
        """Return the logs of the files that inputs take, by input."""
        names = recorded_of(spec.inputs)
        if not names:
            return {}
        # Few pipelines have any.
        from ripple.task.file_log import FileLog  # noqa: PLC0415

        store, world = self.checkpoints.store, self.world
        return {
            name: FileLog(
                store,
                spec.plan.name,
                self.partition,
                name,
                guards=world.guards,
                clock=world.clock,
                emit=emit,
            )
            for name in names
        }

    def open_place(self, pipeline: str) -> HintStore:
        """Return the store of dead letters and notes."""
        world = self.world
        if self.ownership.place is not None:
            return self.ownership.place
        path = in_flight_path(pipeline, self.partition)
        return HintStore(
            self.checkpoints.store,
            pipeline,
            self.partition,
            random=world.random,
            notes=NoteFile(world.disk, path) if self.ownership.is_on_disk else None,
            guards=world.guards,
        )

    def open_letters(self, spec: TaskSpec, emit: EventListener, place: HintStore) -> DeadLetterLog:
        """Open the partition's dead letters."""
        found = DeadLetterLog(
            place.letters(),
            pipeline=spec.plan.name,
            version=spec.plan.topology_hash,
            clock=self.world.clock,
            guards=self.world.guards,
        )
        if found.damage:
            emit(DeadLettersLost(found.damage))
        return found

    def open_in_flight(
        self,
        spec: TaskSpec,
        emit: EventListener,
        place: HintStore,
        letters: DeadLetterLog,
        shown: Cut,
    ) -> InFlight:
        """Read the notes of earlier tasks; shown: the cut of an output. See InFlight."""
        found = InFlight(
            place.notes(),
            version=spec.plan.topology_hash,
            shown=shown,
            is_calm=not self.ownership.is_on_disk,
            has_survived=self.ownership.is_handed_over or self.has_noted,
            lettered=letters.quarantined,
            emit=emit,
        )
        for event in found.remarks():
            emit(event)
        return found


@dataclass(frozen=True, slots=True)
class Claimed:
    """The partition, owned by no other task. listed: the valid checkpoints, newest first."""

    state: DurableState
    spec: TaskSpec
    context: TaskContext
    owner: Owner
    listed: tuple[Checkpoint, ...]
    place: HintStore

    async def open(self, endings: Endings) -> Opened:
        """Open inputs, outputs and dead letters. Raises OutputError, InputError and OSError."""
        state, spec, context, place = self.state, self.spec, self.context, self.place
        world, emit = state.world, context.emit
        endings.add(place.close)
        await place.open(self.owner.epoch)
        letters = state.open_letters(spec, emit, place)
        endings.add(spec.outputs.close)
        # From here on no other owner commits: all slow work comes before.
        endings.add(partial(state.close_inputs, spec))
        if isinstance(spec.outputs, PreparedGroup):
            await spec.outputs.prepare()
        markers = state.marker_log(spec.plan.name)
        if spec.plan.is_idle or has_markers(one.cut for one in self.listed):
            await markers.read()  # the few that follow are read afterwards
        answers = state.answer_log(spec.plan.name) if self._is_answered() else None
        if answers is not None:
            await answers.read()
        files = state.file_logs(spec, emit)
        for log in files.values():
            await log.read()
        warm, ahead = await self._taken_over()
        standings = await spec.outputs.open(self.owner.epoch, emit)
        await state.check_here()
        if spec.lanes is not None:
            endings.add(spec.lanes.close)
            of_lanes = await spec.lanes.open(self.owner.epoch, standings)
            standings = {**standings, **of_lanes}
        check_holders(self.listed, standings)
        for log in files.values():
            await log.open(self.owner.epoch, world.random)
        if isinstance(spec.inputs, RecordingInputs):
            spec.inputs.record_in(files)
        claimed, standings = await self._answered(standings, endings, answers)
        claimed, standings = await claimed._marked(standings, endings, markers)
        spec = claimed.spec
        has_committed = any(one.committed for one in standings.values())
        start = await first_cut(claimed.listed, has_committed, spec.inputs)
        outputs = ReplayedOutputs(
            spec.outputs,
            standings,
            start,
            world.guards,
            emit,
            plan=spec.plan,
            lanes=spec.lanes,
            is_of_others=state.ownership.is_of_others(self.listed, world.guards),
        )
        shown = outputs.stops[-1] if outputs.stops else start
        in_flight = state.open_in_flight(spec, emit, place, letters, shown)
        endings.add(in_flight.close)
        if in_flight.is_careful:
            in_flight.limit((await spec.inputs.bounds())[1])
        storing = CheckpointWriter(
            self.owner,
            context.settings.snapshot_rows,
            world.executor,
            emit,
            spec.inputs.wake,
            now_ns=world.clock.monotonic_ns,
            outlives=lambda epoch: bool(standings) and state.ownership.is_next(epoch),
            stored=partial(let_go, spec.inputs),
        )
        opened = Opened(claimed, start, outputs, place, letters, in_flight, storing, warm, ahead)
        if not state.ownership.is_handed_over or in_flight.newly_quarantined:
            await opened.flush()  # else with the first commit
        return opened

    async def _taken_over(self) -> tuple[StandbyState | None, ReadAhead | None]:
        """Return the standby's state, and outputs' rows of another generation."""
        state, plan = self.state, self.spec.plan
        if not state.ownership.is_of_others(self.listed, state.world.guards):
            return await state.take_over(), None
        # Few clusters have generations.
        from ripple.task.read_ahead import ReadAhead  # noqa: PLC0415

        keys = {one.name: plan.key_of(one) for one in plan.outputs if not one.is_stream}
        ahead = ReadAhead(self.spec.outputs, keys, are_keys_alone=True)
        await ahead.read()
        warm = await state.take_over()
        await ahead.read()  # the changes since then
        return warm, ahead

    def _cuts(self, standings: Mapping[str, OutputStatus]) -> list[Cut]:
        """Return the cuts of checkpoints and outputs."""
        cuts = [one.cut for one in self.listed]
        cuts += [one.committed.cut for one in standings.values() if one.committed]
        return cuts + [one.unfinished for one in standings.values() if one.unfinished]

    def _is_answered(self) -> bool:
        """Return whether there is a log of answers, as far as plan and checkpoints tell."""
        return bool(self.spec.plan.asks) or has_answers(one.cut for one in self.listed)

    async def _answered(
        self,
        standings: Mapping[str, OutputStatus],
        endings: Endings,
        log: AnswerLog | None,
    ) -> tuple[Claimed, Mapping[str, OutputStatus]]:
        """Add the log of answers to the inputs, and to all cuts, if there is one.

        Once read, it stays an input, also after the pipeline has lost its ask.
        """
        state, spec, cuts = self.state, self.spec, self._cuts(standings)
        plan, world, name = spec.plan, state.world, answers_of(state.partition)
        if not plan.asks and not has_answers(cuts):
            return self, standings
        # Few pipelines have it.
        from ripple.task.asks.answered_inputs import AnsweredInputs  # noqa: PLC0415

        log = log or state.answer_log(plan.name)
        await log.read()
        log.check(max((cut.get(name, 0) for cut in cuts), default=0))
        log.check_plan(plan, cuts)
        if plan.asks:
            await log.open(self.owner.epoch, world.random)
            await log.declare(plan)
        answered = AnsweredInputs(
            spec.inputs,
            plan,
            world.clock,
            world.random,
            log,
            partition=state.partition,
            emit=self.context.emit,
            guards=world.guards,
        )
        endings.add(answered.give_up)
        return self._reading(answered, name, standings)

    async def _marked(
        self, standings: Mapping[str, OutputStatus], endings: Endings, log: MarkerLog
    ) -> tuple[Claimed, Mapping[str, OutputStatus]]:
        """Put the log of markers among the inputs, and into all cuts, if there is one.

        Once read, it is read for ever, also without ``idle`` in the pipeline; before, none of it
        was read.
        """
        state, spec, cuts = self.state, self.spec, self._cuts(standings)
        has_read = has_markers(cuts)
        if not spec.plan.is_idle and not has_read:
            return self, standings
        # Few pipelines have it.
        from ripple.task.marked_inputs import MarkedInputs  # noqa: PLC0415

        world, name = state.world, markers_of(state.partition)
        await log.read()
        log.check(max((cut.get(name, 0) for cut in cuts), default=0))
        try:
            await log.open(self.owner.epoch, world.random)
        except FencedError as error:
            # Its epoch is asked for before only where a pipeline has idle=: that takes time.
            if spec.plan.is_idle:
                raise
            raise InputError(
                f"{error}. Where no other process runs this pipeline, its manifest was lost: run "
                "it once with idle=, which begins above that epoch, and again without it"
            ) from error
        if not has_read:
            cuts = cuts or [(await spec.inputs.bounds())[0]]
            read = {one: max(cut.get(one, 0) for cut in cuts) for one in spec.inputs.names}
            await log.remove_passed(read)
        marked = MarkedInputs(
            spec.inputs,
            spec.plan,
            name,
            log,
            world.clock,
            emit=self.context.emit,
            guards=world.guards,
        )
        endings.add(marked.give_up)
        return self._reading(marked, name, standings)

    def _reading(
        self, inputs: Inputs, name: str, standings: Mapping[str, OutputStatus]
    ) -> tuple[Claimed, Mapping[str, OutputStatus]]:
        """Read these inputs, with a log called ``name`` among them, and add it to all cuts."""
        listed = checkpoints_with(name, self.listed)
        known = {output: _with_input(one, name) for output, one in standings.items()}
        return replace(self, spec=replace(self.spec, inputs=inputs), listed=listed), known


def _with_input(standing: OutputStatus, name: str) -> OutputStatus:
    """Return the state of an output with an input of which nothing was read before it was there.

    Raises OutputError for a part of a cut without it: the rest of that commit has the same cut.
    """
    if standing.unfinished is not None and name not in standing.unfinished:
        raise OutputError(
            f"{standing.name} holds a part of the changes up to {dict(standing.unfinished)}: run "
            "the pipeline once without idle=, which completes them, and again with it"
        )
    return replace(standing, committed=commit_with(name, standing.committed))


@dataclass(slots=True)
class Opened:
    """All is open, and how far each output is is known.

    start: the cut of the first state. warm: the standby's state, until it is restored. ahead: the
    changes of outputs that were read before they were opened.
    """

    claimed: Claimed
    start: Cut
    outputs: ReplayedOutputs
    place: HintStore
    letters: DeadLetterLog
    in_flight: InFlight
    storing: CheckpointWriter
    warm: StandbyState | None
    ahead: ReadAhead | None = None

    @asynccontextmanager
    async def answered_for(self) -> AsyncIterator[None]:
        """Note how the task ends, for the next one."""
        try:
            yield
        except GeneratorExit:  # as after a kill, nothing is noted
            raise
        except BaseException as error:
            self.in_flight.ended(error)
            raise
        self.in_flight.idle()
        self.in_flight.ended()

    async def flush(self) -> None:
        """Make notes, and dead letters up to their last sync, available to the next task."""
        await self.place.flush()
        self.claimed.state.has_noted = True

    async def restore(self) -> tuple[DurableRun, RecordIntake]:
        """Take the state from which every output's next change can be computed."""
        claimed, world = self.claimed, self.claimed.state.world
        spec, context, listed = claimed.spec, claimed.context, claimed.listed
        engine, base = await self._restored()
        if base.checkpoint is not None:
            let_go(spec.inputs, listed[listed.index(base.checkpoint) :])
        for division in spec.divisions:
            engine.expect(division)
        ownership = claimed.state.ownership
        if ownership.is_of_others(listed, world.guards):
            base = replace(base, changed=base.changed | self.outputs.take_from_others())
        has_changed = bool(base.changed)
        self.storing.last = None if has_changed else base.checkpoint
        self.letters.begin(engine.cut)
        self.in_flight.resume(engine.cut)
        is_replayed = base.checkpoint is None and dict(base.start) == dict(self.start)
        ahead, self.ahead = self.ahead, None
        await self.outputs.look_back(base.changed, is_replayed=is_replayed, ahead=ahead)
        self.outputs.begin(engine, base.changed)
        now_ns = world.clock.monotonic_ns
        live = LivePartition(engine, self.outputs, context, now_ns=now_ns)
        intake = RecordIntake(
            Drive(engine, self.in_flight),
            live,
            spec,
            context,
            letters=self.letters,
            notes=self.in_flight,
            flush=self.flush,
            guards=world.guards,
            now_ns=now_ns,
        )
        shown = self.outputs.stops[-1] if self.outputs.stops else self.start
        retained = changed(listed, base, shown) | holders(self.outputs.standings) | ownership.notes
        start, origin = self.start, origin_of(listed)
        newest = base.checkpoint
        if newest is None and not base.skipped:  # a follower is beyond the newest
            newest = next(iter(listed), None)
        durable = DurableRun(
            live,
            intake,
            self.storing,
            world,
            context,
            recovery=Replay(self, intake, has_changed=has_changed),
            base=base,
            newest=newest,
            sends=spec.sends,
            notes=lambda: notes(spec.inputs, engine.cut, start, origin, retained),
            is_hasty=self.in_flight.was_killed,
            is_asked=claimed.state.take_asked,
            parks=claimed.state.ownership.parks,
        )
        return durable, intake

    async def _restored(self) -> tuple[Engine, StartingPoint]:
        """Return the standby's engine if it fits, else that of a checkpoint or of the beginning."""
        spec, state = self.claimed.spec, self.claimed.state
        warm, self.warm = self.warm, None
        if (
            warm is not None
            and warm.quarantine == self.in_flight.quarantine
            and self.outputs.accepts(warm.engine.cut)
        ):
            return warm.engine, StartingPoint(None, warm.engine.cut, (), frozenset())
        del warm  # its engine may be large, and another one is made
        listed = self.claimed.listed
        if spec.staged:
            listed = without_begun(listed, spec.plan.topology_hash)
        return await restore(
            spec.plan,
            state.checkpoints,
            listed,
            self.outputs,
            spec.inputs,
            executor=state.world.executor,
            start=self.start,
            rebuild=state.ownership.rebuild,
            staged=spec.staged,
            make=spec.engine,
        )

    def left(self, intake: RecordIntake) -> StandbyState | None:
        """Return the state from which the next task may resume; None if it needs a checkpoint.

        Lanes have taken from it the rows that they may not have written.
        """
        if not intake.is_whole or self.claimed.spec.lanes is not None:
            return None
        return StandbyState(intake.engine, self.in_flight.quarantine)
