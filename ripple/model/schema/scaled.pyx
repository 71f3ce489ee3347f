# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Loops over decimals: integers of 64 bits that count units of 10 ** -scale, up to 18 digits.

Texts are columns as in ``strings``; null rows are passed over. Nothing is rounded but where a
rounding is named, and nothing passes through a float that is not one.
"""

from libc.math cimport copysign, fabs, isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, strlen

import numpy as np

from ripple.model.schema.decimal_texts cimport GOOD, narrow_t, scanned

cdef extern from *:
    """
    typedef __int128 wide_t;
    """
    ctypedef long long wide_t

cdef extern from "Python.h":
    double PyOS_string_to_double(const char* s, char** end, void* overflow) except? -1.0
    char* PyOS_double_to_string(double value, char form, int precision, int flags, int* kind) except NULL
    void PyMem_Free(void* block)

cdef enum:
    DIGITS = 18                 # of a decimal in 64 bits
    WIDTH_MAX = 24              # of a text: a sign, digits, a point
    BYTES_MAX = 2147483647      # of the texts of a column

cdef enum Rounding:            # in the order of ROUNDINGS of expr
    HALF_EVEN, HALF_UP, HALF_DOWN, DOWN, UP, FLOOR, CEILING


cdef int64_t[19] TENS
cdef int k_
TENS[0] = 1
for k_ in range(1, 19):
    TENS[k_] = TENS[k_ - 1] * 10


cdef uint8_t parsed(const uint8_t* at, const uint8_t* end, int precision, int scale, int64_t* out) noexcept nogil:
    """Set the decimal of a text, or return what is wrong with it."""
    cdef narrow_t value
    cdef uint8_t verdict = scanned[narrow_t](at, end, precision, scale, <const narrow_t*>TENS, DIGITS, &value)
    out[0] = <int64_t>value
    return verdict


def parse(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data, int precision, int scale):
    """Return (int64[n], uint8[n]): decimals, and 1 for no number, 2 for one that does not fit."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    values, verdicts = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    cdef int64_t[::1] out = values
    cdef uint8_t[::1] verdict = verdicts
    with nogil:
        for j in range(n):
            if valid is None or valid[j]:
                verdict[j] = parsed(start + offsets[j], start + offsets[j + 1], precision, scale, &out[j])
    return values, verdicts


cdef int written(int64_t number, int scale, uint8_t* out) noexcept nogil:
    """Write the text of a decimal and return its length."""
    cdef uint8_t[WIDTH_MAX] text
    cdef uint64_t value = -<uint64_t>number if number < 0 else <uint64_t>number
    cdef int at = WIDTH_MAX, left = scale
    while value or left >= 0:
        at -= 1
        if left == 0 and scale:
            text[at] = 0x2E
            scale = 0
            continue
        text[at] = <uint8_t>(0x30 + value % 10)
        value //= 10
        left -= 1
    if number < 0:
        at -= 1
        text[at] = 0x2D
    memcpy(out, &text[at], WIDTH_MAX - at)
    return WIDTH_MAX - at


def texts(const int64_t[::1] values, int scale):
    """Return (offsets, bytes) of decimals in plain digits, of their scale."""
    cdef Py_ssize_t n = values.shape[0], j
    cdef int64_t size = 0
    if n * WIDTH_MAX > BYTES_MAX:
        raise OverflowError("the texts of a column have more than 2 GiB")
    offsets, result = np.zeros(n + 1, np.int32), np.empty(n * WIDTH_MAX, np.uint8)
    cdef int32_t[::1] offset = offsets
    cdef uint8_t[::1] out = result
    with nogil:
        for j in range(n):
            size += written(values[j], scale, &out[size])
            offset[j + 1] = <int32_t>size
    return offsets, result[:size]


cdef bint away(wide_t magnitude, wide_t rest, wide_t divisor, bint negative, int rounding) noexcept nogil:
    """Tell whether a quotient with a rest is rounded away from zero."""
    cdef wide_t other = divisor - rest
    if rest == 0 or rounding == DOWN:
        return False
    if rounding == UP:
        return True
    if rounding == FLOOR:
        return negative
    if rounding == CEILING:
        return not negative
    if rest != other:
        return rest > other
    if rounding == HALF_EVEN:
        return magnitude & 1
    return rounding == HALF_UP


