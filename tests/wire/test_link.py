"""Two links, or a link and a scripted peer, step by step."""

from __future__ import annotations

import pytest
from link_kit import (
    VWAP,
    Replica,
    Script,
    begin,
    changes,
    end,
    exchange,
    link,
    rows,
    say_hello,
    schema,
    small_limits,
)

from ripple.errors import LimitError
from ripple.schema import Schema
from ripple.wire.edge_messages import Bundle, Follow, Section, Trace
from ripple.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.wire.link_events import (
    CreditReceived,
    Ended,
    PeerAccepted,
    PeerLeft,
    PeerOffered,
    Refused,
    SnapshotDropped,
    SnapshotStarted,
    SnapshotWanted,
    Superseded,
    Told,
)
from ripple.wire.link_limits import LinkLimits
from ripple.wire.messages import Goodbye, Handshake, Ping, Reason, SchemaNegotiation, cut_of
from ripple.wire.position import Position, Positions, Stream

OFFER = {"vwap": schema(1)}


def _pair(**options):
    a, b = link("A", OFFER, **options), link("B", {}, OFFER, **options)
    say_hello(a, b)
    return a, b


def _started(**options):
    a, b = _pair(**options)
    replica = Replica()
    a.send_snapshot_begin(begin(1, t=10))
    replica.follow(b, exchange(a, b)[1])
    return a, b, replica


def _flowing(**options):
    a, b, replica = _started(**options)
    a.send_snapshot_rows(rows(1, {"AAPL": "1", "MSFT": "2"}, t=10))
    a.send_snapshot_end(end(1, 2, t=10))
    replica.follow(b, exchange(a, b)[1])
    return a, b, replica


def test_handshake_opens_both_halves():
    a, b = link("A", OFFER), link("B", {}, OFFER)
    of_a, of_b = say_hello(a, b)
    assert PeerAccepted() in of_a
    assert PeerAccepted() in of_b
    assert PeerOffered("A", tuple(OFFER.items()), frozenset({"changes"})) in of_b
    assert a.speaks_changes
    assert b.speaks_changes


def test_output_whose_schema_has_no_fields_does_not_end_the_peers_handshake():
    b, peer = link("B", {}, OFFER), Script()
    offered = {**OFFER, "empty": Schema("empty", ())}
    peer.says(Handshake.announce("P", offered))
    peer.says(SchemaNegotiation(True))
    events = b.receive(peer.data_to_send(), 0)
    assert PeerOffered("P", tuple(offered.items()), frozenset()) in events
    assert not b.ended


def test_delta_of_an_output_that_was_not_offered_is_our_own_fault():
    a, _ = _pair(capabilities=frozenset())
    with pytest.raises(LocalProtocolError, match="'nope' is not an output of our handshake"):
        a.send_delta("nope", b"k", b"v")
    assert a.data_to_send() == b""


def test_changes_after_a_snapshot_keep_the_tables_equal():
    a, b, replica = _flowing()
    a.send_changes(changes(1, {"t": 10}, {"t": 20}, {"AAPL": "3", "MSFT": None, "IBM": "4"}))
    replica.follow(b, exchange(a, b)[1])
    assert replica.tables == {VWAP: {"AAPL": "3", "IBM": "4"}}
    assert b.positions[VWAP] == Position(1, cut_of({"t": 20}))


def test_incompatible_schema_is_told_to_the_peer_and_ends_the_link():
    a, b = link("A", {"vwap": schema(1)}), link("B", {}, {"vwap": schema(3)})
    of_a, of_b = say_hello(a, b)
    difference = "vwap: vwap.{0}: missing field {0}: the reader has it, the writer does not"
    errors = tuple(difference.format(name) for name in ("extra_2", "extra_3"))
    assert of_b[-2:] == [Refused(by_peer=False, errors=errors), Ended(None)]
    assert of_a[-2:] == [Refused(by_peer=True, errors=errors), Ended(None)]


def test_sending_without_credit_is_our_fault():
    a, _, _ = _started(limits=small_limits())
    a.send_snapshot_rows(rows(1, {"AAPL": "x" * 400}, t=10))
    a.send_snapshot_rows(rows(1, {"MSFT": "x" * 400}, t=10))
    with pytest.raises(LocalProtocolError, match="wait for CreditReceived"):
        a.send_snapshot_rows(rows(1, {"IBM": "x" * 400}, t=10))
    assert not a.ended


def test_credit_given_back_lets_the_sender_go_on():
    a, b, replica = _started(limits=small_limits())
    for key in ("AAPL", "MSFT"):
        a.send_snapshot_rows(rows(1, {key: "x" * 400}, t=10))
    of_a, of_b = exchange(a, b)
    assert not of_a
    replica.follow(b, of_b)
    of_a, _ = exchange(a, b)
    assert any(isinstance(event, CreditReceived) for event in of_a)
    a.send_snapshot_rows(rows(1, {"IBM": "x" * 400}, t=10))


