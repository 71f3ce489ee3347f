"""Sets of row numbers as ranges, and their encoding in Barrage."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ripple.client.flight.errors import FlightError, Why

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

# Of one set of a client; a range takes at least two bytes.
RANGES_MAX = 1 << 16
_NUMBER_MAX = (1 << 63) - 1

_OFFSET, _SHORTS, _BYTES, _END = 1, 2, 3, 4
_FORMS = {1: "<h", 2: "<i", 3: "<q", 4: "<b"}
_BYTES_WORTH_IT = 4  # fewer cost more as a separate array
_ALONE = 32_767  # a step this large is encoded separately


class RowSet(NamedTuple):
    """Row numbers as ranges: ascending, with gaps between them, both ends included."""

    firsts: Numbers
    lasts: Numbers

    @classmethod
    def of(cls, numbers: Numbers) -> RowSet:
        """Return the set of ascending, distinct numbers."""
        if not len(numbers):
            return NONE
        breaks = np.flatnonzero(np.diff(numbers) != 1)
        firsts = numbers[np.concatenate(([0], breaks + 1))]
        return cls(firsts, numbers[np.concatenate((breaks, [len(numbers) - 1]))])

    def __len__(self) -> int:
        """Return the count of numbers; up to 2^63."""
        return int(sum(self.lasts.tolist()) - sum(self.firsts.tolist()) + len(self.firsts))

    def within(self, size: int) -> RowSet:
        """Return the numbers below ``size``."""
        kept = self.firsts < size
        return RowSet(self.firsts[kept], np.minimum(self.lasts[kept], size - 1))

    def mirrored(self, size: int) -> RowSet:
        """Return ``size - 1 - n`` for each number, all of which are below ``size``."""
        return RowSet(size - 1 - self.lasts[::-1], size - 1 - self.firsts[::-1])

    def numbers(self) -> Numbers:
        """Return all numbers; for sets known to be small."""
        lengths = self.lasts - self.firsts + 1
        starts = np.repeat(self.firsts - np.cumsum(lengths) + lengths, lengths)
        return starts + np.arange(len(starts))

    def encode(self) -> bytes:
        """Return the encoding, identical to that of Deephaven's server."""
        return b"".join(_encoded(_steps(self)))

    @classmethod
    def decode(cls, data: bytes) -> RowSet:
        """Decode a set of an untrusted client, in time of its length. Raises FlightError."""
        firsts: list[int] = []
        lasts: list[int] = []
        at, single = 0, False
        for step in _decoded(data):
            at += abs(step)
            if at > _NUMBER_MAX:
                raise _wrong("a number has more than 63 bits")
            if step < 0:
                if not single:
                    raise _wrong("a range has no beginning")
                lasts[-1], single = at, False
            elif lasts and at <= lasts[-1]:
                raise _wrong("its numbers do not ascend")
            elif len(firsts) == RANGES_MAX:
                raise _wrong(f"it has more than {RANGES_MAX} ranges")
            else:
                firsts.append(at)
                lasts.append(at)
                single = True
        return cls(np.array(firsts, np.int64), np.array(lasts, np.int64))


NONE = RowSet(np.zeros(0, np.int64), np.zeros(0, np.int64))
# Starts, ends and destinations of shifted rows: always empty.
NO_SHIFT = bytes((_END << 3,)) * 3


def _steps(rows: RowSet) -> Numbers:
    """Return the encoded steps from number to number; a step to the end of a range is negative."""
    steps = np.empty(2 * len(rows.firsts), np.int64)
    steps[0::2] = rows.firsts
    steps[2::2] -= rows.lasts[:-1]
    steps[1::2] = rows.firsts - rows.lasts
    kept = np.ones(len(steps), bool)
    kept[1::2] = steps[1::2] != 0
    return steps[kept]


def _encoded(steps: Numbers) -> Iterator[bytes]:
    alone = np.flatnonzero(np.abs(steps) >= _ALONE)
    begin = 0
    for place in alone.tolist():
        yield from _packed(steps[begin:place])
        yield _command(_OFFSET, int(steps[place]))
        begin = place + 1
    yield from _packed(steps[begin:])
    yield bytes((_END << 3,))


def _packed(steps: Numbers) -> Iterator[bytes]:
    """Yield steps of 16 bits; longer runs of those with 8 bits, and the last, with 8."""
    small = np.concatenate(([False], (steps >= -128) & (steps <= 127), [False]))
    edges = np.flatnonzero(small[1:] != small[:-1])
    done = 0
    for begin, end in zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True):
        if end - begin >= _BYTES_WORTH_IT or end == len(steps):
            yield from _array(_SHORTS, "<i2", steps[done:begin])
            yield from _array(_BYTES, "i1", steps[begin:end])
            done = end
    yield from _array(_SHORTS, "<i2", steps[done:])


def _array(command: int, form: str, steps: Numbers) -> Iterator[bytes]:
    if len(steps) == 1:
        yield _command(_OFFSET, int(steps[0]))
    elif len(steps):
        yield _command(command, len(steps))
        yield steps.astype(form).tobytes()


def _command(command: int, value: int) -> bytes:
    for kind, bits in ((4, 7), (1, 15), (2, 31)):
        if -(1 << bits) <= value < 1 << bits:
            return bytes((command << 3 | kind,)) + struct.pack(_FORMS[kind], value)
    return bytes((command << 3 | 3,)) + struct.pack(_FORMS[3], value)


def _decoded(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        command, kind = data[at] >> 3, data[at] & 7
        if command == _END:
            if at + 1 != len(data):
                raise _wrong("it has trailing bytes")
            return
        if kind not in _FORMS or command not in (_OFFSET, _SHORTS, _BYTES):
            raise _wrong(f"unknown command {data[at]}")
        size = struct.calcsize(_FORMS[kind])
        if at + 1 + size > len(data):
            break
        (value,) = struct.unpack_from(_FORMS[kind], data, at + 1)
        at += 1 + size
        if command == _OFFSET:
            yield value
            continue
        form = np.dtype("<i2" if command == _SHORTS else "i1")
        if value < 0 or at + value * form.itemsize > len(data):
            break
        yield from np.frombuffer(data, form, value, at).tolist()
        at += value * form.itemsize
    raise _wrong("its end is missing")


def _wrong(why: str) -> FlightError:
    return FlightError(Why.WRONG, f"this is not a set of rows: {why}")
