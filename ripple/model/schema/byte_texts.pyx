# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of bytes and of UUIDs as texts: hexadecimal digits in lower case, and base64.

A column is its validity as bool[n] or None, its offsets as int32[n + 1] and its bytes. A loop gives
the offsets and the bytes of another one, and where a text is read also uint8[n], 0 where it has not
the form; a null or a misfit is empty there. No text is taken in two ways, and none in part. Raises
OverflowError for a column beyond the 2 GiB of its offsets.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

cdef enum:
    LENGTH = 36         # letters of a UUID
    NONE = 0xFF

cdef const uint8_t* DIGITS = b"0123456789abcdef"
cdef const uint8_t* LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef uint8_t[256] DIGIT_OF      # of a letter of either case, or NONE
cdef uint8_t[256] SIX_OF        # the six bits of a letter of base64, or NONE


cdef void filled() noexcept:
    cdef int k
    for k in range(256):
        DIGIT_OF[k] = NONE
        SIX_OF[k] = NONE
    for k in range(16):
        DIGIT_OF[DIGITS[k]] = k
        if k > 9:
            DIGIT_OF[DIGITS[k] - 32] = k
    for k in range(64):
        SIX_OF[LETTERS[k]] = k


filled()


cdef object made(Py_ssize_t rows, int64_t size):
    """Return the offsets of rows and room for their bytes."""
    if size > 0x7FFFFFFF:
        raise OverflowError("a column of bytes has more than 2 GiB")
    return np.zeros(rows + 1, np.int32), np.empty(size, np.uint8)


cdef inline bint is_uuid(const uint8_t* text, uint8_t* out) noexcept nogil:
    """Write a text of LENGTH letters in lower case, and tell whether it is a UUID."""
    cdef int k
    cdef uint8_t digit, bad = 0
    for k in range(LENGTH):
        if k == 8 or k == 13 or k == 18 or k == 23:
            bad |= text[k] != 45
            out[k] = 45
        else:
            digit = DIGIT_OF[text[k]]
            bad |= digit == NONE
            out[k] = DIGITS[digit & 15]
    return not bad


