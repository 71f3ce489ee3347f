"""Owners come and go, bytes arrive in any slices, connections break: the tables stay true.

The model is a function: the table at a cut, whoever computed it. After every step the consumer's
table must be the table at its position, and its position must not have gone back; after healing
it must be the newest. Each safeguard is then taken away, and the model must notice.
"""

from __future__ import annotations

import contextlib
from itertools import product

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from link_kit import VWAP, Replica, Source, link, schema, small_limits

from ripple.wire.errors import LocalProtocolError
from ripple.wire.messages import cut_of
from ripple.wire.position import Positions, Verdict, is_within

OFFER = {"vwap": schema(1)}
LENGTH = 40  # events of each of two inputs
KEYS = ("k0", "k1", "k2")


def _event(name: str, number: int) -> tuple[str, str | None]:
    """Values come back to what they were, and keys go: the cases that a difference leaves out."""
    key = f"{name}.{KEYS[number * 7 % 3]}"
    return key, None if number % 11 == 5 else f"{number * 5 % 3}" + "x" * (number * 29 % 60)


def table_at(cut: dict[str, int]) -> dict[str, str]:
    table: dict[str, str] = {}
    for name, offset in cut.items():
        for number in range(offset):
            key, value = _event(name, number)
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value
    return table


class Owner(Source):
    """One epoch of the partition: started at a cut, it only moves forward."""

    def __init__(self, epoch: int, cut: dict[str, int]) -> None:
        super().__init__(epoch)
        self.now = dict(cut)
        self.tables[VWAP], self.cuts[VWAP] = table_at(cut), cut_of(cut)

    def advance(self, steps: dict[str, int], *boxes: object) -> None:
        before = self.tables[VWAP]
        self.now = {name: min(LENGTH, self.now[name] + steps[name]) for name in self.now}
        after = table_at(self.now)
        changes: dict[str, str | None] = {k: v for k, v in after.items() if before.get(k) != v}
        changes |= dict.fromkeys(before.keys() - after.keys())
        self.change(VWAP, cut_of(self.now), changes, *boxes)


IDLE_BYTES = link("idle", limits=small_limits()).room_bytes


class Connection:
    """An owner's link and the consumer's end of it, with bytes on their way in between."""

    def __init__(self, owner: Owner, positions: Positions, pending: int) -> None:
        self.owner = owner
        limits = small_limits()
        self.near = link("A", OFFER, limits=limits)
        self.far = link("B", {}, OFFER, limits=limits, positions=positions)
        self.box = owner.outbox(self.near, rows_pending_max=pending)
        self.held: list[tuple[object, int]] = []
        self.to_far = self.to_near = b""
        self.near.handshake()
        self.far.handshake()
        owner.advance({"t": 0, "u": 0}, self.box)

    def carry_far(self, count: int, replica: Replica, *, hold: bool = False) -> None:
        self.to_far += self.near.data_to_send()
        piece, self.to_far = self.to_far[:count], self.to_far[count:]
        fence = self.far.positions[VWAP].epoch
        events = self.far.receive(piece, 0)
        for event in events:
            taken = getattr(event, "changes", None) or getattr(event, "end", None)
            assert taken is None or taken.epoch >= fence
        replica.follow(self.far, events, give_back=not hold)
        if hold:
            self.held += [(e.stream, e.credit_bytes) for e in events if hasattr(e, "credit_bytes")]

    def carry_near(self, count: int) -> None:
        self.to_near += self.far.data_to_send()
        piece, self.to_near = self.to_near[:count], self.to_near[count:]
        self.box.follow(self.near.receive(piece, 0))
        self.box.pump()

    def give_back(self) -> None:
        for stream, length_bytes in self.held:
            self.far.grant_credit(stream, length_bytes)
        self.held.clear()

    def cut(self, replica: Replica) -> None:
        replica.follow(self.far, self.far.receive_eof(0))
        self.near.receive_eof(0)

    def settle(self, replica: Replica) -> None:
        for _ in range(10_000):
            self.give_back()
            self.box.pump()
            said = self.near.room_bytes, self.far.room_bytes
            self.carry_far(1 << 20, replica)
            self.carry_near(1 << 20)
            if said == (self.near.room_bytes, self.far.room_bytes) == (IDLE_BYTES, IDLE_BYTES):
                return
        raise AssertionError("the link never comes to rest")


