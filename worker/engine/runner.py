"""Base of the runners of one partition: tasks, one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ripple.control.assignment import ATTEMPTS_MAX, epoch_of
from ripple.core.events import PartitionFailed, Restored, Stored
from ripple.storage.fenced import FencedError
from ripple.world.pauses import Pauses
from worker.handle import BackgroundJob, TaskHealth

if TYPE_CHECKING:
    from ripple.core.events import Event, Tell
    from ripple.task.report import Report
    from ripple.world.ports import Clock

PARK_S = 30.0
PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 30.0
# After so long live, a failure counts as a first one.
STEADY_S = 5.0


class Runner(ABC):
    """Runs one partition in this process; see TaskHandle.

    Each attempt to own it has its own epoch, since the outcome of a failed claim is unknown. A
    runner that has yielded makes no further attempt. The state of its last task is retained for a
    while: if the next owner fails, this process resumes from it.
    """

    def __init__(self, clock: Clock, partition: int, tell: Tell) -> None:
        """Do nothing yet. partition: of the assignment. tell: listener of its events."""
        self._clock = clock
        self._partition = partition
        self._tell = tell
        self._doing = BackgroundJob()
        self._report: Report | None = None  # of the running task
        self._is_following = self._is_leaving = False
        self._is_giving_way = self._is_resuming = False
        self._failure: str | None = None  # of the last attempt to own or to follow it
        self._pauses = self._new_pauses()
        self._epoch: int | None = None
        self._events = self._rows_out = self._stored = 0
        self._is_spent = False
        self._has_noted = False  # in flight: epochs tried since it was owned

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
        )

    def own(self, since: int, *, is_handed_over: bool = False) -> None:
        """Own it since a version, from the standby's state or a retained one."""
        self._is_following = False
        self._failure = None
        if self._is_giving_way:
            self._is_resuming = True
            if self.health.is_live:
                self._wake_life()
            else:
                self._doing.cancel()
        self._doing.begin(lambda: self._own(since, is_handed_over=is_handed_over))

    def yield_ownership(self) -> None:
        """Continue until the next owner has it; ends at once if it is not live."""
        self._is_following, self._is_giving_way = False, True
        if self._is_resuming or not self.health.is_live:
            self._doing.cancel()

    def leave(self) -> None:
        """Stop gracefully; a task that is not live has nothing to complete."""
        is_live, self._is_following, self._is_leaving = self.health.is_live, False, True
        if is_live:
            self._wake_life()
        else:
            self._doing.cancel()

    def drop(self) -> None:
        """Stop before the next effect."""
        self._is_following, self._is_leaving = False, True
        self._doing.cancel()

    async def ended(self) -> None:
        """Wait until it has stopped."""
        await self._doing.ended()

    @property
    def _is_to_stop(self) -> bool:
        """Whether the present task shall stop gracefully."""
        return self._is_leaving or self._is_resuming

    async def _own(self, since: int, *, is_handed_over: bool) -> None:
        """Run tasks, one after the other, until told to stop or until another owner has it."""
        self._is_giving_way = self._is_resuming = self._is_spent = False
        self._has_noted = False
        self._pauses, attempt = self._new_pauses(), 0
        while not (self._is_leaving or self._is_giving_way):
            self._pauses.begin()
            try:
                self._epoch = epoch_of(since, attempt)
                await self._live(self._epoch, is_handed_over=is_handed_over and not attempt)
            except Exception as error:
                if self._is_leaving:
                    return  # the next owner was faster
                if not self._is_giving_way:
                    self._failed(error, self._epoch or 0)
                if isinstance(error, FencedError) and error.epoch is not None:
                    # An owner outside the assignment exists: attempts below its epoch are in vain.
                    taken = error.epoch - epoch_of(since, 0)
                    attempt = max(attempt, taken) if taken < ATTEMPTS_MAX - 1 else attempt
            if self._is_giving_way:
                break
            await self._clock.sleep(0 if self._is_leaving else self._pauses.next_s())
            attempt += 1
            if attempt == ATTEMPTS_MAX and not (self._is_leaving or self._is_giving_way):
                self._is_spent = True  # a version that assigns it again brings further epochs
                return
        if not self._is_to_stop:
            await self._clock.sleep(PARK_S)
            self._forget()

    def _new_pauses(self) -> Pauses:
        return Pauses(self._clock.monotonic_ns, PAUSE_MIN_S, PAUSE_MAX_S, steady_s=STEADY_S)

    def _forget(self) -> None:  # noqa: B027 - a runner may retain nothing
        """Discard the state of the last task."""

    def _failed(self, error: Exception, epoch: int) -> None:
        self._failure = f"{type(error).__name__}: {error}"
        self._tell(PartitionFailed(self._partition, epoch, error))

    def _told(self, event: Event) -> None:
        """Handle an event of a task, and pass it on."""
        if isinstance(event, Stored):
            self._stored += 1
        if isinstance(event, Restored):
            self._pauses.works()
        self._tell(event)

    def _over(self, report: Report) -> None:
        """Count the results of a task that has ended."""
        self._report = None
        self._events += report.events
        self._rows_out += report.rows_out

    @property
    @abstractmethod
    def _behind(self) -> int | None:
        """How far a standby is behind its owner; see TaskHealth."""

    @abstractmethod
    async def _live(self, epoch: int, *, is_handed_over: bool) -> None:
        """Run one task to its end: of the input, of the assignment, or by an error."""

    @abstractmethod
    def _wake_life(self) -> None:
        """Wake the running task, so that it checks whether to stop."""
