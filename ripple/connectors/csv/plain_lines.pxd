# cython: language_level=3, cdivision=True
"""Lines in which nothing is unusual, 64 bytes at a time.

This way never refuses a line: what it does not read is for the careful way to judge, and what it
reads is what the careful way would read. A field's value is the same because its digits are: both
ways divide the same integer by the same power of ten.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from ripple.connectors.csv.fields cimport (
    BOOL, FLOAT, GOOD, INTEGER, STRING, Column, absent, accept_float, accept_integer, bool_field,
    float_field, integer_field, measured,
)
from ripple.connectors.text_values cimport POWERS_OF_TEN

cdef extern from "plain_text.h" namespace "ripple" nogil:
    enum:
        SLACK_BYTES
    cppclass Marks:
        const uint8_t* end
        bint portable
    void look(Marks& marks, const uint8_t* p)
    const uint8_t* next_mark(Marks& marks)
    int point_16(const uint8_t* p)
    uint64_t digits_8(const uint8_t* p, int count, uint64_t* other)
    const uint64_t[9] WHOLE_POWERS_OF_TEN
    uint64_t digits_19(const uint8_t* p, int count, uint64_t* other)


cdef inline const uint8_t* plain_line(
    const uint8_t* p, Marks& marks, Column* columns, Py_ssize_t count, Py_ssize_t row
) noexcept nogil:
    """Parse the line at ``p`` into ``row``; return where it ends, or null if it is not plain.

    ``p`` is where ``marks`` look, or behind the last mark that was found.
    """
    cdef const uint8_t* stop = p
    cdef Py_ssize_t i
    cdef bint read
    if p[0] == b"#" or p[0] < b" ":
        return NULL
    for i in range(count):
        stop = next_mark(marks)
        if stop == NULL or (stop[0] == b",") != (i + 1 < count):
            return NULL
        if columns[i].kind == STRING:
            read = _string(p, stop, columns[i], row)
        elif p == stop:
            read = absent(columns[i], row) == GOOD
        elif columns[i].kind == INTEGER:
            read = _integer(p, stop, columns[i], row)
        elif columns[i].kind == FLOAT:
            read = _float(p, stop, columns[i], row)
        else:
            read = _bool(p, stop, columns[i], row)
        if not read:
            return NULL
        p = stop + 1
    if stop[0] == b"\r":
        stop = next_mark(marks)
        if stop != p:
            return NULL
    return stop if stop[0] == b"\n" else NULL


cdef inline bint _string(
    const uint8_t* p, const uint8_t* stop, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef Py_ssize_t length = stop - p
    cdef bint valid = length > 0 or not column.optional
    cdef uint8_t* out
    if column.measured and valid and measured(length, column) != GOOD:
        return False
    if column.wanted:
        out = column.values + column.offsets[row]
        if length <= SLACK_BYTES:
            memcpy(out, p, SLACK_BYTES)
        else:
            memcpy(out, p, length)
        column.offsets[row + 1] = column.offsets[row] + <int>length
        if column.valid != NULL:
            column.valid[row] = valid
    return True


cdef inline bint _integer(
    const uint8_t* p, const uint8_t* stop, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef bint negative = p[0] == b"-"
    cdef const uint8_t* digits = p + negative
    cdef Py_ssize_t count = stop - digits
    cdef uint64_t other = 0, magnitude = 0
    cdef int64_t value
    if 1 <= count <= 19:
        magnitude = digits_19(digits, <int>count, &other)
    if other or magnitude > <uint64_t>0x7FFFFFFFFFFFFFFF or not 1 <= count <= 19:
        return integer_field(&p, stop, column, row) == GOOD
    value = -<int64_t>magnitude if negative else <int64_t>magnitude
    return accept_integer(value, column, row) == GOOD


cdef inline bint _float(
    const uint8_t* p, const uint8_t* stop, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef bint negative = p[0] == b"-"
    cdef const uint8_t* digits = p + negative
    cdef Py_ssize_t whole = point_16(digits), fraction = 0
    cdef uint64_t other = 0
    cdef int64_t mantissa
    cdef double value
    if digits + whole < stop:
        fraction = stop - digits - whole - 1
        if not (1 <= whole <= 8 and 1 <= fraction <= 8 and whole + fraction <= 15):
            return float_field(&p, stop, column, row) == GOOD
        mantissa = <int64_t>(
            digits_8(digits, <int>whole, &other) * WHOLE_POWERS_OF_TEN[fraction]
            + digits_8(digits + whole + 1, <int>fraction, &other)
        )
    else:
        whole = stop - digits
        if not 1 <= whole <= 15:
            return float_field(&p, stop, column, row) == GOOD
        mantissa = <int64_t>digits_19(digits, <int>whole, &other)
    if other:
        return float_field(&p, stop, column, row) == GOOD
    value = <double>mantissa / POWERS_OF_TEN[fraction]
    if negative:
        value = -value
    return accept_float(value, column, row) == GOOD


cdef inline bint _bool(
    const uint8_t* p, const uint8_t* stop, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef Py_ssize_t length = stop - p
    cdef bint value = length == 4
    if not (value and memcmp(p, b"true", 4) == 0) and not (
        length == 5 and memcmp(p, b"false", 5) == 0
    ):
        return bool_field(&p, stop, column, row) == GOOD
    if column.wanted:
        column.values[row] = value
        if column.valid != NULL:
            column.valid[row] = True
    return True
