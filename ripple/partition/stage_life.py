"""One process's life over a partition of a later stage: follow, bring up, write, commit, store.

It reads no log that could be read again, so after a crash it goes on differently from other
lives: from the newest checkpoint it follows its senders, unseen, to a cut that is at or beyond all
that its outputs hold, and writes there once what makes them right. See ``docs/exchange.md``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple import cut as cuts
from ripple.change.adaptation import decide
from ripple.connectors.contract import Commit
from ripple.engine.follower import Follower
from ripple.engine.senders import BehindError, GapError, SupersededError
from ripple.engine.snapshot import SnapshotError
from ripple.errors import OutputError
from ripple.events import (
    Began,
    BroughtUp,
    Committed,
    Diverged,
    Ended,
    PassedOver,
    Restored,
    Tell,
    untold,
)
from ripple.fenced import DamagedError
from ripple.partition.endings import Endings
from ripple.partition.report import Report
from ripple.partition.settings import CommitPace, Pace, Settings
from ripple.partition.shown import Shown, published
from ripple.partition.storing import Storing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.checkpoint import Checkpoint, Checkpoints, Owner
    from ripple.cut import Cut
    from ripple.engine import Changes
    from ripple.partition.group import ReadableGroup, Standing
    from ripple.partition.sends import Arrival, Follows, Sends
    from ripple.partition.tracing import Traces
    from ripple.pipeline.plan import Plan
    from ripple.world.ports import World


class StageLife:
    """One run over a partition of a later stage. ``run`` is called once.

    Invariants: what was written is at the engine's cut, or, before ``_publish``, at less than the
    outputs hold; a cut is offered to the next stage only once it is committed.
    """

    def __init__(
        self,
        plan: Plan,
        stage: int,
        number: int,
        senders: int,
        *,
        follows: Follows[Any],
        outputs: ReadableGroup,
        checkpoints: Checkpoints,
        world: World,
        epoch: int | None,
        sends: Sends | None = None,
        settings: Settings | None = None,
        tell: Tell = untold,
        stop: Callable[[], bool] = lambda: False,
        wake: asyncio.Event | None = None,
        traces: Traces | None = None,
    ) -> None:
        """Connect the parts; nothing is touched before ``run``.

        senders: how many partitions the stage before has. epoch: from whoever assigns partitions,
        None takes the next one. sends: who follows this one. stop: asked between two turns whether
        to end in good order. wake: is set when something has arrived, is wanted, or is to stop.
        traces: of what arrives, None where nobody follows events.
        """
        self.report = Report()
        self.engine = Follower(
            plan, stage, [str(sender) for sender in range(senders)], number, finals=True
        )
        self._plan, self._stage, self._number = plan, stage, number
        self._senders = [str(sender) for sender in range(senders)]
        self._follows, self._sends = follows, sends
        self._outputs = outputs
        self._checkpoints = checkpoints
        self._world = world
        self._epoch = epoch
        self._settings = settings = settings or Settings()
        self._tell = tell
        self._stop = stop
        self._wake = wake or asyncio.Event()
        self._traces = traces
        now_ns = world.clock.monotonic_ns()
        self._commits = CommitPace(
            settings.commit_interval_ns, settings.commit_batches, now_ns, None
        )
        self._stores = Pace(settings.checkpoint_interval_ns, settings.checkpoint_batches, now_ns)
        self._storing: Storing
        self._standings: Mapping[str, Standing] = {}
        self._committed: Cut | None = None
        self._rows_told = 0
        self._is_asked = False
        self._arrivals: deque[Arrival] = deque()
        # Of the checkpoints that may have to be read: up to where final rows are in them.
        self._stored_ns: deque[int] = deque(maxlen=settings.keep)
        self._storing_ns = 0
        self._last: Checkpoint | None = None

    def ask_for_checkpoint(self) -> None:
        """Let a checkpoint be begun soon."""
        self._is_asked = True
        self._wake.set()

    async def run(self) -> Report:
        """Go on with the partition until ``stop`` says so.

        Raises FencedError and StaleEpochError when somebody else owns it, ChangedPlanError for
        checkpoints of other code, InputError, OutputError, SnapshotError, CheckpointError and
        OSError. Whatever is raised, what was committed stays.
        """
        async with Endings() as endings:
            owner = await self._claim()
            listed = await self._checkpoints.list()
            endings.add(self._outputs.close)
            self._standings = await self._outputs.open(owner.epoch, self._tell)
            for output in self._standings:
                if output not in self.engine.digests:
                    raise OutputError(f"{output!r} is no output of stage {self._stage}")
                self._outputs.mark(output)  # or it says why it cannot
            base = await self._restore(listed)
            try:
                if await self._come_back(base):
                    await self._go_on()
                    await self._finish()
            except BaseException:
                await self._storing.abandon()
                raise
        return self.report

    async def _claim(self) -> Owner:
        world, settings = self._world, self._settings
        owner = await self._checkpoints.claim(
            world.clock, world.random, epoch=self._epoch, keep=settings.keep
        )
        self._tell(Began(self._plan.name, self._checkpoints.partition, owner.epoch))
        self._storing = Storing(
            owner,
            settings.snapshot_rows,
            world.executor,
            self._tell,
            self._wake.set,
            now_ns=world.clock.monotonic_ns,
        )
        return owner

    # --- coming back ---

    async def _restore(self, listed: Sequence[Checkpoint]) -> _Base:
        """Take the newest state that no output is behind, or none."""
        passed_over: list[PassedOver] = []
        for one in listed:
            try:
                engine = await self._restored(one)
            except (DamagedError, SnapshotError) as error:
                passed_over.append(PassedOver(one.name, str(error)))
                continue
            self.engine = engine
            self._stored_ns.append(engine.watermark_ns)
            self._storing.last = self._last = one
            return _Base(one, tuple(passed_over))
        return _Base(None, tuple(passed_over))

    async def _restored(self, one: Checkpoint) -> Follower:
        for standing in self._standings.values():
            commit = standing.committed
            if commit is not None and not cuts.is_within(one.cut, commit.cut):
                raise SnapshotError(f"it is ahead of what {standing.name} holds")
        snapshot = await self._checkpoints.read(one)
        if (snapshot.stage, snapshot.partition) != (self._stage, self._number):
            raise SnapshotError(
                f"it is of partition {snapshot.partition} of stage {snapshot.stage}: begin with "
                "another folder of checkpoints"
            )
        if sorted(snapshot.epochs) != sorted(self._senders):
            raise SnapshotError(
                f"it follows {len(snapshot.epochs)} partitions, but the stage before has "
                f"{len(self._senders)} now"
            )
        # Other code is no reason to begin with nothing: what was written is of the one that was.
        snapshot = decide(self._plan, snapshot, staged=True).snapshot or snapshot
        restore = partial(Follower.restore, self._plan, snapshot, finals=True)
        return await self._world.executor.run(restore)

    async def _come_back(self, base: _Base) -> bool:
        """Come to where what is new begins; return False if told to stop before."""
        clock, engine = self._world.clock, self.engine
        began_ns = clock.monotonic_ns()
        start = engine.cut
        if base.checkpoint is None and not any(map(_holds, self._standings.values())):
            # So that outputs without any checkpoint are of one that was lost.
            await self._store()
        was_shown = await self._was_shown(base)
        for sender, name in enumerate(self._senders):
            followed = engine.followed(name)
            if followed.cut is not None:
                self._follows.begin(sender, followed.epoch, followed.cut)
        await self._follows.find()
        self._follows.start()
        changes, final = engine.stabilize(), _Final()
        while not self._has_come():
            if self._stop():
                return False
            if await self._take_in():
                changes = engine.stabilize()
                final.add(changes)
            else:
                await self._wait(None)
        if not self._world.guards("final_rows"):
            final = _Final()
        self._publish(base, changes, final, was_shown)
        self._commits.cut = engine.cut
        await self._commit()
        self._tell(BroughtUp(engine, 0))
        restored = Restored(
            None if base.checkpoint is None else base.checkpoint.name,
            start,
            engine.cut,
            base.passed_over,
            self.report.events,
            (clock.monotonic_ns() - began_ns) / 1e9,
            engine.digest,
        )
        self.report.restored = restored
        self._tell(restored)
        return True

    async def _was_shown(self, base: _Base) -> dict[str, Shown]:
        """Return per output that holds something which keys its readers may have."""
        was_shown = {}
        for output, standing in self._standings.items():
            if not _holds(standing):
                continue
            of = next(one.of for one in self._plan.outputs if one.name == output)
            shown = was_shown[output] = Shown(self._plan.fold(of).key)
            mark = None
            if base.checkpoint is not None:
                mark = base.checkpoint.notes.get(_mark_of(output))
            if mark is not None:  # else it was no output then, and its log is all that tells
                shown.there(self.engine.table(output))
            if self._world.guards("read_back"):
                async for batch in self._outputs.written_since(output, mark):
                    shown.changed([batch])
        return was_shown

    def _has_come(self) -> bool:
        """Return whether every sender was heard and every output holds no more than this."""
        if any(self.engine.followed(name).cut is None for name in self._senders):
            return False
        here = self.engine.cut
        if not self._world.guards("come_back"):
            return True
        for sender, name in enumerate(self._senders):
            end, cut = self._follows.reached_before(sender), self.engine.followed(name).cut
            if end is not None and (cut is None or not cuts.is_within(end, cut)):
                return False
        for standing in self._standings.values():
            commit = standing.committed
            if commit is not None and not cuts.is_within(commit.cut, here):
                return False
            if standing.unfinished is not None and not cuts.is_within(standing.unfinished, here):
                return False
        return True

    def _publish(
        self, base: _Base, changes: Changes, final: _Final, was_shown: Mapping[str, Shown]
    ) -> None:
        """Write once what makes each output right at the present cut."""
        engine, digests = self.engine, self.engine.digests
        for output, standing in self._standings.items():
            commit = standing.committed
            is_same = commit is not None and dict(commit.cut) == engine.cut
            if is_same and base.checkpoint is not None and standing.unfinished is None:
                self._compare(output, standing, digests[output])
                continue
            table = engine.table(output)
            rows = [table, *final.of(output)]
            removed = table.slice(0, 0).select([])
            if output in was_shown:
                shown = was_shown[output]
                rows = [shown.settled(part) for part in rows]
            if output in was_shown and self._world.guards("gone_keys"):
                removed = self._removed(shown.left(), is_lost=base.checkpoint is None)
            if standing.unfinished is not None:
                self._outputs.supersede(output)
            batch = published(changes.outputs[output].schema, rows, removed)
            if batch.num_rows:
                self._outputs.write(output, batch, Commit(engine.cut, digests[output]))
                self.report.rows_out += batch.num_rows

    def _removed(self, left: pa.Table, *, is_lost: bool) -> pa.Table:
        """Return which of the keys that are not there any more are to be removed.

        Where the state was lost, nobody knows which rows of windows that are over were final.
        """
        has_windows = self._plan.folds[0].window is not None
        if not (is_lost and has_windows and "window_start_ns" in left.column_names):
            return left
        ends = left.column("window_start_ns").to_numpy() + self._plan.closes_after_ns
        return left.filter(pa.array(ends > self.engine.watermark_ns))

    def _compare(self, output: str, standing: Standing, found: str) -> None:
        commit = standing.committed
        assert commit is not None
        if commit.digest in ("", found) or not self._world.guards("digest_check"):
            return
        self._tell(Diverged(output, commit.cut, found, commit.digest))
        raise SnapshotError(
            f"output {output!r} at {cuts.text(commit.cut)}: the state that was restored has digest "
            f"{found}, but {standing.name} recorded {commit.digest}: the senders' inputs, the "
            "checkpoint or the code are not those that wrote it. Nothing was written"
        )

    # --- going on ---

    async def _go_on(self) -> None:
        clock = self._world.clock
        turn_ns, length_ns = clock.monotonic_ns(), self._settings.turn_ms * 1_000_000
        while not self._stop():
            if await self._take_in():
                self._bring_up()
            elif self._storing.is_copying:
                await clock.sleep(0)
            else:
                await self._wait(self._due_in_s())
            await self._keep()
            if clock.monotonic_ns() - turn_ns >= length_ns:
                await clock.sleep(0)
                turn_ns = clock.monotonic_ns()

    async def _take_in(self) -> bool:
        """Take in what has arrived, as much as a turn is for; return whether there was news."""
        self._arrivals.extend(self._follows.take())
        await self._follows.sync()
        is_news, clock = False, self._world.clock
        ends_ns = clock.monotonic_ns() + self._settings.turn_ms * 1_000_000
        while self._arrivals:
            is_news = self._take(self._arrivals.popleft()) or is_news
            if clock.monotonic_ns() >= ends_ns:
                self._wake.set()  # for the rest
                break
        return is_news

    def _take(self, arrival: Arrival) -> bool:
        try:
            is_news = self.engine.follow(
                self._senders[arrival.sender], arrival.epoch, arrival.changes
            )
        except SupersededError:
            self._follows.dropped(arrival)
            return False
        except (GapError, BehindError):
            self._follows.refused(arrival)
            return False
        self._follows.applied(arrival)
        if self._traces is not None:
            self._traces.arrived(arrival.changes.traces)
        self.report.events += arrival.changes.rows.num_rows
        return is_news

    def _bring_up(self) -> None:
        """Bring the views up to the cut, and write what changed."""
        traces, before = self._traces, self.report.rows_out
        if traces is not None:
            traces.begin_arrived()
        began_ns = self._world.clock.monotonic_ns()
        changes = self.engine.stabilize()
        took_ns = self._world.clock.monotonic_ns() - began_ns
        self._tell(BroughtUp(self.engine, took_ns))
        self.report.stabilizations += 1
        digests: Mapping[str, str] = {}
        for output, rows in changes.outputs.items():
            if output in self._standings and rows.num_rows:
                digests = digests or self.engine.digests
                self._outputs.write(output, rows, Commit(changes.cut, digests[output]))
                self.report.rows_out += rows.num_rows
        if traces is not None:
            traces.end(self.report.rows_out - before)

    async def _keep(self) -> None:
        """Commit and begin checkpoints when they are due."""
        now_ns = self._world.clock.monotonic_ns()
        if self._sends is not None:
            self._sends.offer_uncommitted(self.engine)
        self._step()
        commit_due, store_due = self._commits.is_due(now_ns), self._stores.is_due(now_ns)
        if (store_due or self._is_asked) and not self._storing.is_busy:
            self._is_asked = False
            await self._commit()
            self._begin_checkpoint()
            self._stores.begin(now_ns)
        elif (commit_due and not self._is_committed) or (
            self._sends is not None and self._sends.is_wanted
        ):
            await self._commit()

    def _due_in_s(self) -> float | None:
        now_ns = self._world.clock.monotonic_ns()
        paces: list[Pace] = [] if self._is_committed else [self._commits]
        paces += [] if self._storing.is_busy else [self._stores]
        return min((s for pace in paces if (s := pace.due_in_s(now_ns)) is not None), default=None)

    @property
    def _is_committed(self) -> bool:
        return self._committed == self.engine.cut

    async def _wait(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    async def _commit(self) -> None:
        """Let what was written survive, then let others follow it."""
        clock, cut = self._world.clock, self.engine.cut
        self._commits.begin_at(cut, clock.monotonic_ns())
        if not self._is_committed:
            began_ns, digests = clock.monotonic_ns(), self.engine.digests
            commits = {output: Commit(cut, digests[output]) for output in self._standings}
            await self._outputs.commit(commits)
            self._committed = cut
            self.report.commits += 1
            rows, self._rows_told = self.report.rows_out - self._rows_told, self.report.rows_out
            seconds = (clock.monotonic_ns() - began_ns) / 1e9
            self._tell(Committed(cut, rows, seconds, digests))
        if self._sends is not None:
            if self._traces is not None:
                self._traces.given(self._sends.trace)
            self._sends.offer(self.engine)

    # --- checkpoints ---

    def _begin_checkpoint(self) -> None:
        """Begin to store the present cut, which the outputs have committed."""
        last = self._storing.last
        if last is None or dict(last.cut) != self.engine.cut:
            marks = {_mark_of(output): self._outputs.mark(output) for output in self._standings}
            self._storing_ns = self.engine.watermark_ns
            self._storing.begin(self.engine, marks)

    def _step(self) -> None:
        self._storing.step()
        if self._storing.last is not self._last:
            self._last = self._storing.last
            self._stored_ns.append(self._storing_ns)
            # Not of the newest alone: should that be damaged, one before is read.
            if len(self._stored_ns) == self._stored_ns.maxlen:
                self._follows.release(self._stored_ns[0])

    async def _store(self) -> None:
        await self._storing.drain()
        self._step()
        self._begin_checkpoint()
        await self._storing.drain()
        self._step()
        self.report.checkpoint = self._last.name if self._last else None

    async def _finish(self) -> None:
        """Leave everything in good order."""
        await self._commit()
        await self._store()
        self.report.watermark_ns = self.engine.watermark_ns
        self._tell(Ended(self.engine.cut, self.engine.digest))


class _Base:
    """From what a life goes on. checkpoint: None for nothing."""

    def __init__(self, checkpoint: Checkpoint | None, passed_over: tuple[PassedOver, ...]) -> None:
        self.checkpoint = checkpoint
        self.passed_over = passed_over


class _Final:
    """Rows that became final while nothing was written, by output."""

    def __init__(self) -> None:
        self._rows: dict[str, list[pa.RecordBatch]] = {}

    def add(self, changes: Changes) -> None:
        for output, rows in changes.final.items():
            if rows.num_rows:
                self._rows.setdefault(output, []).append(rows)

    def of(self, output: str) -> list[pa.Table]:
        return [pa.Table.from_batches([rows]) for rows in self._rows.get(output, [])]


def _holds(standing: Standing) -> bool:
    return standing.committed is not None or standing.unfinished is not None


def _mark_of(output: str) -> str:
    """Return the note of a checkpoint that says where an output was at its cut."""
    return f"shown/{output}"