def test_peer_that_overdraws_its_credit_is_cut_off():
    b, peer = link("B", {}, OFFER, limits=small_limits()), Script()
    peer.says(Handshake.announce("P", OFFER, ["changes"]))
    peer.says(SchemaNegotiation(True))
    peer.says(begin(1, t=1))
    for _ in range(3):
        peer.says(rows(1, {"AAPL": "x" * 400}, t=1))
    events = b.receive(peer.data_to_send(), 0)
    assert isinstance(events[-1], Ended)
    assert "with a credit of" in str(events[-1].error)
    assert isinstance(events[-2], SnapshotDropped)


def test_our_own_gap_is_our_fault_and_changes_nothing():
    a, b, replica = _flowing()
    with pytest.raises(LocalProtocolError, match="do not start at"):
        a.send_changes(changes(1, {"t": 15}, {"t": 20}, {"AAPL": "3"}))
    with pytest.raises(LocalProtocolError, match="begun in epoch 1, not 2"):
        a.send_changes(changes(2, {"t": 10}, {"t": 20}, {"AAPL": "3"}))
    with pytest.raises(LocalProtocolError, match="go backward"):
        a.send_changes(changes(1, {"t": 10}, {"t": 5}, {"AAPL": "3"}))
    a.send_changes(changes(1, {"t": 10}, {"t": 20}, {"AAPL": "3"}))
    replica.follow(b, exchange(a, b)[1])
    assert replica.tables[VWAP]["AAPL"] == "3"


def test_new_owner_takes_over_and_the_old_one_is_told():
    positions = Positions()
    old, b = link("A1", OFFER), link("B", {}, OFFER, positions=positions)
    say_hello(old, b)
    replica = Replica()
    old.send_snapshot_begin(begin(1, t=10))
    old.send_snapshot_end(end(1, 0, t=10))
    replica.follow(b, exchange(old, b)[1])

    new, b2 = link("A2", OFFER), link("B", {}, OFFER, positions=positions)
    say_hello(new, b2)
    new.send_snapshot_begin(begin(2, t=12))
    replica.follow(b2, exchange(new, b2)[1])
    new.send_snapshot_rows(rows(2, {"AAPL": "new"}, t=12))
    new.send_snapshot_end(end(2, 1, t=12))
    replica.follow(b2, exchange(new, b2)[1])

    old.send_changes(changes(1, {"t": 10}, {"t": 13}, {"AAPL": "zombie"}))
    of_old, of_b = exchange(old, b)
    replica.follow(b, of_b)
    assert of_old == [Superseded(VWAP, 2)]
    assert replica.tables == {VWAP: {"AAPL": "new"}}
    assert b.counters.stale_epochs == 1
    with pytest.raises(
        LocalProtocolError, match="may not send CHANGES on a stream in state CLOSED"
    ):
        old.send_changes(changes(1, {"t": 13}, {"t": 14}, {"AAPL": "zombie"}))


def test_snapshot_older_than_ours_is_waited_out():
    positions = Positions({VWAP: Position(1, cut_of({"t": 30}))})
    a, b = link("A", OFFER), link("B", {}, OFFER, positions=positions)
    say_hello(a, b)
    replica = Replica()
    replica.tables[VWAP] = {"AAPL": "at 30"}
    a.send_snapshot_begin(begin(2, t=10))
    a.send_snapshot_end(end(2, 0, t=10))
    replica.follow(b, exchange(a, b)[1])
    a.send_changes(changes(2, {"t": 10}, {"t": 30}, {"AAPL": "at 30"}))
    a.send_changes(changes(2, {"t": 30}, {"t": 40}, {"MSFT": "at 40"}))
    of_a, of_b = exchange(a, b)
    replica.follow(b, of_b)
    assert of_a == []
    assert replica.tables == {VWAP: {"AAPL": "at 30", "MSFT": "at 40"}}
    assert positions[VWAP] == Position(2, cut_of({"t": 40}))


def test_sender_that_jumps_over_our_cut_is_asked_for_a_snapshot():
    positions = Positions({VWAP: Position(1, cut_of({"t": 30}))})
    a, b = link("A", OFFER), link("B", {}, OFFER, positions=positions)
    say_hello(a, b)
    replica = Replica()
    a.send_snapshot_begin(begin(2, t=10))
    a.send_snapshot_end(end(2, 0, t=10))
    replica.follow(b, exchange(a, b)[1])
    a.send_changes(changes(2, {"t": 10}, {"t": 35}, {"AAPL": "at 35"}))
    of_a, of_b = exchange(a, b)
    replica.follow(b, of_b)
    assert of_a == [SnapshotWanted(VWAP)]


