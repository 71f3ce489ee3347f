"""The decisions of one coordinator: events in, instructions out; no clock, no chance, no I/O.

    step: take the event -> decide on the next version -> propose it when it is due

Its memory is a cache of the chain and of received messages, and may be lost at any moment. Pending
work is computed from it anew after each event, so a proposal that lost takes nothing with it.

Invariants: it proposes one version at a time, the one after the newest that it knows; versions
without a command are an interval apart; it evicts no worker that a fresh view hears, and none
before it has observed for as long as a silent worker takes to die; messages of a removed
incarnation change nothing.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.decisions import events as ev
from coordinator.decisions.checkpoint_triggers import CheckpointTriggers
from coordinator.decisions.commands import Command, Move
from coordinator.decisions.compatibility import misfit
from coordinator.decisions.failure_detector import FailureDetector
from coordinator.decisions.instructions import (
    Announce,
    Answer,
    Evict,
    Instruction,
    Postpone,
    Propose,
    ReadChain,
    ReadViews,
    Refuse,
    TriggerCheckpoint,
    WriteView,
)
from coordinator.decisions.join_queue import JoinQueue
from coordinator.decisions.limits import MS, Limits
from coordinator.decisions.pending_commands import PendingCommands
from coordinator.decisions.planning import Facts, next_version
from coordinator.decisions.progress import Progress
from coordinator.decisions.ring import point_of
from coordinator.decisions.scaling import Scaling, newest
from coordinator.decisions.views import Demands, HealthState, View, WorkerHealth
from ripple.control.assignment import Assignment, Candidate, Stage, empty
from ripple.control.assignment.bounds import Who
from ripple.control.rpc import membership_messages as msg
from ripple.world.ports import Guards, all_guards

_DECISIVE = (
    ev.Ticked,
    ev.ChainRead,
    msg.Exited,
    ev.StreamEnded,
    msg.Left,
)


class Coordinator:
    """The replica called ``replica``, a nonce of its process.

    All times are its own monotonic clock, in nanoseconds.
    """

    def __init__(
        self,
        replica: str,
        now_ns: int,
        limits: Limits | None = None,
        *,
        guards: Guards = all_guards,
    ) -> None:
        self.replica = replica
        self.limits = limits or Limits()
        self._guards = guards
        self.store = ""  # identity of the cluster's store, once known
        self.now: Assignment | None = None
        self.newest_number = 0
        self._is_readable = True
        self.detector = FailureDetector(replica, self.limits, now_ns, guards=guards)
        self.waiting = JoinQueue(self.limits)
        self.progress = Progress(self.limits, guards=guards)
        self.asked = PendingCommands(self.limits)
        self.triggers = CheckpointTriggers(replica, self.limits)
        self.scaling = Scaling(self.limits)
        self._left: set[Who] = set()
        self._since_ns: dict[Who, int] = {}
        self._version_ns = now_ns
        self._wanted_ns: int | None = None
        self._planned: tuple[tuple[int, bool, Facts], Assignment | None] | None = None
        self._proposed: int | None = None
        self._failed_ns: int | None = None  # when a proposal has failed
        self._ticked_ns = now_ns
        self._answered_ns: int | None = None
        self._wrote_ns: int | None = None
        self._looked_ns: int | None = None

    def step(self, event: ev.Event, now_ns: int) -> list[Instruction]:
        """Take an event; return the instructions that follow, in order."""
        done = self._take(event, now_ns)
        # Changes by heartbeats and views can wait for the next tick.
        if isinstance(event, _DECISIVE):
            done += self._decide(now_ns)
        return done

    def verdicts(self, now_ns: int) -> dict[Who, WorkerHealth]:
        """Return the health of each member."""
        return self.detector.verdicts(now_ns)

    def view(self, now_ns: int) -> View:
        """Return its own view, with the next number."""
        return replace(self.detector.view(now_ns), demands=self._demands)

    @property
    def _demands(self) -> Demands:
        reports = self.progress.reports
        return tuple((who, reports[who].demand) for who in sorted(reports))

    def _take(self, event: ev.Event, now_ns: int) -> list[Instruction]:
        match event:
            case ev.ChainRead(assignment, newest_number):
                return self._on_chain(assignment, newest_number, now_ns)
            case ev.Ticked():
                return self._on_tick(now_ns)
            case msg.Register(candidate):
                return self._on_registered(candidate, now_ns)
            case ev.Withdrawn(nonce):
                self.waiting.gone(nonce)
            case ev.ViewHeard() | ev.ViewsRead() | ev.ViewWritten():
                self._on_views(event, now_ns)
            case ev.ProposalEnded():
                return self._on_proposal_ended(now_ns)
            case ev.Commanded(request, command):
                return self._on_command(request, command, now_ns)
            case _:
                return self._on_member(event, now_ns)
        return []

    def _on_views(self, event: ev.ViewHeard | ev.ViewsRead | ev.ViewWritten, now_ns: int) -> None:
        match event:
            case ev.ViewHeard(view):
                self._answered_ns = now_ns
                self.detector.other(view, now_ns)
            case ev.ViewsRead(views):
                for view in views:
                    self.detector.found(view, now_ns)
                self.detector.looked(now_ns)
            case ev.ViewWritten():
                self.detector.wrote(now_ns)

    def _on_proposal_ended(self, now_ns: int) -> list[Instruction]:
        """Continue; after a failed proposal, leave the store alone for a while."""
        is_unread = self._proposed is not None and self.newest_number < self._proposed
        self._proposed = None
        if not is_unread:
            return []
        self._version_ns = self._failed_ns = now_ns
        return [ReadChain()]

    def _on_member(
        self,
        event: msg.Heartbeat | msg.Exited | ev.StreamEnded | msg.Left | msg.Checkpointed,
        now_ns: int,
    ) -> list[Instruction]:
        """Handle a member's message; a removed one is told so and changes nothing."""
        who, now = event.who, self.now
        if now is None:
            return []
        if not now.has(*who):
            if who[1] > self.newest_number:
                return [ReadChain()]
            if isinstance(event, msg.Heartbeat):
                return [Evict(who, f"version {self.newest_number} is without it")]
            return []
        match event:
            case msg.Heartbeat():
                self.detector.heard(who, now_ns)
                self.progress.reported(event, now, now_ns)
            case msg.Exited():
                self.detector.heard(who, now_ns)
                self.progress.exited(event, now)
            case ev.StreamEnded():
                self.detector.ended(who, now_ns)
            case msg.Left():
                self._left.add(who)
            case msg.Checkpointed():
                self.triggers.stored(who, now_ns)
        return []

    def _on_chain(
        self, assignment: Assignment | None, newest_number: int, now_ns: int
    ) -> list[Instruction]:
        """Continue with the chain as read; a reading older than a known version is ignored."""
        read = assignment or empty([Stage("main", self.limits.partitions)])
        if self.now is not None and newest_number < self.newest_number:
            return []
        self._is_readable = read.version == newest_number
        if self.now is not None and newest_number == self.newest_number:
            return [*self.asked.answers(self.now)]
        before = self.now or empty(read.stages)
        # A version that was readable once stays known, even if it cannot be read any more.
        self.now = read if self.now is None or read.version > before.version else before
        self.newest_number = newest_number
        self._version_ns, self._wanted_ns = now_ns, None
        done = self._members_changed(before, self.now, now_ns)
        self.progress.changed(before, self.now)
        for candidate in self.waiting.candidates:
            done += self._check_fit(candidate, now_ns)
        return [Announce(self.now), *done, *self.asked.answers(self.now)]

    def _members_changed(
        self, before: Assignment, after: Assignment, now_ns: int
    ) -> list[Instruction]:
        done: list[Instruction] = []
        was, now = _who(before), _who(after)
        for who in was:
            if after.has(*who):
                continue
            is_orderly = who in self._left or before.by_id[who[0]].is_leaving
            lived_ns = now_ns - self._since_ns.pop(who, now_ns)
            # One that already asks again was restarted: no flap, if its membership lasted for a
            # while.
            is_anew = who[0] in self.waiting.ids and lived_ns >= self.limits.rejoin_step_ms * MS
            if not (is_orderly or is_anew):
                self.waiting.evicted(who[0], lived_ns, now_ns)
            self._left.discard(who)
            done.append(Evict(who, f"version {after.version} is without it: {after.cause}"))
        for who in now:
            self._since_ns.setdefault(who, now_ns)
        for member in after.members:
            self.waiting.gone(member.nonce)
        self.detector.members_are(now, now_ns)
        self.triggers.members_are(now, now_ns)
        return done

    def _on_registered(self, candidate: Candidate, now_ns: int) -> list[Instruction]:
        if self.now is None:
            return []
        if any(member.nonce == candidate.nonce for member in self.now.members):
            return [Announce(self.now)]
        refused = self._check_fit(candidate, now_ns)
        if refused:
            return refused
        problem = self.waiting.asks(candidate, now_ns) or self._why_taken(candidate, now_ns)
        if problem is not None:
            return [Refuse(candidate.nonce, problem)]
        wait_ms = self.waiting.wait_ms(candidate.id, now_ns)
        if wait_ms:
            reason = f"{candidate.id} was evicted several times in a row"
            return [Postpone(candidate.nonce, wait_ms, reason)]
        return []

    def _why_taken(self, candidate: Candidate, now_ns: int) -> str | None:
        """Return why an id will not be free soon: a healthy member has it.

        A member that has gone has it too, until that is detected; so a candidate must have waited a
        while.
        """
        assert self.now is not None
        member = self.now.by_id.get(candidate.id)
        limit_ns = self.limits.suspected_after_ms * MS
        if member is None or member.is_leaving:
            return None
        if self.waiting.waits_ns(candidate.nonce, now_ns) < limit_ns:
            return None
        verdict = self.verdicts(now_ns)[member.id, member.incarnation]
        if verdict.standing is not HealthState.ACTIVE or not verdict.is_heard:
            return None
        return (
            f"{member.id} is a member as incarnation {member.incarnation}, and is well: "
            "is an id given twice?"
        )

    def _check_fit(self, candidate: Candidate, now_ns: int) -> list[Instruction]:
        """Refuse a worker that would compute something else than the members do."""
        assert self.now is not None
        code = self.now.members[0].code if self.now.members else candidate.code
        problem = misfit(candidate, code, self.now, self.store)
        if problem is None:
            return []
        self.waiting.refuse(candidate, problem, now_ns)
        return [Refuse(candidate.nonce, problem)]

    def _on_command(self, request: str, command: Command, now_ns: int) -> list[Instruction]:
        if self.now is None:
            return [Answer(request, None, "the store has not been read yet: try again")]
        if isinstance(command, Move):
            self.progress.retry(command.partition)
        # The known version may be old: the command is judged by the next reading.
        return [*self.asked.add(request, command, now_ns), ReadChain()]

    def _on_tick(self, now_ns: int) -> list[Instruction]:
        if now_ns - self._ticked_ns > self.limits.loop_late_max_ms * MS:
            self.detector.late(now_ns)
        self._ticked_ns = now_ns
        self.waiting.forget_silent(now_ns)
        self.progress.forget_old(now_ns)
        verdicts = self.verdicts(now_ns)
        if self.now is not None:
            own = (tuple(self.detector.sightings(now_ns).items()), self._demands)
            heard = ((view.sightings, view.demands) for view in self.detector.fresh(now_ns))
            self.scaling.look(self.now, newest((own, *heard)), now_ns)
        is_somebody_silent = any(v.standing is not HealthState.ACTIVE for v in verdicts.values())
        done: list[Instruction] = [*self.asked.given_up(now_ns)]
        # While it cannot judge yet it reads views, too: those of replicas that died before it
        # started are old by then, and vouch for no worker later.
        looks = is_somebody_silent or not self.detector.has_observed(now_ns)
        is_alone = self._is_due(self._answered_ns, 2 * self.limits.view_interval_ms, now_ns)
        # Without known peers its views have no reader. A peer writes a view before it judges, at
        # its start and when it misses a worker, and so is discovered in time.
        is_only_one = is_alone and not looks and not self.detector.has_others
        limits = self.limits
        look_ms = limits.heartbeat_interval_ms if looks else limits.view_interval_ms
        if (looks or is_only_one) and self._is_due(self._looked_ns, look_ms, now_ns):
            self._looked_ns = now_ns
            done.append(ReadViews())
        writes = is_somebody_silent or (is_alone and not is_only_one)
        if writes and self._is_due(self._wrote_ns, limits.view_interval_ms, now_ns):
            self._wrote_ns = now_ns
            done.append(WriteView(self.view(now_ns)))
        active = [who for who, v in verdicts.items() if v.standing is HealthState.ACTIVE]
        others = [view.replica for view in self.detector.fresh(now_ns)]
        due = self.triggers.due(active, others, now_ns)
        return done + [TriggerCheckpoint(who) for who in due]

    def _is_due(self, at_ns: int | None, interval_ms: int, now_ns: int) -> bool:
        return at_ns is None or now_ns - at_ns >= interval_ms * MS

    def _decide(self, now_ns: int) -> list[Instruction]:
        """Propose changes once they are due."""
        if self.now is None or self._proposed is not None:
            return []
        after = self._next_version(self.now, self._facts(now_ns))
        if after is None:
            self._wanted_ns = None
            return []
        if self._wanted_ns is None:
            self._wanted_ns = now_ns
        is_asked_for = self.asked.is_answered_by(after, self.now)
        if not is_asked_for and now_ns < self._due_ns(self._wanted_ns):
            return []
        if not self._is_due(self._failed_ns, self.limits.version_interval_ms, now_ns):
            return []
        self._proposed = after.version
        return [Propose(after)]

    def _next_version(self, now: Assignment, facts: Facts) -> Assignment | None:
        """Return the next version; while nothing is new, it is the same."""
        known = (self.newest_number, self._is_readable, facts)
        if self._planned is None or self._planned[0] != known:
            after = next_version(
                now,
                self.newest_number,
                facts,
                self.limits,
                is_readable=self._is_readable,
                guards=self._guards,
            )
            self._planned = (known, after)
        return self._planned[1]

    def _facts(self, now_ns: int) -> Facts:
        """Return the known facts and due decisions."""
        now = self.now
        assert now is not None
        verdicts = self.verdicts(now_ns)
        gone = {
            worker: verdicts[worker, incarnation].why
            for worker, incarnation in self.detector.evictable(verdicts, now_ns, self.waiting.ids)
        }
        gone |= {worker: "it has left" for worker, _ in sorted(self._left)}
        return Facts(
            gone=gone,
            joining=self.waiting.due(now.by_id.keys() - gone.keys(), now_ns),
            starts=self.progress.starts,
            inputs=self.progress.inputs,
            live=self.progress.live(now),
            warm=self.progress.warm,
            failed=self.progress.failed,
            blocked=frozenset(self.progress.failed),
            commands=self.asked.commands,
        )

    def _due_ns(self, wanted_ns: int) -> int:
        """Return the time from which a version without a command may come.

        Replicas want the same at the same moment; each adds its own jitter.
        """
        if not self._guards("version_interval"):
            return wanted_ns
        jitter = point_of(f"{self.replica} {self.newest_number}") % (self.limits.jitter_ms * MS)
        return max(wanted_ns + jitter, self._version_ns + self.limits.version_interval_ms * MS)


def _who(assignment: Assignment) -> list[Who]:
    return [(member.id, member.incarnation) for member in assignment.members]
