"""Liftbridge's envelope: a head before a message on a plain subject of NATS.

    0..3 magic number B9 0E 43 B4   4 version   5 length of the head   6 flags   7 reserved
    8..11 CRC-32C of the payload, big-endian, if flag 0 is set

The payload is a message of Liftbridge's protocol (protobuf), which is not read here. Messages that
do not begin with the magic number are as they are.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ripple.encoding.crc import crc32c
from ripple.errors import InputError

MAGIC = b"\xb9\x0e\x43\xb4"
VERSION = 0
HAS_CRC = 1
_FIXED = struct.Struct(">4sBBBB")
_CRC = struct.Struct(">I")


class Envelope(NamedTuple):
    """What was in an envelope. flags, head_bytes: as they came, for who writes it again."""

    payload: bytes
    flags: int = HAS_CRC
    head_bytes: int = _FIXED.size + _CRC.size


def wrapped(payload: bytes, *, crc: bool = True) -> bytes:
    """Return a payload in an envelope."""
    head_bytes = _FIXED.size + (_CRC.size if crc else 0)
    head = _FIXED.pack(MAGIC, VERSION, head_bytes, HAS_CRC if crc else 0, 0)
    return head + (_CRC.pack(crc32c(payload)) if crc else b"") + payload


def unwrapped(message: bytes) -> Envelope | None:
    """Return what is in an envelope, None if the message is in none.

    Raises InputError where it is damaged, or of a version that nobody here knows.
    """
    if not message.startswith(MAGIC):
        return None
    if len(message) < _FIXED.size:
        raise InputError("an envelope of Liftbridge is cut short")
    _, version, head_bytes, flags, _ = _FIXED.unpack_from(message)
    if version != VERSION:
        raise InputError(f"an envelope of Liftbridge has version {version}, not {VERSION}")
    least = _FIXED.size + (_CRC.size if flags & HAS_CRC else 0)
    if not least <= head_bytes <= len(message):
        raise InputError(f"an envelope of Liftbridge has a head of {head_bytes} bytes")
    payload = message[head_bytes:]
    if flags & HAS_CRC:
        (wanted,) = _CRC.unpack_from(message, _FIXED.size)
        if crc32c(payload) != wanted:
            raise InputError("the payload of an envelope of Liftbridge does not fit its CRC-32C")
    return Envelope(payload, flags, head_bytes)