def test_caller_that_distrusts_its_table_gets_a_snapshot_once():
    a, b, _ = _flowing()
    b.request_snapshot(VWAP)
    b.request_snapshot(VWAP)
    assert exchange(a, b)[0] == [SnapshotWanted(VWAP)]


def test_snapshot_cut_off_midway_leaves_the_table_as_it_was():
    a, b, replica = _flowing()
    a.send_snapshot_begin(begin(1, t=20))
    a.send_snapshot_rows(rows(1, {"AAPL": "torn"}, t=20))
    replica.follow(b, exchange(a, b)[1])
    events = b.receive_eof(0)
    replica.follow(b, events)
    assert isinstance(events[0], SnapshotDropped)
    assert "without the peer's Goodbye" in str(events[-1].error)
    assert replica.tables == {VWAP: {"AAPL": "1", "MSFT": "2"}}
    assert b.positions[VWAP].cut == cut_of({"t": 10})


def test_goodbye_closes_one_direction_and_the_other_drains():
    a, b, replica = _flowing()
    b.close(Reason.SHUTDOWN, "rolling restart")
    of_a, _ = exchange(a, b)
    assert of_a == [PeerLeft(Reason.SHUTDOWN, "rolling restart")]
    a.send_changes(changes(1, {"t": 10}, {"t": 20}, {"AAPL": "last"}))
    a.close()
    of_a, of_b = exchange(a, b)
    replica.follow(b, of_b)
    assert replica.tables[VWAP]["AAPL"] == "last"
    assert of_b[-1] == Ended(None)
    assert a.tick(a.next_deadline_ns) == [Ended(None)]


def test_speaking_after_goodbye_is_the_speakers_fault():
    a, b, _ = _flowing()
    a.close()
    with pytest.raises(
        LocalProtocolError, match="we, as MEMBER, may not say CHANGES in state SILENT"
    ):
        a.send_changes(changes(1, {"t": 10}, {"t": 20}, {"AAPL": "3"}))
    b, peer = link("B", {}, OFFER), Script()
    peer.says(Handshake.announce("P", OFFER, ["changes"]))
    peer.says(Goodbye(Reason.MOVED))
    peer.says(begin(1, t=1))
    events = b.receive(peer.data_to_send(), 0)
    assert "the peer, as MEMBER, may not say SNAPSHOT_BEGIN in state SILENT" in str(
        events[-1].error
    )


def test_goodbye_of_a_peer_that_never_answers_times_out():
    a, _, _ = _flowing()
    a.close()
    assert a.next_deadline_ns == a.limits.goodbye_timeout_ns
    assert a.tick(a.limits.goodbye_timeout_ns) == [Ended(None)]


def test_silent_peer_is_pinged_then_given_up():
    a, _, _ = _flowing()
    a.data_to_send()
    idle_ns, timeout_ns = a.limits.idle_ns, a.limits.timeout_ns
    assert a.next_deadline_ns == idle_ns
    assert a.tick(idle_ns) == []
    assert a.data_to_send()
    assert a.next_deadline_ns == timeout_ns
    (ended,) = a.tick(timeout_ns)
    assert f"the peer was silent for {timeout_ns / 1e9:.1f} s" in str(ended.error)


def test_pause_of_our_own_process_kills_no_peer():
    a, b, _ = _flowing()
    late_ns = 100 * a.limits.timeout_ns
    assert a.tick(late_ns) == []
    assert exchange(a, b, late_ns) == ([], [])
    assert not a.ended
    assert a.next_deadline_ns == late_ns + a.limits.idle_ns


def test_handshake_that_never_comes_times_out():
    a = link("A", OFFER)
    a.handshake()
    (ended,) = a.tick(a.next_deadline_ns)
    assert "no complete handshake" in str(ended.error)


def test_peer_that_asks_but_does_not_read_is_cut_off():
    limits = small_limits(send_buffer_bytes_max=1000, control_bytes_max=1000)
    b, peer = link("B", {}, OFFER, limits=limits), Script()
    peer.says(Handshake.announce("P", OFFER, ["changes"]))
    for nonce in range(100):
        peer.says(Ping(nonce))
    events = b.receive(peer.data_to_send(), 0)
    assert "cannot be answered" in str(events[-1].error)


def test_unread_output_is_ignored_and_gets_no_credit():
    a, b = link("A", {"vwap": schema(1), "other": schema(1, "other")}), link("B", {}, OFFER)
    say_hello(a, b)
    other = Stream("other", 0)
    a.send_snapshot_begin(begin(1, other, t=1))
    of_a, of_b = exchange(a, b)
    assert (of_a, of_b) == ([], [])
    assert a.credit_bytes(other) == 0


