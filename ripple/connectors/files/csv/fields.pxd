# cython: language_level=3, cdivision=True
"""One record's fields, judged from left to right and written into a row of their columns.

This is the careful way, which any line may go: what it says of a line is the verdict.
"""

from libc.math cimport INFINITY, NAN, isfinite
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr, memcmp, memcpy
from libcpp.string cimport string
from libcpp.vector cimport vector

from ripple.connectors.text_values cimport (
    BEYOND_DOUBLE, NO_NUMBER, READ, Reading, is_digit, read_decimal, read_integer, short_decimal,
)


# The order is that of REASONS in reader.py.
cdef enum Verdict:
    GOOD, TOO_LONG, NOT_UTF8, NUL_BYTE, TOO_FEW, TOO_MANY, BAD_QUOTES, EMPTY, NOT_OF_TYPE, TOO_BIG
    TOO_LARGE, TOO_SMALL, NOT_FINITE, NOT_IN_RANGE, NOT_OF_LENGTH

cdef extern from "plain_columns.h" namespace "ripple" nogil:
    enum Kind:
        STRING, INTEGER, FLOAT, BOOL
    struct Column:
        Kind kind
        bint optional, finite, ranged, measured, digits
        int64_t low, high
        double low_float, high_float
        Py_ssize_t shortest, longest
        uint8_t delimiter
        bint wanted
        uint8_t* values
        int* offsets
        uint8_t* valid


cdef enum:
    NUMBER_BYTES_MAX = 400      # of one that is not written as ours are


cdef struct Dialect:
    # How numbers and missing values are written, where not as ours are; 0: no mark of thousands.
    bint foreign
    uint8_t decimal, thousands
    vector[string] nulls


cdef inline Verdict parse_line(
    const uint8_t* p,
    const uint8_t* end,
    bint quotes,
    vector[Column]& columns,
    const Dialect& dialect,
    Py_ssize_t row,
    int* at,
) noexcept nogil:
    """Parse the fields of a record into ``row``; on failure ``at`` is the column to blame.

    ``quotes``: whether there are any.
    """
    cdef size_t i
    cdef const uint8_t* stop
    cdef Verdict verdict
    for i in range(columns.size()):
        if i > 0:
            if p >= end:
                return TOO_FEW
            p += 1      # the delimiter that ended the field before
        stop = end
        if quotes and p < end and p[0] == b'"' and (columns[i].kind != STRING or columns[i].digits):
            p += 1
            stop = <const uint8_t*>memchr(p, b'"', end - p)
            if stop == NULL or (stop + 1 < end and stop[1] != columns[i].delimiter):
                at[0] = <int>i
                return BAD_QUOTES
        if dialect.foreign:
            verdict = _foreign_field(&p, stop, quotes, columns[i], dialect, row)
        elif columns[i].kind == STRING:
            verdict = string_field(&p, end, quotes, columns[i], row)
        elif columns[i].kind == INTEGER:
            verdict = integer_field(&p, stop, columns[i], row)
        elif columns[i].kind == FLOAT:
            verdict = float_field(&p, stop, columns[i], row)
        else:
            verdict = bool_field(&p, stop, columns[i], row)
        if quotes and stop != end:
            if p != stop:
                verdict = NOT_OF_TYPE       # a delimiter in the quotes
            p = stop + 1
        if verdict != GOOD:
            at[0] = <int>i
            return verdict
    return GOOD if p == end else TOO_MANY


cdef inline Verdict _foreign_field(
    const uint8_t** at,
    const uint8_t* end,
    bint quotes,
    Column& column,
    const Dialect& dialect,
    Py_ssize_t row,
) noexcept nogil:
    """A field that may be written in another way: what it stands for is read as ours are."""
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* stop = p
    cdef const uint8_t* number
    cdef const uint8_t* after
    cdef uint8_t[NUMBER_BYTES_MAX] own
    cdef Py_ssize_t length
    cdef Verdict verdict
    while stop < end and stop[0] != column.delimiter:
        stop += 1
    if _is_null(p, stop - p, dialect):
        at[0] = stop
        if column.kind != STRING:
            return absent(column, row)
        if not column.optional:
            return EMPTY
        if column.wanted:
            column.offsets[row + 1] = column.offsets[row]
            column.valid[row] = False
        return GOOD
    if column.kind == STRING and not column.digits:
        return string_field(at, end, quotes, column, row)
    if column.kind == BOOL:
        return bool_field(at, end, column, row)
    if not _to_own(p, stop, dialect, own, &length):
        return NOT_OF_TYPE
    number = own
    after = own + length
    if column.kind == STRING:
        verdict = string_field(&number, after, False, column, row)
    elif column.kind == INTEGER:
        verdict = integer_field(&number, after, column, row)
    else:
        verdict = float_field(&number, after, column, row)
    if number == after:
        at[0] = stop
    return verdict