cdef bint quotient(wide_t value, wide_t divisor, int shift, int rounding, int64_t* out) noexcept nogil:
    """Set value * 10 ** shift / divisor, rounded; return whether it has up to 18 digits."""
    cdef bint negative = (value < 0) != (divisor < 0)
    cdef wide_t limit, result, rest
    cdef int step
    out[0] = 0
    if divisor == 0:
        return False
    if value == 0:
        return True
    value = -value if value < 0 else value
    divisor = -divisor if divisor < 0 else divisor
    if shift < -DIGITS:
        return False
    if shift < 0:
        divisor *= TENS[-shift]
    limit = TENS[DIGITS]
    limit *= TENS[DIGITS]
    # Beyond: the quotient by a divisor of 64 bits has more than 18 digits.
    while shift > 0:
        step = DIGITS if shift > DIGITS else shift
        if value > limit or value > limit * 100 // TENS[step]:
            return False
        value *= TENS[step]
        shift -= step
    result = value // divisor
    rest = value - result * divisor
    result += away(result, rest, divisor, negative, rounding)
    if result >= TENS[DIGITS]:
        return False
    out[0] = <int64_t>(-result if negative else result)
    return True


def divide(const int64_t[::1] values, const int64_t[::1] divisors, int shift, int rounding):
    """Return (int64[n], failed uint8[n]): value * 10 ** shift / divisor, rounded once.

    shift: -18 to 36. A row fails if the divisor is 0 or the result has more than 18 digits.
    """
    cdef Py_ssize_t n = values.shape[0], j
    results, failed = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    cdef int64_t[::1] out = results
    cdef uint8_t[::1] bad = failed
    with nogil:
        for j in range(n):
            bad[j] = not quotient(values[j], divisors[j], shift, rounding, &out[j])
    return results, failed


def rounded(const int64_t[::1] values, int digits, int rounding):
    """Return int64[n]: value / 10 ** digits, rounded; digits: 0 to 18."""
    cdef Py_ssize_t n = values.shape[0], j
    results = np.zeros(n, np.int64)
    cdef int64_t[::1] out = results
    cdef int64_t divisor = TENS[digits], value, result, rest
    with nogil:
        for j in range(n):
            value = values[j]
            result = value // divisor
            rest = value - result * divisor
            rest = -rest if rest < 0 else rest
            result = -result if result < 0 else result
            result += away(result, rest, divisor, value < 0, rounding)
            out[j] = -result if value < 0 else result
    return results


def to_floats(const int64_t[::1] values, int scale):
    """Return the nearest float of each decimal."""
    cdef Py_ssize_t n = values.shape[0], j
    cdef int64_t whole = 1 << 53    # up to here each integer is a float
    cdef double divisor = <double>TENS[scale]
    cdef uint8_t[WIDTH_MAX + 1] text
    results = np.zeros(n, np.float64)
    cdef double[::1] out = results
    for j in range(n):
        if -whole <= values[j] <= whole:
            out[j] = <double>values[j] / divisor    # both exact, rounded once
        else:
            text[written(values[j], scale, text)] = 0
            out[j] = PyOS_string_to_double(<const char*>text, NULL, NULL)
    return results


cdef double units_of(double value, double scale) noexcept nogil:
    """Return the nearest whole number of an exact product below 2^51, ties to the even one."""
    cdef double head = value * scale, a = 134217729.0 * value, b = 134217729.0 * scale
    cdef double ah = a - (a - value), bh = b - (b - scale)  # of 26 bits, so that products are exact
    cdef double al = value - ah, bl = scale - bh
    cdef double tail = ((ah * bh - head) + ah * bl + al * bh) + al * bl
    cdef double whole = (head + 6755399441055744.0) - 6755399441055744.0    # 1.5 * 2^52
    # The head may be halfway where the product is not.
    if fabs(head - whole) == 0.5 and tail != 0:
        return head + copysign(0.5, tail)
    return whole


def of_floats(const double[::1] values, int precision, int scale):
    """Return (int64[n], failed uint8[n]): the nearest decimal of each float, ties to the even one."""
    cdef Py_ssize_t n = values.shape[0], j
    cdef double units
    cdef char* text
    results, failed = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    cdef int64_t[::1] out = results
    cdef uint8_t[::1] bad = failed
    for j in range(n):
        if fabs(values[j]) * TENS[scale] < 2251799813685248.0:  # 2^51
            units = units_of(values[j], <double>TENS[scale])
            bad[j] = fabs(units) >= TENS[precision]
            out[j] = 0 if bad[j] else <int64_t>units
            continue
        if not isfinite(values[j]) or fabs(values[j]) >= 1e18:
            bad[j] = 1
            continue
        text = PyOS_double_to_string(values[j], 0x66, scale, 0, NULL)
        bad[j] = parsed(<const uint8_t*>text, <const uint8_t*>text + strlen(text), precision, scale, &out[j]) != GOOD
        PyMem_Free(text)
    return results, failed
