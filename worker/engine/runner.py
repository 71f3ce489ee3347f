"""The runner of a partition: its task in this process, in all its roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.control.assignment import ATTEMPTS_MAX, epoch_of, since_of
from ripple.core.events import PartitionFailed, Restored, Stored
from ripple.storage.fenced import FencedError
from ripple.task.lifecycle import TaskState
from ripple.task.owned_state import Ownership
from ripple.task.spec import TaskContext
from ripple.world.pauses import Pauses
from worker.engine.concurrency import BackgroundJob, ConcurrencyLimit
from worker.engine.demand import PartitionDemand
from worker.engine.generation import ALONE, Standing
from worker.health import TaskHealth

if TYPE_CHECKING:
    from ripple.core.events import Event, EventListener
    from ripple.task.lifecycle import PartitionTask
    from ripple.task.report import Report
    from ripple.world.ports import Clock
    from worker.engine.generation import Generation
    from worker.engine.workload import Workload

PARK_S = 30.0
PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 30.0
# After so long live, a failure counts as a first one.
STEADY_S = 5.0


class Runner:
    """Runs one partition in this process. It is idle until told to follow or to own.

    Every call returns at once; the previous activity ends before the next begins. Failures are
    retried with growing pauses; no call raises because of them.

    Each attempt to own it has a new epoch, since the outcome of a failed claim is unknown. A
    runner that has yielded makes no further attempt. Its task stays a standby for a while: if
    the next owner fails, it is promoted again. A standby keeps following until it is about to open
    the outputs.
    """

    def __init__(
        self,
        clock: Clock,
        partition: int,
        emit: EventListener,
        work: Workload,
        turns: ConcurrencyLimit | None = None,
        *,
        generation: Generation = ALONE,
    ) -> None:
        """Do nothing yet. partition: of the assignment. emit: listener of its events."""
        self._clock = clock
        self._partition = partition
        self._emit = emit
        self._work = work
        self._turns = turns or ConcurrencyLimit()
        self._generation = generation
        self._entry = generation.entry  # of the record of generations, as the attempt goes by it
        self._is_renewing = False
        self._owning, self._following = BackgroundJob(), BackgroundJob()
        self._task: PartitionTask[Any] | None = None  # in any of its roles
        self._report: Report | None = None  # of the present attempt
        self._is_cold = False
        self._is_following = self._is_leaving = False
        self._is_giving_way = self._is_resuming = False
        self._is_taking_over = False  # and holds one of the process's hand-over permits
        self._failure: str | None = None  # of the last attempt to own or to follow it
        self._pauses = self._new_pauses()
        self._epoch: int | None = None
        self._events = self._rows_out = self._stored = 0
        self._is_spent = False
        self._demand = PartitionDemand(clock)

    @property
    def health(self) -> TaskHealth:
        """Its present health."""
        report = self._report
        is_live = report is not None and report.restored is not None and not self._is_leaving
        behind = self._behind if self._is_following else None
        return TaskHealth(
            is_live=is_live,
            behind=behind,
            failure=None if is_live or behind is not None else self._failure,
            epoch=self._epoch,
            events=self._events + (0 if report is None else report.events),
            rows_out=self._rows_out + (0 if report is None else report.rows_out),
            checkpoints=self._stored,
            is_spent=self._is_spent,
            backlog_s=self._demand.backlog_s(self._task) if is_live and self._task else 0.0,
            debt_s=self._demand.debt_s if is_live else 0.0,
        )

    @property
    def _behind(self) -> int | None:
        if self._task is None:
            return 0 if self._is_cold else None
        return self._task.behind

    def follow(self) -> None:
        """Become a standby, without disturbing the owner."""
        self._is_following = True
        self._following.begin(self._follow)

    def own(self, since: int, *, is_handed_over: bool = False) -> None:
        """Own it since this version of the assignment, from the standby's state or a retained one.

        is_handed_over: whether the previous owner continues until this one fences it off.
        """
        self._is_following = False
        self._failure = None
        if self._is_giving_way:
            self._is_resuming = True
            self._end_task(is_live=self.health.is_live)
        self._owning.begin(lambda: self._own(since, is_handed_over=is_handed_over))

    def yield_ownership(self) -> None:
        """Continue as the owner until the next one has fenced it off; ``own`` revokes this.

        It ends at once if it is not live.
        """
        self._is_following, self._is_giving_way = False, True
        if self._is_resuming or not self.health.is_live:
            self._owning.cancel()

    def store(self) -> None:
        """Store a checkpoint soon."""
        if self._task is not None and self._report is not None:
            self._task.ask_for_checkpoint()

    def renew(self) -> None:
        """End the attempt in good order, and begin another one that serves, if this one does not.

        Not before its senders have, without which it could not go on from the outputs. An owner of
        the former generation goes on until an output refuses it, so that readers have news.
        """
        first = epoch_of(self._generation.above + 1, 0)
        serves = self._generation.standing is Standing.SERVES
        is_wrong = serves and self._work.writes and self._entry != self._generation.entry
        if is_wrong and not self._is_renewing and self._work.follows(self._task, first):
            self._is_renewing = True
            if self._task is not None:
                self._task.wake()

    def leave(self) -> None:
        """Complete the batch, commit, store a checkpoint, and end.

        A task that is not live has nothing to complete.
        """
        self._following.cancel()
        is_live, self._is_following, self._is_leaving = self.health.is_live, False, True
        self._end_task(is_live=is_live)

    def drop(self) -> None:
        """End before the next effect: the partition has another owner."""
        self._following.cancel()
        self._is_following, self._is_leaving = False, True
        self._owning.cancel()

    async def ended(self) -> None:
        """Wait until it has stopped."""
        await self._following.ended()
        await self._owning.ended()

    async def _follow(self) -> None:
        """Follow until told to own; failures are reported, and the owner continues."""
        pauses = self._new_pauses()
        while self._is_following:
            pauses.begin()
            pauses.works()
            try:
                self._task = standby = self._work.standby()
                if standby is None:
                    self._is_cold = True  # its next owner restores
                    return
                await standby.follow()
                return
            except Exception as error:
                self._failed(error, 0)
                if not self._is_following:
                    self._failure = None  # the task that starts now is another attempt
            await self._clock.sleep(pauses.next_s() if self._is_following else 0)

    async def _own(self, since: int, *, is_handed_over: bool) -> None:
        """Run tasks, one after the other, until told to stop or until another owner has it."""
        self._is_giving_way = self._is_resuming = self._is_spent = False
        self._let_go()
        self._pauses, attempt = self._new_pauses(), 0
        while not (self._is_leaving or self._is_giving_way):
            self._pauses.begin()
            # Of another generation, whose owner goes on until this one opens the outputs.
            is_renewed, self._is_renewing = self._is_renewing, False
            is_handed_over = is_renewed or (is_handed_over and not attempt)
            try:
                await self._generation.begin()
                self._entry, first = self._generation.entry, since + self._generation.above
                self._epoch = epoch_of(first, attempt)
                await self._run(self._epoch, is_handed_over=is_handed_over)
            except Exception as error:
                if self._is_leaving:
                    return  # the next owner was faster
                if not self._is_giving_way:
                    self._failed(error, self._epoch or 0)
                if isinstance(error, FencedError) and error.epoch is not None:
                    # An owner outside the assignment exists: attempts below its epoch are in vain,
                    # unless it is of a generation that serves.
                    self._generation.doubt()
                    taken = error.epoch - epoch_of(since + self._generation.above, 0)
                    attempt = max(attempt, taken) if taken < ATTEMPTS_MAX - 1 else attempt
            if self._is_giving_way:
                break
            is_due = self._is_leaving or self._is_renewing
            await self._clock.sleep(0 if is_due else self._pauses.next_s())
            attempt += 1
            if attempt == ATTEMPTS_MAX and not (self._is_leaving or self._is_giving_way):
                self._is_spent = True  # a version that assigns it again brings further epochs
                self._let_go()
                return
        if not self._is_to_stop:
            await self._clock.sleep(PARK_S)
            self._task = None

    async def _run(self, epoch: int, *, is_handed_over: bool) -> None:
        """Run one task to its end: of the input, of the assignment, or by an error."""
        ownership = Ownership(
            epoch=epoch,
            is_next=lambda other: since_of(other) > since_of(epoch),
            ready=lambda: self._ready(is_handed_over=is_handed_over),
            is_handed_over=is_handed_over,
            is_demoted=lambda: self._is_giving_way or self._is_renewing,
            parks=lambda: (self._is_resuming or self._is_renewing) and not self._is_leaving,
            serving=self._generation.serving,
        )
        context = TaskContext(emit=self._on_event, stop=lambda: self._is_to_stop)
        async with self._work.owner(ownership, self._task, context) as task:
            self._task, self._report = task, task.report
            report = task.report
            try:
                await task.run()
            finally:
                self._taken_over()
                self._report = None
                self._events += report.events
                self._rows_out += report.rows_out

    def _let_go(self) -> None:
        """Drop a closed task, with all of its state."""
        if self._task is not None and self._task.state is TaskState.CLOSED:
            self._task = None

    @property
    def _is_to_stop(self) -> bool:
        """Whether the present task shall stop gracefully."""
        return self._is_leaving or self._is_resuming or self._is_renewing

    async def _ready(self, *, is_handed_over: bool) -> None:
        """Wait for one of the process's permits to take a partition over."""
        if is_handed_over:
            await self._turns.hand_overs.acquire()
            self._is_taking_over = True

    def _end_task(self, *, is_live: bool) -> None:
        if self._task is not None and is_live:
            self._task.wake()
        else:
            self._owning.cancel()

    def _on_event(self, event: Event) -> None:
        """Handle an event of a task, and pass it on."""
        self._demand.on_event(event)
        if isinstance(event, Stored):
            self._stored += 1
        if isinstance(event, Restored):
            self._taken_over()
            self._pauses.works()
        self._emit(event)

    def _taken_over(self) -> None:
        if self._is_taking_over:
            self._is_taking_over = False
            self._turns.hand_overs.release()

    def _failed(self, error: Exception, epoch: int) -> None:
        self._failure = f"{type(error).__name__}: {error}"
        self._emit(PartitionFailed(self._partition, epoch, error))

    def _new_pauses(self) -> Pauses:
        return Pauses(self._clock.monotonic_ns, PAUSE_MIN_S, PAUSE_MAX_S, steady_s=STEADY_S)
