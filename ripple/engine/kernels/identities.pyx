# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Which records the rows of a stream are of, by their places, and the part of rows in a digest."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np
import pyarrow as pa

from ripple.core.hashing cimport mix, xxh64
from ripple.model.keys.checked cimport check_length
from ripple.model.schema.exported cimport ArrowArray, Whole, valid_bits, values_of

cdef enum:
    BLOCK = 256     # rows whose hashes are on the stack

cdef dict LETTERS = {pa.int64(): "q", pa.float64(): "d", pa.string(): "s", pa.bool_(): "b"}


def letters_of(schema not None):
    """Return a letter for the type of each column, as ``digest_of`` takes them.

    None if it takes one of them not.
    """
    letters = [LETTERS.get(kind) for kind in schema.types]
    return None if None in letters else "".join(letters).encode()


def digest_of(
    Whole rows not None,
    bytes letters not None,
    uint64_t seed,
    const int64_t[::1] offsets not None,
    const int64_t[::1] indexes not None,
):
    """Return the sum of the hashes of rows, modulo 2^64: of their identities and fields.

    seed: the hash of their input. The hash of a field is that of ``row_identity.mix_in``.
    """
    cdef Py_ssize_t i, first, count, n = rows.whole.length
    cdef uint64_t[BLOCK] hashes
    cdef uint64_t found = 0
    check_length(n, offsets.shape[0])
    check_length(n, indexes.shape[0])
    check_length(rows.whole.n_children, len(letters))
    for first in range(0, n, BLOCK):
        count = min(<Py_ssize_t>BLOCK, n - first)
        for i in range(count):
            hashes[i] = mix(
                mix(seed, <uint64_t>offsets[first + i]), <uint64_t>indexes[first + i]
            )
        found += mixed(rows.whole, letters, first, hashes, count)
    return found


def digest_in_span(
    Whole rows not None,
    bytes letters not None,
    uint64_t seed,
    const int64_t[::1] places not None,
    int64_t first,
    int64_t end,
    int64_t base,
    int64_t indexes,
):
    """Return the same of rows by their places; None if one is not in [first, end).

    The span is that of one input, and the rest as in ``identities_of``.
    """
    cdef Py_ssize_t i, begin, count, n = rows.whole.length
    cdef uint64_t[BLOCK] hashes
    cdef uint64_t found = 0
    cdef int64_t place, record = 0, index = 0, before = base
    check_length(n, places.shape[0])
    check_length(rows.whole.n_children, len(letters))
    for begin in range(0, n, BLOCK):
        count = min(<Py_ssize_t>BLOCK, n - begin)
        for i in range(count):
            place = places[begin + i]
            if not first <= place < end:
                return None
            index += place - before
            before = place
            if indexes <= index < 2 * indexes:  # of the next record: nearly all are, undivided
                record += 1
                index -= indexes
            elif not 0 <= index < indexes:
                record = floored(place - base, indexes)
                index = place - base - record * indexes
            hashes[i] = mix(mix(seed, <uint64_t>record), <uint64_t>index)
        found += mixed(rows.whole, letters, begin, hashes, count)
    return found


cdef uint64_t mixed(
    const ArrowArray& rows, const char* kinds, Py_ssize_t first, uint64_t* hashes, Py_ssize_t n
) noexcept nogil:
    """Mix the fields of n rows into their hashes, and return the sum."""
    cdef Py_ssize_t i, at
    cdef uint64_t found = 0
    for at in range(rows.n_children):
        mix_column(hashes, rows.children[at], kinds[at], first, n)
    for i in range(n):
        found += hashes[i]
    return found


cdef void mix_column(
    uint64_t* out, const ArrowArray* column, char kind, Py_ssize_t first, Py_ssize_t n
) noexcept nogil:
    cdef const uint8_t* valid = valid_bits(column)
    cdef const uint64_t* words = NULL
    cdef const int32_t* ends = NULL
    cdef const uint8_t* bytes = NULL
    cdef uint64_t value, null = mix(0, 0)
    cdef int64_t row
    cdef Py_ssize_t i
    if n == 0:
        return
    if kind == c"s":
        ends = <const int32_t*>values_of(column, 4) + first
        bytes = <const uint8_t*>column.buffers[2]
    elif kind == c"b":
        bytes = <const uint8_t*>column.buffers[1]
    else:
        words = <const uint64_t*>values_of(column, 8) + first
        if not valid:
            if kind == c"d":
                for i in range(n):
                    out[i] = mix(out[i], mix(1, bits_of(words[i])))
            else:
                for i in range(n):
                    out[i] = mix(out[i], mix(1, words[i]))
            return
    for i in range(n):
        row = column.offset + first + i
        if valid and not valid[row >> 3] >> (row & 7) & 1:
            out[i] = mix(out[i], null)
            continue
        if kind == c"s":
            value = xxh64(bytes + ends[i], ends[i + 1] - ends[i], 0)
        elif kind == c"b":
            value = bytes[row >> 3] >> (row & 7) & 1
        else:
            value = bits_of(words[i]) if kind == c"d" else words[i]
        out[i] = mix(out[i], mix(1, value))


cdef inline uint64_t bits_of(uint64_t word) noexcept nogil:
    """Return the bits of a float: all NaNs are one."""
    return 0x7FF8000000000000U if word & 0x7FFFFFFFFFFFFFFFU > 0x7FF0000000000000U else word


def only_span(const int64_t[::1] places not None, int64_t span, int64_t preceding):
    """Return which span all places are in, -1 if they are in several, or there are none.

    Span 0 begins at -preceding, below which no place is.
    """
    cdef Py_ssize_t i
    cdef int64_t number, first
    if not places.shape[0]:
        return -1
    number = (places[0] + preceding) // span
    first = number * span - preceding
    for i in range(places.shape[0]):
        if <uint64_t>(places[i] - first) >= <uint64_t>span:
            return -1
    return number


def identities_of(
    const int64_t[::1] places not None, int64_t base, int64_t inputs, int64_t indexes
):
    """Return offsets int64[n] and indexes int64[n] of rows by their places.

    ``base`` is the place of the record at offset 0 of the first of so many inputs; the places of a
    record's rows are ``indexes`` numbers.
    """
    cdef Py_ssize_t i, n = places.shape[0]
    cdef int64_t number, record
    offsets, index = np.empty(n, np.int64), np.empty(n, np.int64)
    cdef int64_t[::1] offset_of = offsets, index_of = index
    for i in range(n):
        number = places[i] - base
        record = floored(number, indexes)
        index_of[i] = number - record * indexes
        offset_of[i] = record if inputs == 1 else floored(record, inputs)
    return offsets, index


cdef inline int64_t floored(int64_t number, int64_t by) noexcept nogil:
    return number // by - (number % by < 0)