def test_data_in_another_schema_than_the_handshakes_is_refused_before_it_is_read():
    b, peer = link("B", {}, OFFER), Script()
    peer.says(Handshake.announce("P", OFFER, ["changes"]))
    peer.says(begin(1, t=1))
    peer.says(rows(1, {"AAPL": "1"}, t=1), fingerprint="feedfeed")
    events = b.receive(peer.data_to_send(), 0)
    assert "schema 'feedfeed'" in str(events[-1].error)


BOTH = frozenset({"changes", "edges"})
BUNDLE = Bundle("vwap", (Section(0, 0, 1, 5, None, (), 0, 1),), b"arrow")


def test_edges_are_carried_between_links_that_both_name_them():
    a, b = _pair(capabilities=BOTH)
    b.carry(Follow("vwap", 0, 0, 1, None, None, 10))
    a.carry(BUNDLE)
    at_a, at_b = exchange(a, b)
    assert at_a == [Told(Follow("vwap", 0, 0, 1, None, None, 10))]
    assert at_b == [Told(BUNDLE)]


def test_edges_need_a_capability_of_both():
    a, b = _pair()
    with pytest.raises(LocalProtocolError, match="both sides have named 'edges'"):
        a.carry(BUNDLE)
    b, peer = link("B", {}, OFFER, capabilities=BOTH), Script()
    peer.says(Handshake.announce("P", OFFER, ["changes"]))
    peer.says(BUNDLE)
    events = b.receive(peer.data_to_send(), 0)
    assert "the capability 'edges'" in str(events[-1].error)


def test_traces_need_a_capability_of_their_own():
    told = Trace("vwap", 0, 0, 1, ("00-17380abc6f63f3cdaf093916e327df84-88b8fa2222fd7ba5-01",))
    a, b = _pair(capabilities=BOTH | {"traces"})
    assert a.speaks_traces
    a.carry(told)
    assert exchange(a, b) == ([], [Told(told)])
    a, b = _pair(capabilities=BOTH)
    assert not a.speaks_traces
    with pytest.raises(LocalProtocolError, match="both sides have named 'traces'"):
        a.carry(told)
    b, peer = link("B", {}, OFFER, capabilities=BOTH), Script()
    peer.says(Handshake.announce("P", OFFER, BOTH))
    peer.says(told)
    events = b.receive(peer.data_to_send(), 0)
    assert "the capability 'traces'" in str(events[-1].error)


def test_a_bundle_in_another_schema_than_the_handshakes_is_refused_before_it_is_read():
    b, peer = link("B", {}, OFFER, capabilities=BOTH), Script()
    peer.says(Handshake.announce("P", OFFER, BOTH))
    peer.says(BUNDLE, fingerprint="feedfeed")
    events = b.receive(peer.data_to_send(), 0)
    assert "schema 'feedfeed'" in str(events[-1].error)


def test_missing_frame_ends_the_link():
    b, peer = link("B", {}, OFFER), Script()
    peer.says(Handshake.announce("P", OFFER, ["changes"]))
    peer.sequence += 1
    peer.says(Ping(1))
    events = b.receive(peer.data_to_send(), 0)
    assert "frame 3 after frame 1" in str(events[-1].error)


def test_too_many_open_snapshots_end_the_link():
    b, peer = link("B", {}, OFFER, limits=small_limits(snapshots_max=2)), Script()
    peer.says(Handshake.announce("P", OFFER, ["changes"]))
    for partition in range(3):
        peer.says(begin(1, Stream("vwap", partition), t=1))
    events = b.receive(peer.data_to_send(), 0)
    assert sum(isinstance(event, SnapshotStarted) for event in events) == 2
    assert sum(isinstance(event, SnapshotDropped) for event in events) == 2
    assert "snapshots_max=2" in str(events[-1].error)


def test_nothing_happens_after_the_end():
    a, b, _ = _flowing()
    events = b.receive(b"garbage", 0)
    assert isinstance(events[-1].error, RemoteProtocolError)
    position = b.positions[VWAP]
    a.send_changes(changes(1, {"t": 10}, {"t": 20}, {"AAPL": "3"}))
    assert b.receive(a.data_to_send(), 0) == []
    assert b.positions[VWAP] == position
    assert b.next_deadline_ns is None
    with pytest.raises(LocalProtocolError, match="the link has ended"):
        b.ping()


@pytest.mark.parametrize(
    "limits", [{"frame_bytes_max": 0}, {"credit_window_bytes": 5}, {"idle_ns": 10**12}]
)
def test_limits_that_cannot_work_are_refused(limits):
    with pytest.raises(LimitError, match=next(iter(limits))):
        LinkLimits(**limits)
