"""Single streams, step by step: what a receiver gets, when, and what it must not believe."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from ripple.core.codec import arrow
from ripple.core.errors import InputError, LimitError
from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.exchange.edges import Stream, edges_of
from ripple.exchange.exchange import Exchange, Route
from ripple.exchange.limits import ExchangeLimits
from ripple.exchange.wire.edge_messages import Bundle, Follow, Grant, Section, Unfollow
from ripple.exchange.wire.link_limits import LinkLimits
from tests.engine.machine.stage_plans import PLANS, trades
from tests.exchange.processes import Cluster, Connection, Partition

PLAN = PLANS["by-venue"]
EDGE = edges_of(PLAN)["p/1"]
EMPTY = pa.RecordBatch.from_pylist([], EDGE.schema)


class Pair:
    """A sender in one process, its three targets in another."""

    def __init__(self, limits: ExchangeLimits | None = None, events: int = 60) -> None:
        random = Random(7)
        self.cluster = Cluster(PLAN, trades(random, events), 1, random, processes=2, limits=limits)
        here, there = self.cluster.processes
        for part in self.cluster.all:
            part.stop()
            part.start(there if part.stage else here)
        self.cluster.refresh()
        self.sender, self.target = self.cluster.parts[0][0], self.cluster.parts[1][0]
        self.cluster.connect()

    @property
    def connection(self) -> Connection:
        return self.cluster.connections[0, 1]

    def carry(self) -> None:
        for _ in range(4):
            self.cluster.carry(slowly=False)

    def read(self, count: int) -> None:
        self.sender.node.read(count)
        self.sender.settle()

    def give(self, count: int) -> None:
        """Let the sender take events in, and carry what it then has to say."""
        self.read(count)
        self.carry()

    def restart_sender(self) -> None:
        """Let another owner of the sender, without a checkpoint, begin anew."""
        self.sender.stop()
        self.sender.node.restart(forget=True)
        self.sender.start(self.cluster.processes[0])
        self.cluster.refresh()

    def arrived(self) -> list[Any]:
        assert self.target.following is not None
        return list(self.target.following._queue)


def cut_of(part: Partition) -> Any:
    return part.engine.cut


def test_a_table_comes_first_and_then_changes_that_follow_it() -> None:
    pair = Pair()
    pair.give(20)
    pair.give(0)
    for count in (5, 5):
        pair.give(count)
    table, *changes = [one.changes for one in pair.arrived()]
    assert table.since is None
    assert [one.since["0"] for one in changes] == [20, 25]
    assert [one.cut["0"] for one in (table, *changes)] == [20, 25, 30]
    pair.target.take()
    pair.target.settle()
    assert cut_of(pair.target) == {"0/0": 30}


@pytest.mark.parametrize("is_broken", [False, True])
def test_taken_changes_are_sent_unchanged_to_their_subscribers(is_broken: bool) -> None:
    """A sender goes on while it commits: what it shows then is not what is committed."""
    pair = Pair()
    pair.carry()
    pair.give(20)
    pair.target.take()
    sending = pair.sender.sending
    assert sending is not None
    pair.sender.node.read(5)
    pair.sender.engine.stabilize()
    sending.take(pair.sender.engine)
    pair.sender.node.read(5)
    pair.sender.engine.stabilize()
    pair.carry()
    assert not pair.arrived()
    if is_broken:
        pair.connection.cut(0)
        pair.cluster.connect()
        pair.carry()
    sending.give()
    pair.carry()
    assert [one.changes.cut["0"] for one in pair.arrived()] == ([] if is_broken else [25])
    sending.offer(pair.sender.engine)
    pair.carry()
    last = pair.arrived()[-1].changes
    assert (last.since, last.cut) == (None if is_broken else {"0": 25}, {"0": 30})
    pair.target.take()
    pair.target.settle()
    assert cut_of(pair.target) == {"0/0": 30}


def test_reconnect_without_losses_continues_with_changes() -> None:
    pair = Pair()
    pair.carry()
    pair.give(20)
    pair.target.take()
    pair.connection.cut(0)
    pair.cluster.connect()
    pair.carry()
    pair.give(5)
    (goes_on,) = pair.arrived()
    assert goes_on.changes.since == {"0": 20}


def test_a_broken_connection_on_which_changes_were_lost_brings_the_table() -> None:
    pair = Pair()
    pair.carry()
    pair.give(20)
    pair.target.take()
    pair.read(5)
    pair.connection.cut(0)
    pair.cluster.connect()
    pair.carry()
    pair.give(5)
    (table,) = pair.arrived()
    assert table.changes.since is None
    assert table.changes.cut == {"0": 30}


def test_receiver_restored_older_gets_snapshot() -> None:
    """What it has is older than what its sender still knows the changes since."""
    pair = Pair()
    pair.carry()
    pair.give(20)
    pair.target.take()
    pair.target.save()
    pair.give(20)
    pair.target.take()
    pair.target.settle()
    pair.carry()
    assert cut_of(pair.target) == {"0/0": 40}
    pair.target.stop()
    pair.target.node.restart(forget=False)
    pair.target.reached = {}
    assert cut_of(pair.target) == {"0/0": 20}
    pair.target.start(pair.cluster.processes[1])
    pair.cluster.refresh()
    pair.carry()
    pair.give(0)
    (table,) = pair.arrived()
    assert (table.changes.since, table.changes.cut) == (None, {"0": 40})


def test_delta_lost_before_crash_is_recovered() -> None:
    """It was on its way when its sender died; the one that follows has it in its table."""
    pair = Pair()
    pair.carry()
    pair.give(20)
    pair.target.take()
    pair.read(5)
    for connection in pair.cluster.connections.values():
        connection.pump()  # on the way
        connection.cut(0)
    pair.restart_sender()
    pair.cluster.connect()
    pair.give(25)
    pair.give(0)
    (table,) = pair.arrived()
    assert (table.changes.since, table.changes.cut) == (None, {"0": 25})


def test_sender_restored_older_no_reuse() -> None:
    pair = Pair()
    pair.carry()
    pair.give(20)
    pair.target.take()
    pair.restart_sender()
    for count in (10, 9, 0):
        pair.give(count)
        pair.target.take()
        pair.carry()
        assert cut_of(pair.target) == {"0/0": 20}
    assert not pair.arrived()
    pair.give(1)
    (table,) = pair.arrived()
    assert (table.epoch, table.changes.since, table.changes.cut) == (3, None, {"0": 20})


def test_zombie_delta_rejected_by_peer() -> None:
    pair = Pair()
    pair.carry()
    assert pair.target.following is not None
    pair.target.following.route(0, pair.target.following._sources[0].channel, 9)
    pair.give(20)
    assert not pair.arrived()


def test_receiver_reports_to_a_sender_that_it_is_superseded() -> None:
    pair = Pair()
    assert pair.sender.sending is not None
    assert pair.sender.sending.superseded_by is None
    (edge,) = pair.sender.sending
    follow = Follow("p/1", 0, 0, 1, 5, (), 10)
    edge.follow(pair.cluster.processes[0].exchange._local, follow)
    assert pair.sender.sending.superseded_by == 5
    pair.give(20)
    assert not pair.arrived()


def test_subscriber_of_a_higher_epoch_waits_for_it_through_lower_ones() -> None:
    """A process that was started again tries its epochs anew, from the lowest."""
    pair = Pair()
    for epoch in (9, 5, 10):
        pair.sender.stop()
        pair.sender.epoch = epoch - 1
        pair.sender.start(pair.cluster.processes[0])
        pair.sender.node.read(5)
        pair.carry()
        pair.sender.settle()
        pair.carry()
        if epoch == 9:
            pair.target.take()
            pair.connection.cut(0)
            pair.cluster.connect()
        if epoch == 5:
            assert not pair.arrived()
    (table,) = pair.arrived()
    assert (table.epoch, table.changes.cut) == (10, {"0": 15})


def test_slow_consumer_coalesces() -> None:
    limits = ExchangeLimits(credit_rows=8, window_bytes=4000, bundle_rows=8, bundle_bytes=1000)
    pair = Pair(limits, events=600)
    session = pair.connection.sessions[0]
    most = 0
    for _ in range(300):
        pair.give(2)
        most = max(most, session._waiting_bytes)
    tables = [pair.sender.engine.table_for(target).rows for target in range(3)]
    assert most <= limits.window_bytes + sum(table.nbytes for table in tables)
    arrived = pair.arrived()
    assert len(arrived) <= limits.credit_rows  # not one a change
    taken = dict(arrived[-1].changes.cut)["0"]
    assert taken < 600
    for _ in range(20):
        for target in pair.cluster.parts[1]:
            target.take()
            target.settle()
        pair.give(0)
    assert cut_of(pair.target) == {"0/0": 600}


def test_a_slow_target_does_not_hold_up_its_neighbours() -> None:
    limits = ExchangeLimits(credit_rows=4)
    pair = Pair(limits, events=200)
    slow, *others = pair.cluster.parts[1]
    for _ in range(100):
        pair.give(2)
        for target in others:
            target.take()
            target.settle()
    assert [cut_of(target) for target in others] == [{"0/0": 200}] * 2
    slow.take()
    assert slow.engine.cut["0/0"] < 200


def test_a_table_larger_than_all_credit_arrives_in_parts_and_is_one() -> None:
    limits = ExchangeLimits(credit_rows=1, window_bytes=700, bundle_rows=1, bundle_bytes=500)
    pair = Pair(limits)
    pair.carry()
    pair.sender.node.read(60)
    pair.sender.settle()
    for _ in range(30):
        pair.carry()
    (table,) = pair.arrived()
    assert table.changes.rows.num_rows == pair.sender.engine.table_for(0).rows.num_rows


# --- what is not believed ---


def bundle(pair: Pair, section: Section, rows: pa.RecordBatch) -> Bundle:
    return Bundle("p/1", (section,), memoryview(arrow.dumps(rows)))


def _wrong_rows(pair: Pair) -> Bundle:
    return bundle(pair, Section(0, 0, 1, 1, None, (), 0, 7), EMPTY)


def _other_columns(pair: Pair) -> Bundle:
    rows = pa.RecordBatch.from_pylist([], pa.schema([("a", pa.int64())]))
    return bundle(pair, Section(0, 0, 1, 1, None, (), 0, 0), rows)


def _in_the_middle(pair: Pair) -> Bundle:
    turn = pair.target.following._sources[0].turn  # type: ignore[union-attr]
    return bundle(pair, Section(0, 0, turn, 9, None, (), 0, 0, 5), EMPTY)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (_wrong_rows, "0 rows do not match its sections"),
        (_other_columns, "the columns are not as announced"),
        (_in_the_middle, "continues at row 5, after 0 rows"),
        (lambda _: Follow("p/1", 0, 9, 1, None, None, 5), "there is no target 9"),
        (lambda _: Follow("p/1", 7, 0, 1, None, None, 5), "there is no sender 7"),
        (lambda _: Unfollow("p/9", 0, 0), "there is no target 0 of 'p/9'"),
    ],
)
def test_invalid_message_ends_the_connection_with_the_reason(
    wrong: Callable[[Pair], Any], why: str
) -> None:
    pair = Pair()
    pair.carry()
    one, other = pair.connection.sessions
    one._link.carry(wrong(pair))
    pair.carry()
    assert other.failure is not None
    assert why in other.failure
    assert not other.is_open
    pair.cluster.connect()  # and another one is as good as the first


def test_more_than_the_window_ends_the_connection() -> None:
    pair = Pair(ExchangeLimits(window_bytes=1000))
    pair.carry()
    one, other = pair.connection.sessions
    one._on_message(Grant(1 << 30))
    for _ in range(60):
        pair.give(1)
    assert "window_bytes (1000)" in str(other.failure)


def test_a_row_longer_than_a_frame_is_named_and_ends_the_connection() -> None:
    link = LinkLimits(frame_bytes_max=8192, send_buffer_bytes_max=1 << 16)
    pair = Pair(ExchangeLimits(bundle_bytes=4096, link=link))
    pair.carry()
    one = pair.connection.sessions[0]
    values = dict.fromkeys(EDGE.schema.names) | {"venue": "x" * 10_000, "op": 0}
    long = pa.RecordBatch.from_pylist([values], EDGE.schema)
    one.send_changes(Stream("p/1", 0, 0), 1, 1, EdgeChanges(None, {}, 0, long))
    pair.carry()
    assert "frame_bytes_max is 8192" in str(one.failure)


def test_limits_that_cannot_work_are_refused() -> None:
    with pytest.raises(LimitError, match="credit_rows"):
        ExchangeLimits(credit_rows=0)
    with pytest.raises(LimitError, match="half of frame_bytes_max"):
        ExchangeLimits(bundle_bytes=4 << 20)


def test_a_stage_into_which_no_state_edge_leads_is_not_followed_here() -> None:
    exchange = Exchange("p", PLANS["events"], lambda *_: Route("p", "p:1"), lambda _: 1)
    with pytest.raises(InputError, match="no state edge leads into stage 1"):
        exchange.follow(1, 0, lambda: None)
    assert exchange.send(0, 0, 1, lambda: None) is None


def test_request_ahead_of_the_assignment_waits_for_it() -> None:
    """A follower that knows more is no liar: the connection, which others share, goes on."""
    pair = Pair()
    pair.sender.process.exchange._partitions = lambda _: 0
    pair.carry()
    pair.sender.stop()
    pair.target.process.exchange.refresh()
    pair.connection.cut(0)
    pair.cluster.connect()
    pair.carry()
    assert not pair.connection.is_over
    pair.restart_sender()
    pair.give(20)
    assert pair.arrived()


def test_new_task_takes_over_the_streams_of_one_that_has_not_ended() -> None:
    pair = Pair()
    pair.carry()
    pair.give(20)
    exchange = pair.sender.process.exchange
    old, old_following = pair.sender.sending, pair.target.following
    assert old is not None
    assert old_following is not None
    pair.sender.start(pair.sender.process)
    pair.target.start(pair.target.process)
    pair.cluster.refresh()
    exchange.stop_sending(old)
    pair.target.process.exchange.stop_following(old_following)
    pair.carry()
    pair.give(5)
    pair.target.take()
    assert cut_of(pair.target) == {"0/0": 25}
