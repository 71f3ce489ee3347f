"""The envelope: to the byte, cut anywhere, and nothing but its own errors."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.core.codec.compression import Compression
from ripple.core.codec.crc import crc32c
from ripple.exchange.wire.envelope import (
    CRC_BYTES,
    HEADER_BYTES,
    TYPES,
    Decoder,
    Frame,
    Limits,
    encode,
)
from ripple.exchange.wire.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from ripple.exchange.wire.messages import Handshake, Heartbeat, Ping, to_frame
from tests.examples import EXAMPLES, SAMPLED

BOTH = (Compression.LZ4, Compression.ZSTD)
INT64 = st.integers(-(2**63), 2**63 - 1)
FRAMES = st.builds(
    Frame,
    st.sampled_from(sorted(TYPES)),
    st.binary(max_size=300) | st.binary(min_size=1, max_size=4).map(lambda b: b * 150),
    INT64,
    INT64,
    st.text("0123456789abcdef", max_size=32),
    st.sampled_from(Compression),
)
SAMPLES = [
    encode(to_frame(Heartbeat("w0", 1709000000000000000, 0.25), sequence=7, timestamp_ns=9)),
    encode(to_frame(Handshake.announce("w0", {}, ["changes", "zstd"]), fingerprint="ab" * 8)),
    encode(Frame(24, b"")),
    encode(Frame(24, b"abc" * 50, compression=Compression.ZSTD)),
    encode(Frame(24, b"abc" * 50, compression=Compression.LZ4)),
]


def _same(got: Frame, sent: Frame) -> bool:
    return got[:5] == sent[:5]


def _decode(data: bytes, **options: object) -> list[Frame]:
    decoder = Decoder(agreed=BOTH, **options)  # type: ignore[arg-type]
    decoder.receive(data)
    frames = list(decoder)
    decoder.finish()
    return frames


def test_a_frame_is_laid_out_as_written_down() -> None:
    data = encode(Frame(4, b"payload", 42, 1709000000000000000, "00112233445566ff"))
    assert data[:7] == b"RIPP\x01\x04\x00"
    assert data[7:15] == (42).to_bytes(8, "little")
    assert data[15:23] == (1709000000000000000).to_bytes(8, "little")
    assert data[23:55] == b"00112233445566ff" + bytes(16)
    assert data[55:59] == (7).to_bytes(4, "little")
    assert data[59:66] == b"payload"
    assert data[66:] == crc32c(data[:66]).to_bytes(4, "little")
    assert len(data) == HEADER_BYTES + 7 + CRC_BYTES


def test_crc32c_is_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283


@given(st.lists(FRAMES, max_size=5), st.data())
@settings(max_examples=36 * EXAMPLES // SAMPLED)
def test_a_stream_cut_anywhere_gives_the_same_frames(frames: list[Frame], data) -> None:
    stream = b"".join(encode(frame) for frame in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    decoder = Decoder(agreed=BOTH)
    got: list[Frame] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        decoder.receive(stream[start:end])
        if data.draw(st.booleans()):
            got += decoder
    got += decoder
    decoder.finish()
    assert len(got) == len(frames)
    assert all(map(_same, got, frames))
    assert decoder.offset == len(stream)


def test_byte_by_byte_gives_the_same_frames() -> None:
    decoder = Decoder(agreed=BOTH)
    got = []
    for byte in b"".join(SAMPLES):
        decoder.receive(bytes([byte]))
        got += [bytes(frame.payload) for frame in decoder]
    assert got == [bytes(_decode(sample)[0].payload) for sample in SAMPLES]


def test_a_frame_within_one_piece_is_not_copied() -> None:
    data = encode(Frame(24, b"x" * 1_000_000))
    decoder = Decoder()
    tracemalloc.start()
    decoder.receive(data)
    (frame,) = decoder
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000
    assert isinstance(frame.payload, memoryview)
    assert frame.payload.obj is data
    assert frame.payload.readonly


def test_a_payload_outlives_the_frames_after_it() -> None:
    stream = b"".join(encode(Frame(24, bytes([n]) * 100)) for n in range(50))
    decoder = Decoder()
    held = []
    for start in range(0, len(stream), 37):
        decoder.receive(stream[start : start + 37])
        held += decoder
    assert [bytes(frame.payload) for frame in held] == [bytes([n]) * 100 for n in range(50)]


@pytest.mark.parametrize("sample", SAMPLES, ids=range(len(SAMPLES)))
def test_every_flipped_bit_is_refused(sample: bytes) -> None:
    for bit in range(len(sample) * 8):
        broken = bytearray(sample)
        broken[bit // 8] ^= 1 << bit % 8
        with pytest.raises(RemoteProtocolError):
            _decode(bytes(broken))


@pytest.mark.parametrize("sample", SAMPLES, ids=range(len(SAMPLES)))
def test_every_truncation_is_refused(sample: bytes) -> None:
    for length in range(1, len(sample)):
        with pytest.raises(RemoteProtocolError):
            _decode(sample[:length])


@given(st.binary(max_size=400))
@settings(max_examples=48 * EXAMPLES // SAMPLED)
def test_any_bytes_raise_nothing_but_protocol_errors(data: bytes) -> None:
    for stream in (data, SAMPLES[0][:HEADER_BYTES] + data, SAMPLES[0] + data):
        try:
            _decode(stream)
        except ProtocolError:
            continue


def _header(**fields: int | bytes) -> bytes:
    values = {
        "magic": b"RIPP",
        "version": 1,
        "type": 4,
        "flags": 0,
        "sequence": 0,
        "timestamp": 0,
        "fingerprint": b"",
        "length": 0,
    } | fields
    return struct.pack("<4sBBBqq32si", *values.values())


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"magic": b"HTTP"}, "not the wire protocol"),
        ({"version": 2}, "protocol version 2"),
        ({"version": 0}, "protocol version 0"),
        ({"type": 6}, "unknown message type 6"),
        ({"flags": 2}, "flags 0x02"),
        ({"flags": 1}, "flags 0x01"),
        ({"length": -1}, "payload of -1 bytes"),
        ({"length": 4 * 1024 * 1024 + 1}, "payload_bytes_max=4194304"),
        ({"length": 2**31 - 1}, "payload_bytes_max"),
    ],
)
def test_a_bad_header_is_refused_before_its_body_arrives(fields, complaint: str) -> None:
    decoder = Decoder()
    decoder.receive(_header(**fields))
    with pytest.raises(RemoteProtocolError, match=complaint):
        next(decoder)


def test_another_protocol_is_refused_at_its_first_byte() -> None:
    decoder = Decoder()
    decoder.receive(b"GET / HTTP/1.1\r\n")
    with pytest.raises(RemoteProtocolError, match="begins with b'GET '"):
        next(decoder)


def test_a_fingerprint_with_a_hole_is_refused() -> None:
    body = _header(fingerprint=b"ab\0cd")
    with pytest.raises(RemoteProtocolError, match="fingerprint"):
        _decode(body + crc32c(body).to_bytes(4, "little"))


def test_after_a_bad_frame_nothing_more_is_taken() -> None:
    decoder = Decoder()
    decoder.receive(SAMPLES[0] + b"garbage" + SAMPLES[0])
    assert next(decoder).sequence == 7
    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match="not the wire protocol"):
            next(decoder)
    with pytest.raises(RemoteProtocolError, match="not the wire protocol"):
        decoder.receive(SAMPLES[0])
    assert decoder.offset == len(SAMPLES[0])


def test_a_length_is_not_allocated_before_its_bytes_arrive() -> None:
    tracemalloc.start()
    decoder = Decoder()
    decoder.receive(_header(length=4 * 1024 * 1024))
    assert list(decoder) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000


@pytest.mark.parametrize(
    "frame",
    [
        Frame(6, b""),
        Frame(4, b"", sequence=2**63),
        Frame(4, b"", timestamp_ns=-(2**63) - 1),
        Frame(4, b"", fingerprint="x" * 33),
        Frame(4, b"", fingerprint="a b"),
        Frame(4, b"", fingerprint="é"),
        Frame(4, bytes(101)),
    ],
)
def test_unsendable_message_is_a_local_error(frame: Frame) -> None:
    with pytest.raises(LocalProtocolError):
        encode(frame, Limits(payload_bytes_max=100))


def test_a_frame_of_exactly_the_cap_passes() -> None:
    limits = Limits(payload_bytes_max=100)
    assert len(_decode(encode(Frame(4, bytes(100)), limits), limits=limits)[0].payload) == 100
    with pytest.raises(RemoteProtocolError):
        _decode(encode(Frame(4, bytes(101))), limits=limits)


def test_types_that_were_not_agreed_on_are_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="type 21"):
        _decode(encode(to_frame(Ping(1))), types=range(6))
