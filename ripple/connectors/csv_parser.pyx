# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Lines of text to columns, in one pass without the GIL.

A line is judged from left to right and the first thing wrong with it is its verdict. The loop
writes each field straight into the next row of its column; a rejected line's row is simply
overwritten by the next good one.
"""

from libc.math cimport isfinite, isinf
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memchr, memcpy, memset
from libcpp.vector cimport vector

import pyarrow as pa


cdef extern from *:
    """
    #include <charconv>
    /* Where parsing stopped, or null when it failed. Correctly rounded, whatever the locale. */
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

# The order is that of REASONS in csv_reader.py.
cdef enum Verdict:
    GOOD, TOO_LONG, NOT_UTF8, NUL_BYTE, TOO_FEW, TOO_MANY, BAD_QUOTES, EMPTY, NOT_OF_TYPE, TOO_BIG
    NOT_FINITE, NOT_IN_RANGE, NOT_OF_LENGTH

cdef enum Kind:
    STRING, INTEGER, FLOAT, BOOL

cdef struct Column:
    Kind kind
    bint optional, finite, ranged, measured
    int64_t low, high           # both inclusive
    double low_float, high_float
    Py_ssize_t shortest, longest    # of strings, in characters
    bint wanted             # the pointers below are null otherwise
    uint8_t* values         # int64, double, one byte per truth value, or the bytes of strings
    int* offsets            # strings only
    uint8_t* valid          # one byte per row, optional ones only
    Py_ssize_t length       # bytes of strings used by the rows so far

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef struct Bad:
    Py_ssize_t record, line, start, length
    Verdict verdict
    int column

cdef class CsvParser:
    """Parses blocks of whole lines into columns.

    ``columns`` is a list of (kind, wanted, optional, finite, smallest and largest number or None,
    smallest and largest number of characters), in the order of the file, where kind is an Arrow
    type: string, int64, float64 or bool.
    """

    cdef vector[Column] columns
    cdef Py_ssize_t line_length_bytes_max

    def __init__(self, columns: list, line_length_bytes_max: int) -> None:
        cdef Column column
        memset(&column, 0, sizeof(Column))
        kinds = {pa.string(): STRING, pa.int64(): INTEGER, pa.float64(): FLOAT, pa.bool_(): BOOL}
        self.line_length_bytes_max = line_length_bytes_max
        for kind, wanted, optional, finite, interval, (shortest, longest) in columns:
            column.kind = kinds[kind]
            column.wanted, column.optional, column.finite = wanted, optional, finite
            column.ranged = interval is not None
            if column.ranged and column.kind == FLOAT:
                column.low_float, column.high_float = interval
            elif column.ranged:
                column.low, column.high = interval
            column.shortest, column.longest = shortest, longest
            column.measured = shortest > 0 or longest < PY_SSIZE_T_MAX
            self.columns.push_back(column)

    def parse(self, const uint8_t[::1] block not None) -> tuple:
        """Parse all lines of ``block``.

        Returns (rows, lines, arrays, rejected): the numbers of good records and of physical lines,
        an Arrow array per wanted column, and (record index, line index, start, length, verdict,
        column) of each rejected line, indices within the block.
        """
        cdef Py_ssize_t size = block.shape[0], lines = 0, rows = 0, limit
        cdef const uint8_t* data = &block[0] if size else NULL
        cdef vector[Bad] rejected
        cdef Bad bad
        with nogil:
            limit = _newlines(data, size) + 1
        buffers = self._allocate(limit, size)
        with nogil:
            rows = _parse_lines(
                data, size, self.columns, self.line_length_bytes_max, rejected, &lines
            )
        arrays = [
            _array(self.columns[i], rows, buffers[i])
            for i in range(<int>self.columns.size()) if self.columns[i].wanted
        ]
        return rows, lines, arrays, [
            (bad.record, bad.line, bad.start, bad.length, <int>bad.verdict, bad.column)
            for bad in rejected
        ]

    cdef list _allocate(self, Py_ssize_t rows, Py_ssize_t size):
        """Give every wanted column room for ``rows`` rows; memory never written costs nothing."""
        cdef Column* column
        cdef Py_ssize_t i
        buffers = []
        for i in range(<Py_ssize_t>self.columns.size()):
            column = &self.columns[i]
            column.length = 0
            values = offsets = valid = None
            if column.wanted:
                width = size if column.kind == STRING else rows if column.kind == BOOL else 8 * rows
                values = pa.allocate_buffer(width, resizable=True)
                column.values = <uint8_t*><uintptr_t>values.address
                if column.kind == STRING:
                    offsets = pa.allocate_buffer(4 * (rows + 1), resizable=True)
                    column.offsets = <int*><uintptr_t>offsets.address
                    column.offsets[0] = 0
                if column.optional:
                    valid = pa.allocate_buffer(rows, resizable=True)
                    column.valid = <uint8_t*><uintptr_t>valid.address
            buffers.append((values, offsets, valid))
        return buffers


