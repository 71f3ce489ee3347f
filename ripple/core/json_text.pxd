# cython: language_level=3
"""The parts of a text of JSON (RFC 8259), for compiled loops: where each ends, and what it says."""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memchr, memcmp


cdef inline const uint8_t* skip_blanks(const uint8_t* p, const uint8_t* end) noexcept nogil:
    while p < end and (p[0] == b" " or p[0] == b"\t" or p[0] == b"\r" or p[0] == b"\n"):
        p += 1
    return p


# Each of the following begins at a value's first byte and returns where it ends, or null.

cdef inline const uint8_t* string_end(
    const uint8_t* p, const uint8_t* end, bint* escaped
) noexcept nogil:
    cdef int i
    p += 1
    while p < end and p[0] != b'"':
        if p[0] < 0x20:
            return NULL
        if p[0] == b"\\":
            escaped[0] = True
            p += 1
            if p == end:
                return NULL
            if p[0] == b"u":
                for i in range(4):
                    p += 1
                    if p == end or hexadecimal(p[0]) < 0:
                        return NULL
            elif memchr(b'"\\/bfnrt', p[0], 8) == NULL:
                return NULL
        p += 1
    return p + 1 if p < end else NULL


cdef inline const uint8_t* number_end(const uint8_t* p, const uint8_t* end) noexcept nogil:
    if p < end and p[0] == b"-":
        p += 1
    if p < end and p[0] == b"0":
        p += 1
    else:
        p = digits_end(p, end)
    if p != NULL and p < end and p[0] == b".":
        p = digits_end(p + 1, end)
    if p != NULL and p < end and (p[0] | 32) == b"e":
        p += 1
        if p < end and (p[0] == b"-" or p[0] == b"+"):
            p += 1
        p = digits_end(p, end)
    return p


cdef inline const uint8_t* digits_end(const uint8_t* p, const uint8_t* end) noexcept nogil:
    if p == end or not b"0" <= p[0] <= b"9":
        return NULL
    while p < end and b"0" <= p[0] <= b"9":
        p += 1
    return p


cdef inline const uint8_t* literal_end(
    const uint8_t* p, const uint8_t* end, const char* word, Py_ssize_t length
) noexcept nogil:
    return p + length if end - p >= length and memcmp(p, word, length) == 0 else NULL


cdef inline int hexadecimal(uint8_t c) noexcept nogil:
    if b"0" <= c <= b"9":
        return c - 48
    c |= 32
    return c - 87 if b"a" <= c <= b"f" else -1


cdef inline Py_ssize_t unescape(const uint8_t* p, const uint8_t* end, uint8_t* out) noexcept nogil:
    """Write the text of a sound string to ``out``; return its length, -1 if it is not Unicode."""
    cdef const char* letters = b"bfnrt"
    cdef const char* meanings = b"\b\f\n\r\t"
    cdef const char* found
    cdef uint8_t* start = out
    cdef uint32_t code, low
    while p < end:
        if p[0] != b"\\":
            out[0] = p[0]
            out += 1
            p += 1
            continue
        if p[1] != b"u":
            found = <const char*>memchr(letters, p[1], 5)
            out[0] = p[1] if found == NULL else <uint8_t>meanings[found - letters]
            out += 1
            p += 2
            continue
        code = unit(p + 2)
        p += 6
        if 0xD800 <= code < 0xE000:
            # Half of a character beyond 0xFFFF, of which the other half must follow.
            if code >= 0xDC00 or end - p < 6 or p[0] != b"\\" or p[1] != b"u":
                return -1
            low = unit(p + 2)
            p += 6
            if not 0xDC00 <= low < 0xE000:
                return -1
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        out += utf8(code, out)
    return out - start


cdef inline uint32_t unit(const uint8_t* p) noexcept nogil:
    cdef uint32_t value = 0
    cdef int i
    for i in range(4):
        value = value << 4 | <uint32_t>hexadecimal(p[i])
    return value


cdef inline int utf8(uint32_t code, uint8_t* out) noexcept nogil:
    """Write a character and return how many bytes it has, fewer than its escape."""
    if code < 0x80:
        out[0] = <uint8_t>code
        return 1
    if code < 0x800:
        out[0] = <uint8_t>(0xC0 | code >> 6)
        out[1] = <uint8_t>(0x80 | code & 0x3F)
        return 2
    if code < 0x10000:
        out[0] = <uint8_t>(0xE0 | code >> 12)
        out[1] = <uint8_t>(0x80 | code >> 6 & 0x3F)
        out[2] = <uint8_t>(0x80 | code & 0x3F)
        return 3
    out[0] = <uint8_t>(0xF0 | code >> 18)
    out[1] = <uint8_t>(0x80 | code >> 12 & 0x3F)
    out[2] = <uint8_t>(0x80 | code >> 6 & 0x3F)
    out[3] = <uint8_t>(0x80 | code & 0x3F)
    return 4
