"""Compressed bytes: those of every release and of the libraries, and never more than announced."""

from __future__ import annotations

import base64
import struct
import tracemalloc

import lz4.block
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.codec.compression import RATIO_MAX, Compression, compress, decompress
from ripple.core.codec.errors import EncodingError
from ripple.core.codec.lengths import lz4_block_bytes, zstd_frame_bytes

LZ4, ZSTD = BOTH = (Compression.LZ4, Compression.ZSTD)
TEXT = b"".join(b"AAPL,%d,XNAS;" % n for n in range(500))
# TEXT[:130] as the first release wrote it, by the packages lz4 and zstandard.
OF_THE_FIRST_RELEASE = {
    LZ4: "AYIAAADBQUFQTCwwLFhOQVM7DAAXMQwAFzIMABczDAAXNAwAFzUMABc2DAAXNwwAFzgMABc5DABQMTAsWE4=",
    ZSTD: "AoIAAAAotS/9IIJ9AQD4QUFQTCwwLFhOQVM7QUFQTCwxMjM0NTY3ODkxMCxYTgkECEDAAQYEHGBAwPUSBg==",
}


def _packed(algorithm: Compression, length: int, body: bytes) -> bytes:
    return struct.pack("<BI", algorithm, length) + body


def _open(packed: bytes, **options) -> bytes:
    return decompress(packed, **({"agreed": BOTH, "length_bytes_max": 1 << 20} | options))[0]


def _by_the_packages(payload: bytes) -> list[bytes]:
    """Return what the packages lz4 and zstandard make of a payload, in each of their ways."""
    slow = {"mode": "high_compression", "compression": 12}
    streamed = zstandard.ZstdCompressor().compressobj(size=len(payload))
    return [
        *(
            _packed(LZ4, len(payload), lz4.block.compress(payload, store_size=False, **options))
            for options in ({}, {"mode": "fast", "acceleration": 9}, slow)
        ),
        *(
            _packed(ZSTD, len(payload), zstandard.ZstdCompressor(**options).compress(payload))
            for options in ({"level": 1}, {"level": 19}, {"level": -7}, {"write_checksum": True})
        ),
        _packed(ZSTD, len(payload), streamed.compress(payload) + streamed.flush()),
    ]


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
def test_bytes_of_the_first_release_are_read(algorithm: Compression) -> None:
    packed = base64.b64decode(OF_THE_FIRST_RELEASE[algorithm])
    assert _open(packed) == TEXT[:130]


PAYLOADS = (b"", b"x", TEXT, bytes(range(256)) * 9, bytes(100), TEXT * 40)


@pytest.mark.parametrize("payload", PAYLOADS, ids=len)
def test_bytes_of_the_packages_are_read_and_ours_by_them(payload: bytes) -> None:
    for packed in _by_the_packages(payload):
        if RATIO_MAX * (len(packed) - 5) >= len(payload):
            assert _open(packed) == payload
    if (ours := compress(payload, LZ4)) is not None:
        assert lz4.block.decompress(ours[5:], uncompressed_size=len(payload)) == payload
    if (ours := compress(payload, ZSTD)) is not None:
        assert zstandard.get_frame_parameters(ours[5:]).content_size == len(payload)
        assert zstandard.ZstdDecompressor().decompress(ours[5:], max_output_size=0) == payload


@given(st.lists(st.sampled_from([b"", b"AAPL", b"\0" * 300, bytes(range(70))]), max_size=300))
def test_lengths_are_read_off_what_the_packages_write(pieces: list[bytes]) -> None:
    payload = b"".join(pieces)
    for packed in _by_the_packages(payload):
        length_of = lz4_block_bytes if packed[0] == LZ4 else zstd_frame_bytes
        assert length_of(packed[5:]) == len(payload)


@pytest.mark.parametrize("algorithm", BOTH)
@pytest.mark.parametrize("payload", [b"", b"x", bytes(range(256)), bytes(1_000_000)])
def test_payload_beyond_bounds_or_without_gain_stays_uncompressed(algorithm, payload) -> None:
    packed = compress(payload, algorithm)
    assert packed is None or _open(packed) == payload


