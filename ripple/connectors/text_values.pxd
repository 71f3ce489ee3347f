# cython: language_level=3, cdivision=True
"""Numbers in text, and well-formed bytes: what the parsers of lines share, inline in each."""

from libc.math cimport isinf
from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef extern from *:
    """
    #include <charconv>
    /* Where parsing stopped, or null when it failed. Correctly rounded, in any locale. */
    static inline const unsigned char* double_from_chars(
            const unsigned char* p, const unsigned char* end, double* value) {
        auto result = std::from_chars((const char*)p, (const char*)end, *value);
        return result.ec == std::errc() ? (const unsigned char*)result.ptr : nullptr;
    }
    static const double POWERS_OF_TEN[] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    """
    const uint8_t* double_from_chars(const uint8_t* p, const uint8_t* end, double* value) nogil
    const double[23] POWERS_OF_TEN

cdef enum Reading:
    READ, NO_NUMBER, BEYOND_INT64, BEYOND_DOUBLE, BELOW_DOUBLE

cdef enum:
    COUNTED_AT_ONCE = 240       # a byte counts to 255


cdef inline bint is_digit(uint8_t c) noexcept nogil:
    return <uint8_t>(c - 48) < 10


cdef inline Reading read_integer(
    const uint8_t** at, const uint8_t* end, int64_t* value
) noexcept nogil:
    """``-?digits``; moves ``at`` past them."""
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* digits
    cdef uint64_t magnitude = 0
    cdef uint64_t limit = <uint64_t>0x7FFFFFFFFFFFFFFF
    cdef bint negative = p < end and p[0] == b"-"
    cdef bint too_big = False
    if negative:
        limit += 1
        p += 1
    digits = p
    while p < end and is_digit(p[0]):
        # Past 19 digits only leading zeros keep the product below the limit.
        too_big |= magnitude > 922337203685477580U
        magnitude = magnitude * 10 + <uint8_t>(p[0] - 48)
        p += 1
    if p == digits:
        return NO_NUMBER
    at[0] = p
    if too_big or magnitude > limit:
        return BEYOND_INT64
    value[0] = <int64_t>(0 - magnitude) if negative else <int64_t>magnitude
    return READ


cdef inline const uint8_t* short_decimal(
    const uint8_t* p, const uint8_t* end, double* value
) noexcept nogil:
    """A decimal of at most 15 digits and no exponent, or null when it is not one.

    The digits as an integer and the power of ten are both exact doubles then, so that one division
    rounds correctly (Clinger, How to read floating point numbers accurately, 1990).
    """
    cdef bint negative = p[0] == b"-"
    cdef const uint8_t* start
    cdef int64_t mantissa = 0
    cdef Py_ssize_t whole, fraction = 0
    if negative:
        p += 1
    start = p
    while p < end and is_digit(p[0]):
        mantissa = <int64_t>(<uint64_t>mantissa * 10 + <uint8_t>(p[0] - 48))
        p += 1
    whole = p - start
    if p < end and p[0] == b".":
        p += 1
        start = p
        while p < end and is_digit(p[0]):
            mantissa = <int64_t>(<uint64_t>mantissa * 10 + <uint8_t>(p[0] - 48))
            p += 1
        fraction = p - start
    if whole + fraction == 0 or whole + fraction > 15 or (p < end and (p[0] | 32) == b"e"):
        return NULL
    value[0] = <double>mantissa / POWERS_OF_TEN[fraction]
    if negative:
        value[0] = -value[0]
    return p


cdef inline Reading read_decimal(
    const uint8_t** at, const uint8_t* end, double* value
) noexcept nogil:
    """Any decimal, with or without an exponent; moves ``at`` past it.

    One that no double but an infinity, or none but 0, is near to is not read.
    """
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* after
    cdef const uint8_t* q
    q = p + 1 if p[0] == b"-" else p
    # from_chars would also take words such as nan(1) and infinity.
    if q == end or not (is_digit(q[0]) or q[0] == b"."):
        return NO_NUMBER
    after = double_from_chars(p, end, value)
    if after != NULL and not isinf(value[0]) and (value[0] != 0 or not _has_digits(q, after)):
        at[0] = after
        return READ
    if after == NULL:
        after = _end_of_decimal(q, end)
        if after == NULL:
            return NO_NUMBER
    at[0] = after
    return BEYOND_DOUBLE if _is_above_one(q, after) else BELOW_DOUBLE


cdef inline bint _has_digits(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Whether a digit of a decimal is not 0."""
    while p < end and (p[0] | 32) != b"e":
        if b"1" <= p[0] <= b"9":
            return True
        p += 1
    return False


cdef inline const uint8_t* _end_of_decimal(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Where digits with a point and an exponent end, or null where there are none."""
    cdef Py_ssize_t digits = 0
    while p < end and is_digit(p[0]):
        p += 1
        digits += 1
    if p < end and p[0] == b".":
        p += 1
        while p < end and is_digit(p[0]):
            p += 1
            digits += 1
    if digits == 0:
        return NULL
    if p < end and (p[0] | 32) == b"e":
        p += 1
        if p < end and (p[0] == b"-" or p[0] == b"+"):
            p += 1
        if p == end or not is_digit(p[0]):
            return NULL
        while p < end and is_digit(p[0]):
            p += 1
    return p


cdef inline bint _is_above_one(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Whether a decimal that is far from 1 is the larger, by the place of its first digit."""
    cdef Py_ssize_t place = 0, exponent = 0
    cdef bint begun = False, whole = True, negative = False
    while p < end and (p[0] | 32) != b"e":
        if p[0] == b".":
            whole = False
        else:
            begun |= p[0] != b"0"
            if whole and begun:
                place += 1
            elif not whole and not begun:
                place -= 1
        p += 1
    if p < end:
        p += 1
        negative = p[0] == b"-"
        if negative or p[0] == b"+":
            p += 1
        while p < end:
            if exponent < 100_000_000:
                exponent = 10 * exponent + <uint8_t>(p[0] - 48)
            p += 1
    return place > exponent if negative else place + exponent > 0


cdef inline Py_ssize_t newlines(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i, start = 0, count = 0
    cdef uint8_t some
    # As many at once as a byte can count, and always as many: the compiler adds up sixteen of them
    # at a time, and need not ask how many are left.
    while size - start >= COUNTED_AT_ONCE:
        some = 0
        for i in range(COUNTED_AT_ONCE):
            some += data[start + i] == b"\n"
        count += some
        start += COUNTED_AT_ONCE
    for i in range(start, size):
        count += data[i] == b"\n"
    return count


cdef inline bint is_ascii(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint8_t seen = 0
    for i in range(size):
        seen |= data[i]
    return seen < 0x80


cdef inline bint is_utf8(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Whether the bytes are well-formed UTF-8 (Unicode standard, table 3-7)."""
    cdef uint8_t lead, low, high
    cdef int more, i
    while p < end:
        lead = p[0]
        p += 1
        if lead < 0x80:
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
            if lead == 0xE0:
                low = 0xA0
            elif lead == 0xED:
                high = 0x9F
        elif 0xF0 <= lead <= 0xF4:
            more = 3
            if lead == 0xF0:
                low = 0x90
            elif lead == 0xF4:
                high = 0x8F
        else:
            return False
        if end - p < more or not (low <= p[0] <= high):
            return False
        for i in range(1, more):
            if (p[i] & 0xC0) != 0x80:
                return False
        p += more
    return True
