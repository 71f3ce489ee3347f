"""Processes that host partitions of a pipeline and speak over connections of bytes, for tests.

Bytes arrive in pieces and late, connections break, partitions move; what comes out must be what one
process makes of all events.
"""

from __future__ import annotations

from random import Random
from typing import Any

from ripple.core.cut import is_within
from ripple.engine.edges.senders import BehindError, GapError, SupersededError
from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.exchange.exchange import Exchange, Route
from ripple.exchange.limits import ExchangeLimits
from ripple.exchange.publication import Publication
from ripple.exchange.session import Session
from ripple.exchange.subscription import Subscription
from ripple.model.pipeline.plan import Plan
from tests.engine.machine.staged import Spread

SECOND_NS = 1_000_000_000


class Partition:
    """A partition with what it is hosted by, over its lives."""

    def __init__(self, stage: int, number: int, node: Any) -> None:
        self.stage, self.number, self.node = stage, number, node
        self.epoch = 0
        self.process: Process
        self.sending: Publication | None = None
        self.following: Subscription | None = None
        self.reached: dict[str, int] = {}

    @property
    def engine(self) -> Engine | Follower:
        engine: Engine | Follower = self.node.engine
        return engine

    def start(self, process: Process) -> None:
        self.process = process
        self.epoch += 1
        exchange = process.exchange
        self.sending = exchange.send(self.stage, self.number, self.epoch, lambda: None)
        if self.stage:
            self.following = exchange.follow(self.stage, self.number, lambda: None)
            assert isinstance(self.engine, Follower)
            for number in range(len(self.node.senders)):
                followed = self.engine.followed(str(number))
                if followed.cut is not None:
                    self.following.begin(number, followed.epoch, followed.cut)
            self.following.start()

    def stop(self) -> None:
        if self.sending is not None:
            self.process.exchange.stop_sending(self.sending)
        if self.following is not None:
            self.process.exchange.stop_following(self.following)
        self.sending = self.following = None

    def take(self) -> None:
        """Take in what has arrived, then show it."""
        assert self.following is not None
        assert isinstance(self.engine, Follower)
        for arrival in self.following.take():
            try:
                self.engine.follow(str(arrival.sender), arrival.epoch, arrival.changes)
            except (GapError, BehindError):
                self.following.refused(arrival)
            except SupersededError:
                self.following.dropped(arrival)
            else:
                self.following.applied(arrival)

    def settle(self) -> None:
        self.engine.stabilize()
        self.engine.check_invariants()
        assert is_within(self.reached, self.engine.cut), "a cut went back"
        if self.sending is not None:
            self.sending.offer(self.engine)

    def save(self) -> None:
        self.settle()
        self.node.saved = self.engine.snapshot()
        if self.following is not None:
            self.following.release(self.engine.watermark_ns)


class Process:
    """One process."""

    def __init__(self, name: str, cluster: Cluster, limits: ExchangeLimits) -> None:
        self.name = name
        self.exchange = Exchange(
            name,
            cluster.plan,
            cluster.route,
            lambda stage: len(cluster.parts[stage]),
            limits=limits,
        )


class Connection:
    """Two sessions and the bytes between them."""

    def __init__(self, one: Process, other: Process, now_ns: int) -> None:
        self.ends = one, other
        self.sessions: list[Session] = [
            end.exchange.session(now_ns, lambda: None) for end in self.ends
        ]
        self.on_way = [bytearray(), bytearray()]  # to the first, to the second
        self.sessions[0].greet()

    @property
    def is_over(self) -> bool:
        return all(session.ended for session in self.sessions)

    def pump(self) -> None:
        for at, session in enumerate(self.sessions):
            self.on_way[1 - at] += session.data_to_send()

    def deliver(self, at: int, length: int, now_ns: int) -> None:
        data = bytes(self.on_way[at][:length])
        del self.on_way[at][:length]
        if data:
            self.sessions[at].receive(data, now_ns)

    def cut(self, now_ns: int) -> None:
        """Break it: what is on the way is lost, and both ends hear of it."""
        for session in self.sessions:
            session.receive_eof(now_ns)


