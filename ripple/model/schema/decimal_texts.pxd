# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The scan of a decimal's text, into 64 or into 128 bits."""

from libc.stdint cimport uint8_t

cdef extern from *:
    """
    typedef unsigned __int128 unsigned_t;
    """
    # Cython tells the members of a fused type apart by what is declared here.
    ctypedef unsigned long narrow_t "uint64_t"
    ctypedef unsigned long long unsigned_t

cdef enum:
    EXPONENT_MAX = 100000       # beyond all that fits
    GOOD = 0
    NO_NUMBER = 1
    NO_ROOM = 2

ctypedef fused digits_t:
    narrow_t
    unsigned_t


cdef inline uint8_t scanned(
    const uint8_t* at, const uint8_t* end, int precision, int scale, const digits_t* tens, int most, digits_t* found
) noexcept nogil:
    """Set the units of a decimal in two's complement, or return what is wrong with its text.

    tens: the powers of 10, up to that of ``most``, the digits that there is room for.
    """
    cdef digits_t value = 0
    cdef int count = 0, fraction = 0, exponent = 0, last = 0, zeros = 0, shift
    cdef bint negative, sign, point = False, any = False
    cdef uint8_t digit
    found[0] = 0
    negative = at < end and at[0] == 0x2D
    at += negative or (at < end and at[0] == 0x2B)
    if end - at > EXPONENT_MAX:
        return NO_NUMBER
    while at < end:
        digit = at[0] - 0x30
        if digit <= 9:
            any = True
            fraction += point
            if digit == 0:
                zeros += 1
                last += not point
            else:
                if count:
                    count += zeros + 1
                else:
                    count = 1
                if count <= most:
                    value = value * (tens[zeros + 1] if count > 1 else 1) + digit
                zeros = 0
                last = -fraction
        elif at[0] == 0x2E and not point:
            point = True
        else:
            break
        at += 1
    if not any:
        return NO_NUMBER
    if at < end:
        if at[0] | 0x20 != 0x65:
            return NO_NUMBER
        at += 1
        sign = at < end and at[0] == 0x2D
        at += sign or (at < end and at[0] == 0x2B)
        if at == end:
            return NO_NUMBER
        while at < end:
            digit = at[0] - 0x30
            if digit > 9:
                return NO_NUMBER
            if exponent < EXPONENT_MAX:
                exponent = exponent * 10 + digit
            at += 1
        if sign:
            exponent = -exponent
    if count == 0:
        return GOOD
    shift = scale + last + exponent
    if shift < 0 or count + shift > precision:
        return NO_ROOM
    value *= tens[shift]
    found[0] = -value if negative else value
    return GOOD
