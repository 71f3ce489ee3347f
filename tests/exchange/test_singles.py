"""Peers that know types 0 to 5 alone: what they are told, and what they cannot do to us."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from ripple.core.credentials import Credentials, Side
from ripple.core.row_ops import OP, OP_FINAL, OP_REMOVE, OP_SET
from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.engine.machine import Engine
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.exchange.edges import Edge, Stream
from ripple.exchange.exchange import Exchange, Route
from ripple.exchange.limits import ExchangeLimits
from ripple.exchange.session import BEAT_NS, BEATS_MAX
from ripple.exchange.singles import Single, SinglePeer, Singles
from ripple.exchange.wire.bin_prot import codec_for
from ripple.exchange.wire.errors import RemoteProtocolError
from ripple.exchange.wire.records import delta_of
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.types import (
    Case,
    Field,
    Int64,
    List,
    Opaque,
    Option,
    Record,
    Schema,
    String,
    Variant,
)
from tests.engine.machine.stage_plans import PLANS, trades
from tests.exchange.plain_peer import PlainPeer, Refused, schema_of

PLAN = PLANS["by-venue"]
OUTPUT = "shown-rows"
SCHEMA = pa.schema(arrow_fields(PLAN.source.fields))
CREDENTIALS = Credentials(bytes(32))
NOW_S = 1_700_000_000
READER = CREDENTIALS.of_reader(NOW_S)


class Process:
    """The exchange of a process with one partition, which commits whatever it reads."""

    def __init__(self, events: int = 60, **limits: Any) -> None:
        self.events, self.owner = trades(Random(3), events), "w1/0"
        self.exchange = Exchange(
            "w1/0",
            PLAN,
            lambda *_: Route(self.owner, "here:1"),
            lambda _: 1,
            limits=ExchangeLimits(**limits),
        )
        self.wakes = 0
        self.begin(1)

    def begin(self, epoch: int) -> None:
        """Begin the partition, or begin it anew under a higher epoch."""
        self.engine = Engine(PLAN, 0, (PLAN.source.name,), staged=True)
        sends = self.exchange.send(0, 0, epoch, self.woken, shows=[OUTPUT])
        assert sends is not None
        self.sends = sends

    def woken(self) -> None:
        self.wakes += 1

    def read(self, end: int) -> None:
        (begin,) = self.engine.cut.values()
        batch = pa.RecordBatch.from_pylist(self.events[begin:end], SCHEMA)
        self.engine.apply(PLAN.source.name, batch, end)
        self.engine.stabilize()
        self.offer()

    def offer(self) -> None:
        self.sends.offer(self.engine)

    def settle(self) -> None:
        """Offer as a life does that has nothing to commit."""
        for _ in range(5):
            if self.sends.is_wanted or self.sends.is_owed:
                self.offer()

    def rows(self) -> list[str]:
        return sorted(map(repr, self.engine.table(OUTPUT).to_pylist()))


class Wire:
    """A connection to a process, instead of a socket."""

    def __init__(self, process: Process) -> None:
        self.now_ns = 0
        self.session = process.exchange.session(
            0,
            lambda: None,
            credential="process secret",
            admits=lambda who, shown: CREDENTIALS.proven(shown, who, Side.CONNECTS, "", NOW_S),
            now_s=lambda: NOW_S,
        )
        self.session.greet()

    def sendall(self, data: bytes) -> None:
        self.session.receive(data, self.now_ns)

    def recv(self, _: int) -> bytes:
        return self.session.data_to_send()

    def after(self, seconds: float) -> None:
        """Let time pass, by each deadline."""
        end_ns = self.now_ns + int(seconds * 1e9)
        while not self.session.ended:
            next_ns = self.session.next_deadline_ns
            if next_ns is None or next_ns > end_ns:
                break
            self.now_ns = max(next_ns, self.now_ns)
            self.session.tick(self.now_ns)
        self.now_ns = end_ns


def peer_of(
    process: Process, credential: str = READER, wanted: dict[str, bytes] | None = None
) -> PlainPeer:
    peer = PlainPeer(Wire(process))
    peer.greet("plain", credential, wanted)
    process.settle()
    return peer


def hear(peer: PlainPeer) -> None:
    """Take all that is there."""
    while True:
        try:
            peer.take()
        except ConnectionError:
            return


def told(peer: PlainPeer) -> list[str]:
    return sorted(map(repr, peer.tables.get(OUTPUT, {}).values()))


def test_plain_peer_gets_the_table_and_then_each_change_in_sequence() -> None:
    process = Process()
    process.read(20)
    peer = peer_of(process, wanted={})
    hear(peer)
    assert list(peer.schemas) == [one.name for one in PLAN.outputs]
    assert told(peer) == process.rows()
    for end in (25, 40, 60):
        process.read(end)
        hear(peer)
        assert told(peer) == process.rows()
    assert peer.last[OUTPUT] == sum(output == OUTPUT for output, *_ in peer.log) > len(told(peer))


def test_new_owner_sends_its_table_and_removes() -> None:
    process = Process()
    process.read(60)
    peer = peer_of(process)
    hear(peer)
    before = len(peer.tables[OUTPUT])
    process.begin(2)
    process.read(1)
    hear(peer)
    assert told(peer) == process.rows()
    assert len(peer.tables[OUTPUT]) < before
    assert peer.log[-1][1] == "Remove"


def test_a_partition_that_is_elsewhere_ends_the_connection_and_says_where() -> None:
    process = Process()
    process.read(20)
    peer = peer_of(process)
    hear(peer)
    process.owner = "w2/0"
    process.exchange.refresh()
    with pytest.raises(Refused, match="is at w2/0 now"):
        hear(peer)


@pytest.mark.parametrize(
    ("credential", "wanted", "why"),
    [
        ("", {}, "the caller is unknown"),
        (Credentials(b"o" * 32).of_reader(NOW_S), {}, "is not of this cluster"),
        (CREDENTIALS.of_reader(NOW_S - 86_400), {}, "has run out"),
        ("process 00", {}, "it cannot prove to be plain"),
        (READER, {"nope": b""}, "no output 'nope': the outputs are"),
        (READER, {"ripple/1": b""}, "no output 'ripple/1'"),
        (READER, {OUTPUT: b"missing"}, "missing field missing: the reader has it"),
    ],
)
def test_a_refusal_says_why_and_nothing_else(
    credential: str, wanted: dict[str, bytes], why: str
) -> None:
    process = Process()
    process.read(20)
    schemas = {name: schema_of(name, [("missing", "Float", False)]) for name in wanted}
    peer = PlainPeer(Wire(process))
    with pytest.raises(Refused, match=why):
        peer.greet("plain", credential, schemas)
    assert not peer.schemas
    with pytest.raises(ConnectionError):
        peer.hear()


def test_plain_peer_gets_only_the_outputs_that_it_names() -> None:
    process = Process()
    process.read(20)
    fields = peer_of(process).schemas[OUTPUT]["fields"]
    peer = peer_of(process, wanted={OUTPUT: schema_of(OUTPUT, fields)})
    hear(peer)
    assert list(peer.tables) == [OUTPUT]
    assert told(peer) == process.rows()


def test_a_checkpoint_is_not_its_to_ask_for_and_our_capabilities_are_not_named() -> None:
    process = Process()
    peer = peer_of(process)
    peer.ask_for_a_checkpoint("c7", 3)
    hear(peer)
    ((name, who, epoch, error),) = peer.acks
    assert (name, who, epoch) == ("c7", "w1/0", 3)
    assert "not on request" in str(error)
    assert "ripple.capabilities" not in peer.schemas


def test_heartbeats_are_sent_and_a_peer_that_does_not_read_is_disconnected() -> None:
    process = Process()
    process.read(20)
    peer = peer_of(process)
    wire: Any = peer.socket
    wire.after(5.5)
    hear(peer)
    wire.after(5)
    hear(peer)
    assert [who for who, _, _ in peer.heartbeats] == ["w1/0"] * 3
    assert [load == 0 for _, _, load in peer.heartbeats] == [False, False, True]
    wire.after((BEATS_MAX + 2) * BEAT_NS / 1e9)
    assert wire.session.ended
    with pytest.raises(Refused, match="the peer has read nothing for 30 s"):
        hear(peer)


def test_slow_peer_has_one_waiting_batch_and_finally_gets_the_newest_rows() -> None:
    process = Process(events=200)
    process.read(5)
    peer, quick = peer_of(process), peer_of(process)
    wire: Any = peer.socket
    for end in range(6, 201):
        process.read(end)
        hear(quick)
        process.settle()
        hear(quick)
        assert wire.session.most_of_a_stream <= 1
        assert told(quick) == process.rows()
    hear(peer)
    process.settle()
    hear(peer)
    assert told(peer) == process.rows()
    assert len(peer.log) < len(quick.log) / 3


def test_withheld_changes_are_offered_when_there_is_room_again() -> None:
    process = Process(credit_rows=1)
    process.read(5)
    peer = peer_of(process)
    process.read(40)  # while the table waits
    wakes = process.wakes
    hear(peer)
    assert process.wakes > wakes
    assert process.sends.is_owed
    process.settle()
    hear(peer)
    assert told(peer) == process.rows()


def test_peer_that_left_before_the_next_offer_is_not_waited_for() -> None:
    process = Process()
    for end in (5, 10, 15):
        process.read(end)
    peer = PlainPeer(Wire(process))
    peer.greet("plain", READER, None)
    assert process.sends.is_wanted
    peer.socket.session.receive_eof(0)
    process.offer()
    assert not process.sends.is_wanted, "each batch would be committed from now on"


def test_plain_peers_and_their_keys_are_limited() -> None:
    process = Process(single_peers_max=2, single_keys_max=5)
    process.read(2)
    peers = [peer_of(process), peer_of(process)]
    for peer in peers:
        hear(peer)
    with pytest.raises(Refused, match="single_peers_max is 2"):
        hear(peer_of(process))
    wire: Any = peers[0].socket
    wire.session.receive_eof(0)
    peers[0] = peer_of(process)
    process.read(60)
    refused = 0
    for peer in peers:
        try:
            hear(peer)
        except Refused as error:
            refused += "single_keys_max" in str(error)
    assert refused


def test_a_refused_key_is_not_counted_after_its_peer_has_left() -> None:
    singles = Singles(keys_max=1, peers_max=2)
    singles.enter()
    singles.add(1)
    with pytest.raises(RemoteProtocolError, match="single_keys_max"):
        singles.add(1)
    singles.leave(1)
    assert (singles.keys, singles.peers) == (0, 0)


NESTED = (
    Field("k", String()),
    Field("side", Variant((Case("buy"), Case("limit", (Int64(), Option(String())))))),
    Field("raw", Opaque(), optional=True),
    Field("legs", List(Record((Field("x", Int64(), optional=True),)))),
)


def test_values_of_every_type_and_finals() -> None:
    single = Single(Edge("shown/o", 0, 0, None, Schema("o", ()), "o"), NESTED[:1], NESTED)
    singles = Singles(keys_max=9, peers_max=1)
    peer = SinglePeer(singles, [single])
    columns = list(to_arrow(Schema("o", NESTED)).remove_metadata())
    schema = pa.schema([columns[0], pa.field(OP, pa.int8()), *columns[1:]])
    row = {
        "k": "a",
        "side": {"case": "limit", "limit": {"0": 7, "1": None}},
        "raw": "(a b)",
        "legs": [{"x": 1}, {"x": None}],
    }
    read = delta_of(codec_for(Schema("o", NESTED)))

    def say(op: int, since: Any = {}, **changed: Any) -> list[Any]:  # noqa: B006 - not changed
        rows = pa.RecordBatch.from_pylist([row | {OP: op} | changed], schema)
        deltas = list(peer.deltas(Stream("shown/o", 0, 0), EdgeChanges(since, {}, 0, rows)))
        return [(read.loads(one.delta_bytes), one.sequence_no) for one in deltas]

    ((value, number),) = say(OP_SET, None)
    assert number == 1
    assert value.value == {
        "k": "a",
        "side": ("limit", 7, None),
        "raw": ["a", "b"],
        "legs": [{"x": 1}, {}],
    }
    buy = {"case": "buy", "limit": None}
    (final, gone) = say(OP_FINAL, side=buy, raw=None, legs=[])
    assert final[0].value == {"k": "a", "side": ("buy",), "legs": []}
    assert (type(gone[0]).__name__, gone[1]) == ("Remove", 3)
    assert say(OP_REMOVE, side=None, legs=None) == []  # it is gone already
    assert singles.keys == 0
    say(OP_SET)
    assert singles.keys == 1
    peer.leave()
    assert (singles.keys, singles.peers) == (0, 0)
