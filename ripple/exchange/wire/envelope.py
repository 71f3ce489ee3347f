"""The envelope: a 59-byte header, the payload, CRC-32C. Bytes in, frames out, no I/O.

::

    offset  size  field
    0       4     magic, "RIPP"
    4       1     protocol version, 1
    5       1     message type
    6       1     flags; bit 0: the payload is compressed (ripple.core.codec.compression)
    7       8     sequence number (int64)
    15      8     event time, ns since 1970 (int64)
    23      32    schema fingerprint, ASCII padded with zeros
    55      4     payload length (int32)
    59      N     payload
    59+N    4     CRC-32C of everything before it (uint32)

Numbers are little-endian. The layout is that of Ripple/OCaml, to the byte. Bit 0 stays zero until
both sides have named a common compression.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ripple.core.codec.compression import Compression, compress, decompress
from ripple.core.codec.crc import crc32c
from ripple.core.codec.errors import EncodingError
from ripple.exchange.wire.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ripple.exchange.wire.codec import Buffer

MAGIC = b"RIPP"
VERSION = 1
HEADER_BYTES = 59
CRC_BYTES = 4
FINGERPRINT_BYTES = 32
FLAG_COMPRESSED = 0x01

# Six types of Ripple/OCaml, then our own.
TYPES = frozenset((*range(6), *range(21, 30)))

_HEADER = struct.Struct("<4sBBBqq32si")
_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on the memory that a peer can claim."""

    payload_bytes_max: int = 4 * 1024 * 1024


DEFAULT_LIMITS = Limits()


class Frame(NamedTuple):
    """One message in its envelope; the payload is bin_prot (types 0-5) or ours (from 21)."""

    type: int
    payload: Buffer
    sequence: int = 0
    timestamp_ns: int = 0
    fingerprint: str = ""
    compression: Compression = Compression.NONE