cdef inline bint _is_null(const uint8_t* p, Py_ssize_t length, const Dialect& dialect) noexcept nogil:
    cdef size_t i
    for i in range(dialect.nulls.size()):
        if <Py_ssize_t>dialect.nulls[i].size() == length and memcmp(
            dialect.nulls[i].data(), p, length
        ) == 0:
            return True
    return False


cdef inline bint _to_own(
    const uint8_t* p, const uint8_t* stop, const Dialect& dialect, uint8_t* own, Py_ssize_t* length
) noexcept nogil:
    """Write a number as ours are. False if a mark of it is where none may be, or if it is too long.

    Marks of thousands are before three digits each, behind one to three of which the first is no 0:
    0.123 has another mark.
    """
    cdef uint8_t* out = own
    cdef Py_ssize_t digits = 0      # since the last mark of thousands
    cdef bint grouped = False, whole = True
    if stop - p > NUMBER_BYTES_MAX:
        return False
    while p < stop:
        if whole and dialect.thousands != 0 and p[0] == dialect.thousands:
            if digits == 0 or digits > 3 or (grouped and digits != 3):
                return False
            if not grouped and (out - digits)[0] == b"0":
                return False
            grouped = True
            digits = 0
        elif is_digit(p[0]):
            out[0] = p[0]
            out += 1
            digits += whole
        else:
            if whole and grouped and digits != 3:
                return False
            if p[0] == dialect.decimal:
                if not whole:
                    return False
                whole = False
                out[0] = b"."
            elif p[0] == b".":
                return False
            else:
                whole = whole and digits == 0       # a sign or a blank before it
                out[0] = p[0]
            out += 1
        p += 1
    length[0] = out - own
    return not (whole and grouped and digits != 3)


# Each field function starts at the field's first byte, and leaves p at the delimiter or the line's end.

