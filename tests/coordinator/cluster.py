"""A cluster in virtual time: workers that do as they are told, coordinators, and what goes wrong.

The coordinators are the real ones, their chain is a list; everything else here is as plain as it
can be, and judges them by what it has itself delivered.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from coordinator.decisions import commands as cmd
from coordinator.decisions import events as ev
from coordinator.decisions import instructions as ins
from coordinator.decisions.limits import MS, Limits
from coordinator.decisions.state import Coordinator
from coordinator.decisions.views import TRANSITIONS, HealthState, View
from ripple.control.assignment import (
    Assignment,
    AssignmentError,
    Candidate,
    Follower,
    MoveFailed,
    Phase,
    Report,
    Share,
    Stage,
    empty,
    worker_of,
)
from ripple.control.assignment.bounds import Who
from ripple.control.assignment.rules import check_follows
from ripple.control.rpc import membership_messages as msg
from ripple.world.ports import Guards, all_guards
from tests.control.assignment.examples import CODE, member

if TYPE_CHECKING:
    from collections.abc import Iterable

STEP_MS = 250
STEP_NS = STEP_MS * MS
BEAT_STEPS = 4
LIMITS = Limits(partitions=8)
SETTLE_SECONDS = 480
RESTED_SECONDS = 70


@dataclass
class Worker:
    """One worker: a supervisor with its processes."""

    id: str
    processes: int
    is_running: bool = False
    paused_until: int = 0
    nonces: int = 0
    incarnation: int | None = None
    starts: list[int] = field(default_factory=list)
    seen: Assignment | None = None
    refused: list[str] = field(default_factory=list)
    # Since which step it owns or follows what.
    owning: dict[tuple[int, int], int] = field(default_factory=dict)
    following: dict[tuple[int, str], int] = field(default_factory=dict)
    fails_moves: bool = False
    is_stopping: bool = False

    @property
    def nonce(self) -> str:
        return f"{self.id} {self.nonces}"

    @property
    def who(self) -> Who:
        assert self.incarnation is not None
        return self.id, self.incarnation

    def forget(self) -> None:
        self.nonces += 1
        self.incarnation = None
        self.owning.clear()
        self.following.clear()

    def obey(self, version: Assignment, step: int) -> None:
        """Go by a version; what older ones said does not count any more."""
        if self.seen is not None and version.version <= self.seen.version:
            return
        self.seen = version
        mine = version.by_id.get(self.id)
        if mine is None or mine.nonce != self.nonce:
            if self.incarnation is not None:
                self.forget()
            return
        if self.incarnation != mine.incarnation:
            self.incarnation = mine.incarnation
            self.owning.clear()
            self.following.clear()
        owning, following = {}, {}
        for partition, share in enumerate(version.shares):
            if share.owner is not None and worker_of(share.owner) == self.id:
                key = (partition, share.since)
                owning[key] = self.owning.get(key, step)
            if share.next is not None and worker_of(share.next) == self.id:
                moving = (partition, share.next)
                following[moving] = self.following.get(moving, step)
        self.owning, self.following = owning, following

    def beat(self, step: int) -> msg.Heartbeat:
        followers = () if self.fails_moves else tuple(self.following.items())
        failed = tuple(self.following) if self.fails_moves else ()
        report = Report(
            0.5,
            tuple(self.starts),
            frozenset(key for key, since in self.owning.items() if step - since >= 3),
            tuple(Follower(p, process, max(0, 8 - (step - at))) for (p, process), at in followers),
            tuple(MoveFailed(p, process, "its digest differs") for p, process in failed),
        )
        return msg.Heartbeat(self.who, report)


@dataclass
class Replica:
    """One coordinator, and what was delivered to it."""

    name: str
    state: Coordinator
    has_store: bool = True
    stalled_until: int = 0
    boots: int = 0
    queue: list[ev.Event] = field(default_factory=list)
    proposals: list[tuple[int, Assignment]] = field(default_factory=list)
    # What it could know: when it heard whom, and the views that came.
    began_ns: int = 0
    heard_ns: dict[Who, int] = field(default_factory=dict)
    ended_ns: dict[Who, int] = field(default_factory=dict)
    asked: dict[str, tuple[str, int]] = field(default_factory=dict)  # by nonce: which id, and when
    views: dict[str, tuple[int, View]] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    served_ns: int = 0
    known_ns: dict[Who, int] = field(default_factory=dict)
    standings: dict[Who, HealthState] = field(default_factory=dict)


class Cluster:
    """Workers w0, w1 … and two coordinators. ``apply`` does what a test has drawn."""

    def __init__(
        self,
        *,
        workers: int = 4,
        limits: Limits = LIMITS,
        guards: Guards = all_guards,
        processes: int = 1,
    ) -> None:
        self.limits = limits
        self.guards = guards
        self.stages = (Stage("main", limits.partitions),)
        self.step_number = 0
        self.chain: list[Assignment] = [empty(self.stages)]
        self.proposed_ns: list[int] = [-(10**12)]
        self.commanded: set[int] = set()
        self.damaged: set[int] = set()
        self.removed: set[Who] = set()
        self.answers: dict[str, ins.Answer] = {}
        self.triggers: Counter[str] = Counter()
        self.stored_views: dict[str, View] = {}
        self.workers = [Worker(f"w{n}", processes) for n in range(workers)]
        self.cut: set[tuple[str, str]] = set()
        self.loses_replies = 0
        self.replicas = [self._replica(name, 0) for name in ("c0", "c1")]
        self.requests = 0

    @property
    def now_ns(self) -> int:
        return self.step_number * STEP_NS

    @property
    def newest(self) -> Assignment:
        return self.chain[-1]

    # What a test does.

    def start(self, *numbers: int) -> None:
        for number in numbers:
            worker = self.workers[number]
            if not worker.is_running:
                worker.is_running, worker.is_stopping = True, False
                worker.paused_until = 0
                worker.forget()
                worker.seen = None
                worker.starts = [0] * worker.processes

    def kill(self, number: int) -> None:
        worker = self.workers[number]
        if worker.is_running:
            worker.is_running = False
            for replica in self.replicas:
                self._ended(worker, replica)

    def leave(self, number: int) -> None:
        """Stop a worker in good order: it has nothing any more when it says so."""
        worker = self.workers[number]
        if worker.is_running and worker.incarnation is not None:
            for replica in self.replicas:
                if self._connected(worker.id, replica.name):
                    replica.left.add(worker.id)
                    replica.queue.append(msg.Left(worker.who))
            self.kill(number)

    def exit_child(self, number: int) -> None:
        worker = self.workers[number]
        if worker.is_running and worker.incarnation is not None:
            slot = self.step_number % worker.processes
            for replica in self.replicas:
                if self._connected(worker.id, replica.name):
                    replica.queue.append(msg.Exited(worker.who, slot, worker.starts[slot]))
            worker.starts[slot] += 1

    def restart_replica(self, number: int) -> None:
        old = self.replicas[number]
        self.replicas[number] = self._replica(old.name, old.boots + 1)
        self.replicas[number].has_store = old.has_store

    def command(self, command: cmd.Command, number: int = 0) -> str:
        self.requests += 1
        request = f"r{self.requests}"
        self.replicas[number].queue.append(ev.Commanded(request, command))
        return request

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 1000 / STEP_MS)):
            self.step()

    def heal(self) -> None:
        """Let all go well from now on: workers run, and nothing is frozen, drained or pinned."""
        self.cut.clear()
        self.loses_replies = 0
        for worker in self.workers:
            worker.fails_moves = False
            worker.paused_until = 0
        for replica in self.replicas:
            replica.has_store = True
            replica.stalled_until = 0

    # What happens.

    def step(self) -> None:
        self.step_number += 1
        for index, worker in enumerate(self.workers):
            if worker.is_running and self.step_number >= worker.paused_until:
                self._live(worker, index)
        for replica in self.replicas:
            if self.step_number >= replica.stalled_until:
                self._serve(replica)

    def _live(self, worker: Worker, index: int) -> None:
        if self.step_number % 20 == index:  # whoever hears of no coordinator reads the chain
            self._show(worker)
        if self.step_number % BEAT_STEPS != index % BEAT_STEPS:
            return
        for replica in self.replicas:
            if self._connected(worker.id, replica.name):
                if worker.incarnation is None:
                    asked = Candidate(
                        id=worker.id,
                        nonce=worker.nonce,
                        processes=worker.processes,
                        code=CODE,
                        inputs=(("trades", self.limits.partitions),),
                    )
                    replica.queue.append(msg.Register(asked))
                else:
                    replica.queue.append(worker.beat(self.step_number))

    def _show(self, worker: Worker) -> None:
        if self.newest.version and self.newest.version not in self.damaged:
            worker.obey(self.newest, self.step_number)

    def _serve(self, replica: Replica) -> None:
        if self.now_ns - replica.served_ns > self.limits.loop_late_max_ms * MS:
            replica.began_ns = self.now_ns
        replica.served_ns = self.now_ns
        if replica.state.now is None or self.step_number % 20 == 0:
            self._read_chain(replica)
        for at, version in list(replica.proposals):
            if self.step_number >= at:
                replica.proposals.remove((at, version))
                self._propose(replica, version)
        for other in self.replicas:
            is_due = other is not replica and self.step_number % BEAT_STEPS == 0
            if is_due and self.step_number >= other.stalled_until and not self._is_cut():
                view = other.state.detector.view(self.now_ns)
                self._saw(replica, view)
                self._emit(replica, ev.ViewHeard(view))
        self._emit(replica, ev.Ticked())
        queue, replica.queue = replica.queue, []
        for event in queue:
            self._note(replica, event)
            self._emit(replica, event)

    def _note(self, replica: Replica, event: ev.Event) -> None:
        if isinstance(event, msg.Heartbeat | msg.Exited):
            replica.heard_ns[event.who] = self.now_ns
            replica.ended_ns.pop(event.who, None)
        elif isinstance(event, msg.Register):
            replica.asked[event.candidate.nonce] = event.candidate.id, self.now_ns
        elif isinstance(event, ev.Withdrawn):
            replica.asked.pop(event.nonce, None)
        elif isinstance(event, ev.StreamEnded) and event.who not in replica.ended_ns:
            heard_ns = replica.heard_ns.get(event.who, replica.known_ns.get(event.who, self.now_ns))
            silence_ns = (self.limits.dead_after_ms - self.limits.ended_after_ms) * MS
            replica.ended_ns[event.who] = self.now_ns
            replica.heard_ns[event.who] = min(self.now_ns, heard_ns + silence_ns)

    def _saw(self, replica: Replica, view: View) -> None:
        known = replica.views.get(view.replica)
        if known is None or known[1].number < view.number:
            replica.views[view.replica] = (self.now_ns, view)

    def _emit(self, replica: Replica, event: ev.Event) -> None:
        before = replica.state.now
        instructions = replica.state.step(event, self.now_ns)
        # Judged by what was known then: to do the first may tell it more.
        for instruction in instructions:
            if isinstance(instruction, ins.Propose):
                self._judge_proposal(replica, instruction.assignment)
        for instruction in instructions:
            self._do(replica, instruction)
        after = replica.state.now
        for one in after.members if after is not None else ():
            replica.known_ns.setdefault((one.id, one.incarnation), self.now_ns)
        if before is not None and after is not None:
            assert after.version >= before.version, "a coordinator has gone back"
        if isinstance(event, ev.Ticked):
            self._judge_standings(replica)

    def _do(self, replica: Replica, instruction: ins.Instruction) -> None:  # noqa: C901, PLR0912 - a table
        match instruction:
            case ins.Propose(version):
                # It takes a while, in which others propose too.
                delay = 1 + self.step_number % 3
                replica.proposals.append((self.step_number + delay, version))
            case ins.ReadChain():
                self._read_chain(replica)
            case ins.ReadViews() if replica.has_store:
                views = tuple(v for _, v in sorted(self.stored_views.items()))
                for view in views:
                    self._saw(replica, view)
                self._emit(replica, ev.ViewsRead(views))
            case ins.WriteView(view) if replica.has_store:
                self.stored_views[replica.name] = view
                self._emit(replica, ev.ViewWritten())
            case ins.Announce(version):
                for worker in self.workers:
                    if self._reaches(worker, replica) and version.version not in self.damaged:
                        worker.obey(version, self.step_number)
            case ins.Evict(who):
                for worker in self.workers:
                    if self._reaches(worker, replica) and (worker.id, worker.incarnation) == who:
                        worker.forget()
            case ins.Answer(request):
                self.answers[request] = instruction
            case ins.TriggerCheckpoint(who):
                self.triggers[who[0]] += 1
                for one in self.replicas:
                    one.queue.append(msg.Checkpointed(who))
            case ins.Refuse(nonce, reason):
                for worker in self.workers:
                    if worker.nonce == nonce:
                        worker.refused.append(reason)

    def _propose(self, replica: Replica, version: Assignment) -> None:
        if replica.has_store:
            if version.version == self.newest.version + 1:
                self._add(version, replica)
            if self.loses_replies:
                self.loses_replies -= 1
            else:
                self._read_chain(replica)
        self._emit(replica, ev.ProposalEnded())

    def _read_chain(self, replica: Replica) -> None:
        if replica.has_store:
            readable = [v for v in self.chain if v.version not in self.damaged]
            self._emit(replica, ev.ChainRead(readable[-1], self.newest.version))

    def _ended(self, worker: Worker, replica: Replica) -> None:
        if self._connected(worker.id, replica.name):
            if worker.incarnation is None:
                replica.queue.append(ev.Withdrawn(worker.nonce))
            else:
                replica.queue.append(ev.StreamEnded(worker.who))

    def _connected(self, one: str, other: str) -> bool:
        return (one, other) not in self.cut

    def _is_cut(self) -> bool:
        return ("c0", "c1") in self.cut

    def _reaches(self, worker: Worker, replica: Replica) -> bool:
        return (
            worker.is_running
            and self.step_number >= worker.paused_until
            and self._connected(worker.id, replica.name)
        )

    def _replica(self, name: str, boots: int) -> Replica:
        nonce = f"{name} boot {boots}"
        state = Coordinator(nonce, self.now_ns, self.limits, guards=self.guards)
        return Replica(name, state, boots=boots, began_ns=self.now_ns, served_ns=self.now_ns)

    # What must hold.

    def _add(self, version: Assignment, replica: Replica) -> None:
        readable = [v for v in self.chain if v.version not in self.damaged]
        is_anew = version.version - 1 in self.damaged
        try:
            check_follows(readable[-1], version)
        except AssignmentError as error:
            if is_anew and replica.state.newest_number == self.newest.version:
                return  # it could read once what nobody can any more
            raise AssertionError(str(error)) from error
        members = {(member.id, member.incarnation) for member in version.members}
        assert not members & self.removed, "an evicted incarnation has come back"
        for before in self.chain[-1:]:
            was = {(member.id, member.incarnation) for member in before.members}
            self.removed |= was - members
        self._judge_moves(version)
        assert version.cause, "nobody knows why"
        is_commanded = any(
            not cmd.is_done(c, readable[-1]) and cmd.is_done(c, version)
            for c in replica.state.asked.commands
        )
        if not is_anew and not is_commanded:
            apart_ms = (self.now_ns - self.proposed_ns[-1]) // MS
            assert apart_ms >= self.limits.version_interval_ms, f"{apart_ms} ms apart"
        self.proposed_ns.append(self.now_ns)
        self.chain.append(version)

    def _judge_moves(self, version: Assignment) -> None:
        moving = [share for share in version.shares if share.phase is not Phase.OWNED]
        targets = Counter(share.target for share in moving)
        leaving = {one.id for one in version.members if one.is_leaving}
        before = self.chain[-1].shares if self.chain else version.shares
        for was, share in zip(before, version.shares, strict=True):
            if share.next is None or share.next == was.next:
                continue
            if worker_of(share.owner or "") in leaving:
                at_most = self.limits.moves_away_per_target
            else:
                at_most, most = self.limits.moves_per_target, self.limits.moves_of(len(before))
                assert len(moving) <= most, f"{len(moving)} moves are under way"
            assert targets[share.target] <= at_most, "at one target"
        if version.frozen is None and any(not member.is_leaving for member in version.members):
            assert all(share.owner is not None for share in version.shares), "nobody's"

    def _judge_standings(self, replica: Replica) -> None:
        seen = {who: v.standing for who, v in replica.state.verdicts(self.now_ns).items()}
        for who in replica.standings.keys() - seen.keys():
            seen[who] = HealthState.REMOVED
        for who, standing in seen.items():
            before = replica.standings.get(who, standing)
            assert standing is before or standing in TRANSITIONS[before], (who, before, standing)
        replica.standings = seen

    def _judge_proposal(self, replica: Replica, version: Assignment) -> None:
        """Judge evictions by what was delivered to who proposes them."""
        base = replica.state.now
        assert base is not None
        if version.version != base.version + 1 or base.version in self.damaged:
            return  # it is lost already, or all is given anew
        members = [(member.id, member.incarnation) for member in base.members]
        evicted = [who for who in members if not version.has(*who) and who[0] not in replica.left]
        if not evicted:
            return
        dead_ns = self.limits.dead_after_ms * MS
        assert self.now_ns - replica.began_ns >= dead_ns, "it has not observed for long enough"
        silent = {who: self._silent_ns(replica, who) for who in members}
        for who in evicted:
            for name, silent_ns, has_ended in silent[who]:
                patience_ms = self.limits.ended_after_ms if has_ended else self.limits.dead_after_ms
                assert silent_ns >= patience_ms * MS, f"{who} is evicted though {name} hears it"
        returned = {
            worker for worker, at_ns in replica.asked.values() if self.now_ns - at_ns < dead_ns
        }
        quiet = [
            who
            for who, heard in silent.items()
            if min(each[1] for each in heard) >= self.limits.suspected_after_ms * MS
            and who[0] not in returned
        ]
        if len(quiet) >= self.limits.mass_silence_members and 3 * len(quiet) > len(members):
            for who in (who for who in evicted if who[0] not in returned):
                least_ns = min(each[1] for each in silent[who])
                assert least_ns >= self.limits.mass_silence_ms * MS, "evicted with many others"

    def _silent_ns(self, replica: Replica, who: Who) -> list[tuple[str, int, bool]]:
        """Return for how long each view that counts has not heard a worker, and if it has ended."""
        heard_ns = replica.heard_ns.get(who, replica.known_ns[who])
        found = [(replica.state.replica, self.now_ns - heard_ns, who in replica.ended_ns)]
        for name, (at_ns, view) in replica.views.items():
            is_fresh = self.now_ns - at_ns <= self.limits.view_fresh_ms * MS
            sighting = dict(view.sightings).get(who)
            if name == replica.state.replica or not is_fresh or sighting is None:
                continue
            if sighting.was_heard or sighting.silent_ns >= self.limits.dead_after_ms * MS:
                found.append((name, sighting.silent_ns, sighting.has_ended))
        return found

    def is_settled(self) -> bool:
        try:
            self.check_settled()
        except AssertionError:
            return False
        return True

    def check_settled(self) -> None:
        """Check that all is as it should be when nothing happens any more."""
        now = self.newest
        running = {worker.id for worker in self.workers if worker.is_running}
        assert set(now.by_id) == running, f"{sorted(now.by_id)} are members, {running} run"
        for worker in self.workers:
            if worker.is_running:
                assert worker.incarnation == now.by_id[worker.id].incarnation, "it knows better"
                assert tuple(worker.starts) == now.by_id[worker.id].starts
        assert {share.phase for share in now.shares} == {Phase.OWNED}, "moves are under way"
        fitting = [p for m in now.members if not m.is_leaving for p in m.processes]
        counted = Counter(share.owner for share in now.shares)
        if fitting:
            assert set(counted) <= set(fitting), "somebody owns who should not"
            if not now.pins:
                spread = max(counted[p] for p in fitting) - min(counted[p] for p in fitting)
                assert spread <= 1, counted


def explain(cluster: Cluster) -> Iterable[str]:
    """Tell what has happened: for whoever looks at a failure."""
    return [f"{v.version}: {v.cause}" for v in cluster.chain]


def _worker(cluster: Cluster, a: int) -> Worker:
    return cluster.workers[a % len(cluster.workers)]


def wait(cluster: Cluster, a: int, b: int) -> None:
    cluster.run(1 + b % 16)


def start(cluster: Cluster, a: int, b: int) -> None:
    cluster.start(a % len(cluster.workers))


def kill(cluster: Cluster, a: int, b: int) -> None:
    cluster.kill(a % len(cluster.workers))


def bounce(cluster: Cluster, a: int, b: int) -> None:
    cluster.kill(a % len(cluster.workers))
    cluster.start(a % len(cluster.workers))


def leave(cluster: Cluster, a: int, b: int) -> None:
    cluster.leave(a % len(cluster.workers))


def exit_child(cluster: Cluster, a: int, b: int) -> None:
    cluster.exit_child(a % len(cluster.workers))


def pause(cluster: Cluster, a: int, b: int) -> None:
    _worker(cluster, a).paused_until = cluster.step_number + 4 * (1 + b % 16)


def pause_all(cluster: Cluster, a: int, b: int) -> None:
    for worker in cluster.workers:
        worker.paused_until = cluster.step_number + 4 * (6 + b % 10)


def cut_worker(cluster: Cluster, a: int, b: int) -> None:
    worker, replica = _worker(cluster, a), cluster.replicas[b % 2]
    if b & 4:
        cluster._ended(worker, replica)
    cluster.cut.add((worker.id, replica.name))


def heal_worker(cluster: Cluster, a: int, b: int) -> None:
    worker = _worker(cluster, a)
    cluster.cut -= {(worker.id, "c0"), (worker.id, "c1")}


def cut_replicas(cluster: Cluster, a: int, b: int) -> None:
    cluster.cut ^= {("c0", "c1")}


def restart_replica(cluster: Cluster, a: int, b: int) -> None:
    cluster.restart_replica(a % 2)


def stall_replica(cluster: Cluster, a: int, b: int) -> None:
    cluster.replicas[a % 2].stalled_until = cluster.step_number + 2 * (1 + b % 24)


def toggle_store(cluster: Cluster, a: int, b: int) -> None:
    cluster.replicas[a % 2].has_store ^= True


def damage(cluster: Cluster, a: int, b: int) -> None:
    if cluster.newest.version:
        cluster.damaged.add(cluster.newest.version)


def lose_replies(cluster: Cluster, a: int, b: int) -> None:
    cluster.loses_replies = 1 + b % 3


def fail_moves(cluster: Cluster, a: int, b: int) -> None:
    _worker(cluster, a).fails_moves ^= True


def command(cluster: Cluster, a: int, b: int) -> None:
    worker = _worker(cluster, a).id
    partition = b % cluster.limits.partitions
    given: list[cmd.Command] = [
        cmd.Freeze("by a test"),
        cmd.Unfreeze("by a test"),
        cmd.Unfreeze("by a test"),
        cmd.PinTo(partition, worker, "by a test"),
        cmd.Unpin(partition, "by a test"),
        cmd.Drain(worker, "by a test"),
        cmd.Undrain(worker, "by a test"),
        cmd.Move(partition, worker, "by a test"),
        cmd.Move(partition, worker, "by a test"),
    ]
    cluster.command(given[(a + b) % len(given)], a % 2)


OPS = (
    wait,
    wait,
    wait,
    start,
    start,
    kill,
    bounce,
    leave,
    exit_child,
    pause,
    pause_all,
    cut_worker,
    cut_worker,
    heal_worker,
    cut_replicas,
    restart_replica,
    stall_replica,
    toggle_store,
    damage,
    lose_replies,
    fail_moves,
    command,
    command,
)


def play(cluster: Cluster, moves: Iterable[tuple[int, int, int]]) -> None:
    """Let all that was drawn happen to a cluster that has just started, then let it heal."""
    cluster.start(*range(len(cluster.workers) - 1))
    cluster.run(6)
    for op, a, b in moves:
        OPS[op % len(OPS)](cluster, a, b)
        cluster.step()
    settle(cluster)


def settle(cluster: Cluster) -> None:
    """Let nothing go wrong any more, and see that everything comes to rest."""
    cluster.heal()
    cluster.run(10)  # what was commanded before, is done or given up
    cluster.command(cmd.Unfreeze("all is well"))
    for worker in cluster.workers:
        if worker.is_running:
            cluster.command(cmd.Undrain(worker.id, "all is well"))
    for partition in range(cluster.limits.partitions):
        cluster.command(cmd.Unpin(partition, "all is well"))
    # Failed moves are tried again after a minute, and whoever has flapped may have to wait longer.
    rested, newest = 0, cluster.newest
    for _ in range(SETTLE_SECONDS // 10):
        cluster.run(10)
        rested = rested + 10 if cluster.newest == newest else 0
        newest = cluster.newest
        if rested >= RESTED_SECONDS and cluster.is_settled():
            return
    cluster.check_settled()
    raise AssertionError(f"it does not come to rest: {cluster.newest.cause}")


def without(*safeguards: str) -> Guards:
    """Return guards of which some are off."""
    return lambda safeguard: safeguard not in safeguards


A, B = "a/0", "b/0"


def two(share: Share, version: int = 7) -> Assignment:
    """Partition 0 as said, partition 1 at rest, so that neither has to move otherwise."""
    base = replace(empty([Stage("main", 2)]), version=version, shares=(share, Share(A, 4)))
    return base.with_members([member("a", 4), member("b", 5)])