def encode(frame: Frame, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Return the bytes of ``frame``; raises :class:`LocalProtocolError`.

    A frame is sent uncompressed when compression would not make it smaller.
    """
    _check_sendable(frame, limits)
    packed = compress(frame.payload, frame.compression) if frame.compression else None
    payload = frame.payload if packed is None else packed
    header = _HEADER.pack(
        MAGIC,
        VERSION,
        frame.type,
        FLAG_COMPRESSED if packed is not None else 0,
        frame.sequence,
        frame.timestamp_ns,
        frame.fingerprint.encode("ascii"),
        len(payload),
    )
    crc = crc32c(payload, crc32c(header))
    return b"".join((header, payload, _CRC.pack(crc)))


def _check_sendable(frame: Frame, limits: Limits) -> None:
    if frame.type not in TYPES:
        raise LocalProtocolError(f"there is no message type {frame.type}")
    if not (_is_int64(frame.sequence) and _is_int64(frame.timestamp_ns)):
        raise LocalProtocolError("the sequence number and the timestamp are 64-bit integers")
    fingerprint = frame.fingerprint
    if len(fingerprint) > FINGERPRINT_BYTES or not _is_fingerprint(fingerprint):
        raise LocalProtocolError(f"not a schema fingerprint: {fingerprint!r:.60}")
    if len(frame.payload) > limits.payload_bytes_max:
        raise LocalProtocolError(
            f"a payload of {len(frame.payload)} bytes exceeds payload_bytes_max="
            f"{limits.payload_bytes_max}: send it in parts"
        )


def _is_int64(number: int) -> bool:
    return isinstance(number, int) and -(1 << 63) <= number < 1 << 63


def _is_fingerprint(text: str) -> bool:
    return text.isascii() and (not text or (text.isprintable() and " " not in text))


class Decoder:
    """Turns a stream of bytes, cut anywhere, into frames.

    ::

        decoder.receive(data)
        for frame in decoder:      # ends when more bytes are needed
            ...

    A frame that lies within one piece of ``bytes`` is a view into it; one that spans pieces is put
    together once. A payload stays valid as long as it is referenced.

    The first byte that breaks a rule ends everything: :class:`RemoteProtocolError` now, and the
    same again on each later call. Frames before it are delivered first.

    Invariants: ``0 <= position <= len(data)``; the decoder holds less than one frame beyond the
    bytes of the last ``receive``; ``offset`` is where in the stream the next frame begins.
    """

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        *,
        types: Collection[int] = TYPES,
        agreed: Collection[Compression] = (),
    ) -> None:
        self.offset = 0
        self._limits = limits
        self._types = types
        self._agreed = agreed
        self._data: bytes | bytearray = b""
        self._view = memoryview(self._data)
        self._position = 0
        self._failure: str | None = None

    def agree(self, algorithms: Collection[Compression]) -> None:
        """From the next frame on, let the peer compress with ``algorithms``."""
        self._agreed = tuple(algorithms)

    def receive(self, data: Buffer) -> None:
        """Take the next bytes of the stream."""
        self._refuse_after_failure()
        rest = len(self._data) - self._position
        if rest == 0:
            self._data = data if isinstance(data, bytes) else bytes(data)
        elif isinstance(self._data, bytearray) and self._position == 0:
            # There are no views of an unfinished frame, so its buffer may still grow.
            self._view.release()
            self._data += data
        else:
            self._data = bytearray(self._view[self._position :])
            self._data += data
        self._view = memoryview(self._data).toreadonly()
        self._position = 0

    def __iter__(self) -> Iterator[Frame]:
        return self

    def __next__(self) -> Frame:
        self._refuse_after_failure()
        try:
            frame = self._take()
        except RemoteProtocolError as error:
            self._failure = str(error)
            raise
        if frame is None:
            raise StopIteration
        return frame

    def finish(self) -> None:
        """Note the end of the stream; raises when it is inside a frame."""
        self._refuse_after_failure()
        rest = len(self._data) - self._position
        if rest:
            self._failure = f"the stream ends {rest} bytes into a frame"
            raise RemoteProtocolError(self._failure)

    def _refuse_after_failure(self) -> None:
        if self._failure is not None:
            raise RemoteProtocolError(self._failure)

    def _take(self) -> Frame | None:
        start = self._position
        held = len(self._data) - start
        if held < HEADER_BYTES:
            self._check_beginning(start, held)
            return None
        header = _HEADER.unpack_from(self._data, start)
        length = self._checked_length(*header)
        if held < HEADER_BYTES + length + CRC_BYTES:
            return None
        payload_at = start + HEADER_BYTES
        crc_at = payload_at + length
        self._check_crc(start, crc_at)
        # The CRC is right: from here on the bytes are as the peer sent them.
        frame = self._opened(header, self._view[payload_at:crc_at])
        self._position = crc_at + CRC_BYTES
        self.offset += self._position - start
        return frame

    def _check_beginning(self, start: int, held: int) -> None:
        beginning = self._data[start : start + min(held, len(MAGIC))]
        if not MAGIC.startswith(beginning):
            raise RemoteProtocolError(f"not the wire protocol: begins with {bytes(beginning)!r}")

    def _checked_length(
        self,
        magic: bytes,
        version: int,
        type_: int,
        flags: int,
        _sequence: int,
        _timestamp_ns: int,
        _fingerprint: bytes,
        length: int,
    ) -> int:
        if magic != MAGIC:
            raise RemoteProtocolError(f"not the wire protocol: begins with {magic!r}")
        if version != VERSION:
            raise RemoteProtocolError(f"protocol version {version}; this side speaks {VERSION}")
        if type_ not in self._types:
            raise RemoteProtocolError(f"unknown message type {type_}")
        if flags & ~FLAG_COMPRESSED or (flags and not self._agreed):
            raise RemoteProtocolError(f"flags 0x{flags:02x} were not negotiated")
        if not 0 <= length <= self._limits.payload_bytes_max:
            raise RemoteProtocolError(
                f"a payload of {length} bytes; payload_bytes_max={self._limits.payload_bytes_max}"
            )
        return length

    def _check_crc(self, start: int, crc_at: int) -> None:
        (announced,) = _CRC.unpack_from(self._data, crc_at)
        computed = crc32c(self._view[start:crc_at])
        if computed != announced:
            raise RemoteProtocolError(f"CRC-32C is {computed:08x}, the frame says {announced:08x}")

    def _opened(
        self, header: tuple[bytes, int, int, int, int, int, bytes, int], payload: memoryview
    ) -> Frame:
        _, _, type_, flags, sequence, timestamp_ns, padded, _ = header
        fingerprint = padded.rstrip(b"\0").decode("latin-1")
        if not _is_fingerprint(fingerprint):
            raise RemoteProtocolError(f"not a schema fingerprint: {padded!r}")
        if not flags:
            return Frame(type_, payload, sequence, timestamp_ns, fingerprint)
        try:
            whole, algorithm = decompress(
                payload, agreed=self._agreed, length_bytes_max=self._limits.payload_bytes_max
            )
        except EncodingError as error:
            raise RemoteProtocolError(str(error)) from error
        return Frame(type_, memoryview(whole), sequence, timestamp_ns, fingerprint, algorithm)
