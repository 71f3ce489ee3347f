"""A checksum inside an Arrow IPC file, over all of the file: it stays an Arrow IPC file.

The schema's metadata hold a mark and 64 hexadecimal digits. Arrow writes them twice, before all
data and after all data, so the first and the last mark in the file are the schema's, whatever the
data hold. The digits are the BLAKE2b (RFC 7693, 32 bytes) of the file with zeros in their places.
"""

from __future__ import annotations

import hashlib

from ripple.storage.checkpoint.errors import CheckpointError
from ripple.storage.fenced import DamagedError

MARK = b"blake2b-256-of-this-file:"
DIGITS = 64
UNSEALED = (MARK + b"0" * DIGITS).decode()

_ZEROS = b"0" * DIGITS


def seal(data: bytearray) -> str:
    """Put the checksum of a file that has UNSEALED in its schema in its places; return it."""
    places = _places(data)
    if any(data[at : at + DIGITS] != _ZEROS for at in places):
        raise CheckpointError(f"a name in the pipeline holds {MARK.decode()!r}: choose another")
    digits = _digest(data, places)
    for at in places:
        data[at : at + DIGITS] = digits
    return digits.decode()


def sealed_digest(data: bytes) -> str:
    """Return the checksum of a sealed file. Raises DamagedError unless it is the file's own."""
    places = _places(data)
    digits = {bytes(data[at : at + DIGITS]) for at in places}
    if len(places) != 2 or digits != {_digest(data, places)}:
        raise DamagedError("it does not have the checksum that it was written with")
    return digits.pop().decode()


def _places(data: bytes | bytearray) -> tuple[int, ...]:
    """Return where the digits of the first and the last mark start."""
    first, last = data.find(MARK), data.rfind(MARK)
    return () if first < 0 else tuple(at + len(MARK) for at in sorted({first, last}))


def _digest(data: bytes | bytearray, places: tuple[int, ...]) -> bytes:
    hashed = hashlib.blake2b(digest_size=DIGITS // 2)
    view = memoryview(data)
    start = 0
    for at in places:
        hashed.update(view[start:at])
        hashed.update(_ZEROS)
        start = at + DIGITS
    hashed.update(view[start:])
    view.release()
    return hashed.hexdigest().encode()
