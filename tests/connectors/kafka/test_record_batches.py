"""Fetches become columns: all that readers see, and no invalid records."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.connectors.kafka.errors import DamagedError
from ripple.connectors.kafka.record_batches import decoded, next_offset
from ripple.world.broker import Record
from tests.connectors.kafka.batches import (
    APPEND_TIME,
    CODECS,
    TRANSACTIONAL,
    batch,
    body_of,
    compressed,
    marker,
    one_by_one,
    varint,
    xerial,
)
from tests.examples import EXAMPLES, SAMPLED

TEXT = st.binary(max_size=40)
RECORDS = st.builds(
    Record,
    st.none() | TEXT,
    st.none() | TEXT,
    st.integers(0, 2**41),
    st.lists(st.tuples(st.text(max_size=3), TEXT), max_size=2).map(tuple),
)
SOME = [(delta, Record(b"k%d" % delta, b"value %d" % delta, 1000 + delta)) for delta in range(5)]


def read(data: bytes, from_offset: int = 0, aborted=(), **how) -> list[tuple[int, Record]]:
    pieces = list(decoded(data, from_offset, list(aborted), headers=True, **how))
    ends = [piece.next_offset for piece in pieces]
    assert ends == sorted(set(ends))
    assert next_offset(data, from_offset) == (ends[-1] if ends else from_offset)
    for piece in pieces:
        piece.records.keys.validate(full=True)
        piece.records.values.validate(full=True)
    return [
        pair for piece in pieces for pair in zip(piece.offsets.tolist(), piece.records, strict=True)
    ]


@st.composite
def batches(draw) -> tuple[bytes, int]:
    """Batches with holes in them and between them, and the offset behind."""
    data, base = b"", draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(0, 4))):
        base += draw(st.integers(0, 3))
        steps = draw(st.lists(st.integers(1, 3), max_size=5))
        deltas = [sum(steps[: place + 1]) - 1 for place in range(len(steps))]
        records = [(delta, draw(RECORDS)) for delta in deltas]
        last = (deltas or [0])[-1] + draw(st.integers(0, 2))
        codec = draw(st.integers(0, 4)) if records else 0
        data += batch(base, records, codec=codec, last_delta=last)
        base += last + 1
    return data, base


@settings(max_examples=60 * EXAMPLES // SAMPLED, deadline=None)
@given(batches(), st.integers(0, 8), st.integers(0, 60), st.sampled_from([1, 100, 1 << 20]))
def test_columns_equal_records_read_one_by_one(drawn, before_end, cut, piece_bytes) -> None:
    data, end = drawn
    from_offset = max(0, end - before_end) if not data else int.from_bytes(data[:8], "big")
    whole = read(data, from_offset, piece_bytes=piece_bytes)
    assert whole == one_by_one(data, from_offset)
    # Whatever was cut off at the end comes with the next fetch.
    part = data[: max(0, len(data) - cut)]
    some = read(part, from_offset)
    assert some == [pair for pair in whole if pair[0] < next_offset(part, from_offset)]


@pytest.mark.parametrize("codec", range(5), ids=CODECS)
def test_every_codec_is_read_and_one_that_is_cut_short_refused(codec: int) -> None:
    data = batch(7, SOME, codec=codec)
    assert read(data, 7) == [(7 + delta, record) for delta, record in SOME]
    body = compressed(codec, body_of(SOME, 1000))
    for end in (0, 1, len(body) // 2, len(body) - 1):
        with pytest.raises(DamagedError, match="offset 7"):
            read(batch(7, SOME, codec=codec, packed=body[:end]), 7)


def test_snappy_in_frames_of_java_is_read() -> None:
    body = body_of(SOME, 1000)
    data = batch(7, SOME, codec=2, packed=xerial(body))
    assert read(data, 7) == [(7 + delta, record) for delta, record in SOME]
    with pytest.raises(DamagedError, match="cut short"):
        read(batch(7, SOME, codec=2, packed=xerial(body)[:-1]), 7)


@pytest.mark.parametrize("codec", range(1, 5), ids=CODECS[1:])
def test_decompression_bomb_is_rejected_before_it_is_decompressed(codec: int) -> None:
    for body in (compressed(codec, bytes(1 << 20)), xerial(bytes(1 << 20), 4096)):
        if codec != 2 and body[:2] == b"\x82S":
            continue
        with pytest.raises(DamagedError, match="65536 bytes after decompression: a bomb"):
            read(batch(0, SOME, codec=codec, packed=body), batch_bytes_max=1 << 16)


def test_batch_that_begins_before_what_was_asked_for_is_read_from_there() -> None:
    data = batch(10, SOME) + batch(15, SOME)
    assert [offset for offset, _ in read(data, 13)] == [13, 14, 15, 16, 17, 18, 19]
    assert next_offset(data, 13) == 20


def test_holes_at_the_end_of_a_batch_are_passed_over() -> None:
    data = batch(10, SOME[:2], last_delta=9) + batch(20, [], last_delta=4)
    (piece,) = decoded(data, 10, [])
    assert piece.offsets.tolist() == [10, 11]
    assert piece.next_offset == 25


def test_readers_see_committed_records_alone() -> None:
    open_, a, b = {"attributes": TRANSACTIONAL}, {"producer": 1}, {"producer": 2}
    data = b"".join(
        [
            batch(0, SOME[:1], **open_, **a),
            batch(1, SOME[:1], **open_, **b),
            batch(2, SOME[:1]),
            batch(3, SOME[:1], **open_, **a),
            marker(4, 1, commits=False),
            marker(5, 2, commits=True),
            batch(6, SOME[:1], **open_, **a),
            marker(7, 1, commits=True),
            batch(8, SOME[:1], **open_, **b),
            marker(9, 2, commits=False),
        ]
    )
    aborted = [(2, 8), (1, 0)]
    assert [offset for offset, _ in read(data, 0, aborted)] == [1, 2, 6]
    assert [offset for offset, _ in read(data, 0, aborted, piece_bytes=1)] == [1, 2, 6]
    assert next_offset(data, 0) == 10


def test_records_have_the_time_of_the_log_where_the_topic_says_so() -> None:
    data = batch(0, SOME, attributes=APPEND_TIME)
    assert {record.timestamp_ms for _, record in read(data)} == {1004}


def test_headers_are_read_where_they_are_asked_for() -> None:
    record = Record(b"k", b"v", 5, (("traceparent", b"00-1"), ("", b"")))
    data = batch(0, [(0, record), (1, Record(None, b"", 5))])
    (asked,) = decoded(data, 0, [], headers=True)
    assert asked.records.headers is not None
    assert [*asked.records.headers] == [record.headers, ()]
    assert [*asked.records.headers[1:]] == [()]
    (unasked,) = decoded(data, 0, [])
    assert unasked.records.headers is None
    assert unasked.records.values.to_pylist() == [b"v", b""]


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_refused_by_name(magic: int) -> None:
    data = bytearray(batch(3, SOME))
    data[16] = magic
    with pytest.raises(DamagedError, match=f"offset 3 is of message format v{magic}, as brokers"):
        read(bytes(data), 3)


@pytest.mark.parametrize("codec", [0, 3])
def test_no_bit_that_flips_goes_unseen(codec: int) -> None:
    first, second = batch(0, SOME, codec=codec), batch(5, SOME)
    whole = read(first + second)
    for place in range(8 * len(first)):
        data = bytearray(first + second)
        data[place // 8] ^= 1 << place % 8
        if place // 8 in range(12, 16):
            assert read(bytes(data)) == whole  # the leader's epoch, which readers do not need
            continue
        try:
            found = read(bytes(data))
        except DamagedError:
            continue
        # A length that leads beyond the end: the batch comes again with the next fetch. A base
        # offset is under no checksum; it is one that the first batch may have.
        assert found == [] if place // 8 >= 8 else place // 8 < 8, place


def test_records_that_contradict_their_batch_are_refused() -> None:
    def refused(packed: bytes, count: int = 1, last_delta: int = 0) -> None:
        with pytest.raises(DamagedError, match="offset 9"):
            read(batch(9, SOME, packed=packed, count=count, last_delta=last_delta), 9)

    row = b"\0\0\0" + sized_null() + sized_null() + b"\0"
    good = varint(len(row)) + row
    assert len(read(batch(9, SOME, packed=good, count=1, last_delta=0), 9)) == 1
    refused(good, count=2)
    refused(good, count=-1)
    refused(good, count=2**31 - 1)
    refused(good + good, count=2, last_delta=1)  # one offset twice
    refused(good + b"\0")
    refused(varint(len(row) + 1) + row)
    refused(varint(-1) + row)
    refused(varint(0) + row)
    for inside in (
        b"\0\0" + varint(1) + sized_null() * 2 + b"\0",  # beyond the batch's last offset
        b"\0\0" + varint(-1) + sized_null() * 2 + b"\0",
        b"\0\0\0" + varint(-2) + b"\0\0\0\0",
        b"\0\0\0" + varint(100) + b"\0\0\0\0",
        b"\0\0\0" + sized_null() + varint(2**40) + b"\0\0",
        b"\0\0\0" + sized_null() * 2 + b"",
        b"\0" + b"\xff" * 11,
    ):
        refused(varint(len(inside)) + inside)


def test_batches_out_of_order_are_refused() -> None:
    for data in (
        batch(5, SOME) + batch(7, SOME),
        batch(5, SOME, last_delta=-1),
        batch(-5, SOME),
        batch(2**62 + 1, SOME),
        batch(0, SOME),  # ends before what was asked for
    ):
        with pytest.raises(DamagedError):
            next_offset(data, 5)
        with pytest.raises(DamagedError):
            list(decoded(data, 5, []))


def test_nothing_but_whole_batches_is_read() -> None:
    assert read(b"") == []
    assert read(batch(0, SOME)[:16]) == []
    data = bytearray(batch(0, SOME))
    struct.pack_into(">i", data, 8, 48)
    with pytest.raises(DamagedError, match="a length of 48 bytes"):
        read(bytes(data))


def sized_null() -> bytes:
    return varint(-1)


BAD = pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"codec": 1, "packed": compressed(1, b"x" * (1 << 17))}, "more than 65536 bytes"),
        ({"codec": 4, "packed": b"\x28\xb5\x2f\xfd no zstd"}, "no sound zstd"),
        ({"codec": 5, "packed": b"whatever it is"}, "codec that there is not"),
        ({"packed": b"\x07 not a record" * 5}, "records that are not sound"),
        ({"count": 1 << 30}, "no room for its records"),
    ],
)


@BAD
@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
def test_unreadable_batch_is_rejected_offset_by_offset(how, reason: str, piece_bytes: int) -> None:
    behind = batch(5, SOME, **how) + batch(10, SOME)
    limits = {"batch_bytes_max": 1 << 16, "piece_bytes": piece_bytes}
    for first, data in ((0, batch(0, SOME) + behind), (7, behind)):
        pieces = list(decoded(data, first, (), refuses=True, **limits))
        ends = [piece.next_offset for piece in pieces]
        assert ends == sorted(set(ends))
        assert ends[-1] == 15
        found = [at for piece in pieces for at in piece.offsets.tolist()]
        refused = [one for piece in pieces for one in piece.refused]
        assert sorted([*found, *(one.offset for one in refused)]) == [*range(first, 15)]
        assert {one.offset for one in refused} == {*range(max(5, first), 10)}
        assert all(reason in one.reason and b"offset 5" in one.raw for one in refused)
        with pytest.raises(DamagedError):
            list(decoded(data, first, (), **limits))


def test_a_few_bytes_cannot_make_refusals_without_end() -> None:
    data = batch(7, SOME, codec=5, packed=b"small", last_delta=1_000_000)
    pieces = list(decoded(data, 7, (), refuses=True))
    refused = [one for piece in pieces for one in piece.refused]
    assert len(refused) == 10_000
    assert refused[-1].raw.endswith(b"this stands for 990002 offsets, up to 1000007")
    assert pieces[-1].next_offset == 1_000_008
    assert max(len(piece.refused) for piece in pieces) <= 1000


def test_damaged_batch_raises() -> None:
    data = bytearray(batch(0, SOME, codec=1))
    data[-3] ^= 1
    with pytest.raises(DamagedError, match="checksum"):
        list(decoded(bytes(data), 0, (), refuses=True))