class Cluster(RuleBasedStateMachine):
    """A partition with its owners, new and superseded, and one consumer."""

    positions_class: type[Positions] = Positions

    @initialize(pending=st.integers(2, 50))
    def start(self, pending):
        self.pending = pending
        self.positions = self.positions_class()
        self.replica = Replica()
        self.owners = [Owner(1, {"t": 0, "u": 0})]
        self.connections: list[Connection] = []
        self.seen = None
        self.connect(0)

    def connect(self, owner):
        which = self.owners[owner % len(self.owners)]
        self.connections.append(Connection(which, self.positions, self.pending))

    def pick(self, number) -> Connection:
        return self.connections[number % len(self.connections)]

    @rule(owner=st.integers(0, 3))
    @precondition(lambda self: len(self.connections) < 3)
    def reconnect(self, owner):
        self.connect(-1 - owner)

    @rule(which=st.integers(0, 2), t=st.integers(0, 5), u=st.integers(0, 5))
    def advance(self, which, t, u):
        owner = self.owners[-1 - which % len(self.owners)]
        boxes = [c.box for c in self.connections if c.owner is owner]
        owner.advance({"t": t, "u": u}, *boxes)
        for box in boxes:
            box.pump()

    @rule(t=st.integers(0, 10), u=st.integers(0, 10))
    @precondition(lambda self: len(self.owners) < 4)
    def take_over(self, t, u):
        """The new owner restores a checkpoint: its cut may lie before what was shown."""
        last = self.owners[-1].now
        restored = {"t": max(0, last["t"] - t), "u": max(0, last["u"] - u)}
        self.owners.append(Owner(self.owners[-1].epoch + 1, restored))
        self.connect(-1)

    @rule(which=st.integers(0, 2), count=st.integers(1, 400), hold=st.booleans())
    @precondition(lambda self: self.connections)
    def carry_far(self, which, count, hold):
        self.pick(which).carry_far(count, self.replica, hold=hold)

    @rule(which=st.integers(0, 2), count=st.integers(1, 400))
    @precondition(lambda self: self.connections)
    def carry_near(self, which, count):
        self.pick(which).carry_near(count)

    @rule(which=st.integers(0, 2))
    @precondition(lambda self: self.connections)
    def give_back(self, which):
        self.pick(which).give_back()

    @rule(which=st.integers(0, 2))
    @precondition(lambda self: self.connections)
    def let_all_through(self, which):
        self.pick(which).settle(self.replica)

    @rule(which=st.integers(0, 2))
    @precondition(lambda self: self.connections)
    def break_off(self, which):
        connection = self.pick(which)
        self.connections.remove(connection)
        connection.cut(self.replica)

    @rule(which=st.integers(0, 2))
    @precondition(lambda self: self.connections)
    def ask_again(self, which):
        with contextlib.suppress(LocalProtocolError):  # before the stream has begun
            self.pick(which).far.request_snapshot(VWAP)

    @invariant()
    def table_is_the_table_at_the_position(self):
        if not hasattr(self, "positions"):
            return
        position = self.positions[VWAP]
        if self.seen is not None:
            assert position.epoch >= self.seen.epoch
            assert self.seen.cut is None or is_within(self.seen.cut, position.cut)
        self.seen = position
        if position.cut is not None:
            assert self.replica.tables[VWAP] == table_at(dict(position.cut))
        for connection in self.connections:
            connection.near.check_invariants()
            connection.far.check_invariants()
            assert connection.box.pending_rows(VWAP) <= self.pending

    def teardown(self):
        if not hasattr(self, "positions"):
            return
        for connection in self.connections:
            connection.cut(self.replica)
        self.connections.clear()
        self.connect(-1)
        newest = self.owners[-1]
        newest.advance({"t": LENGTH, "u": LENGTH}, self.connections[0].box)
        self.connections[0].settle(self.replica)
        self.table_is_the_table_at_the_position()
        assert self.replica.tables[VWAP] == table_at({"t": LENGTH, "u": LENGTH})
        assert self.positions[VWAP].epoch == newest.epoch


QUICK = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestCluster = Cluster.TestCase
TestCluster.settings = QUICK


class NoFence(Positions):
    """Takes what a superseded owner sends."""

    def judge_epoch(self, stream, epoch):
        verdict = super().judge_epoch(stream, epoch)
        return Verdict.NEXT if verdict is Verdict.STALE else verdict


class NoGap(Positions):
    """Applies a range wherever it starts."""

    def judge(self, stream, epoch, from_cut, to_cut):
        verdict = super().judge(stream, epoch, from_cut, to_cut)
        return Verdict.NEXT if verdict is Verdict.GAP else verdict


class GoesBack(Positions):
    """Adopts any snapshot."""

    def may_adopt(self, stream, cut):
        return True


def _takeover(positions_class, shown, back, ahead, *, zombie):
    """One owner shows a cut, the next restores an older one and runs ahead; play it through."""
    cluster = type("Ablated", (Cluster,), {"positions_class": positions_class})()
    cluster.start(pending=50)
    cluster.advance(0, shown, shown)
    cluster.let_all_through(0)
    cluster.table_is_the_table_at_the_position()
    cluster.take_over(back, back)
    cluster.let_all_through(1)
    cluster.table_is_the_table_at_the_position()
    cluster.advance(1 if zombie else 0, ahead, ahead)
    cluster.let_all_through(0 if zombie else 1)
    cluster.table_is_the_table_at_the_position()


@pytest.mark.parametrize("zombie", [False, True])
def test_takeovers_of_every_size_keep_the_table_true(zombie):
    for shown, back, ahead in SIZES:
        _takeover(Positions, shown, back, ahead, zombie=zombie)


@pytest.mark.parametrize(
    ("ablated", "zombie"), [(NoFence, True), (NoGap, False), (GoesBack, False)]
)
def test_safeguard_taken_away_is_noticed(ablated, zombie):
    noticed = 0
    for shown, back, ahead in SIZES:
        try:
            _takeover(ablated, shown, back, ahead, zombie=zombie)
        except AssertionError:
            noticed += 1
    assert noticed


SIZES = list(product((4, 6, 9), (1, 2, 4), (3, 5, 8)))
