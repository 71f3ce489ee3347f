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
        pass
    cppclass Lines:
        const uint8_t* begin
        const uint8_t* end
        bint portable
    Marks look(const Lines& lines, const uint8_t* p)
    bint next_mark(Marks& marks, const Lines& lines, const uint8_t** found)
    int point_16(const uint8_t* p)
    uint64_t digits_8(const uint8_t* p, int count, uint64_t* other)
    const uint64_t[9] WHOLE_POWERS_OF_TEN
    uint64_t digits_19(const Lines& lines, const uint8_t* p, int count, uint64_t* other)
    uint64_t decimal_8(const uint8_t* p, int count, int* fraction, uint64_t* other)


cdef inline const uint8_t* plain_line(
    const uint8_t* p,
    const Lines& lines,
    Marks& left,
    Column* columns,
    Column* columns_end,
    Py_ssize_t row,
) noexcept nogil:
    """Parse the line at ``p`` into ``row``; return where it ends, or null if it is not plain.

    ``p`` is where ``left`` begins, or behind the last mark that was found.
    """
    cdef const uint8_t* stop
    cdef Column* column = columns
    cdef Marks marks = left
    cdef bint read
    if p[0] == b"#" or p[0] < b" ":
        return NULL
    while True:
        if not next_mark(marks, lines, &stop):
            return NULL
        if column.kind == STRING:
            read = _string(p, stop, column[0], row)
        elif p == stop:
            read = absent(column[0], row) == GOOD
        elif column.kind == INTEGER:
            read = _integer(p, stop, lines, column[0], row)
        elif column.kind == FLOAT:
            read = _float(p, stop, lines, column[0], row)
        else:
            read = _bool(p, stop, column[0], row)
        if not read:
            return NULL
        p = stop + 1
        column += 1
        if column == columns_end:
            break
        if stop[0] != b",":
            return NULL
    if stop[0] == b"\r":
        if not next_mark(marks, lines, &stop) or stop != p:
            return NULL
    left = marks
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
    const uint8_t* p, const uint8_t* stop, const Lines& lines, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef bint negative = p[0] == b"-"
    cdef const uint8_t* digits = p + negative
    cdef Py_ssize_t count = stop - digits
    cdef uint64_t other = 0, magnitude
    cdef int64_t value
    if <size_t>(count - 1) >= 19:
        return integer_field(&p, stop, column, row) == GOOD
    magnitude = digits_19(lines, digits, <int>count, &other)
    if other or magnitude >> 63:
        return integer_field(&p, stop, column, row) == GOOD
    value = -<int64_t>magnitude if negative else <int64_t>magnitude
    return accept_integer(value, column, row) == GOOD


cdef inline bint _float(
    const uint8_t* p, const uint8_t* stop, const Lines& lines, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef bint negative = p[0] == b"-"
    cdef const uint8_t* digits = p + negative
    cdef Py_ssize_t count = stop - digits
    cdef int fraction = 0
    cdef uint64_t other = 0, mantissa = 0
    cdef double value
    if 3 <= count <= 8:
        mantissa = decimal_8(digits, <int>count, &fraction, &other)
    if fraction == 0:
        other = 0
        mantissa = _long_decimal(digits, stop, lines, &fraction, &other)
    if other:
        return float_field(&p, stop, column, row) == GOOD
    value = <double><int64_t>mantissa / POWERS_OF_TEN[fraction]
    if negative:
        value = -value
    return accept_float(value, column, row) == GOOD


cdef inline uint64_t _long_decimal(
    const uint8_t* digits, const uint8_t* stop, const Lines& lines, int* fraction, uint64_t* other
) noexcept nogil:
    """The same as ``decimal_8``, of up to 15 digits, with or without a point among them."""
    cdef Py_ssize_t whole = point_16(digits), behind
    if digits + whole < stop:
        behind = stop - digits - whole - 1
        if not (1 <= whole <= 8 and 1 <= behind <= 8 and whole + behind <= 15):
            other[0] = 1
            return 0
        fraction[0] = <int>behind
        return (
            digits_8(digits, <int>whole, other) * WHOLE_POWERS_OF_TEN[behind]
            + digits_8(digits + whole + 1, <int>behind, other)
        )
    whole = stop - digits
    if not 1 <= whole <= 15:
        other[0] = 1
        return 0
    return digits_19(lines, digits, <int>whole, other)


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
