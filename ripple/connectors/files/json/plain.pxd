# cython: language_level=3, cdivision=True
"""Plain texts and numbers of JSON, eight bytes at a time.

Each function returns null for the slow path: at an escape, an exponent, too many digits, fewer than
eight bytes to the end, or an error.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from ripple.connectors.text_values cimport POWERS_OF_TEN

cdef extern from "../csv/plain_text.h" namespace "ripple" nogil:
    uint64_t load_8(const uint8_t* p)
    uint64_t each_byte(uint8_t byte)
    uint64_t zero_bytes(uint64_t word)
    cppclass Words:
        @staticmethod
        uint64_t digits_of(uint64_t word, int count, uint64_t* other)

cdef extern from *:
    """
    static const uint64_t TENS[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    """
    const uint64_t[9] TENS
    int __builtin_ctzll(uint64_t word) nogil


cdef inline const uint8_t* plain_string_end(
    const uint8_t* p, const uint8_t* end
) noexcept nogil:
    """Return the end of a string without escapes."""
    cdef uint64_t word, found
    p += 1
    while end - p >= 8:
        word = load_8(p)
        # In each the lowest bit is right, and so is the lowest of all.
        found = zero_bytes(word ^ each_byte(b'"')) | zero_bytes(word ^ each_byte(b"\\"))
        found |= (word - each_byte(0x20)) & ~word & each_byte(0x80)
        if found:
            p += __builtin_ctzll(found) >> 3
            return p + 1 if p[0] == b'"' else NULL
        p += 8
    return NULL


cdef inline int leading_digits(const uint8_t* p, uint64_t* value) noexcept nogil:
    """Count the digits at the head of the next eight bytes, and read their value."""
    cdef uint64_t word = load_8(p), other = word ^ each_byte(b"0")
    cdef int count = 8
    other = ((other + each_byte(0x76)) | other) & each_byte(0x80)
    if other:
        count = __builtin_ctzll(other) >> 3
    value[0] = Words.digits_of(word, count, &other) if count else 0
    return count


cdef inline const uint8_t* plain_integer(
    const uint8_t* p, const uint8_t* end, int64_t* value
) noexcept nogil:
    """Return the end of an integer of at most 19 digits within 64 bits."""
    cdef bint negative = p[0] == b"-"
    cdef const uint8_t* first
    cdef uint64_t magnitude = 0, more
    cdef int count = 8
    p += negative
    first = p
    while count == 8:
        if end - p < 8:
            return NULL
        count = leading_digits(p, &more)
        p += count
        if p - first > 19:
            return NULL
        magnitude = magnitude * TENS[count] + more
    if p == first or (first[0] == b"0" and p - first > 1) or magnitude > INT64_MAX:
        return NULL
    if p[0] == b"." or (p[0] | 32) == b"e":
        return NULL
    value[0] = -<int64_t>magnitude if negative else <int64_t>magnitude
    return p


cdef inline const uint8_t* plain_decimal(
    const uint8_t* p, const uint8_t* end, double* value
) noexcept nogil:
    """Return the end of a number of at most 14 digits without exponent: see ``short_decimal``."""
    cdef bint negative = p[0] == b"-"
    cdef const uint8_t* first
    cdef uint64_t mantissa, more
    cdef int whole, fraction = 0, count
    p += negative
    first = p
    if end - p < 8:
        return NULL
    whole = leading_digits(p, &mantissa)
    p += whole
    if not 0 < whole < 8 or (first[0] == b"0" and whole > 1):
        return NULL
    if p[0] == b".":
        p += 1
        if end - p < 8:
            return NULL
        fraction = leading_digits(p, &more)
        p += fraction
        if not 0 < fraction < 8:
            return NULL
        mantissa = mantissa * TENS[fraction] + more
    if (p[0] | 32) == b"e":
        return NULL
    value[0] = <double><int64_t>mantissa / POWERS_OF_TEN[fraction]
    if negative:
        value[0] = -value[0]
    return p


cdef inline bint begins_with(
    const uint8_t* p, const uint8_t* end, const char* text, Py_ssize_t length
) noexcept nogil:
    """Return whether ``text``, of at least eight readable bytes, is at ``p``."""
    cdef uint64_t differ
    if end - p < 8 or end - p <= length:
        return False
    differ = load_8(p) ^ load_8(<const uint8_t*>text)
    if length <= 8:
        return length > 0 and differ << (64 - 8 * length) == 0
    return differ == 0 and memcmp(p + 8, text + 8, length - 8) == 0


cdef inline void copy(
    uint8_t* out, const uint8_t* p, Py_ssize_t length, const uint8_t* end
) noexcept nogil:
    """Copy a text; up to 16 bytes of ``out`` are written where ``p`` has as many to its end."""
    if length <= 16 and end - p >= 16:
        memcpy(out, p, 16)
    else:
        memcpy(out, p, length)
