"""Integers of variable length, in record batches of Kafka and in Avro."""

from __future__ import annotations


def zigzag(number: int) -> bytes:
    """Return a number that is not negative as such an integer, with its sign in the lowest bit."""
    left, found = number << 1, bytearray()
    while left >= 0x80:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])
