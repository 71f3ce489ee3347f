"""The durable state of a partition: claimed, opened, restored and kept, phase by phase.

After a crash at any moment the next task resumes so that every sink holds what it would have held:

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
Restoration.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ripple.connectors.commit_group import PreparedGroup, looked_at
from ripple.core.events import DeadLettersLost, EntriesLost, Restored, Stabilized, Started
from ripple.storage.checkpoint.checkpoints import prefix_of
from ripple.task.checkpointing import CheckpointWriter
from ripple.task.dead_letters.hint_store import HintStore
from ripple.task.dead_letters.in_flight import InFlight
from ripple.task.dead_letters.log import DeadLetterLog
from ripple.task.dead_letters.notes import NoteFile, in_flight_path
from ripple.task.drive import Drive
from ripple.task.durable_run import DurableRun
from ripple.task.loop import TaskLoop
from ripple.task.outputs import Outputs
from ripple.task.replay import CatchUp, Replay
from ripple.task.restore import (
    StartingPoint,
    changed,
    check_holders,
    first_cut,
    holders,
    let_go,
    origin_of,
    restore,
)
from ripple.task.standby import StandbyState

if TYPE_CHECKING:
    from ripple.connectors.endings import Endings
    from ripple.core.cut import Cut
    from ripple.storage.checkpoint import Checkpoint, Checkpoints, Owner
    from ripple.task.loop import TaskSpec
    from ripple.world.ports import World

_REPLAY = Replay()


async def _nothing() -> None:
    return None


class DurableState:
    """The store of a partition's state, and the way to resume from it.

    Many may be at work in one process: everything they hold is named by pipeline and partition.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        world: World,
        *,
        epoch: int | None = None,
        place: HintStore | None = None,
        is_remote: bool | None = None,
        is_next: Callable[[int], bool] = lambda _: False,
        ready: Callable[[], Awaitable[StandbyState | None]] = _nothing,
        is_handed_over: bool = False,
        has_survived: bool = False,
        parks: Callable[[], bool] = lambda: False,
        catch_up: CatchUp = _REPLAY,
        rebuild: Collection[str] = (),
        holder: str = "a run",
    ) -> None:
        """Keep the partition of ``checkpoints``; nothing is touched before ``claim``.

        epoch: from the assignment; a claim of it may fail, and then a higher one is needed. None
        takes the next one. is_next: whether an epoch is of the assigned successor: until that has
        opened the outputs, too, this owner goes on without checkpoints. is_remote: nothing is on
        the world's disk; by default with ``epoch``. Else there is a lock, held by one task. place:
        of dead letters and of in-flight notes; by default in the store of the checkpoints, the
        notes on the disk. ready: asked right before the outputs open, for the state of a hot
        standby; if it fits, nothing is restored. is_handed_over: whether the previous owner runs
        until then, and has not died. has_survived: whether the previous task was in this process,
        and the in-flight notes are its own. parks: asked at the end whether to store no checkpoint,
        because the next task takes ``left``. rebuild: folds that may be computed from the log's
        first record. holder: the name of the owner, for people.
        """
        self.partition = checkpoints.partition
        self.checkpoints = checkpoints
        self.world = world
        self._epoch = epoch
        self._is_remote = epoch is not None if is_remote is None else is_remote
        self.catch_up = catch_up
        self.is_next = is_next
        self.rebuild = rebuild
        self.place = place
        self.ready = ready
        self.is_handed_over = is_handed_over
        self.has_noted = has_survived
        """Whether the last notes of what is in flight that are there are by this process."""
        self.parks = parks
        self.left: StandbyState | None = None
        """The state that an ended task leaves, as a standby would."""
        self.holder = holder
        self._is_asked = False

    def ask_for_checkpoint(self) -> None:
        """Request a checkpoint after the next batch, or as soon as the task is woken."""
        self._is_asked = True

    @property
    def is_asked(self) -> bool:
        """Whether a checkpoint was asked for that was not begun yet."""
        return self._is_asked

    def take_asked(self) -> bool:
        """Return whether one was asked for since this was called last."""
        was_asked, self._is_asked = self._is_asked, False
        return was_asked

    @asynccontextmanager
    async def running_state(self, parts: TaskSpec, endings: Endings) -> AsyncIterator[Restoration]:
        """Become the owner, open everything, restore; see Keeping."""
        claimed = await self.claim(parts, endings)
        opened = await claimed.open(endings)
        async with opened.answered_for():
            restoration = await opened.restore()
            try:
                yield restoration
            except GeneratorExit:  # nothing runs any more that could be waited for
                raise
            except BaseException:
                await restoration.live.abandon()
                raise
            finally:
                self.left = restoration.left

    async def claim(self, parts: TaskSpec, endings: Endings) -> Claimed:
        """Fence every earlier task, after all checks that change nothing.

        Raises DiskLockedError, FencedError, OutputError and OSError.
        """
        world, plan = self.world, parts.plan
        if not self._is_remote:
            folder = prefix_of(plan.name, self.partition).rstrip("/")
            world.disk.make_folder(folder)
            endings.add(world.disk.lock(f"{folder}/life.lock", self.holder).release)
        # Whoever is refused has changed nothing.
        endings.add(parts.outputs.close)
        known = await looked_at(parts.outputs, self._epoch)
        place = self.open_place(plan.name)
        if self._epoch is None:  # an epoch that is given is refused by the place as it opens
            known = max(known, await place.newest_epoch())
        owner = await self.checkpoints.claim(
            world.clock, world.random, epoch=self._epoch, above=known, keep=parts.settings.keep
        )
        parts.emit(Started(plan.name, self.partition, owner.epoch))
        if owner.damaged:
            parts.emit(EntriesLost(owner.damaged))
        return Claimed(self, parts, owner, await self.checkpoints.begin(), place)

    def open_place(self, pipeline: str) -> HintStore:
        """Return the store of dead letters and notes."""
        world = self.world
        if self.place is not None:
            return self.place
        path = in_flight_path(pipeline, self.partition)
        return HintStore(
            self.checkpoints.store,
            pipeline,
            self.partition,
            random=world.random,
            notes=None if self._is_remote else NoteFile(world.disk, path),
            guards=world.guards,
        )

    def open_letters(self, parts: TaskSpec, place: HintStore) -> DeadLetterLog:
        """Open the partition's dead letters."""
        found = DeadLetterLog(
            place.letters(),
            pipeline=parts.plan.name,
            version=parts.plan.topology_hash,
            clock=self.world.clock,
            guards=self.world.guards,
        )
        if found.damage:
            parts.emit(DeadLettersLost(found.damage))
        return found

    def open_in_flight(
        self, parts: TaskSpec, place: HintStore, letters: DeadLetterLog, shown: Cut
    ) -> InFlight:
        """Read the notes of earlier tasks; shown: the cut of an output. See InFlight."""
        found = InFlight(
            place.notes(),
            version=parts.plan.topology_hash,
            shown=shown,
            is_calm=self._is_remote,
            has_survived=self.is_handed_over or self.has_noted,
            lettered=letters.quarantined,
            emit=parts.emit,
        )
        for event in found.remarks():
            parts.emit(event)
        return found