cdef inline Verdict string_field(
    const uint8_t** at, const uint8_t* end, bint quotes, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* start = p
    cdef uint8_t* out
    cdef Py_ssize_t length
    cdef Verdict verdict
    cdef bint valid = True
    if quotes and p < end and p[0] == b'"':
        return _quoted(at, end, column, row)
    while p < end and p[0] != column.delimiter:
        if quotes and p[0] == b'"':
            return BAD_QUOTES
        p += 1
    at[0] = p
    length = p - start
    if length == 0 and column.optional:
        valid = False
    elif column.measured:
        verdict = measured(_characters(start, p), column)
        if verdict != GOOD:
            return verdict
    if column.wanted:
        out = column.values + column.offsets[row]
        memcpy(out, start, length)
        column.offsets[row + 1] = column.offsets[row] + <int>length
        if column.valid != NULL:
            column.valid[row] = valid
    return GOOD


cdef inline Verdict _quoted(
    const uint8_t** at, const uint8_t* end, Column& column, Py_ssize_t row
) noexcept nogil:
    """A field in quotes, in which a doubled quote stands for one."""
    cdef const uint8_t* p = at[0] + 1
    cdef uint8_t* out = column.values + column.offsets[row] if column.wanted else NULL
    cdef Py_ssize_t length = 0, continuing = 0
    cdef Verdict verdict
    while True:
        if p >= end:
            return BAD_QUOTES
        if p[0] == b'"':
            p += 1
            if p >= end or p[0] != b'"':
                break
        if out != NULL:
            out[length] = p[0]
        length += 1
        continuing += (p[0] & 0xC0) == 0x80
        p += 1
    if p < end and p[0] != column.delimiter:
        return BAD_QUOTES
    at[0] = p
    if column.measured:
        verdict = measured(length - continuing, column)
        if verdict != GOOD:
            return verdict
    if column.wanted:
        column.offsets[row + 1] = column.offsets[row] + <int>length
        if column.valid != NULL:
            column.valid[row] = True
    return GOOD


cdef inline Py_ssize_t _characters(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """The number of code points of UTF-8."""
    cdef Py_ssize_t count = 0
    while p < end:
        count += (p[0] & 0xC0) != 0x80
        p += 1
    return count


cdef inline Verdict measured(Py_ssize_t characters, Column& column) noexcept nogil:
    if column.shortest <= characters <= column.longest:
        return GOOD
    return EMPTY if characters == 0 else NOT_OF_LENGTH


cdef inline bint _is_blank(uint8_t c, uint8_t delimiter) noexcept nogil:
    return (c == b" " or c == b"\t") and c != delimiter


cdef inline const uint8_t* _skip_blanks(
    const uint8_t* p, const uint8_t* end, uint8_t delimiter
) noexcept nogil:
    while p < end and _is_blank(p[0], delimiter):
        p += 1
    return p


cdef inline Verdict absent(Column& column, Py_ssize_t row) noexcept nogil:
    """An empty field that is no string."""
    if not column.optional:
        return EMPTY
    if column.wanted:
        column.valid[row] = False
        if column.kind == BOOL:
            column.values[row] = 0
        else:
            (<int64_t*>column.values)[row] = 0
    return GOOD


cdef inline Verdict accept_integer(int64_t value, Column& column, Py_ssize_t row) noexcept nogil:
    """Judge a value, however it was read, and store it."""
    if value < column.low or value > column.high:
        return NOT_IN_RANGE
    if column.wanted:
        (<int64_t*>column.values)[row] = value
        if column.valid != NULL:
            column.valid[row] = True
    return GOOD


cdef inline Verdict accept_float(double value, Column& column, Py_ssize_t row) noexcept nogil:
    """Judge a value, however it was read, and store it."""
    if column.finite and not isfinite(value):
        return NOT_FINITE
    if column.ranged and not (column.low_float <= value <= column.high_float):
        return NOT_IN_RANGE
    if column.wanted:
        (<double*>column.values)[row] = value
        if column.valid != NULL:
            column.valid[row] = True
    return GOOD


cdef inline Verdict integer_field(
    const uint8_t** at, const uint8_t* end, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef const uint8_t* p = _skip_blanks(at[0], end, column.delimiter)
    cdef int64_t value = 0
    cdef Reading reading
    if p == end or p[0] == column.delimiter:
        at[0] = p
        return absent(column, row)
    if p[0] == b"+" and p + 1 < end and is_digit(p[1]):
        p += 1
    reading = read_integer(&p, end, &value)
    if reading == NO_NUMBER:
        return NOT_OF_TYPE
    p = _skip_blanks(p, end, column.delimiter)
    if p < end and p[0] != column.delimiter:
        return NOT_OF_TYPE
    at[0] = p
    if reading != READ:
        return TOO_BIG
    return accept_integer(value, column, row)


cdef inline Verdict float_field(
    const uint8_t** at, const uint8_t* end, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef const uint8_t* p = _skip_blanks(at[0], end, column.delimiter)
    cdef const uint8_t* after
    cdef double value = 0
    cdef Reading reading = READ
    if p == end or p[0] == column.delimiter:
        at[0] = p
        return absent(column, row)
    after = short_decimal(p, end, &value)
    if after == NULL:
        after = p
        reading = _long_float(&after, end, &value)
        if reading == NO_NUMBER:
            return NOT_OF_TYPE
    p = _skip_blanks(after, end, column.delimiter)
    if p < end and p[0] != column.delimiter:
        return NOT_OF_TYPE
    at[0] = p
    if reading != READ:
        return TOO_LARGE if reading == BEYOND_DOUBLE else TOO_SMALL
    return accept_float(value, column, row)


cdef inline Reading _long_float(const uint8_t** at, const uint8_t* end, double* value) noexcept nogil:
    """Any decimal, or nan or infinity, with a sign or without; moves ``at`` past it."""
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* word = p + 1 if p[0] == b"-" or p[0] == b"+" else p
    cdef const uint8_t* stop = word
    cdef Reading reading
    if word < end and (is_digit(word[0]) or word[0] == b"."):
        at[0] = word if p[0] == b"+" else p
        reading = read_decimal(at, end, value)
        if reading == NO_NUMBER:
            at[0] = p
        return reading
    while stop < end and b"a" <= (stop[0] | 32) <= b"z":
        stop += 1
    if _is_word(word, stop - word, b"nan"):
        value[0] = NAN
    elif _is_word(word, stop - word, b"inf") or _is_word(word, stop - word, b"infinity"):
        value[0] = -INFINITY if p[0] == b"-" else INFINITY
    else:
        return NO_NUMBER
    at[0] = stop
    return READ


cdef inline Verdict bool_field(
    const uint8_t** at, const uint8_t* end, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef const uint8_t* p = _skip_blanks(at[0], end, column.delimiter)
    cdef const uint8_t* start = p
    cdef Py_ssize_t length
    cdef bint value
    while p < end and p[0] != column.delimiter:
        p += 1
    at[0] = p
    length = p - start
    while length > 0 and _is_blank(start[length - 1], column.delimiter):
        length -= 1
    if length == 0:
        return absent(column, row)
    if length == 1 and (start[0] == b"0" or start[0] == b"1"):
        value = start[0] == b"1"
    elif _is_word(start, length, b"true"):
        value = True
    elif _is_word(start, length, b"false"):
        value = False
    else:
        return NOT_OF_TYPE
    if column.wanted:
        column.values[row] = value
        if column.valid != NULL:
            column.valid[row] = True
    return GOOD


cdef inline bint _is_word(const uint8_t* p, Py_ssize_t length, const char* word) noexcept nogil:
    """Whether the text is ``word``, in small or capital letters."""
    cdef Py_ssize_t i
    for i in range(length):
        if word[i] == 0 or (p[i] | 32) != <uint8_t>word[i]:
            return False
    return word[length] == 0
