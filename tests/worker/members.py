"""Real coordinators and real members that hold nothing, on simulated machines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from coordinator.decisions import events as ev
from coordinator.decisions.limits import Limits
from coordinator.service.handlers import Handlers
from coordinator.service.shell import Shell
from ripple.control.assignment import Assignment, AssignmentChain, Follower, Report, worker_of
from ripple.control.assignment.rules import check_follows
from tests.control.assignment.examples import candidate
from worker.supervisor.membership import HEARTBEAT_INTERVAL_MS, Membership

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.core.events import Event
    from ripple.testing import SimCluster, SimWorld
    from ripple.world.ports import ObjectStore

LIMITS = Limits(partitions=6, checkpoint_interval_ms=10_000)
COORDINATORS = ("c1", "c2")
WORKERS = ("w1", "w2", "w3")


def address_of(coordinator: str) -> str:
    return f"{coordinator}:9200"


@dataclass
class Seen:
    """What somebody outside has seen of the coordinators and workers of a run, by machine."""

    shells: dict[str, Shell] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    events: list[tuple[str, ev.Event]] = field(default_factory=list)
    history: dict[int, Assignment] = field(default_factory=dict)

    def believe(self, version: Assignment) -> None:
        """Whoever reads a version reads the same, and it may follow the one before."""
        was = self.history.setdefault(version.version, version)
        assert was == version, f"version {version.version} was another"
        if version.version - 1 in self.history:
            check_follows(self.history[version.version - 1], version)

    @property
    def newest(self) -> Assignment | None:
        return self.history[max(self.history)] if self.history else None


@dataclass
class Member:
    """A worker as its machine sees it: what it has heard, and what it says of itself."""

    id: str
    seen: Seen
    now: Assignment | None = None
    incarnation: int | None = None
    events: list[Event] = field(default_factory=list)
    checkpoints: int = 0
    versions: list[tuple[int, int | None]] = field(default_factory=list)
    membership: Membership = None  # type: ignore[assignment]  # set when it runs
    code: Any = None

    def heard(self, version: Assignment, incarnation: int | None) -> None:
        assert not self.versions or self.versions[-1][0] < version.version, "versions rise"
        self.seen.believe(version)
        self.now, self.incarnation = version, incarnation
        self.versions.append((version.version, incarnation))

    def candidate(self, nonce: str) -> Any:
        asks = replace(candidate(self.id, nonce), inputs=())
        return asks if self.code is None else replace(asks, code=self.code)

    def checkpoint(self) -> None:
        self.checkpoints += 1
        self.membership.checkpointed()

    def report(self) -> Report:
        """Everything is live at once, and every follower is near."""
        if self.now is None or self.incarnation is None:
            return Report()
        mine = [(p, share) for p, share in enumerate(self.now.shares)]
        return Report(
            0.5,
            self.now.by_id[self.id].starts,
            frozenset((p, s.since) for p, s in mine if s.owner and worker_of(s.owner) == self.id),
            tuple(
                Follower(p, s.next, 0) for p, s in mine if s.next and worker_of(s.next) == self.id
            ),
        )


def coordinator_of(
    seen: Seen, name: str, peers: tuple[str, ...] = (), limits: Limits = LIMITS
) -> Callable[[SimWorld], Awaitable[None]]:
    """Return the program of a coordinator."""

    async def main(world: SimWorld) -> None:
        assert world.control is not None
        shell = seen.shells[name] = Shell(
            world,
            limits,
            peers=[address_of(peer) for peer in peers],
            say=lambda line: seen.said.append(f"{name}: {line}"),
        )
        handle = shell.handle
        shell.handle = lambda event: (seen.events.append((name, event)), handle(event))[1]  # type: ignore[method-assign]
        await world.control.serve(address_of(name), Handlers(shell).service)
        await shell.run()

    return main


def worker_of_cluster(
    seen: Seen,
    name: str,
    coordinators: tuple[str, ...] = COORDINATORS,
    code: Any = None,
    store: ObjectStore | None = None,
    *,
    mark: str | None = None,
    heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS,
) -> Callable[[SimWorld], Awaitable[None]]:
    """Return the program of a worker that holds nothing.

    store: another one than all others'. mark: what tells it from others, if that is asked for.
    """

    async def marked() -> str:
        return mark or ""

    async def main(world: SimWorld) -> None:
        member = seen.members[name] = Member(name, seen, code=code)
        member.membership = Membership(
            world,
            AssignmentChain(store or world.store, guards=world.guards),
            [address_of(one) for one in coordinators],
            member.candidate,
            member.report,
            member.heard,
            checkpoint=member.checkpoint,
            emit=member.events.append,
            mark=None if mark is None else marked,
            heartbeat_interval_ms=heartbeat_interval_ms,
        )
        await member.membership.run()

    return main


def start(
    cluster: SimCluster, coordinators: tuple[str, ...] = COORDINATORS, workers: int = 3
) -> Seen:
    """Start some coordinators and workers."""
    seen = Seen()
    for name in coordinators:
        peers = tuple(other for other in coordinators if other != name)
        cluster.host(name).start(coordinator_of(seen, name, peers))
    for name in WORKERS[:workers]:
        cluster.host(name).start(worker_of_cluster(seen, name, coordinators))
    return seen


def problem_of(seen: Seen, workers: tuple[str, ...] = WORKERS) -> str | None:
    """Return why a healed cluster is not at rest yet, None if it is."""
    versions = {name: shell.state.now for name, shell in seen.shells.items()}
    newest = seen.newest
    if newest is None or any(version != newest for version in versions.values()):
        return f"coordinators do not agree: {versions}"
    for name in workers:
        if seen.members[name].now != newest or seen.members[name].incarnation is None:
            return f"{name} is no member of version {newest.version}, or has not heard of it"
    owned = Counter(worker_of(share.owner) if share.owner else "" for share in newest.shares)
    if sorted(owned) != sorted(workers) or max(owned.values()) - min(owned.values()) > 1:
        return f"partitions are not spread: {owned}"
    moving = [share for share in newest.shares if share.next or share.former]
    return f"something moves: {moving}" if moving else None
