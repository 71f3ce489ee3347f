# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Lines of text to columns, in one pass without the GIL.

A record is a line, or several where a quoted field contains their ends. It is judged from left to
right and the first thing wrong with it is its verdict. The loop writes each field straight into the
next row of its column; a rejected record's row is simply overwritten by the next good one. Where a
record ends is asked only of one that does not end well in its first line.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.string cimport memchr, memcpy, memset
from libcpp.vector cimport vector

from ripple.connectors.text_values cimport (
    BEYOND_DOUBLE, NO_NUMBER, READ, Reading, double_from_chars, is_ascii, is_utf8,
    newlines, read_decimal, read_integer, short_decimal,
)

import pyarrow as pa


# The order is that of REASONS in csv_reader.py.
cdef enum Verdict:
    GOOD, TOO_LONG, NOT_UTF8, NUL_BYTE, TOO_FEW, TOO_MANY, BAD_QUOTES, EMPTY, NOT_OF_TYPE, TOO_BIG
    TOO_LARGE, TOO_SMALL, NOT_FINITE, NOT_IN_RANGE, NOT_OF_LENGTH

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

    def parse(self, const uint8_t[::1] block not None, *, final: bool) -> tuple:
        """Parse the records of ``block``, which consists of whole lines.

        Returns (rows, lines, arrays, rejected, used): the numbers of good records and of physical
        lines, an Arrow array per wanted column, (record index, line index, start, length, verdict,
        column) of each rejected record, indices within the block, and how many bytes these are:
        fewer than all where the last record may go on in the next block. ``final``: there is none.
        """
        cdef Py_ssize_t size = block.shape[0], lines = 0, rows = 0, used = 0, limit
        cdef bint is_final = final
        cdef const uint8_t* data = &block[0] if size else NULL
        cdef vector[Bad] rejected
        cdef Bad bad
        with nogil:
            limit = newlines(data, size) + 1
        buffers = self._allocate(limit, size)
        with nogil:
            rows = _parse_lines(
                data, size, is_final, self.columns, self.line_length_bytes_max, rejected, &lines,
                &used,
            )
        arrays = [
            _array(self.columns[i], rows, buffers[i])
            for i in range(<int>self.columns.size()) if self.columns[i].wanted
        ]
        return rows, lines, arrays, [
            (bad.record, bad.line, bad.start, bad.length, <int>bad.verdict, bad.column)
            for bad in rejected
        ], used

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
    bint final,
    vector[Column]& columns,
    Py_ssize_t length_bytes_max,
    vector[Bad]& rejected,
    Py_ssize_t* lines,
    Py_ssize_t* used,
) noexcept nogil:
    """Parse every record but a last one that may go on, and return the number of good ones."""
    cdef const uint8_t* p = data
    cdef const uint8_t* end = data + size
    cdef const uint8_t* first
    cdef const uint8_t* stop
    cdef const uint8_t* line_end
    cdef Py_ssize_t rows = 0
    cdef bint plain = size == 0 or (memchr(data, 0, size) == NULL and is_ascii(data, size))
    cdef bint quotes = size > 0 and memchr(data, b'"', size) != NULL
    cdef Bad bad
    while p < end:
        stop = <const uint8_t*>memchr(p, b"\n", end - p)
        if stop == NULL:
            stop = end
        line_end = stop - 1 if stop > p and (stop - 1)[0] == b"\r" else stop
        if line_end > p and p[0] != b"#":
            bad.line, bad.column = lines[0], -1
            if line_end - p > length_bytes_max:
                bad.verdict = TOO_LONG
            elif quotes and memchr(p, b'"', line_end - p) != NULL:
                bad.verdict = _judge(p, line_end, plain, columns, rows, &bad.column)
                if bad.verdict != GOOD:
                    first = stop
                    stop = _record_stop(p, end, final, length_bytes_max)
                    if stop == NULL:
                        break
                    if stop != first:
                        lines[0] += newlines(first, stop - first)
                        line_end = stop - 1 if (stop - 1)[0] == b"\r" else stop
                        bad.verdict = _judge(p, line_end, plain, columns, rows, &bad.column)
            else:
                bad.verdict = GOOD if plain else _ill_formed(p, line_end)
                if bad.verdict == GOOD:
                    bad.verdict = _parse_line(p, line_end, False, columns, rows, &bad.column)
            if bad.verdict == GOOD:
                rows += 1
                _commit(columns, rows)
            else:
                bad.record = rows + <Py_ssize_t>rejected.size()
                bad.start = p - data
                bad.length = line_end - p
                rejected.push_back(bad)
        lines[0] += 1
        p = stop + 1
    used[0] = min(p - data, size)
    return rows


cdef inline Verdict _ill_formed(const uint8_t* p, const uint8_t* end) noexcept nogil:
    if memchr(p, 0, end - p) != NULL:
        return NUL_BYTE
    return GOOD if is_utf8(p, end) else NOT_UTF8


cdef Verdict _judge(
    const uint8_t* p,
    const uint8_t* end,
    bint plain,
    vector[Column]& columns,
    Py_ssize_t row,
    int* at,
) noexcept nogil:
    """Parse a record with quotes in it."""
    cdef Verdict verdict = GOOD if plain else _ill_formed(p, end)
    at[0] = -1
    return verdict if verdict != GOOD else _parse_line(p, end, True, columns, row, at)