@dataclass(frozen=True, slots=True)
class Claimed:
    """The partition, owned by no other task. listed: the valid checkpoints, newest first."""

    state: DurableState
    parts: TaskSpec
    owner: Owner
    listed: tuple[Checkpoint, ...]
    place: HintStore

    async def open(self, endings: Endings) -> Opened:
        """Open inputs, outputs and dead letters. Raises OutputError, InputError and OSError."""
        state, parts = self.state, self.parts
        world = state.world
        place = self.place
        endings.add(place.close)
        await place.open(self.owner.epoch)
        letters = state.open_letters(parts, place)
        endings.add(parts.outputs.close)
        # From here on no other owner commits: all slow work comes before.
        endings.add(parts.inputs.close)
        if isinstance(parts.outputs, PreparedGroup):
            await parts.outputs.prepare()
        warm = await state.ready()
        standings = await parts.outputs.open(self.owner.epoch, parts.emit)
        if parts.lanes is not None:
            endings.add(parts.lanes.close)
            of_lanes = await parts.lanes.open(self.owner.epoch, standings)
            standings = {**standings, **of_lanes}
        check_holders(self.listed, standings)
        has_committed = any(one.committed for one in standings.values())
        start = await first_cut(self.listed, has_committed, parts.inputs)
        outputs = Outputs(
            parts.outputs,
            standings,
            start,
            world.guards,
            parts.emit,
            plan=parts.plan,
            lanes=parts.lanes,
        )
        shown = outputs.stops[-1] if outputs.stops else start
        in_flight = state.open_in_flight(parts, place, letters, shown)
        endings.add(in_flight.close)
        if in_flight.is_careful:
            in_flight.limit((await parts.inputs.bounds())[1])
        storing = CheckpointWriter(
            self.owner,
            parts.settings.snapshot_rows,
            world.executor,
            parts.emit,
            parts.inputs.wake,
            now_ns=world.clock.monotonic_ns,
            outlives=lambda epoch: bool(standings) and state.is_next(epoch),
            stored=partial(let_go, parts.inputs),
        )
        opened = Opened(self, start, outputs, place, letters, in_flight, storing, warm)
        if not state.is_handed_over or in_flight.newly_quarantined:
            await opened.flush()  # else with the first commit
        return opened


