"""Two links, or a link and a scripted peer, step by step."""

from __future__ import annotations

import pytest

from ripple.core.errors import LimitError
from ripple.exchange.wire.edge_messages import Follow, Trace
from ripple.exchange.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.exchange.wire.link_events import (
    Ended,
    PeerAccepted,
    PeerLeft,
    PeerOffered,
    Received,
    Refused,
)
from ripple.exchange.wire.link_limits import LinkLimits
from ripple.exchange.wire.messages import Delta, Goodbye, Handshake, Ping, Reason, SchemaNegotiation
from ripple.model.schema import Schema
from tests.exchange.wire.link_kit import (
    CAN,
    Script,
    bundle,
    exchange,
    link,
    say_hello,
    schema,
    small_limits,
)

OFFER = {"vwap": schema(1)}


def _pair(**options):
    a, b = link("A", OFFER, **options), link("B", {}, OFFER, **options)
    say_hello(a, b)
    return a, b


def test_handshake_opens_both_halves():
    a, b = link("A", OFFER), link("B", {}, OFFER)
    of_a, of_b = say_hello(a, b)
    assert PeerAccepted() in of_a
    assert PeerAccepted() in of_b
    assert PeerOffered("A", tuple(OFFER.items()), CAN) in of_b
    assert a.speaks_edges
    assert b.speaks_edges


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
        a.carry(Delta("nope", b"k", b"v", 1))
    assert a.data_to_send() == b""


def test_incompatible_schema_is_sent_to_the_peer_and_ends_the_link():
    a, b = link("A", {"vwap": schema(1)}), link("B", {}, {"vwap": schema(3)})
    of_a, of_b = say_hello(a, b)
    difference = "vwap: vwap.{0}: missing field {0}: the reader has it, the writer does not"
    errors = tuple(difference.format(name) for name in ("extra_2", "extra_3"))
    assert of_b[-2:] == [Refused(by_peer=False, errors=errors), Ended(None)]
    assert of_a[-2:] == [Refused(by_peer=True, errors=errors), Ended(None)]


def test_single_deltas_are_sent_to_a_peer_without_capabilities_and_not_taken_from_one():
    b, peer = link("B", OFFER, OFFER), Script()
    peer.says(Handshake.announce("P", OFFER))
    peer.says(SchemaNegotiation(True))
    b.receive(peer.data_to_send(), 0)
    b.carry(Delta("vwap", b"k", b"v", 1, 17))
    *_, said = peer.hears(b.data_to_send())
    assert said == Delta("vwap", b"k", b"v", 1, 17)
    peer.says(Delta("vwap", b"k", b"v", 1))
    events = b.receive(peer.data_to_send(), 0)
    assert "a Delta of 'vwap', which is not read here" in str(events[-1].error)


def test_goodbye_closes_one_direction_and_the_other_drains():
    a, b = _pair()
    b.close(Reason.SHUTDOWN, "rolling restart")
    of_a, _ = exchange(a, b)
    assert of_a == [PeerLeft(Reason.SHUTDOWN, "rolling restart")]
    a.carry(bundle())
    a.close()
    _, of_b = exchange(a, b)
    assert of_b == [Received(bundle()), PeerLeft(Reason.SHUTDOWN, ""), Ended(None)]
    assert a.tick(a.next_deadline_ns) == [Ended(None)]


def test_speaking_after_goodbye_is_the_speakers_fault():
    a, _ = _pair()
    a.close()
    with pytest.raises(LocalProtocolError, match="we, as MEMBER, may not say BUNDLE in state SILE"):
        a.carry(bundle())
    b, peer = link("B", {}, OFFER), Script()
    peer.says(Handshake.announce("P", OFFER, CAN))
    peer.says(Goodbye(Reason.MOVED))
    peer.says(bundle())
    events = b.receive(peer.data_to_send(), 0)
    assert "the peer, as MEMBER, may not say BUNDLE in state SILENT" in str(events[-1].error)