cdef const uint8_t* _record_stop(
    const uint8_t* p, const uint8_t* end, bint final, Py_ssize_t length_bytes_max
) noexcept nogil:
    """Where the record at ``p`` stops: at a line's end that is not in quotes; null if unknown yet.

    Quotes that are not closed within the length of a record, or not before a comma or a line's
    end, or not opened at a field's beginning, are a mistake, which costs this line alone: it stops
    at the first line's end. So every quote opens or closes, and a line that leaves quotes open
    would close them again: what is looked at in vain for one line is not for the next.
    """
    cdef const uint8_t* start = p
    cdef const uint8_t* first = <const uint8_t*>memchr(p, b"\n", end - p)
    # The longest record, and the line's end after it.
    cdef const uint8_t* last = min(end, p + length_bytes_max + 2)
    cdef Py_ssize_t length
    first = end if first == NULL else first
    while True:
        if p < last and p[0] == b'"':
            while True:
                p = <const uint8_t*>memchr(p + 1, b'"', last - p - 1)
                if p == NULL:
                    return first if final or last < end else NULL
                p += 1
                if p == last or p[0] != b'"':
                    break
            if p + 1 < last and p[0] == b"\r" and p[1] == b"\n":
                p += 1
            if p < last and p[0] != b"," and p[0] != b"\n":
                return first
        while p < last and p[0] != b"," and p[0] != b"\n":
            if p[0] == b'"':
                return first
            p += 1
        if p == end or (p < last and p[0] == b"\n"):
            length = p - start - ((p - 1)[0] == b"\r")
            return p if length <= length_bytes_max else first
        if p == last:
            return first
        p += 1


cdef inline void _commit(vector[Column]& columns, Py_ssize_t rows) noexcept nogil:
    """Keep the strings of the row just parsed: up to here they are overwritten by the next."""
    cdef size_t i
    for i in range(columns.size()):
        if columns[i].offsets != NULL:
            columns[i].length = columns[i].offsets[rows]


cdef inline Verdict _parse_line(
    const uint8_t* p,
    const uint8_t* end,
    bint quotes,
    vector[Column]& columns,
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
            p += 1      # the comma that ended the field before
        stop = end
        if quotes and columns[i].kind != STRING and p < end and p[0] == b'"':
            p += 1
            stop = <const uint8_t*>memchr(p, b'"', end - p)
            if stop == NULL or (stop + 1 < end and stop[1] != b","):
                at[0] = <int>i
                return BAD_QUOTES
        if columns[i].kind == STRING:
            verdict = _string(&p, end, quotes, columns[i], row)
        elif columns[i].kind == INTEGER:
            verdict = _integer(&p, stop, columns[i], row)
        elif columns[i].kind == FLOAT:
            verdict = _float(&p, stop, columns[i], row)
        else:
            verdict = _bool(&p, stop, columns[i], row)
        if quotes and stop != end:
            if p != stop:
                verdict = NOT_OF_TYPE       # a comma in the quotes
            p = stop + 1
        if verdict != GOOD:
            at[0] = <int>i
            return verdict
    return GOOD if p == end else TOO_MANY


# Each field function starts at the field's first byte, and leaves p at the comma or the line's end.

cdef inline Verdict _string(
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
    while p < end and p[0] != b",":
        if quotes and p[0] == b'"':
            return BAD_QUOTES
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
    cdef int64_t value = 0
    cdef Reading reading
    if p == end or p[0] == b",":
        at[0] = p
        return _absent(column, row)
    reading = read_integer(&p, end, &value)
    if reading == NO_NUMBER:
        return NOT_OF_TYPE
    p = _skip_blanks(p, end)
    if p < end and p[0] != b",":
        return NOT_OF_TYPE
    at[0] = p
    if reading != READ:
        return TOO_BIG
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
    cdef Reading reading = READ
    if p == end or p[0] == b",":
        at[0] = p
        return _absent(column, row)
    after = short_decimal(p, end, &value)
    if after == NULL:
        after = p
        reading = _long_float(&after, end, &value)
        if reading == NO_NUMBER:
            return NOT_OF_TYPE
    p = _skip_blanks(after, end)
    if p < end and p[0] != b",":
        return NOT_OF_TYPE
    at[0] = p
    if reading != READ:
        return TOO_LARGE if reading == BEYOND_DOUBLE else TOO_SMALL
    if column.finite and not isfinite(value):
        return NOT_FINITE
    if column.ranged and not (column.low_float <= value <= column.high_float):
        return NOT_IN_RANGE
    if column.wanted:
        (<double*>column.values)[row] = value
        if column.valid != NULL:
            column.valid[row] = True
    return GOOD


cdef Reading _long_float(const uint8_t** at, const uint8_t* end, double* value) noexcept nogil:
    """Any decimal, nan, inf or -inf; leaves ``at`` behind it."""
    cdef Reading reading = read_decimal(at, end, value)
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* word = p + 1 if p[0] == b"-" else p
    if reading == NO_NUMBER and end - word >= 3 and (
        (word == p and word[0] == b"n" and word[1] == b"a" and word[2] == b"n")
        or (word[0] == b"i" and word[1] == b"n" and word[2] == b"f")
    ):
        at[0] = double_from_chars(p, word + 3, value)
        return READ
    return reading


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