@dataclass(frozen=True, slots=True)
class Opened:
    """All is open, and how far each output is is known. start: the cut of the first state."""

    claimed: Claimed
    start: Cut
    outputs: Outputs
    place: HintStore
    letters: DeadLetterLog
    in_flight: InFlight
    storing: CheckpointWriter
    warm: StandbyState | None

    @asynccontextmanager
    async def answered_for(self) -> AsyncIterator[None]:
        """Note how the task ends, for the next one."""
        try:
            yield
        except BaseException as error:
            await self.storing.abandon()
            self.in_flight.ended(error)
            raise
        self.in_flight.idle()
        self.in_flight.ended()

    async def flush(self) -> None:
        """Make notes, and dead letters up to their last sync, available to the next task."""
        await self.place.flush()
        self.claimed.state.has_noted = True

    async def restore(self) -> Restoration:
        """Take the state from which every output's next change can be computed."""
        state, parts = self.claimed.state, self.claimed.parts
        world, in_flight = state.world, self.in_flight
        warm = self.warm
        if (
            warm is not None
            and warm.quarantine == in_flight.quarantine
            and self.outputs.accepts(warm.engine.cut)
        ):
            engine, base = warm.engine, StartingPoint(None, warm.engine.cut, (), frozenset())
        else:
            engine, base = await restore(
                parts.plan,
                state.checkpoints,
                self.claimed.listed,
                self.outputs,
                parts.inputs,
                executor=world.executor,
                start=self.start,
                rebuild=state.rebuild,
                staged=parts.staged,
                make=parts.engine,
            )
        if base.checkpoint is not None:
            listed = self.claimed.listed
            let_go(parts.inputs, listed[listed.index(base.checkpoint) :])
        if parts.division is not None:
            engine.expect(parts.division)
        self.storing.last = None if base.changed else base.checkpoint
        self.letters.begin(engine.cut)
        in_flight.resume(engine.cut)
        await self.outputs.look_back(base.changed, is_replayed=base.checkpoint is None)
        self.outputs.begin(engine, base.changed)
        live = TaskLoop(
            Drive(engine, in_flight),
            parts,
            self.outputs,
            self.letters,
            in_flight,
            flush=self.flush,
            guards=world.guards,
            now_ns=world.clock.monotonic_ns,
        )
        durable = DurableRun(
            live,
            parts,
            self.storing,
            world,
            flush=self.flush,
            start=self.start,
            origin=origin_of(self.claimed.listed),
            changes=changed(
                self.claimed.listed,
                base,
                self.outputs.stops[-1] if self.outputs.stops else self.start,
            )
            | holders(self.outputs.standings),
            has_changed=bool(base.changed),
            is_hasty=in_flight.was_killed,
            is_asked=state.take_asked,
        )
        return Restoration(self, base, live, durable)


@dataclass(frozen=True, slots=True)
class Restoration:
    """A restored engine, which the outputs may be ahead of; ``catch_up`` reaches them."""

    opened: Opened
    base: StartingPoint
    live: TaskLoop
    durable: DurableRun

    async def catch_up(self) -> bool:
        """Reach the cut where new input begins; return False if stopped before."""
        opened, base, durable = self.opened, self.base, self.durable
        parts, clock, engine = opened.claimed.parts, durable.clock, self.live.engine
        began_ns, before = clock.monotonic_ns(), engine.counters.consumed
        if not await opened.claimed.state.catch_up.run(durable):
            return False
        parts.emit(Stabilized(engine, 0))
        last = base.checkpoint
        if last is None and not base.skipped:  # what a follower has is beyond the newest
            last = next(iter(opened.claimed.listed), None)
        restored = Restored(
            None if base.checkpoint is None else base.checkpoint.name,
            base.start,
            engine.cut,
            base.skipped,
            engine.counters.consumed - before,
            (clock.monotonic_ns() - began_ns) / 1e9,
            engine.digest,
            None if last is None else last.written_ns,
        )
        parts.report.restored = restored
        parts.emit(restored)
        await parts.inputs.open(engine.cut, parts.settings.batch_rows)
        # A later task must find the state of this code, or where the beginning was; or it may be
        # killed like the last one, during the first stabilization.
        if (
            base.changed
            or (any(opened.start.values()) and opened.start == engine.cut)
            or (restored.events and opened.in_flight.was_killed_stabilizing)
        ):
            await durable.store()
        opened.place.mend()
        await durable.go_live()
        return True

    async def keep(self) -> None:
        """Commit and begin checkpoints when they are due; let others run."""
        await self.durable.keep()

    async def wait(self) -> None:
        """Wait for more, or until something is due."""
        await self.durable.wait()

    async def finish(self) -> None:
        """Commit, and store a checkpoint unless the next task takes the state itself."""
        if self.opened.claimed.state.parks():
            await self.durable.commit()
        else:
            await self.durable.store()

    @property
    def left(self) -> StandbyState | None:
        """The state from which the next task may resume, None where only a checkpoint will do.

        Lanes have taken from it what they may not have written.
        """
        live, parts = self.live, self.opened.claimed.parts
        if not live.is_whole or parts.lanes is not None:
            return None
        return StandbyState(live.engine, self.opened.in_flight.quarantine)
