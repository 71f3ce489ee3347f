"""The Liftbridge envelope, beside the bytes that its documentation draws."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.connectors.nats.envelope import (
    ACK,
    MAGIC,
    Ack,
    AckPolicy,
    Envelope,
    EnvelopeError,
    Message,
    ack_of,
    dumps,
    dumps_message,
    loads,
    message_of,
    value_of,
)


def test_an_envelope_is_laid_out_as_documented() -> None:
    assert dumps(b"abc", checksum=False) == bytes.fromhex("b90e43b4 00 08 00 00") + b"abc"
    # CRC-32C of "123456789" is e3069283, in network order.
    assert dumps(b"123456789") == bytes.fromhex("b90e43b4 00 0c 01 00 e3069283") + b"123456789"


@given(st.binary(), st.booleans(), st.integers(0, 255))
def test_payload_round_trip(payload: bytes, checksum: bool, kind: int) -> None:
    opened = loads(dumps(payload, checksum=checksum, kind=kind))
    assert opened == Envelope(payload, checked=checksum, kind=kind)


@pytest.mark.parametrize("data", [b"", b"hello", MAGIC[:3], b"{}" + MAGIC])
def test_a_plain_message_passes_through(data: bytes) -> None:
    assert loads(data) == Envelope(data, plain=True)


@pytest.mark.parametrize(
    "text",
    [
        "b90e43b4",
        "b90e43b4000800",
        "b90e43b4 01 08 00 00",
        "b90e43b4 00 09 00 00 00",
        "b90e43b4 00 08 02 00",
        "b90e43b4 00 08 01 00",
        "b90e43b4 00 0c 01 00 0000",
        "b90e43b4 00 0c 01 00 e3069284 313233343536373839",
    ],
)
def test_a_broken_envelope_is_refused(text: str) -> None:
    with pytest.raises(EnvelopeError):
        loads(bytes.fromhex(text))


def test_every_flipped_bit_is_refused_or_makes_it_plain() -> None:
    sample = dumps(b"payload")
    for bit in range(len(sample) * 8):
        broken = bytearray(sample)
        broken[bit // 8] ^= 1 << bit % 8
        if bit < 32:
            assert loads(bytes(broken)).plain
        elif bit // 8 == 7:
            assert loads(bytes(broken)).kind
        else:
            with pytest.raises(EnvelopeError):
                loads(bytes(broken))


def test_a_kind_out_of_range_is_a_local_error() -> None:
    with pytest.raises(ValueError, match="cannot hold 256"):
        dumps(b"", kind=256)


def test_a_message_is_protobuf_to_the_byte() -> None:
    said = Message(b"value", b"key", "inbox", "id", AckPolicy.ALL)
    data = b"\x12\x03key\x1a\x05value\x52\x05inbox\x5a\x02id\x60\x01"
    assert dumps_message(said) == data
    assert message_of(data) == said
    # Offset, a header and a field that nobody knows are passed over.
    more = b"\x08\xac\x02" + b"\x4a\x06\x0a\x01h\x12\x01v" + b"\xfd\x01abcd"
    assert message_of(more + data) == said
    assert message_of(b"") == Message(b"")


def test_an_ack_says_where_a_message_stands() -> None:
    data = b"\x0a\x06trades\x12\x01s\x20\xac\x02\x32\x02id\x50\x02"
    assert ack_of(data) == Ack("trades", 300, "id", 2)


def test_the_value_of_a_message_is_what_was_published() -> None:
    assert value_of(b"{}") == b"{}"
    assert value_of(dumps(dumps_message(Message(b"{}")))) == b"{}"
    for wrong, says in (
        (dumps(b"{}"), "no Message"),
        (dumps(b"\x1a\x05val"), "no Message"),
        (dumps(b"\x1a" + b"\xff" * 12), "no Message"),
        (dumps(b"\x18\x05"), "no Message"),
        (dumps(b"", kind=ACK), "holds an acknowledgement, and no record"),
        (dumps(b"", kind=4), "of kind 4"),
    ):
        with pytest.raises(EnvelopeError, match=says):
            value_of(wrong)


@given(st.binary(max_size=40))
def test_any_payload_is_a_message_or_refused(payload: bytes) -> None:
    with suppress(EnvelopeError):
        assert isinstance(message_of(payload), Message)
