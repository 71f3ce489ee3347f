"""What waits for a slow peer is bounded, and what it gets in the end is the newest table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_kit import VWAP, DictRows, Replica, Script, Source, exchange, link, schema, small_limits

from ripple.delta import Final, Patch, Remove, Set, convert
from ripple.delta.column_table import ColumnTable
from ripple.delta.layout import Layout, snapshot_of
from ripple.delta.rows import FieldSet
from ripple.encoding import arrow
from ripple.schema.types import Field, Float, Int64, Schema, String
from ripple.wire.arrow_rows import ArrowRows
from ripple.wire.bin_prot import STRING
from ripple.wire.deltas import DeltaCodec
from ripple.wire.errors import LocalProtocolError
from ripple.wire.link_events import ChangesReceived, Ended, SnapshotRows
from ripple.wire.link_limits import LinkLimits
from ripple.wire.messages import Delta, Handshake, SchemaNegotiation, cut_of
from ripple.wire.outbox import Outbox, Table
from ripple.wire.position import Stream
from tests.examples import EXAMPLES

OFFER = {"vwap": schema(1)}


def _pair(**options):
    limits = small_limits()
    near, far = link("A", OFFER, limits=limits), link("B", {}, OFFER, limits=limits)
    near.handshake()
    far.handshake()
    exchange(near, far)
    source = Source()
    return near, far, source, source.outbox(near, **options), Replica()


def _settle(near, far, box, replica):
    while True:
        sent = box.pump()
        of_near, of_far = exchange(near, far)
        box.follow(of_near)
        replica.follow(far, of_far)
        if not (sent or of_near or of_far):
            return


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abcdef"),
            st.none() | st.text(alphabet="xyz", max_size=60),
            max_size=4,
        ),
        max_size=30,
    ),
    st.integers(1, 8),
    st.data(),
)
@settings(max_examples=14 * EXAMPLES)
def test_whatever_waits_the_peer_ends_with_the_newest_table(batches, pending, data):
    near, far, source, box, replica = _pair(rows_pending_max=pending)
    for number, rows in enumerate(batches, 1):
        source.change(VWAP, cut_of({"t": number}), rows, box)
        assert box.pending_rows(VWAP) <= pending
        if data.draw(st.booleans()):
            box.pump()
        if data.draw(st.integers(0, 4)) == 0:
            _settle(near, far, box, replica)
    _settle(near, far, box, replica)
    if batches:
        assert replica.tables[VWAP] == source.tables[VWAP]


def test_many_changes_of_few_keys_wait_as_few_rows():
    near, far, source, box, replica = _pair()
    source.change(VWAP, cut_of({"t": 1}), {"a": "0"}, box)
    _settle(near, far, box, replica)
    for number in range(2, 20_000):
        source.change(VWAP, cut_of({"t": number}), {f"k{number % 5}": str(number)}, box)
    assert box.pending_rows(VWAP) <= 5000
    assert box.pump() == 1
    assert box.snapshots_forced == 0
    _settle(near, far, box, replica)
    assert replica.tables[VWAP] == source.tables[VWAP]


def test_hole_in_what_is_published_leads_to_a_snapshot():
    near, far, source, box, replica = _pair()
    source.change(VWAP, cut_of({"t": 1}), {"a": "1"}, box)
    _settle(near, far, box, replica)
    source.change(VWAP, cut_of({"t": 2}), {"b": "2"})
    source.change(VWAP, cut_of({"t": 3}), {"a": "3"}, box)
    assert box.snapshots_forced == 1
    _settle(near, far, box, replica)
    assert replica.tables[VWAP] == {"a": "3", "b": "2"}


def test_new_epoch_starts_over_with_a_snapshot_and_an_old_one_is_not_sent():
    near, far, source, box, replica = _pair()
    source.change(VWAP, cut_of({"t": 1}), {"a": "1"}, box)
    _settle(near, far, box, replica)
    source.epoch = 2
    source.change(VWAP, cut_of({"t": 2}), {"a": "2"}, box)
    _settle(near, far, box, replica)
    assert far.positions[VWAP].epoch == 2
    assert far.counters.snapshots_adopted == 2
    box.publish(VWAP, 1, cut_of({"t": 2}), cut_of({"t": 3}), {"a": "zombie"})
    assert box.pump() == 0


def test_row_larger_than_a_frame_is_an_error_that_names_the_limit():
    near, far, source, box, replica = _pair()
    source.change(VWAP, cut_of({"t": 1}), {"a": "x" * 1000}, box)
    with pytest.raises(LocalProtocolError, match="frame_bytes_max is 600"):
        _settle(near, far, box, replica)


def _old_peer(**options):
    near, peer, source = link("A", OFFER, limits=small_limits()), Script(), Source()
    near.handshake()
    peer.says(Handshake("P", ()))
    peer.says(SchemaNegotiation(True))
    near.receive(peer.data_to_send(), 0)
    return near, peer, source, source.outbox(near, **options)


def test_old_peer_gets_the_table_then_single_deltas():
    near, peer, source, box = _old_peer()
    source.change(VWAP, cut_of({"t": 1}), {"a": "1", "b": "2"}, box)
    box.pump()
    source.change(VWAP, cut_of({"t": 2}), {"a": None}, box)
    box.pump()
    heard = [m for m in peer.hears(near.data_to_send()) if isinstance(m, Delta)]
    assert [(d.sequence_no, bytes(d.key), bytes(d.delta_bytes)) for d in heard] == [
        (1, b"a", b"1"),
        (2, b"b", b"2"),
        (3, b"a", b"-"),
    ]


def test_old_peer_that_reads_too_slowly_is_sent_away():
    near, _, source, box = _old_peer(rows_pending_max=10)
    source.change(VWAP, cut_of({"t": 1}), {}, box)
    box.pump()
    for number in range(2, 100):
        source.change(VWAP, cut_of({"t": number}), {f"k{number}": None}, box)
    assert near.ended
    assert near.tick(0) == [Ended(None)]


LAYOUT = Layout(
    pa.schema([pa.field("key", pa.string(), False), ("price", pa.float64()), ("size", pa.int64())]),
    ("key",),
)
TRADE = Schema(
    "trade",
    (Field("key", String()), Field("price", Float(), True), Field("size", Int64(), True)),
)


def _batch(*deltas):
    return convert.of_rows(LAYOUT, deltas)


def _set(key, price, size):
    return key, Set({"key": key, "price": price, "size": size})


def test_columns_travel_from_table_to_table():
    limits = LinkLimits(frame_bytes_max=8192, credit_window_bytes=16384)
    near = link("A", {"trade": TRADE}, limits=limits)
    far = link("B", {}, {"trade": TRADE}, limits=limits)
    near.handshake()
    far.handshake()
    exchange(near, far)
    ours, theirs, stream, rows = (
        ColumnTable(LAYOUT),
        ColumnTable(LAYOUT),
        Stream("trade", 3),
        ArrowRows(LAYOUT, TRADE),
    )
    cut = {"t": 0}

    def table(_):
        return Table(1, cut_of(cut), ours.snapshot())

    box = Outbox(near, table, lambda _: rows)

    def publish(batch):
        before = cut_of(cut)
        cut["t"] += 1
        ours.apply(batch)
        box.publish(stream, 1, before, cut_of(cut), batch)

    def settle():
        while True:
            sent = box.pump()
            of_near, of_far = exchange(near, far)
            box.follow(of_near)
            for event in of_far:
                if isinstance(event, SnapshotRows | ChangesReceived):
                    theirs.apply(arrow.loads(event.changes.body, LAYOUT.deltas))
                    far.grant_credit(stream, event.credit_bytes)
            if not sent and not of_near and not of_far:
                return

    publish(_batch(*(_set(f"k{number}", float(number), number) for number in range(2000))))
    settle()
    assert far.counters.snapshots_adopted == 1
    publish(_batch(_set("new", 1.0, 2), ("k1", Patch((FieldSet("price", 9.0),)))))
    publish(_batch(("k2", Remove()), ("k1", Patch((FieldSet("size", 7),)))))
    settle()
    assert len(theirs) == 2000
    assert theirs.snapshot().sort_by("key").equals(ours.snapshot().sort_by("key"))


def test_columns_become_the_originals_deltas():
    rows, codec = ArrowRows(LAYOUT, TRADE), DeltaCodec(TRADE)
    batch = _batch(_set("AAPL", 1.5, 2), ("MSFT", Patch((FieldSet("size", 7),))), ("IBM", Remove()))
    assert [(STRING.loads(key), codec.loads(delta)) for key, delta in rows.deltas(batch)] == [
        ("AAPL", Set({"key": "AAPL", "price": 1.5, "size": 2})),
        ("MSFT", Patch((FieldSet("size", 7),))),
        ("IBM", Remove()),
    ]


def test_final_goes_to_old_peers_as_its_last_value_and_that_it_is_gone():
    rows, codec = ArrowRows(LAYOUT, TRADE), DeltaCodec(TRADE)
    last = {"key": "AAPL", "price": 1.5, "size": 2}
    batch = rows.compose(_batch(_set("AAPL", 1.0, 1)), _batch(("AAPL", Final(last))))
    assert [codec.loads(delta) for _, delta in rows.deltas(batch)] == [Set(last), Remove()]
    with pytest.raises(LocalProtocolError, match="Final"):
        codec.dumps(Final(last))


def test_a_total_has_no_key_and_goes_to_old_peers_with_an_empty_one():
    schema = Schema("total", (Field("n", Int64()),))
    layout = Layout(pa.schema([("n", pa.int64())]), ())
    batch = convert.of_rows(layout, [((), Set({"n": 3}))])
    [(key, delta)] = ArrowRows(layout, schema).deltas(batch)
    assert (key, DeltaCodec(schema).loads(delta)) == (b"", Set({"n": 3}))


def test_columns_compose_and_split_as_dicts_do():
    rows, dicts = ArrowRows(LAYOUT, TRADE), DictRows()
    older, newer = _batch(_set("a", 1.0, 1), _set("b", 2.0, 2)), _batch(_set("b", 3.0, 3))
    composed = rows.compose(older, newer)
    assert rows.count(composed) == dicts.count(dicts.compose({"a": 1, "b": 2}, {"b": 3})) == 2
    assert rows.part(composed, 1, 5).column("price").to_pylist() == [3.0]
    assert snapshot_of(LAYOUT, composed.select(["key", "price", "size"])).num_rows == 2
