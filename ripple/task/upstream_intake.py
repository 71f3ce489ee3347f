"""The intake of a downstream task: the changes of its senders, a turn at a time."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from ripple.connectors.inputs import Signal
from ripple.core.cut import is_within
from ripple.engine.edges.senders import BehindError, GapError, SupersededError

if TYPE_CHECKING:
    import asyncio

    from ripple.engine.machine.follower import Follower
    from ripple.storage.checkpoint import Checkpoint
    from ripple.task.edges import Arrival, Upstream
    from ripple.task.live import LivePartition
    from ripple.task.spec import TaskContext
    from ripple.task.stage_spec import StageSpec
    from ripple.world.ports import Clock


class UpstreamIntake:
    """Takes in arrivals, each of which is answered once, and writes their changes. See Intake."""

    def __init__(
        self,
        spec: StageSpec,
        engine: Follower,
        live: LivePartition,
        context: TaskContext,
        clock: Clock,
        *,
        is_restored: bool,
    ) -> None:
        """Feed ``engine``, whose outputs ``live`` has.

        is_restored: whether it is that of a checkpoint, and not of the beginning.
        """
        self._follows: Upstream[Any] = spec.follows
        self._senders = spec.senders
        self._wake: asyncio.Event = spec.wake
        self._engine = engine
        self._live = live
        self._clock = clock
        self._traces = context.traces
        self._turn_ns = context.settings.turn_ms * 1_000_000
        self._arrivals: deque[Arrival] = deque()
        # Of the checkpoints that may have to be read: up to where final rows are in them.
        self._stored_ns: deque[int] = deque(maxlen=context.settings.keep)
        self._storing_ns = engine.watermark_ns
        if is_restored:
            self._stored_ns.append(engine.watermark_ns)

    async def begin(self) -> None:
        """Follow all senders, each from where the engine is."""
        for sender, name in enumerate(self._senders):
            followed = self._engine.followed(name)
            if followed.cut is not None:
                self._follows.begin(sender, followed.epoch, followed.cut)
        await self._follows.find()
        self._follows.start()

    async def take_in(self) -> bool:
        """Take in arrivals, for one turn at most; return whether any was new."""
        self._arrivals.extend(self._follows.take())
        await self._follows.sync()
        is_news = False
        ends_ns = self._clock.monotonic_ns() + self._turn_ns
        while self._arrivals:
            is_news = self._take(self._arrivals.popleft()) or is_news
            if self._clock.monotonic_ns() >= ends_ns:
                self._wake.set()  # for the rest
                break
        return is_news

    async def take(self) -> Signal | None:
        """Take in arrivals for one turn, and write their changes."""
        live, traces, before = self._live, self._traces, self._live.outputs.rows_out
        began_ns = self._clock.monotonic_ns()
        if not await self.take_in():
            return Signal.WAITING
        if traces is not None:
            traces.begin_arrived()
        stabilizing_ns = self._clock.monotonic_ns()
        live.write(self._engine.stabilize(), stabilizing_ns)
        live.report.stabilizations += 1
        if traces is not None:
            traces.end(live.outputs.rows_out - before)
        live.work_ns += self._clock.monotonic_ns() - began_ns
        return None

    async def more(self) -> None:
        """Wait until something arrives, or a wake-up."""
        await self._wake.wait()
        self._wake.clear()

    async def rest(self) -> None:
        """Do nothing."""

    def wake(self) -> None:
        """End the wait."""
        self._wake.set()

    async def sync(self) -> None:
        """Do nothing: arrivals are durable before they are applied."""

    @property
    def has_heard_all(self) -> bool:
        """Whether every sender has said something, now or before the engine was restored."""
        return all(self._engine.followed(name).cut is not None for name in self._senders)

    @property
    def is_past_lives_before(self) -> bool:
        """Whether the engine has reached, of every sender, the cut that earlier tasks may have."""
        for sender, name in enumerate(self._senders):
            end, cut = self._follows.reached_before(sender), self._engine.followed(name).cut
            if end is not None and (cut is None or not is_within(end, cut)):
                return False
        return True

    def storing(self) -> None:
        """Note that a checkpoint of the present cut is begun."""
        self._storing_ns = self._engine.watermark_ns

    def stored(self, _present: tuple[Checkpoint, ...]) -> None:
        """Note that it is stored: senders may forget the final rows up to it."""
        self._stored_ns.append(self._storing_ns)
        # Not of the newest alone: should that be damaged, one before is read.
        if len(self._stored_ns) == self._stored_ns.maxlen:
            self._follows.release(self._stored_ns[0])

    def _take(self, arrival: Arrival) -> bool:
        try:
            is_news = self._engine.follow(
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
        self._live.report.events += arrival.changes.rows.num_rows
        return is_news
