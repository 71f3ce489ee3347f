"""A pipeline spread over partitions of its stages, in one process: for tests.

Messages may be delayed, lost, and repeated; senders and receivers may be restarted, from a snapshot
or from nothing. What comes out in the end must be what one engine makes of all events.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import pyarrow as pa

from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.engine.edges.senders import BehindError, GapError, SupersededError
from ripple.engine.machine import Engine, Snapshot
from ripple.engine.machine.follower import Follower
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.nodes import SourceSpec
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.stages import Stage, Transport
from ripple.model.pipeline.topology import stages_of


def whole_run(plan: Plan, shares: list[list[dict[str, Any]]]) -> Engine:
    """Return the engine of all stages after it has read every input, closed."""
    names = [str(number) for number in range(len(shares))]
    engine = Engine(plan, inputs=names)
    schema = pa.schema(arrow_fields(plan.source.fields))
    for at in range(0, max(map(len, shares)), 7):
        for name, share in zip(names, shares, strict=True):
            part = share[at : at + 7]
            if part:
                rows = pa.RecordBatch.from_pylist(part, schema)
                engine.apply(name, rows, at + len(part))
                engine.stabilize()
    engine.close()
    engine.stabilize()
    return engine


def shares_of(
    events: list[dict[str, Any]], source: SourceSpec, partitions: int
) -> list[list[dict[str, Any]]]:
    """Return the records of each partition of a source that is divided by symbol."""
    rows = pa.RecordBatch.from_pylist(events, pa.schema(arrow_fields(source.fields)))
    at = partition_numbers(rows, ["symbol"], partitions)
    shares: list[list[dict[str, Any]]] = [[] for _ in range(partitions)]
    for event, number in zip(events, at.tolist(), strict=True):
        shares[number].append(event)
    return shares


class Reader:
    """A partition of the first stage: its input, and what it has read of it."""

    def __init__(self, plan: Plan, partition: int, events: list[dict[str, Any]]) -> None:
        self.plan, self.name, self.epoch = plan, str(partition), 0
        self.schema = pa.schema(arrow_fields(plan.source.fields))
        self.events = events
        self.engine = self.empty()
        self.saved: Snapshot | None = None

    def empty(self) -> Engine:
        """Return one that has read nothing."""
        return Engine(self.plan, int(self.name), (self.name,), staged=True)

    @property
    def next(self) -> int:
        """The next offset to read."""
        return self.engine.cut[self.name]

    def read(self, count: int) -> None:
        """Apply up to so many events."""
        part = self.events[self.next : self.next + count]
        rows = pa.RecordBatch.from_pylist(part, self.schema)
        self.engine.apply(self.name, rows, self.next + len(part))

    def restart(self, *, forget: bool) -> None:
        """Begin a new epoch where the snapshot is."""
        self.epoch += 1
        if self.saved is None or forget:
            self.engine = self.empty()
        else:
            self.engine = Engine.restore(self.plan, self.saved)


class Receiver:
    """A partition of a later stage."""

    def __init__(self, plan: Plan, stage: int, partition: int, senders: list[str]) -> None:
        self.plan, self.stage, self.name, self.epoch = plan, stage, str(partition), 0
        self.senders = senders
        self.engine = self.empty()
        self.saved: Snapshot | None = None

    def empty(self) -> Follower:
        """Return one that has seen nothing."""
        return Follower(self.plan, self.stage, self.senders, int(self.name))

    def restart(self, *, forget: bool) -> None:
        """Begin a new epoch where the snapshot is, or from nothing."""
        self.epoch += 1
        if self.saved is None or forget:
            self.engine = self.empty()
        else:
            self.engine = Follower.restore(self.plan, self.saved)


Way = tuple[int, int, int]  # the receiver's stage, the sender's number, the receiver's


class Spread:
    """All partitions of all stages, and what is on its way between them."""

    def __init__(
        self, plan: Plan, events: list[dict[str, Any]], partitions: int, random: Random
    ) -> None:
        self.plan, self.random = plan, random
        self.stages: list[Stage] = list(stages_of(plan))
        self.nodes: list[list[Any]] = [self.readers(events, partitions)]
        for stage in self.stages[1:]:
            assert stage.partitions is not None
            assert stage.before is not None
            senders = [node.name for node in self.nodes[stage.before]]
            self.nodes.append(
                [Receiver(plan, stage.number, n, senders) for n in range(stage.partitions)]
            )
        self.on_way: dict[Way, deque[tuple[int, EdgeChanges]]] = {}
        self.logs: dict[Way, list[tuple[int, EdgeChanges]]] = {}
        self.lost = 0
        # How often a target takes nothing, or all.
        self.skipped = self.skips = 0.3
        self.restarted = 0.03

    def readers(self, events: list[Any], partitions: int) -> list[Any]:
        """Return the partitions of the first stage, with their shares of the events."""
        self.shares = shares_of(events, self.plan.source, partitions)
        return [Reader(self.plan, number, share) for number, share in enumerate(self.shares)]

    def is_state(self, stage: int) -> bool:
        """Whether the edge into a stage is a state edge."""
        edge = self.stages[stage].edge
        return edge is not None and edge.kind.transport is Transport.EXCHANGE

    def after(self, stage: int) -> list[int]:
        """Return the stages that follow a stage."""
        return [one.number for one in self.stages if one.before == stage]

    def settle(self, stage: int, number: int, *, sends: bool = True) -> None:
        """Stabilize a partition, and send what changed since it was sent last."""
        node = self.nodes[stage][number]
        node.engine.stabilize()
        node.engine.check_invariants()
        for to in self.after(stage):
            if not (sends or not self.is_state(to)):
                continue
            for target, one in self.given(node.engine, to).items():
                way = to, number, target
                self.on_way.setdefault(way, deque()).append((node.epoch, one))
                self.logs.setdefault(way, []).append((node.epoch, one))

    def given(self, engine: Engine | Follower, to: int) -> dict[int, EdgeChanges]:
        """Return what goes to some partitions of a stage, to all over an event edge."""
        sending, targets = engine.sending(to), range(len(self.nodes[to]))
        if not self.is_state(to):
            return dict(enumerate(sending.outgoing()))
        for target in targets:
            if self.random.random() < self.restarted:
                sending.restart(target)
        return sending.outgoing_to([t for t in targets if self.random.random() >= self.skipped])

    def deliver(self, way: Way, *, lose: bool = False, again: bool = False) -> None:
        """Hand over the oldest message of a way; ask for the table where one is missing."""
        stage, number, target = way
        epoch, changes = self.on_way[way][0] if again else self.on_way[way].popleft()
        if lose and self.is_state(stage):
            self.lost += 1
            return
        receiver = self.nodes[stage][target].engine
        try:
            receiver.follow(str(number), epoch, changes)
        except GapError:
            assert self.is_state(stage)
            self.join(way, receiver)
        except (BehindError, SupersededError):
            pass  # of an owner before, or not yet so far again

    def join(self, way: Way, receiver: Follower) -> None:
        """Let a receiver begin with a sender's table, or wait until that has come so far."""
        stage, number, target = way
        before = self.before(stage)
        self.skipped = 0.0
        self.settle(before, number)
        sender = self.nodes[before][number]
        table = sender.engine.sending(stage).table_for(target)
        try:
            receiver.follow(str(number), sender.epoch, table)
        except BehindError:
            return
        finally:
            self.skipped = self.skips
        self.on_way[way].clear()  # what is in the table

    def catch_up(self, way: Way) -> None:
        """Let a receiver that was restarted read an event edge's log from its cut on."""
        stage, number, target = way
        here = self.nodes[stage][target].engine.followed(str(number)).cut
        entries = self.logs.get(way, [])
        behind = [i for i, (_, one) in enumerate(entries) if one.since != here]
        first = next((i for i in range(len(entries)) if i not in behind), len(entries))
        self.on_way[way] = deque(entries[first:])

    def restart(self, stage: int, number: int) -> None:
        """Kill a partition: another owner goes on, somewhere before."""
        node = self.nodes[stage][number]
        if not all(map(self.is_state, self.after(stage))):
            return  # whose appends are muted up to what the log has; not what is tried here
        follows_events = stage > 0 and not self.is_state(stage)
        released = stage > 0 and node.saved is not None
        node.restart(forget=not released and self.random.random() < 0.3)
        if follows_events:
            for way in self.ways_to(stage, number):
                self.catch_up(way)

    def before(self, stage: int) -> int:
        """Return the stage that a stage follows."""
        before = self.stages[stage].before
        assert before is not None
        return before

    def ways_to(self, stage: int, number: int) -> list[Way]:
        """Return the ways into a partition."""
        return [(stage, sender, number) for sender in range(len(self.nodes[self.before(stage)]))]

    def save(self, stage: int, number: int) -> None:
        """Store a partition's state; then its senders may forget what is final in it."""
        node = self.nodes[stage][number]
        self.settle(stage, number)
        node.saved = node.engine.snapshot()
        if stage > 0:
            for sender in self.nodes[self.before(stage)]:
                sender.engine.sending(stage).release(number, node.engine.watermark_ns)

    def step(self) -> None:
        """Do one thing, whichever."""
        random = self.random
        stage = random.randrange(len(self.nodes))
        number = random.randrange(len(self.nodes[stage]))
        chance = random.random()
        waiting = sorted(way for way, messages in self.on_way.items() if messages)
        if chance < 0.25:
            reader = random.choice(self.nodes[0])
            reader.read(random.choice([1, 1, 2, 5]))
        elif chance < 0.45:
            self.settle(stage, number, sends=random.random() < 0.6)
        elif chance < 0.85 and waiting:
            way = random.choice(waiting)
            again = random.random() < 0.1 and self.is_state(way[0])
            self.deliver(way, lose=random.random() < 0.1, again=again)
        elif chance < 0.92:
            self.save(stage, number)
        elif chance < 0.96:
            self.restart(stage, number)

    def finish(self) -> None:
        """Read everything, deliver everything, and end every window."""
        self.skipped = self.skips = 0.0
        for reader in self.nodes[0]:
            reader.read(len(reader.events))
            reader.engine.close()
        for stage, nodes in enumerate(self.nodes):
            for number in range(len(nodes)):
                self.settle(stage, number)
                for to in self.after(stage):
                    for target, receiver in enumerate(self.nodes[to]):
                        self._finish((to, number, target), receiver.engine)

    def _finish(self, way: Way, receiver: Follower) -> None:
        """Deliver everything of a way."""
        stage, number, _ = way
        while self.on_way.get(way):
            self.deliver(way)
        sender = self.nodes[self.before(stage)][number].engine
        if self.is_state(stage) and receiver.followed(str(number)).cut != dict(sender.cut):
            self.join(way, receiver)  # what was lost last

    def digests(self) -> dict[str, str]:
        """Return per output the digest of its rows in all partitions: the sum of theirs."""
        totals: dict[str, int] = {}
        for nodes in self.nodes:
            for node in nodes:
                for output, digest in node.engine.digests.items():
                    totals[output] = (totals.get(output, 0) + int(digest, 16)) % (1 << 64)
        return {output: f"{total:016x}" for output, total in totals.items()}


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows in an order that does not depend on slots."""
    return sorted(table.to_pylist(), key=repr)