def uuids(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return UUIDs of texts in lower case, and where a text is one."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j
    cdef int32_t at = 0
    ends, texts = made(n, <int64_t>n * LENGTH)
    found = np.zeros(n, np.uint8)
    cdef int32_t[::1] end = ends
    cdef uint8_t[::1] out = texts, good = found
    with nogil:
        for j in range(n):
            if (valid is None or valid[j]) and offsets[j + 1] - offsets[j] == LENGTH:
                if is_uuid(&data[offsets[j]], &out[at]):
                    good[j] = 1
                    at += LENGTH
            end[j + 1] = at
    return ends, texts[:at], found


def uuids_of(const uint8_t[::1] valid, const uint8_t[:, ::1] data):
    """Return the texts of UUIDs as 16 bytes each."""
    cdef Py_ssize_t n = data.shape[0], j
    cdef int32_t at = 0
    cdef int k
    ends, texts = made(n, <int64_t>n * LENGTH)
    cdef int32_t[::1] end = ends
    cdef uint8_t[::1] out = texts
    with nogil:
        for j in range(n):
            if valid is None or valid[j]:
                for k in range(16):
                    if k == 4 or k == 6 or k == 8 or k == 10:
                        out[at] = 45
                        at += 1
                    out[at] = DIGITS[data[j, k] >> 4]
                    out[at + 1] = DIGITS[data[j, k] & 15]
                    at += 2
            end[j + 1] = at
    return ends, texts[:at]


def hex_of(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return the digits of bytes."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j
    cdef int32_t at = 0, k
    ends, texts = made(n, 2 * <int64_t>(offsets[n] - offsets[0]))
    cdef int32_t[::1] end = ends
    cdef uint8_t[::1] out = texts
    with nogil:
        for j in range(n):
            if valid is None or valid[j]:
                for k in range(offsets[j], offsets[j + 1]):
                    out[at] = DIGITS[data[k] >> 4]
                    out[at + 1] = DIGITS[data[k] & 15]
                    at += 2
            end[j + 1] = at
    return ends, texts[:at]


def of_hex(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return the bytes of digits in pairs, as ``hexes`` returns them."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j
    cdef int32_t at = 0, k
    ends, texts = made(n, (offsets[n] - offsets[0]) // 2)
    cdef int32_t[::1] end = ends
    cdef uint8_t[::1] out = texts
    with nogil:
        for j in range(n):
            if valid is None or valid[j]:
                for k in range((offsets[j + 1] - offsets[j]) // 2):
                    out[at] = (DIGIT_OF[data[offsets[j] + 2 * k]] << 4) | (
                        DIGIT_OF[data[offsets[j] + 2 * k + 1]] & 15
                    )
                    at += 1
            end[j + 1] = at
    return ends, texts[:at]


def hexes(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return texts of digits in pairs in lower case, and where a text is of them."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j
    cdef int32_t at = 0, k, size
    cdef uint8_t digit, bad
    ends, texts = made(n, offsets[n] - offsets[0])
    found = np.zeros(n, np.uint8)
    cdef int32_t[::1] end = ends
    cdef uint8_t[::1] out = texts, good = found
    with nogil:
        for j in range(n):
            size = offsets[j + 1] - offsets[j]
            if (valid is None or valid[j]) and size % 2 == 0:
                bad = 0
                for k in range(size):
                    digit = DIGIT_OF[data[offsets[j] + k]]
                    bad |= digit == NONE
                    out[at + k] = DIGITS[digit & 15]
                if not bad:
                    good[j] = 1
                    at += size
            end[j + 1] = at
    return ends, texts[:at], found


cdef inline int32_t of_group(const uint8_t* p, uint8_t* out, int letters) noexcept nogil:
    """Write the digits of 2, 3 or 4 letters of base64, and return how many; -1 for others."""
    cdef uint8_t six
    cdef unsigned int bits = 0
    cdef int k, count = letters - 1
    for k in range(4):
        six = SIX_OF[p[k]] if k < letters else 0
        if six == NONE:
            return -1
        bits = (bits << 6) | six
    if bits & ((1 << (8 * (3 - count))) - 1):
        return -1       # bits behind the last byte, which base64 leaves 0
    for k in range(count):
        six = (bits >> (16 - 8 * k)) & 0xFF
        out[2 * k] = DIGITS[six >> 4]
        out[2 * k + 1] = DIGITS[six & 15]
    return 2 * count


cdef inline int32_t of_letters(const uint8_t* p, int32_t size, uint8_t* out) noexcept nogil:
    """Write the digits of base64 with its padding, and return how many; -1 for another text."""
    cdef int32_t at = 0, k, wrote
    cdef int letters
    if size % 4:
        return -1
    for k in range(0, size, 4):
        letters = 4
        if k + 4 == size and p[k + 3] == 61:
            letters = 2 if p[k + 2] == 61 else 3
        wrote = of_group(p + k, out + at, letters)
        if wrote < 0:
            return -1
        at += wrote
    return at


def of_base64(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return the digits of texts of base64, and where a text is of it."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j
    cdef int32_t at = 0, wrote, size
    ends, texts = made(n, 6 * (<int64_t>(offsets[n] - offsets[0]) // 4))
    found = np.zeros(n, np.uint8)
    cdef int32_t[::1] end = ends
    cdef uint8_t[::1] good = found, out = texts
    cdef const uint8_t* p = &data[0] if data.shape[0] else NULL
    cdef uint8_t* to = &out[0] if out.shape[0] else NULL
    with nogil:
        for j in range(n):
            if valid is None or valid[j]:
                size = offsets[j + 1] - offsets[j]
                wrote = of_letters(p + offsets[j], size, to + at)
                if wrote >= 0:
                    good[j] = 1
                    at += wrote
            end[j + 1] = at
    return ends, texts[:at], found


def base64_of(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return bytes as texts of base64."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j
    cdef int32_t at = 0, k, left
    cdef unsigned int bits
    ends, texts = made(n, 4 * (<int64_t>(offsets[n] - offsets[0]) // 3 + n))
    cdef int32_t[::1] end = ends
    cdef uint8_t[::1] out = texts
    with nogil:
        for j in range(n):
            if valid is None or valid[j]:
                for k in range(offsets[j], offsets[j + 1], 3):
                    left = offsets[j + 1] - k
                    bits = data[k] << 16
                    if left > 1:
                        bits |= data[k + 1] << 8
                    if left > 2:
                        bits |= data[k + 2]
                    out[at] = LETTERS[bits >> 18]
                    out[at + 1] = LETTERS[(bits >> 12) & 63]
                    out[at + 2] = LETTERS[(bits >> 6) & 63] if left > 1 else 61
                    out[at + 3] = LETTERS[bits & 63] if left > 2 else 61
                    at += 4
            end[j + 1] = at
    return ends, texts[:at]