@pytest.mark.parametrize("algorithm", BOTH)
@pytest.mark.parametrize("change", [-1, 1, 1000])
def test_a_length_that_does_not_come_out_is_refused(algorithm, change) -> None:
    packed = bytearray(compress(TEXT, algorithm) or b"")
    packed[1:5] = struct.pack("<I", len(TEXT) + change)
    with pytest.raises(EncodingError, match=f"hold {len(TEXT)} bytes, not {len(TEXT) + change}"):
        _open(bytes(packed))


def test_a_payload_over_the_cap_is_refused_before_it_is_made() -> None:
    packed = compress(TEXT, ZSTD) or b""
    with pytest.raises(EncodingError, match="payload_bytes_max=100"):
        _open(packed, length_bytes_max=100)


def test_bombs_are_refused_without_allocating() -> None:
    body = zstandard.ZstdCompressor(level=19).compress(bytes(100_000_000))
    honest = _packed(ZSTD, 100_000_000, body)
    lying = _packed(ZSTD, 10_000, body)
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(100_000_000))
    silent = _packed(ZSTD, 10_000, unsized)
    sequences = b"\x1f\0\1\0" + b"\xff" * 1000
    lz4 = _packed(LZ4, 2**32 - 1, sequences)
    # An end for the last sequence, so that only its length is wrong.
    long_lz4 = _packed(LZ4, 50_000, sequences + b"\0\x10x")
    tracemalloc.start()
    for packed in (honest, lying, silent, lz4, long_lz4):
        with pytest.raises(EncodingError):
            _open(packed, length_bytes_max=1 << 30)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40_000
    assert len(lying) * RATIO_MAX > 10_000  # so that the ratio was not what refused it
    assert len(long_lz4) * RATIO_MAX > 50_000


@pytest.mark.parametrize("algorithm", BOTH)
def test_any_damage_inside_is_refused_or_harmless_but_never_another_error(algorithm) -> None:
    packed = compress(TEXT[:400], algorithm) or b""
    for bit in range(len(packed) * 8):
        broken = bytearray(packed)
        broken[bit // 8] ^= 1 << bit % 8
        try:
            read = _open(bytes(broken))
        except EncodingError:
            continue
        # Arrow does not say how much it wrote: what it wrote must be all that there is.
        assert read == _by_the_package(algorithm, bytes(broken[5:]), 400)
    for length in range(len(packed)):
        with pytest.raises(EncodingError):
            _open(packed[:length])


def _by_the_package(algorithm: Compression, body: bytes, length: int) -> bytes:
    if algorithm is LZ4:
        return lz4.block.decompress(body, uncompressed_size=length)
    return zstandard.ZstdDecompressor().decompress(body, max_output_size=length)


@pytest.mark.parametrize("algorithm", BOTH)
def test_bytes_behind_the_compressed_ones_are_refused(algorithm: Compression) -> None:
    packed = compress(TEXT, algorithm) or b""
    behind = [b"x"]
    if algorithm is ZSTD:
        skippable = b"\x50\x2a\x4d\x18\0\0\0\0"
        behind += [zstandard.compress(b""), skippable, packed[5:]]
    for more in behind:
        with pytest.raises(EncodingError):
            _open(packed + more)


def test_a_zstandard_frame_must_say_its_size() -> None:
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    with pytest.raises(EncodingError, match="frame that says its size"):
        _open(_packed(ZSTD, len(TEXT), unsized))


@pytest.mark.parametrize("algorithm", BOTH)
def test_any_bytes_are_refused_or_read(algorithm: Compression) -> None:
    @given(st.binary(max_size=200), st.integers(0, 1000))
    def read(body: bytes, length: int) -> None:
        try:
            payload = _open(_packed(algorithm, length, body))
        except EncodingError:
            return
        assert payload == _by_the_package(algorithm, body, length)

    read()
