"""Compression travels only when agreed on, and only when it is worth it."""

from __future__ import annotations

import pytest

from ripple.core.codec.compression import Compression
from ripple.exchange.wire.envelope import FLAG_COMPRESSED, Decoder, Frame, encode
from ripple.exchange.wire.errors import RemoteProtocolError

BOTH = (Compression.LZ4, Compression.ZSTD)
TEXT = b"".join(b"AAPL,%d,XNAS;" % n for n in range(500))


@pytest.mark.parametrize("algorithm", BOTH)
@pytest.mark.parametrize("payload", [b"", b"x", bytes(range(256)), bytes(1_000_000), TEXT])
def test_payload_round_trip_with_and_without_useful_compression(algorithm, payload) -> None:
    data = encode(Frame(24, payload, compression=algorithm))
    decoder = Decoder(agreed=BOTH)
    decoder.receive(data)
    assert next(decoder).payload == payload


def test_the_flag_says_whether_a_payload_is_compressed() -> None:
    assert encode(Frame(24, TEXT, compression=Compression.ZSTD))[6] == FLAG_COMPRESSED
    assert encode(Frame(24, b"x", compression=Compression.ZSTD))[6] == 0


@pytest.mark.parametrize("agreed", [(), (Compression.LZ4,)])
def test_an_algorithm_that_was_not_agreed_on_is_refused(agreed) -> None:
    decoder = Decoder(agreed=agreed)
    decoder.receive(encode(Frame(24, TEXT, compression=Compression.ZSTD)))
    with pytest.raises(RemoteProtocolError, match="not negotiated"):
        next(decoder)


def test_agreeing_later_counts_from_the_next_frame() -> None:
    decoder = Decoder()
    decoder.agree(BOTH)
    decoder.receive(encode(Frame(24, TEXT, compression=Compression.ZSTD)))
    assert next(decoder).payload == TEXT