cdef object _array(Column& column, Py_ssize_t rows, tuple buffers):
    """The first ``rows`` rows of a column as an Arrow array."""
    values, offsets, valid = buffers
    validity = None
    if valid is not None:
        validity = _bits(valid, rows)
    if column.kind == STRING:
        values.resize(column.offsets[rows], shrink_to_fit=True)
        offsets.resize(4 * (rows + 1), shrink_to_fit=True)
        return pa.Array.from_buffers(pa.string(), rows, [validity, offsets, values])
    if column.kind == BOOL:
        return pa.Array.from_buffers(pa.bool_(), rows, [validity, _bits(values, rows)])
    values.resize(8 * rows, shrink_to_fit=True)
    kind = pa.int64() if column.kind == INTEGER else pa.float64()
    return pa.Array.from_buffers(kind, rows, [validity, values])


cdef object _bits(object flags, Py_ssize_t rows):
    """Arrow's bitmap of one byte per row."""
    cdef const uint8_t* p = <const uint8_t*><uintptr_t>flags.address
    cdef Py_ssize_t i
    bitmap = pa.allocate_buffer((rows + 7) // 8)
    cdef uint8_t* out = <uint8_t*><uintptr_t>bitmap.address
    for i in range((rows + 7) // 8):
        out[i] = 0
    for i in range(rows):
        out[i >> 3] |= p[i] << (i & 7)
    return bitmap


cdef Py_ssize_t _parse_lines(
    const uint8_t* data,
    Py_ssize_t size,
    vector[Column]& columns,
    Py_ssize_t line_length_bytes_max,
    vector[Bad]& rejected,
    Py_ssize_t* lines,
) noexcept nogil:
    """Parse every line, and return the number of good records."""
    cdef const uint8_t* p = data
    cdef const uint8_t* end = data + size
    cdef const uint8_t* stop
    cdef const uint8_t* line_end
    cdef Py_ssize_t rows = 0
    cdef bint plain = size == 0 or (
        memchr(data, 0, size) == NULL and _is_ascii(data, size)
    )
    cdef Bad bad
    while p < end:
        stop = <const uint8_t*>memchr(p, b"\n", end - p)
        if stop == NULL:
            stop = end
        line_end = stop - 1 if stop > p and (stop - 1)[0] == b"\r" else stop
        if line_end > p and p[0] != b"#":
            bad.column = -1
            if line_end - p > line_length_bytes_max:
                bad.verdict = TOO_LONG
            elif not plain and memchr(p, 0, line_end - p) != NULL:
                bad.verdict = NUL_BYTE
            elif not plain and not _is_utf8(p, line_end):
                bad.verdict = NOT_UTF8
            else:
                bad.verdict = _parse_line(p, line_end, columns, rows, &bad.column)
            if bad.verdict == GOOD:
                rows += 1
                _commit(columns, rows)
            else:
                bad.record = rows + <Py_ssize_t>rejected.size()
                bad.line = lines[0]
                bad.start = p - data
                bad.length = line_end - p
                rejected.push_back(bad)
        lines[0] += 1
        p = stop + 1
    return rows


cdef inline void _commit(vector[Column]& columns, Py_ssize_t rows) noexcept nogil:
    """Keep the strings of the row just parsed: up to here they are overwritten by the next."""
    cdef size_t i
    for i in range(columns.size()):
        if columns[i].offsets != NULL:
            columns[i].length = columns[i].offsets[rows]


cdef Verdict _parse_line(
    const uint8_t* p,
    const uint8_t* end,
    vector[Column]& columns,
    Py_ssize_t row,
    int* at,
) noexcept nogil:
    """Parse the fields of one line into ``row``; on failure ``at`` is the column to blame."""
    cdef size_t i
    cdef Verdict verdict
    for i in range(columns.size()):
        if i > 0:
            if p >= end:
                return TOO_FEW
            p += 1      # the comma that ended the field before
        if columns[i].kind == STRING:
            verdict = _string(&p, end, columns[i], row)
        elif columns[i].kind == INTEGER:
            verdict = _integer(&p, end, columns[i], row)
        elif columns[i].kind == FLOAT:
            verdict = _float(&p, end, columns[i], row)
        else:
            verdict = _bool(&p, end, columns[i], row)
        if verdict != GOOD:
            at[0] = <int>i
            return verdict
    return GOOD if p == end else TOO_MANY


# Each field function starts at the field's first byte, and leaves p at the comma or the line's end.

cdef inline Verdict _string(
    const uint8_t** at, const uint8_t* end, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* start = p
    cdef uint8_t* out
    cdef Py_ssize_t length
    cdef Verdict verdict
    cdef bint valid = True
    if p < end and p[0] == b'"':
        return _quoted(at, end, column, row)
    while p < end and p[0] != b",":
        p += 1
    at[0] = p
    length = p - start
    if length == 0 and column.optional:
        valid = False
    elif column.measured:
        verdict = _measured(_characters(start, p), column)
        if verdict != GOOD:
            return verdict
    if column.wanted:
        out = column.values + column.length
        memcpy(out, start, length)
        column.offsets[row + 1] = <int>(column.length + length)
        if column.valid != NULL:
            column.valid[row] = valid
    return GOOD


cdef Verdict _quoted(
    const uint8_t** at, const uint8_t* end, Column& column, Py_ssize_t row
) noexcept nogil:
    """A field in quotes, in which a doubled quote stands for one."""
    cdef const uint8_t* p = at[0] + 1
    cdef uint8_t* out = column.values + column.length if column.wanted else NULL
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
    if p < end and p[0] != b",":
        return BAD_QUOTES
    at[0] = p
    if column.measured:
        verdict = _measured(length - continuing, column)
        if verdict != GOOD:
            return verdict
    if column.wanted:
        column.offsets[row + 1] = <int>(column.length + length)
        if column.valid != NULL:
            column.valid[row] = True
    return GOOD


cdef Py_ssize_t _characters(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """The number of code points of UTF-8."""
    cdef Py_ssize_t count = 0
    while p < end:
        count += (p[0] & 0xC0) != 0x80
        p += 1
    return count


cdef inline Verdict _measured(Py_ssize_t characters, Column& column) noexcept nogil:
    if column.shortest <= characters <= column.longest:
        return GOOD
    return EMPTY if characters == 0 else NOT_OF_LENGTH


cdef inline bint _is_blank(uint8_t c) noexcept nogil:
    return c == b" " or c == b"\t"


cdef inline const uint8_t* _skip_blanks(const uint8_t* p, const uint8_t* end) noexcept nogil:
    while p < end and _is_blank(p[0]):
        p += 1
    return p


cdef inline Verdict _absent(Column& column, Py_ssize_t row) noexcept nogil:
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


cdef inline Verdict _integer(
    const uint8_t** at, const uint8_t* end, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef const uint8_t* p = _skip_blanks(at[0], end)
    cdef const uint8_t* digits
    cdef uint64_t magnitude = 0
    cdef uint64_t limit = <uint64_t>0x7FFFFFFFFFFFFFFF
    cdef bint negative = False
    cdef bint too_big = False
    cdef int64_t value
    if p == end or p[0] == b",":
        at[0] = p
        return _absent(column, row)
    if p[0] == b"-":
        negative = True
        limit += 1
        p += 1
    digits = p
    while p < end and <uint8_t>(p[0] - 48) < 10:
        # Past 19 digits only leading zeros keep the product below the limit.
        too_big |= magnitude > 922337203685477580U
        magnitude = magnitude * 10 + <uint8_t>(p[0] - 48)
        p += 1
    if p == digits:
        return NOT_OF_TYPE
    p = _skip_blanks(p, end)
    if p < end and p[0] != b",":
        return NOT_OF_TYPE
    at[0] = p
    if too_big or magnitude > limit:
        return TOO_BIG
    value = <int64_t>(0 - magnitude) if negative else <int64_t>magnitude
    if column.ranged and not (column.low <= value <= column.high):
        return NOT_IN_RANGE
    if column.wanted:
        (<int64_t*>column.values)[row] = value
        if column.valid != NULL:
            column.valid[row] = True
    return GOOD


cdef inline Verdict _float(
    const uint8_t** at, const uint8_t* end, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef const uint8_t* p = _skip_blanks(at[0], end)
    cdef const uint8_t* after
    cdef double value = 0
    cdef Verdict verdict
    if p == end or p[0] == b",":
        at[0] = p
        return _absent(column, row)
    after = _short_decimal(p, end, &value)
    if after == NULL:
        verdict = _any_float(p, end, &after, &value)
        if verdict != GOOD:
            return verdict
    p = _skip_blanks(after, end)
    if p < end and p[0] != b",":
        return NOT_OF_TYPE
    at[0] = p
    if column.finite and not isfinite(value):
        return NOT_FINITE
    if column.ranged and not (column.low_float <= value <= column.high_float):
        return NOT_IN_RANGE
    if column.wanted:
        (<double*>column.values)[row] = value
        if column.valid != NULL:
            column.valid[row] = True
    return GOOD


cdef inline const uint8_t* _short_decimal(
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
    while p < end and <uint8_t>(p[0] - 48) < 10:
        mantissa = <int64_t>(<uint64_t>mantissa * 10 + <uint8_t>(p[0] - 48))
        p += 1
    whole = p - start
    if p < end and p[0] == b".":
        p += 1
        start = p
        while p < end and <uint8_t>(p[0] - 48) < 10:
            mantissa = <int64_t>(<uint64_t>mantissa * 10 + <uint8_t>(p[0] - 48))
            p += 1
        fraction = p - start
    if whole + fraction == 0 or whole + fraction > 15 or (p < end and (p[0] | 32) == b"e"):
        return NULL
    value[0] = <double>mantissa / POWERS_OF_TEN[fraction]
    if negative:
        value[0] = -value[0]
    return p


cdef Verdict _any_float(
    const uint8_t* p, const uint8_t* end, const uint8_t** after, double* value
) noexcept nogil:
    """Any decimal, nan, inf or -inf; a decimal that no double but 0 or infinity is near to fails."""
    cdef const uint8_t* digits = p + 1 if p[0] == b"-" else p
    cdef const uint8_t* q
    if digits == end:
        return NOT_OF_TYPE
    if <uint8_t>(digits[0] - 48) >= 10 and digits[0] != b".":
        # from_chars would also take words such as nan(1) and infinity.
        if end - digits < 3:
            return NOT_OF_TYPE
        if digits[0] == b"n" and digits[1] == b"a" and digits[2] == b"n" and digits == p:
            pass
        elif not (digits[0] == b"i" and digits[1] == b"n" and digits[2] == b"f"):
            return NOT_OF_TYPE
        double_from_chars(p, digits + 3, value)
        after[0] = digits + 3
        return GOOD
    after[0] = double_from_chars(p, end, value)
    if after[0] == NULL:
        return TOO_BIG if _is_decimal(digits, end) else NOT_OF_TYPE
    if isinf(value[0]):
        return TOO_BIG
    if value[0] == 0:
        q = digits
        while q < after[0] and (q[0] | 32) != b"e":
            if b"1" <= q[0] <= b"9":
                return TOO_BIG
            q += 1
    return GOOD


cdef bint _is_decimal(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Whether the field is digits with a point and an exponent where they may stand."""
    cdef Py_ssize_t digits = 0
    while p < end and (<uint8_t>(p[0] - 48) < 10):
        p += 1
        digits += 1
    if p < end and p[0] == b".":
        p += 1
        while p < end and (<uint8_t>(p[0] - 48) < 10):
            p += 1
            digits += 1
    if digits == 0:
        return False
    if p < end and (p[0] | 32) == b"e":
        p += 1
        if p < end and (p[0] == b"-" or p[0] == b"+"):
            p += 1
        if p == end or <uint8_t>(p[0] - 48) >= 10:
            return False
        while p < end and (<uint8_t>(p[0] - 48) < 10):
            p += 1
    p = _skip_blanks(p, end)
    return p == end or p[0] == b","


cdef Verdict _bool(
    const uint8_t** at, const uint8_t* end, Column& column, Py_ssize_t row
) noexcept nogil:
    cdef const uint8_t* p = _skip_blanks(at[0], end)
    cdef const uint8_t* start = p
    cdef Py_ssize_t length
    cdef bint value
    while p < end and p[0] != b",":
        p += 1
    at[0] = p
    length = p - start
    while length > 0 and _is_blank(start[length - 1]):
        length -= 1
    if length == 0:
        return _absent(column, row)
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


cdef bint _is_word(const uint8_t* p, Py_ssize_t length, const char* word) noexcept nogil:
    """Whether the text is ``word``, in small or capital letters."""
    cdef Py_ssize_t i
    for i in range(length):
        if word[i] == 0 or (p[i] | 32) != <uint8_t>word[i]:
            return False
    return word[length] == 0


cdef Py_ssize_t _newlines(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i, count = 0
    for i in range(size):
        count += data[i] == b"\n"
    return count


cdef bint _is_ascii(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint8_t seen = 0
    for i in range(size):
        seen |= data[i]
    return seen < 0x80


cdef bint _is_utf8(const uint8_t* p, const uint8_t* end) noexcept nogil:
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
