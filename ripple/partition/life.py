"""One process's life over a partition: restore, catch up unseen, go on, commit, checkpoint.

After a crash at any moment the next life goes on so that every sink holds what it would have held:

- A sink knows the cut that its data reach (``CutSink``). A checkpoint is taken only of a cut that
  all sinks have committed, so it is never ahead of them: it is a cache.
- A life takes the newest checkpoint that no sink is behind, or the beginning of the log, applies
  the log up to each sink's cut without writing to it, and compares digests there.
- Cuts lie on a grid of offsets, and the rows of a cut have an order of their own, so what is
  written after a crash is what would have been written without it.
- An earlier life that is still there can change nothing: it holds the lock, or has lost the fence.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripple.batch import Marker
from ripple.checkpoint.checkpoints import prefix_of
from ripple.engine import Engine
from ripple.errors import InputError
from ripple.events import Began, Committed, Ended, Refused, Tell, Uncomputable, untold
from ripple.partition.drive import Drive
from ripple.partition.in_flight import InFlight, in_flight_path
from ripple.partition.letters import DeadLetterLog, letters_path
from ripple.partition.outputs import Outputs
from ripple.partition.restoring import Restored, first_cut, notes, restore
from ripple.partition.settings import Pace, Settings
from ripple.partition.storing import Storing
from ripple.window import OnCount, OnInterval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.batch import Batch
    from ripple.checkpoint import Checkpoint, Checkpoints
    from ripple.connectors.contract import CutSink
    from ripple.cut import Cut
    from ripple.partition.inputs import Inputs
    from ripple.pipeline.plan import Plan
    from ripple.world.ports import World

# Batches between two chances for the tasks of the loop: the storing of checkpoints is one.
_BATCHES_PER_TURN = 8


@dataclass(slots=True)
class Report:
    """What a life did.

    restored: None until it has caught up. events: consumed since then. letters: refused records
    that it kept, by cause.
    """

    events: int = 0
    letters: Counter[str] = field(default_factory=Counter)
    restored: Restored | None = None
    batches: int = 0
    commits: int = 0
    rows_out: int = 0
    checkpoint: str | None = None


class Life:
    """One run over a partition. ``run`` is called once."""

    def __init__(
        self,
        plan: Plan,
        inputs: Inputs,
        open_sinks: Callable[[], Mapping[str, CutSink]],
        checkpoints: Checkpoints,
        world: World,
        *,
        rebuild: Collection[str] = (),
        holder: str = "a run",
        settings: Settings | None = None,
        tell: Tell = untold,
        stop: Callable[[], bool] = lambda: False,
        watch: Callable[[Engine, Report], None] = lambda _, __: None,
    ) -> None:
        """Connect the parts; nothing is touched before ``run``.

        open_sinks: called when nobody else can be writing any more. world: its disk has the lock,
        dead letters and what is in flight. rebuild: folds that may be computed from the log's first
        record. holder: who runs it, for people. tell: takes what happens. stop: asked
        between two batches whether to end in good order. watch: called after each batch.
        """
        self._plan = plan
        self._inputs = inputs
        self._open_sinks = open_sinks
        self._checkpoints = checkpoints
        self._world = world
        self._rebuild = rebuild
        self._holder = holder
        self._settings = settings or Settings()
        self._committed: Cut = {}
        self._rows_told = 0
        self._tell = tell
        self._stop = stop
        self._watch = watch
        self.report = Report()

    @property
    def engine(self) -> Engine:
        """The partition; there is one once ``run`` has restored it."""
        return self._engine

    async def run(self) -> Report:
        """Restore, catch up, and go on until the input ends or ``stop`` says so.

        Raises DiskLockedError and FencedError when somebody else owns the partition, InputError,
        OutputError, SnapshotError, CheckpointError and OSError. Whatever is raised, what was
        committed stays, and the next life goes on from there.
        """
        self._check_triggers()
        folder = prefix_of(self._plan.name, 0).rstrip("/")
        self._world.disk.make_folder(folder)
        lock = self._world.disk.lock(f"{folder}/life.lock", self._holder)
        try:
            clock, random = self._world.clock, self._world.random
            self._owner = await self._checkpoints.claim(clock, random, keep=self._settings.keep)
            self._tell(Began(self._plan.name, 0, self._owner.epoch))
            await self._restore_and_go_on()
        finally:
            lock.release()
        return self.report

    def _check_triggers(self) -> None:
        """Raise InputError where rows would depend on the order in which inputs were read."""
        window = self._plan.folds[0].window
        is_partial = window is not None and isinstance(window.trigger, OnCount | OnInterval)
        if is_partial and len(self._inputs.names) > 1:
            raise InputError(
                "a window that shows partial results by OnCount or OnInterval cannot be restored "
                "over several partitions: what it shows depends on the order of reading; read one, "
                "as in log:DIR/TOPIC/0"
            )

    async def _restore_and_go_on(self) -> None:
        self._storing = Storing(self._owner, self._settings.snapshot_rows, self._tell)
        listed = await self._checkpoints.list()
        with ExitStack() as opened:
            opened.callback(self._inputs.close)
            self._letters = self._open_letters()
            self.report.letters = self._letters.counts
            opened.callback(self._letters.close)
            sinks = self._open_sinks()
            for sink in sinks.values():
                opened.callback(sink.close)
            self._start = first_cut(listed, sinks, self._inputs)
            self._outputs = Outputs(sinks, self._start, self._world.guards)
            self._in_flight = self._open_in_flight()
            opened.callback(self._in_flight.close)
            try:
                await self._restore(listed)
                if await self._catch_up():
                    await self._go_on()
            except BaseException as error:
                await self._storing.abandon()
                self._in_flight.ended(error)
                raise
            self._in_flight.idle()
            self._in_flight.ended()

    def _open_in_flight(self) -> InFlight:
        path = in_flight_path(self._plan.name)
        shown = self._outputs.stops[-1] if self._outputs.stops else self._start
        found = InFlight(self._world.disk, path, version=self._plan.topology_hash, shown=shown)
        for event in found.remarks():
            self._tell(event)
        return found

    def _open_letters(self) -> DeadLetterLog:
        return DeadLetterLog(
            self._world.disk,
            letters_path(self._plan.name),
            pipeline=self._plan.name,
            version=self._plan.topology_hash,
            clock=self._world.clock,
            holder=self._holder,
            guards=self._world.guards,
        )

    # --- catching up ---

    async def _restore(self, listed: tuple[Checkpoint, ...]) -> None:
        self._engine, self._restored = await restore(
            self._plan,
            self._checkpoints,
            listed,
            self._outputs,
            self._inputs,
            start=self._start,
            rebuild=self._rebuild,
        )
        self._drive = Drive(self._engine, self._in_flight)
        restored = self.report.restored = self._restored
        self._storing.last = None if restored.changed else restored.checkpoint
        self._letters.begin(self._engine.cut)
        self._in_flight.resume(self._engine.cut)
        self._outputs.begin(self._engine, restored.changed)
        self._is_up = True
        self._begin_paces()

    def _begin_paces(self) -> None:
        settings, now_ns = self._settings, self._world.clock.monotonic_ns()
        # Whoever has killed the life before may do it again, after the same time.
        is_hasty = self._in_flight.was_killed
        self._commits = Pace(
            settings.commit_interval_ns, settings.commit_batches, now_ns, is_hasty=is_hasty
        )
        self._stores = Pace(
            settings.checkpoint_interval_ns, settings.checkpoint_batches, now_ns, is_hasty=is_hasty
        )

    async def _catch_up(self) -> bool:
        """Apply what the sinks already hold; return False if ``stop`` came in between."""
        restored = self._restored
        began_ns, before = self._world.clock.monotonic_ns(), self._engine.counters.consumed
        for stop in self._outputs.stops:
            self._inputs.check(stop, {})
            if not await self._replay_to(stop):
                return False
        restored.cut = self._engine.cut
        restored.events = self._engine.counters.consumed - before
        restored.seconds = (self._world.clock.monotonic_ns() - began_ns) / 1e9
        restored.digest = self._engine.digest
        self._tell(restored.told())
        return True

    async def _replay_to(self, stop: Cut) -> bool:
        """Go to ``stop``: at once while nobody is shown anything, else in the steps of a life.

        Views with windows are brought up on the way, so that windows that are over are freed as
        they were in the life that is repeated.
        """
        is_shown = self._outputs.is_behind
        frees = self._plan.folds[0].window is not None
        settings = self._settings
        rows = settings.batch_rows if is_shown else settings.rows_per_replay_step(self._plan)
        self._inputs.open(self._engine.cut, rows, stop)
        while (entry := self._inputs.next(self._engine.cut)) is not None:
            self._apply(*entry)
            if is_shown or frees:
                self._bring_up()
            self._keep_progress(self._world.clock.monotonic_ns())
            self._watch(self._engine, self.report)
            await asyncio.sleep(0)
            if self._stop():
                return False
        if not self._is_up:
            self._bring_up()
        return True

    def _keep_progress(self, now_ns: int) -> None:
        """Store a checkpoint when one is due, so that the next life need not replay all this.

        Not while the outputs show what other code has made: what it took to go on from there would
        be forgotten.
        """
        self._storing.step()
        is_due = self._stores.is_due(now_ns)
        if self._restored.changed or self._outputs.is_unfinished:
            return
        if is_due and not self._storing.is_busy:
            if not self._is_up:
                self._bring_up()
            self._commit()
            self._begin_checkpoint()
            self._stores.begin(now_ns)

    # --- going on ---

    async def _go_on(self) -> None:
        clock, settings = self._world.clock, self._settings
        self._inputs.open(self._engine.cut, self._settings.batch_rows)
        # A later life must find the state of this code, or where the beginning was; or it may be
        # killed like the last one, while the views are brought up to date for the first time.
        if (
            self._restored.changed
            or (any(self._start.values()) and self._start == self._engine.cut)
            or (self._restored.events and self._in_flight.was_killed_stabilizing)
        ):
            self._commit()
            await self._store()
        while not self._stop():
            entry = self._inputs.next(self._engine.cut)
            if entry is not None:
                self._take(*entry)
            elif settings.follow:
                await clock.sleep(settings.poll_s)
            else:
                break
            self._keep_safe(clock.monotonic_ns())
            if self.report.batches % _BATCHES_PER_TURN == 0:
                await asyncio.sleep(0)
        self._commit()
        await self._store()
        for name, rows in self._engine.uncomputable.items():
            self._tell(Uncomputable(name, rows.count, rows.final))
        self._tell(Ended(self._engine.cut, self._engine.digest))

    def _take(self, name: str, entry: Batch | Marker) -> None:
        """Bring the views up to the end of one batch and write what changed."""
        self._apply(name, entry)
        self._bring_up()
        self.report.batches += 1
        self.report.events += 1 if isinstance(entry, Marker) else entry.span
        self.report.rows_out = self._outputs.rows_out
        self._watch(self._engine, self.report)

    def _apply(self, name: str, entry: Batch | Marker) -> None:
        self._is_up = False
        rejected = self._drive.apply(name, entry, self._in_flight.passing)
        if rejected and not isinstance(entry, Marker):
            self._in_flight.idle()  # a disk that is full is no record's fault
            self._letters.write(name, rejected, entry)
            self._tell(Refused(name, Counter(bad.cause for bad in rejected)))

    def _bring_up(self) -> None:
        """Bring the views up to the engine's cut; write what changed to the sinks that lack it."""
        self._in_flight.stabilizing(self._engine.cut)
        with self._in_flight.blamed():
            changes = self._drive.bring_up()
        self._in_flight.idle()
        self._is_up = True
        self._outputs.write(changes, self._engine)

    def _keep_safe(self, now_ns: int) -> None:
        """Commit and begin checkpoints when they are due."""
        self._storing.step()
        commit_due, store_due = self._commits.is_due(now_ns), self._stores.is_due(now_ns)
        if store_due and not self._storing.is_busy:
            if self._world.guards("commit_first"):
                self._commit()
            self._begin_checkpoint()
            self._stores.begin(now_ns)
        elif commit_due:
            self._commit()

    def _commit(self) -> None:
        """Let every output's data, with the cut that they reach, survive whatever happens."""
        began_ns = self._world.clock.monotonic_ns()
        self._commits.begin(began_ns)
        if self._committed == self._engine.cut:
            return
        if self._world.guards("letter_sync"):
            self._letters.sync()
        if self._world.guards("source_sync"):
            self._inputs.sync()
        self._outputs.commit(self._engine)
        self._committed = self._engine.cut
        self.report.commits += 1
        seconds = (self._world.clock.monotonic_ns() - began_ns) / 1e9
        rows, self._rows_told = self._outputs.rows_out - self._rows_told, self._outputs.rows_out
        self._tell(Committed(self._committed, rows, seconds, self._engine.digests))

    def _begin_checkpoint(self) -> None:
        last = self._storing.last
        if last is not None and dict(last.cut) == self._engine.cut:
            return
        kept = notes(self._inputs, self._engine.cut, self._start)
        self._storing.begin(self._engine, kept)

    async def _store(self) -> None:
        await self._storing.drain()  # one that was begun while catching up, or in time
        self._begin_checkpoint()
        await self._storing.drain()
        self.report.checkpoint = self._storing.last.name if self._storing.last else None
