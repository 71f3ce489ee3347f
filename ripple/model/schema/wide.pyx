# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Loops over decimals of up to 38 digits: integers of 128 bits that count units of 10 ** -scale.

A column of them is int64[n, 2], the lower half first, as Arrow's ``decimal128`` has it. As a column
stores it, one is 32 hexadecimal digits of itself plus 2 ** 127: the order of the texts is that of the
numbers, and each number has one text.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from ripple.model.schema.decimal_texts cimport scanned, unsigned_t

cdef extern from *:
    """
    typedef __int128 wide_t;
    static inline int add_overflows(wide_t a, wide_t b, wide_t *out) {
        return __builtin_add_overflow(a, b, out);
    }
    """
    ctypedef long long wide_t
    bint add_overflows(wide_t a, wide_t b, wide_t* out) noexcept nogil

cdef enum:
    DIGITS = 38                 # of a decimal in 128 bits
    STORED = 32                 # letters of a stored one
    WIDTH_MAX = 44              # of a text: a sign, digits, a point
    BYTES_MAX = 2147483647      # of the texts of a column

cdef unsigned_t[39] TENS
cdef int k_
TENS[0] = 1
for k_ in range(1, 39):
    TENS[k_] = TENS[k_ - 1] * 10

cdef uint8_t[512] LETTERS        # two of each byte
cdef uint8_t[256] NIBBLES        # of a letter, 255 of another one
for k_ in range(256):
    LETTERS[2 * k_], LETTERS[2 * k_ + 1] = b"0123456789abcdef"[k_ >> 4], b"0123456789abcdef"[k_ & 15]
    NIBBLES[k_] = 255
for k_ in range(16):
    NIBBLES[b"0123456789abcdef"[k_]] = k_


cdef inline wide_t value_of(const int64_t* at) noexcept nogil:
    return <wide_t>(<unsigned_t><uint64_t>at[1] << 64 | <uint64_t>at[0])


cdef inline void put(wide_t value, int64_t* at) noexcept nogil:
    at[0] = <int64_t><uint64_t><unsigned_t>value
    at[1] = <int64_t><uint64_t>(<unsigned_t>value >> 64)


cdef inline unsigned_t magnitude(wide_t value) noexcept nogil:
    return -<unsigned_t>value if value < 0 else <unsigned_t>value


def encode(const int64_t[:, ::1] units):
    """Return the letters of stored numbers, uint8[32 n]."""
    cdef Py_ssize_t n = units.shape[0], j
    cdef int k
    cdef uint64_t half
    if n * STORED > BYTES_MAX:
        raise OverflowError("the decimals of a column need more than 2 GiB")
    result = np.empty(n * STORED, np.uint8)
    cdef uint8_t[::1] out = result
    with nogil:
        for j in range(n):
            half = <uint64_t>units[j, 1] ^ (<uint64_t>1 << 63)
            for k in range(8):
                memcpy(&out[j * STORED + 2 * k], &LETTERS[2 * (half >> (56 - 8 * k) & 255)], 2)
            half = <uint64_t>units[j, 0]
            for k in range(8):
                memcpy(&out[j * STORED + 16 + 2 * k], &LETTERS[2 * (half >> (56 - 8 * k) & 255)], 2)
    return result


