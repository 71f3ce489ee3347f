"""A checksum over an Arrow IPC file, stored inside it: the file stays valid Arrow.

The schema's metadata hold a mark and 64 hexadecimal digits. Arrow writes them twice, before and
after the data, so the first and the last mark in the file belong to the schema. The digits are the
BLAKE2b (RFC 7693, 32 bytes) of the file with zeros instead of them.
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
    """Write the checksum over the two UNSEALED marks of a file's schema; return it."""
    positions = _digit_positions(data)
    if any(data[at : at + DIGITS] != _ZEROS for at in positions):
        raise CheckpointError(f"a name in the pipeline holds {MARK.decode()!r}: choose another")
    digits = _digest(data, positions)
    for at in positions:
        data[at : at + DIGITS] = digits
    return digits.decode()


def sealed_digest(data: bytes) -> str:
    """Return the checksum of a sealed file. Raises DamagedError if it does not match."""
    positions = _digit_positions(data)
    digits = {bytes(data[at : at + DIGITS]) for at in positions}
    if len(positions) != 2 or digits != {_digest(data, positions)}:
        raise DamagedError("it does not have the checksum that it was written with")
    return digits.pop().decode()


def _digit_positions(data: bytes | bytearray) -> tuple[int, ...]:
    """Return the positions of the digits of the first and the last mark."""
    first, last = data.find(MARK), data.rfind(MARK)
    return () if first < 0 else tuple(at + len(MARK) for at in sorted({first, last}))


def _digest(data: bytes | bytearray, positions: tuple[int, ...]) -> bytes:
    hashed = hashlib.blake2b(digest_size=DIGITS // 2)
    view = memoryview(data)
    start = 0
    for at in positions:
        hashed.update(view[start:at])
        hashed.update(_ZEROS)
        start = at + DIGITS
    hashed.update(view[start:])
    view.release()
    return hashed.hexdigest().encode()
