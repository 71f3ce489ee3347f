"""The Liftbridge envelope, beside the bytes that its documentation draws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.wire.liftbridge import MAGIC, Envelope, dumps, loads


def test_an_envelope_is_laid_out_as_documented() -> None:
    assert dumps(b"abc", checksum=False) == bytes.fromhex("b90e43b4 00 08 00 00") + b"abc"
    # CRC-32C of "123456789" is e3069283, in network order.
    assert dumps(b"123456789") == bytes.fromhex("b90e43b4 00 0c 01 00 e3069283") + b"123456789"


@given(st.binary(), st.booleans(), st.integers(0, 255))
def test_a_payload_comes_back(payload: bytes, checksum: bool, reserved: int) -> None:
    opened = loads(dumps(payload, checksum=checksum, reserved=reserved))
    assert opened == Envelope(payload, checked=checksum, reserved=reserved)


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
    with pytest.raises(RemoteProtocolError):
        loads(bytes.fromhex(text))


def test_every_flipped_bit_is_refused_or_makes_it_plain() -> None:
    sample = dumps(b"payload")
    for bit in range(len(sample) * 8):
        broken = bytearray(sample)
        broken[bit // 8] ^= 1 << bit % 8
        if bit < 32:
            assert loads(bytes(broken)).plain
        elif bit // 8 == 7:
            assert loads(bytes(broken)).reserved
        else:
            with pytest.raises(RemoteProtocolError):
                loads(bytes(broken))


def test_a_reserved_byte_out_of_range_is_a_local_error() -> None:
    with pytest.raises(LocalProtocolError):
        dumps(b"", reserved=256)