def decode(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return int64[n, 2] of stored numbers, 0 for null. Raises ValueError for another text."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j, bad = -1
    cdef int k
    cdef uint8_t wrong
    cdef uint64_t[2] half
    cdef const uint8_t* at
    result = np.zeros((n, 2), np.int64)
    cdef int64_t[:, ::1] out = result
    with nogil:
        for j in range(n):
            if valid is not None and not valid[j]:
                continue
            if offsets[j + 1] - offsets[j] != STORED:
                bad = j
                break
            at = &data[offsets[j]]
            half[0] = half[1] = 0
            wrong = 0
            for k in range(16):
                wrong |= NIBBLES[at[k]] | NIBBLES[at[k + 16]]
                half[0] = half[0] << 4 | NIBBLES[at[k]]
                half[1] = half[1] << 4 | NIBBLES[at[k + 16]]
            if wrong > 15:
                bad = j
            out[j, 1] = <int64_t>(half[0] ^ (<uint64_t>1 << 63))
            out[j, 0] = <int64_t>half[1]
    if bad >= 0:
        raise ValueError(f"row {bad} is no stored decimal")
    return result


cdef uint8_t parsed(const uint8_t* at, const uint8_t* end, int precision, int scale, int64_t* out) noexcept nogil:
    """Set the decimal of a text, or return what is wrong with it."""
    cdef unsigned_t value
    cdef uint8_t verdict = scanned[unsigned_t](at, end, precision, scale, TENS, DIGITS, &value)
    put(<wide_t>value, out)
    return verdict


def parse(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data, int precision, int scale):
    """Return (int64[n, 2], uint8[n]): decimals, and 1 for no number, 2 for one that does not fit."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    values, verdicts = np.zeros((n, 2), np.int64), np.zeros(n, np.uint8)
    cdef int64_t[:, ::1] out = values
    cdef uint8_t[::1] verdict = verdicts
    with nogil:
        for j in range(n):
            if valid is None or valid[j]:
                verdict[j] = parsed(start + offsets[j], start + offsets[j + 1], precision, scale, &out[j, 0])
    return values, verdicts


cdef int written(wide_t number, int scale, uint8_t* out) noexcept nogil:
    """Write the text of a decimal and return its length."""
    cdef uint8_t[WIDTH_MAX] text
    cdef unsigned_t value = magnitude(number)
    cdef uint64_t half = <uint64_t>(value % TENS[19]), rest = <uint64_t>(value // TENS[19] % TENS[19])
    cdef int at = WIDTH_MAX, left = scale, digits = 19
    while half or rest or left >= 0:
        at -= 1
        if left == 0 and scale:
            text[at] = 0x2E
            scale = 0
            continue
        text[at] = <uint8_t>(0x30 + half % 10)
        half //= 10
        left -= 1
        digits -= 1
        if digits == 0:
            half, rest = rest, 0
    if number < 0:
        at -= 1
        text[at] = 0x2D
    memcpy(out, &text[at], WIDTH_MAX - at)
    return WIDTH_MAX - at


def texts(const int64_t[:, ::1] units, int scale):
    """Return (offsets, bytes) of decimals in plain digits, of their scale."""
    cdef Py_ssize_t n = units.shape[0], j
    cdef int64_t size = 0
    if n * WIDTH_MAX > BYTES_MAX:
        raise OverflowError("the texts of a column have more than 2 GiB")
    offsets, result = np.zeros(n + 1, np.int32), np.empty(n * WIDTH_MAX, np.uint8)
    cdef int32_t[::1] offset = offsets
    cdef uint8_t[::1] out = result
    with nogil:
        for j in range(n):
            size += written(value_of(&units[j, 0]), scale, &out[size])
            offset[j + 1] = <int32_t>size
    return offsets, result[:size]


cdef inline bint is_beyond(wide_t value, unsigned_t most) noexcept nogil:
    return magnitude(value) > most


def sums(const int64_t[:, ::1] left, const int64_t[:, ::1] right, bint minus, int precision):
    """Return (int64[n, 2], uint8[n]): sums or differences, and 1 where they have more digits."""
    cdef Py_ssize_t n = left.shape[0], j
    cdef wide_t found, other
    values, failures = np.zeros((n, 2), np.int64), np.zeros(n, np.uint8)
    cdef int64_t[:, ::1] out = values
    cdef uint8_t[::1] failed = failures
    cdef unsigned_t most = TENS[precision] - 1
    with nogil:
        for j in range(n):
            other = value_of(&right[j, 0])
            if add_overflows(value_of(&left[j, 0]), -other if minus else other, &found) or is_beyond(found, most):
                failed[j] = 1
            else:
                put(found, &out[j, 0])
    return values, failures


def products(const int64_t[:, ::1] left, const int64_t[:, ::1] right, int precision):
    """Return (int64[n, 2], uint8[n]): products, and 1 where they have more digits."""
    cdef Py_ssize_t n = left.shape[0], j
    cdef wide_t a, b, found
    cdef unsigned_t one, other
    values, failures = np.zeros((n, 2), np.int64), np.zeros(n, np.uint8)
    cdef int64_t[:, ::1] out = values
    cdef uint8_t[::1] failed = failures
    cdef unsigned_t most = TENS[precision] - 1
    with nogil:
        for j in range(n):
            a, b = value_of(&left[j, 0]), value_of(&right[j, 0])
            one, other = magnitude(a), magnitude(b)
            if (one >> 63 or other >> 63) and one and other > most // one:
                failed[j] = 1
                continue
            found = a * b
            if is_beyond(found, most):
                failed[j] = 1
            else:
                put(found, &out[j, 0])
    return values, failures


def finer(const int64_t[:, ::1] units, int digits, int precision):
    """Return (int64[n, 2], uint8[n]): 10 ** digits times each, and 1 where it has more digits."""
    cdef Py_ssize_t n = units.shape[0], j
    cdef wide_t value
    values, failures = np.zeros((n, 2), np.int64), np.zeros(n, np.uint8)
    cdef int64_t[:, ::1] out = values
    cdef uint8_t[::1] failed = failures
    cdef unsigned_t most = (TENS[precision] - 1) // TENS[digits]
    with nogil:
        for j in range(n):
            value = value_of(&units[j, 0])
            if is_beyond(value, most):
                failed[j] = 1
            else:
                put(value * <wide_t>TENS[digits], &out[j, 0])
    return values, failures