def test_goodbye_of_a_peer_that_never_answers_times_out():
    a, _ = _pair()
    a.close()
    assert a.next_deadline_ns == a.limits.goodbye_timeout_ns
    assert a.tick(a.limits.goodbye_timeout_ns) == [Ended(None)]


def test_silent_peer_is_pinged_then_given_up():
    a, _ = _pair()
    a.data_to_send()
    idle_ns, timeout_ns = a.limits.idle_ns, a.limits.timeout_ns
    assert a.next_deadline_ns == idle_ns
    assert a.tick(idle_ns) == []
    assert a.data_to_send()
    assert a.next_deadline_ns == timeout_ns
    (ended,) = a.tick(timeout_ns)
    assert f"the peer was silent for {timeout_ns / 1e9:.1f} s" in str(ended.error)


def test_pause_of_our_own_process_kills_no_peer():
    a, b = _pair()
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


def test_edges_are_carried_between_links_that_both_name_them():
    a, b = _pair()
    b.carry(Follow("vwap", 0, 0, 1, None, None, 10))
    a.carry(bundle())
    at_a, at_b = exchange(a, b)
    assert at_a == [Received(Follow("vwap", 0, 0, 1, None, None, 10))]
    assert at_b == [Received(bundle())]


def test_edges_need_a_capability_of_both():
    a, _ = _pair(capabilities=frozenset({"changes"}))
    with pytest.raises(LocalProtocolError, match="both sides have named 'edges'"):
        a.carry(bundle())
    b, peer = link("B", {}, OFFER), Script()
    peer.says(Handshake.announce("P", OFFER, ["changes"]))
    peer.says(bundle())
    events = b.receive(peer.data_to_send(), 0)
    assert "the capability 'edges'" in str(events[-1].error)


def test_traces_need_a_capability_of_their_own():
    told = Trace("vwap", 0, 0, 1, ("00-17380abc6f63f3cdaf093916e327df84-88b8fa2222fd7ba5-01",))
    a, b = _pair(capabilities=CAN | {"traces"})
    assert a.speaks_traces
    a.carry(told)
    assert exchange(a, b) == ([], [Received(told)])
    a, b = _pair()
    assert not a.speaks_traces
    with pytest.raises(LocalProtocolError, match="both sides have named 'traces'"):
        a.carry(told)
    b, peer = link("B", {}, OFFER), Script()
    peer.says(Handshake.announce("P", OFFER, CAN))
    peer.says(told)
    events = b.receive(peer.data_to_send(), 0)
    assert "the capability 'traces'" in str(events[-1].error)


def test_a_bundle_in_another_schema_than_the_handshakes_is_refused_before_it_is_read():
    b, peer = link("B", {}, OFFER), Script()
    peer.says(Handshake.announce("P", OFFER, CAN))
    peer.says(bundle(), fingerprint="feedfeed")
    events = b.receive(peer.data_to_send(), 0)
    assert "schema 'feedfeed'" in str(events[-1].error)


def test_missing_frame_ends_the_link():
    b, peer = link("B", {}, OFFER), Script()
    peer.says(Handshake.announce("P", OFFER, ["changes"]))
    peer.sequence += 1
    peer.says(Ping(1))
    events = b.receive(peer.data_to_send(), 0)
    assert "frame 3 after frame 1" in str(events[-1].error)


def test_nothing_happens_after_the_end():
    a, b = _pair()
    events = b.receive(b"garbage", 0)
    assert isinstance(events[-1].error, RemoteProtocolError)
    a.carry(bundle())
    assert b.receive(a.data_to_send(), 0) == []
    assert b.next_deadline_ns is None
    with pytest.raises(LocalProtocolError, match="the link has ended"):
        b.handshake()


@pytest.mark.parametrize(
    "limits", [{"frame_bytes_max": 0}, {"send_buffer_bytes_max": 5}, {"idle_ns": 10**12}]
)
def test_limits_that_cannot_work_are_refused(limits):
    with pytest.raises(LimitError, match=next(iter(limits))):
        LinkLimits(**limits)