class Cluster:
    """A pipeline over processes."""

    def __init__(
        self,
        plan: Plan,
        events: list[dict[str, Any]],
        partitions: int,
        random: Random,
        *,
        processes: int = 3,
        limits: ExchangeLimits | None = None,
    ) -> None:
        spread = self.spread = Spread(plan, events, partitions, random)
        self.plan, self.random, self.now_ns = plan, random, 0
        self.parts = [
            [Partition(stage, number, node) for number, node in enumerate(nodes)]
            for stage, nodes in enumerate(spread.nodes)
        ]
        limits = limits or ExchangeLimits()
        self.processes = [Process(f"p{n}", self, limits) for n in range(processes)]
        self.connections: dict[tuple[int, int], Connection] = {}
        for part in self.all:
            part.start(random.choice(self.processes))
        self.refresh()

    @property
    def all(self) -> list[Partition]:
        return [part for parts in self.parts for part in parts]

    def route(self, stage: int, number: int) -> Route | None:
        part = self.parts[stage][number]
        return Route(part.process.name, f"{part.process.name}:1", part.epoch)

    def refresh(self) -> None:
        for process in self.processes:
            process.exchange.refresh()

    def connect(self) -> None:
        """Connect all that are not."""
        for one, first in enumerate(self.processes):
            for other in range(one + 1, len(self.processes)):
                before = self.connections.get((one, other))
                if before is None or before.is_over:
                    pair = Connection(first, self.processes[other], self.now_ns)
                    self.connections[one, other] = pair

    def carry(self, *, slowly: bool) -> None:
        for connection in self.connections.values():
            connection.pump()
            for at in (0, 1):
                length = self.random.choice([1, 50, 1000]) if slowly else 1 << 20
                connection.deliver(at, length, self.now_ns)

    def restart(self, part: Partition) -> None:
        """Kill a partition: another owner, anywhere, goes on from somewhere before."""
        part.stop()
        released = part.stage > 0 and part.node.saved is not None
        part.node.restart(forget=not released and self.random.random() < 0.3)
        part.reached = {}
        part.start(self.random.choice(self.processes))
        self.refresh()

    def step(self) -> None:
        """Do one thing, whichever."""
        chance, random = self.random.random(), self.random
        part = random.choice(self.all)
        if chance < 0.2:
            reader = random.choice(self.parts[0])
            reader.node.read(random.choice([1, 1, 2, 5]))
            reader.settle()
        elif chance < 0.4:
            if part.stage:
                part.take()
            part.settle()
        elif chance < 0.85:
            self.carry(slowly=random.random() < 0.7)
        elif chance < 0.9:
            self.connect()
        elif chance < 0.92 and self.connections:
            random.choice(list(self.connections.values())).cut(self.now_ns)
        elif chance < 0.97:
            part.save()
        else:
            self.restart(part)

    def finish(self) -> None:
        """Read everything, heal everything, and go on until nothing changes any more."""
        for reader in self.parts[0]:
            reader.node.read(len(reader.node.events))
            reader.engine.close()
        for _ in range(400):
            self.connect()
            for part in self.all:
                if part.stage:
                    part.take()
                part.settle()
            self.carry(slowly=False)
            if self.is_quiet():
                return
        raise AssertionError("it does not come to rest")

    def is_quiet(self) -> bool:
        """Whether everybody has all there is."""
        for part in self.all:
            if part.stage == 0:
                continue
            for number, sender in enumerate(self.parts[self.spread.before(part.stage)]):
                assert isinstance(part.engine, Follower)
                followed = part.engine.followed(str(number))
                if followed.cut != sender.engine.cut:
                    return False
                if followed.watermark_ns != sender.engine.watermark_ns:
                    return False
        return True

    def digests(self) -> dict[str, str]:
        """Return per output the digest of its rows in all partitions: the sum of theirs."""
        totals: dict[str, int] = {}
        for part in self.all:
            for output, digest in part.engine.digests.items():
                totals[output] = (totals.get(output, 0) + int(digest, 16)) % (1 << 64)
        return {output: f"{total:016x}" for output, total in totals.items()}
