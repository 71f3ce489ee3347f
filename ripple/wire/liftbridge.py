"""The Liftbridge envelope: an optional header before a NATS message.

::

    offset  size  field
    0       4     magic, b9 0e 43 b4 (not valid UTF-8, so that text cannot look like it)
    4       1     version, 0
    5       1     header length: where the payload begins
    6       1     flags; bit 0: a CRC-32C follows
    7       1     reserved; later versions of Liftbridge put the kind of message here
    8       4     CRC-32C of the payload (optional)

Source: Liftbridge's documentation, "Envelope Protocol". It does not name the byte order of the
CRC; Liftbridge itself uses network order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.encoding.crc import crc32c
from ripple.wire.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from ripple.wire.codec import Buffer

MAGIC = b"\xb9\x0e\x43\xb4"
VERSION = 0
FLAG_CRC = 0x01
HEADER_BYTES = 8
CRC_BYTES = 4


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message; ``plain`` when it came without an envelope, as any NATS publisher sends it."""

    payload: Buffer
    plain: bool = False
    checked: bool = False
    reserved: int = 0


def dumps(payload: Buffer, *, checksum: bool = True, reserved: int = 0) -> bytes:
    """Return ``payload`` in an envelope."""
    if not 0 <= reserved <= 0xFF:
        raise LocalProtocolError(f"the reserved byte cannot hold {reserved}")
    length = HEADER_BYTES + (CRC_BYTES if checksum else 0)
    header = MAGIC + bytes((VERSION, length, FLAG_CRC if checksum else 0, reserved))
    crc = crc32c(payload).to_bytes(CRC_BYTES, "big") if checksum else b""
    return b"".join((header, crc, payload))


def loads(data: Buffer) -> Envelope:
    """Open an envelope; what does not begin with the magic is passed through as plain.

    Raises :class:`RemoteProtocolError` for a truncated or unknown header and for a wrong CRC.
    """
    view = memoryview(data)
    if view[: len(MAGIC)] != MAGIC:
        return Envelope(view, plain=True)
    if len(view) < HEADER_BYTES:
        raise RemoteProtocolError(f"a Liftbridge header of {len(view)} bytes is truncated")
    version, length, flags, reserved = view[4:HEADER_BYTES]
    checked = bool(flags & FLAG_CRC)
    if version != VERSION:
        raise RemoteProtocolError(f"Liftbridge envelope version {version}, not {VERSION}")
    if flags & ~FLAG_CRC:
        raise RemoteProtocolError(f"unknown Liftbridge flags 0x{flags:02x}")
    if length != HEADER_BYTES + (CRC_BYTES if checked else 0) or length > len(view):
        raise RemoteProtocolError(
            f"a Liftbridge header of {length} bytes (flags 0x{flags:02x}) in {len(view)}"
        )
    payload = view[length:]
    if checked:
        announced = int.from_bytes(view[HEADER_BYTES:length], "big")
        if crc32c(payload) != announced:
            raise RemoteProtocolError(
                f"CRC-32C is {crc32c(payload):08x}, the envelope says {announced:08x}"
            )
    return Envelope(payload, checked=checked, reserved=reserved)
