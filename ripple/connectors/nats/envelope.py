"""Liftbridge's envelope on subjects of NATS, and the two messages that come in it.

::

    offset  size  field
    0       4     magic, b9 0e 43 b4 (not valid UTF-8, so that text cannot look like it)
    4       1     version, 0
    5       1     header length: where the payload begins
    6       1     flags; bit 0: a CRC-32C follows
    7       1     kind of message: 0 is a Message, 1 an Ack, others are between its servers
    8       4     CRC-32C of the payload (optional), big-endian

Source: Liftbridge's documentation, "Envelope Protocol", which calls the kind reserved and does not
name the byte order; its server goes by both. The payload is protobuf: a publisher sends a Message;
the server that has stored it sends an Ack to its ``ack_inbox``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from ripple.core.codec.crc import crc32c
from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    Buffer: TypeAlias = bytes | bytearray | memoryview

MAGIC = b"\xb9\x0e\x43\xb4"
VERSION = 0
FLAG_CRC = 0x01
HEADER_BYTES = 8
CRC_BYTES = 4
MESSAGE, ACK = 0, 1

_VARINT, _LENGTH = 0, 2
_FIXED_BYTES = {1: 8, 5: 4}
_VARINT_BYTES_MAX = 10


class EnvelopeError(RippleError):
    """Bytes are no envelope, or one of another kind of message."""


class AckPolicy(IntEnum):
    """The acknowledgement of a message: once the leader or all in sync have stored it, or never."""

    LEADER = 0
    ALL = 1
    NONE = 2


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message; ``plain`` when it came without an envelope, as any NATS publisher sends it."""

    payload: Buffer
    plain: bool = False
    checked: bool = False
    kind: int = MESSAGE


class Message(NamedTuple):
    """The message of a publisher, in the part of protobuf that it uses."""

    value: bytes
    key: bytes = b""
    ack_inbox: str = ""
    correlation_id: str = ""
    ack_policy: int = AckPolicy.LEADER


class Ack(NamedTuple):
    """A server's answer to a message: its position in a stream; error: 0 if all is well."""

    stream: str
    offset: int
    correlation_id: str
    error: int = 0


def dumps(payload: Buffer, *, checksum: bool = True, kind: int = MESSAGE) -> bytes:
    """Return ``payload`` in an envelope."""
    if not 0 <= kind <= 0xFF:
        raise ValueError(f"the byte of the kind cannot hold {kind}")
    length = HEADER_BYTES + (CRC_BYTES if checksum else 0)
    header = MAGIC + bytes((VERSION, length, FLAG_CRC if checksum else 0, kind))
    crc = crc32c(payload).to_bytes(CRC_BYTES, "big") if checksum else b""
    return b"".join((header, crc, payload))


def loads(data: Buffer) -> Envelope:
    """Open an envelope; bytes without the magic are passed through as plain.

    Raises EnvelopeError for a truncated or unknown header and for a wrong CRC.
    """
    view = memoryview(data)
    if view[: len(MAGIC)] != MAGIC:
        return Envelope(view, plain=True)
    if len(view) < HEADER_BYTES:
        raise EnvelopeError(f"a Liftbridge header of {len(view)} bytes is truncated")
    version, length, flags, kind = view[4:HEADER_BYTES]
    checked = bool(flags & FLAG_CRC)
    if version != VERSION:
        raise EnvelopeError(f"Liftbridge envelope version {version}, not {VERSION}")
    if flags & ~FLAG_CRC:
        raise EnvelopeError(f"unknown Liftbridge flags 0x{flags:02x}")
    if length != HEADER_BYTES + (CRC_BYTES if checked else 0) or length > len(view):
        raise EnvelopeError(
            f"a Liftbridge header of {length} bytes (flags 0x{flags:02x}) in {len(view)}"
        )
    payload = view[length:]
    if checked:
        announced = int.from_bytes(view[HEADER_BYTES:length], "big")
        if crc32c(payload) != announced:
            raise EnvelopeError(
                f"CRC-32C is {crc32c(payload):08x}, the Liftbridge envelope says {announced:08x}"
            )
    return Envelope(payload, checked=checked, kind=kind)


def value_of(data: bytes) -> bytes:
    """Return a publisher's data: the value of a Message, or the bytes without an envelope.

    Raises EnvelopeError for an envelope that is damaged, or holds no Message.
    """
    opened = loads(data)
    if opened.plain:
        return data
    if opened.kind != MESSAGE:
        what = "an acknowledgement" if opened.kind == ACK else f"a message of kind {opened.kind}"
        raise EnvelopeError(f"a Liftbridge envelope holds {what}, and no record")
    return message_of(opened.payload).value


def dumps_message(message: Message) -> bytes:
    """Return a Message as protobuf."""
    return b"".join(
        (
            _bytes_field(2, message.key),
            _bytes_field(3, message.value),
            _bytes_field(10, message.ack_inbox.encode()),
            _bytes_field(11, message.correlation_id.encode()),
            _varint(12 << 3 | _VARINT) + _varint(message.ack_policy) if message.ack_policy else b"",
        )
    )


def message_of(payload: Buffer) -> Message:
    """Return the Message of a payload; raises EnvelopeError."""
    found = dict(_fields(bytes(payload)))
    return Message(
        _bytes(found, 3), _bytes(found, 2), _text(found, 10), _text(found, 11), _number(found, 12)
    )


def ack_of(payload: Buffer) -> Ack:
    """Return the Ack of a payload; raises EnvelopeError."""
    found = dict(_fields(bytes(payload)))
    return Ack(_text(found, 1), _number(found, 4), _text(found, 6), _number(found, 10))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protobuf message, by number; raises EnvelopeError."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        if kind == _LENGTH:
            length, at = _read_varint(data, at)
        else:
            length = _FIXED_BYTES.get(kind, -1)
        if not number or not 0 <= length <= len(data) - at:
            raise EnvelopeError("the payload of a Liftbridge envelope is no Message")
        yield number, data[at : at + length]
        at += length


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for number, byte in enumerate(data[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value, at + number + 1
    raise EnvelopeError("the payload of a Liftbridge envelope is no Message")


def _bytes(found: Mapping[int, int | bytes], number: int) -> bytes:
    value = found.get(number, b"")
    if not isinstance(value, bytes):
        raise EnvelopeError("the payload of a Liftbridge envelope is no Message")
    return value


def _text(found: Mapping[int, int | bytes], number: int) -> str:
    return _bytes(found, number).decode(errors="replace")


def _number(found: Mapping[int, int | bytes], number: int) -> int:
    value = found.get(number, 0)
    if not isinstance(value, int):
        raise EnvelopeError("the payload of a Liftbridge envelope is no Message")
    return value


def _bytes_field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH) + _varint(len(value)) + value if value else b""


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
