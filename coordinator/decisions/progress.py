"""Progress of members: their processes and their moves, as they report them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from coordinator.decisions.commands import REASON_LENGTH_MAX
from coordinator.decisions.limits import MS, Limits
from ripple.control.assignment import Assignment, Phase, worker_of
from ripple.world.ports import Guards, all_guards

if TYPE_CHECKING:
    from ripple.control.assignment import MoveFailed, Report
    from ripple.control.assignment.bounds import Who
    from ripple.control.rpc.membership_messages import Exited, Heartbeat

CAUGHT_UP_BEHIND = 1
CAUGHT_UP_TIMES = 2

Moving = tuple[int, str]  # a partition, and the target of its move


class Progress:
    """The newest report of each member, and their merged facts.

    Invariant: it holds members and present moves only; and, for a while, moves that have failed.
    """

    def __init__(self, limits: Limits, *, guards: Guards = all_guards) -> None:
        self._limits = limits
        self._guards = guards
        self.reports: dict[Who, Report] = {}
        self.caught_up: Counter[Moving] = Counter()
        self._starts: dict[Who, tuple[int, ...]] = {}
        self._failed: dict[Moving, tuple[str, int]] = {}

    def reported(self, beat: Heartbeat, now: Assignment, now_ns: int) -> None:
        """Take a member's report."""
        report = self.reports[beat.who] = beat.report
        self._started(beat.who, report.starts, now)
        for follower in report.followers:
            moving = (follower.partition, follower.process)
            if self._is_on_its_way(moving, beat.who, now) is Phase.WARMING:
                is_near = follower.behind <= CAUGHT_UP_BEHIND
                self.caught_up[moving] = self.caught_up[moving] + 1 if is_near else 0
        for failure in report.failed:
            self._fail(failure, beat.who, now, now_ns)

    def exited(self, event: Exited, now: Assignment) -> None:
        """Note that a process of a member is being restarted."""
        known = now.by_id[event.who[0]].starts
        if 0 <= event.slot < len(known):
            starts = list(known)
            starts[event.slot] = event.start + 1
            self._started(event.who, tuple(starts), now)

    def changed(self, before: Assignment, now: Assignment) -> None:
        """Continue with another version."""
        members = {(member.id, member.incarnation) for member in now.members}
        self.reports = {who: said for who, said in self.reports.items() if who in members}
        self._starts = {who: starts for who, starts in self._starts.items() if who in members}
        for moving in list(self.caught_up):
            partition, process = moving
            is_same = before.start_of(process) == now.start_of(process)
            if now.shares[partition].next != process or not is_same:
                del self.caught_up[moving]

    def retry(self, partition: int) -> None:
        """Allow a partition to move again after a recent failure."""
        self._failed = {
            moving: why for moving, why in self._failed.items() if moving[0] != partition
        }

    def forget_old(self, now_ns: int) -> None:
        """Allow moves again that have failed for long enough."""
        for moving, (_, at_ns) in list(self._failed.items()):
            if now_ns - at_ns >= self._limits.move_retry_ms * MS:
                del self._failed[moving]

    @property
    def starts(self) -> dict[str, tuple[int, ...]]:
        """How often processes were restarted, by worker."""
        return {worker: starts for (worker, _), starts in self._starts.items()}

    @property
    def inputs(self) -> dict[str, int]:
        """Partitions of inputs: the highest number that any member reports."""
        found: dict[str, int] = {}
        for report in self.reports.values():
            for name, count in report.inputs:
                found[name] = max(count, found.get(name, 0))
        return found

    @property
    def warm(self) -> frozenset[Moving]:
        """The standbys that were near enough, often enough in a row."""
        times = CAUGHT_UP_TIMES if self._guards("caught_up_twice") else 0
        return frozenset(moving for moving, count in self.caught_up.items() if count >= times)

    @property
    def failed(self) -> dict[Moving, str]:
        """The moves that have failed lately, and why."""
        return {moving: why for moving, (why, _) in self._failed.items()}

    def live(self, now: Assignment) -> frozenset[tuple[int, int]]:
        """Return the partitions that their owners have reported to be live, with since when."""
        return frozenset(
            (partition, since)
            for (worker, _), report in self.reports.items()
            for partition, since in report.live
            if self._is_share_of(worker, partition, since, now)
        )

    def _is_share_of(self, worker: str, partition: int, since: int, now: Assignment) -> bool:
        if not 0 <= partition < len(now.shares):
            return False
        share = now.shares[partition]
        return share.owner is not None and (worker_of(share.owner), share.since) == (worker, since)

    def _started(self, who: Who, starts: tuple[int, ...], now: Assignment) -> None:
        """Note starts; a lower count is from a report that was overtaken."""
        known = self._starts.get(who, now.by_id[who[0]].starts)
        if len(starts) == len(known):
            self._starts[who] = tuple(map(max, known, starts))

    def _is_on_its_way(self, moving: Moving, who: Who, now: Assignment) -> Phase | None:
        """Return the phase in which a process of ``who`` is to get a partition, None if none."""
        partition, process = moving
        if worker_of(process) != who[0] or not 0 <= partition < len(now.shares):
            return None
        share = now.shares[partition]
        return share.phase if share.target == process and share.phase is not Phase.OWNED else None

    def _fail(self, failure: MoveFailed, who: Who, now: Assignment, now_ns: int) -> None:
        moving = (failure.partition, failure.process)
        if self._is_on_its_way(moving, who, now) is not None and moving not in self._failed:
            self._failed[moving] = (failure.reason[:REASON_LENGTH_MAX], now_ns)
