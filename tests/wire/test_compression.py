"""Compression travels only when agreed on, and never makes more than it announces."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
import zstandard

from ripple.wire.compression import RATIO_MAX, Compression, compress, decompress
from ripple.wire.envelope import FLAG_COMPRESSED, Decoder, Frame, encode
from ripple.wire.errors import RemoteProtocolError

BOTH = (Compression.LZ4, Compression.ZSTD)
TEXT = b"".join(b"AAPL,%d,XNAS;" % n for n in range(500))


def _open(packed: bytes, **options) -> bytes:
    return decompress(packed, **({"agreed": BOTH, "length_bytes_max": 1 << 20} | options))[0]


@pytest.mark.parametrize("algorithm", BOTH)
def test_a_payload_comes_back(algorithm: Compression) -> None:
    packed = compress(TEXT, algorithm)
    assert packed is not None
    assert len(packed) < len(TEXT)
    assert packed[0] == algorithm
    assert struct.unpack("<I", packed[1:5]) == (len(TEXT),)
    assert _open(packed) == TEXT
    assert _open(memoryview(packed)) == TEXT


@pytest.mark.parametrize("algorithm", BOTH)
@pytest.mark.parametrize("payload", [b"", b"x", bytes(range(256)), bytes(1_000_000)])
def test_what_would_not_be_believed_or_gains_nothing_goes_as_it_is(algorithm, payload) -> None:
    packed = compress(payload, algorithm)
    assert packed is None or _open(packed) == payload
    data = encode(Frame(16, payload, compression=algorithm))
    decoder = Decoder(agreed=BOTH)
    decoder.receive(data)
    assert next(decoder).payload == payload


def test_the_flag_says_whether_a_payload_is_compressed() -> None:
    assert encode(Frame(16, TEXT, compression=Compression.ZSTD))[6] == FLAG_COMPRESSED
    assert encode(Frame(16, b"x", compression=Compression.ZSTD))[6] == 0


@pytest.mark.parametrize("agreed", [(), (Compression.LZ4,)])
def test_an_algorithm_that_was_not_agreed_on_is_refused(agreed) -> None:
    decoder = Decoder(agreed=agreed)
    decoder.receive(encode(Frame(16, TEXT, compression=Compression.ZSTD)))
    with pytest.raises(RemoteProtocolError, match="not agreed on"):
        next(decoder)


def test_agreeing_later_counts_from_the_next_frame() -> None:
    decoder = Decoder()
    decoder.agree(BOTH)
    decoder.receive(encode(Frame(16, TEXT, compression=Compression.ZSTD)))
    assert next(decoder).payload == TEXT


@pytest.mark.parametrize("algorithm", BOTH)
@pytest.mark.parametrize("change", [-1, 1])
def test_a_length_that_does_not_come_out_is_refused(algorithm, change) -> None:
    packed = bytearray(compress(TEXT, algorithm) or b"")
    packed[1:5] = struct.pack("<I", len(TEXT) + change)
    with pytest.raises(RemoteProtocolError):
        _open(bytes(packed))


def test_a_payload_over_the_cap_is_refused_before_it_is_made() -> None:
    packed = compress(TEXT, Compression.ZSTD) or b""
    with pytest.raises(RemoteProtocolError, match="payload_bytes_max=100"):
        _open(packed, length_bytes_max=100)


def test_bombs_are_refused_without_allocating() -> None:
    body = zstandard.ZstdCompressor(level=19).compress(bytes(100_000_000))
    honest = struct.pack("<BI", Compression.ZSTD, 100_000_000) + body
    lying = struct.pack("<BI", Compression.ZSTD, 10_000) + body
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(100_000_000))
    silent = struct.pack("<BI", Compression.ZSTD, 10_000) + unsized
    lz4 = struct.pack("<BI", Compression.LZ4, 2**32 - 1) + b"\x1f\0\1\0" + b"\xff" * 1000
    tracemalloc.start()
    for packed in (honest, lying, silent, lz4):
        with pytest.raises(RemoteProtocolError):
            _open(packed, length_bytes_max=1 << 30)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
    assert len(lying) * RATIO_MAX > 10_000  # so that the ratio was not what refused it


@pytest.mark.parametrize("algorithm", BOTH)
def test_any_damage_inside_is_refused_or_harmless_but_never_another_error(algorithm) -> None:
    packed = compress(TEXT[:400], algorithm) or b""
    for bit in range(len(packed) * 8):
        broken = bytearray(packed)
        broken[bit // 8] ^= 1 << bit % 8
        try:
            assert len(_open(bytes(broken))) == 400
        except RemoteProtocolError:
            continue
    for length in range(len(packed)):
        with pytest.raises(RemoteProtocolError):
            _open(packed[:length])


def test_bytes_behind_the_compressed_ones_are_refused() -> None:
    for algorithm in BOTH:
        with pytest.raises(RemoteProtocolError):
            _open((compress(TEXT, algorithm) or b"") + b"x")
