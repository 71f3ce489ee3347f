# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Lines of text to columns, in one pass without the GIL.

A record is a line, or several where a quoted field contains their ends. It is judged from left to
right and the first thing wrong with it is its verdict. The loop writes each field straight into the
next row of its column; a rejected record's row is simply overwritten by the next good one. Where a
record ends is asked only of one that does not end well in its first line.

Plain lines, nearly all of them, are read apart and faster; all others go the careful way, alone.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, uint8_t, uintptr_t
from libc.string cimport memchr, memset
from libcpp cimport bool
from libcpp.vector cimport vector

from ripple.connectors.files.csv.fields cimport (
    BOOL, FLOAT, GOOD, INTEGER, NOT_UTF8, NUL_BYTE, STRING, TOO_LONG, Column, Dialect, Verdict,
    parse_line,
)
from ripple.connectors.files.csv.plain_lines cimport (
    CAREFUL, SLACK_BYTES, VECTORS, WIDE, WORDS, PlainLines, Way, has_wide, read_field,
)
from ripple.connectors.text_values cimport is_ascii, is_utf8, newlines

import pyarrow as pa

# How lines are read: plain ones apart, by the widest vector instructions that there are, by those
# that there always are, or in words; or all of them carefully. Results are the same; tests compare
# them.
WAY = "wide"
HAS_WIDE = has_wide()     # else the second way stands for it
_WAYS = {"wide": WIDE, "vectors": VECTORS, "words": WORDS, "careful": CAREFUL}
_COMMENTS = {"none": NONE, "ahead": AHEAD, "anywhere": ANYWHERE}


cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    CAREFUL_LINES_MAX = 63      # before the next is looked at whether it is plain

cdef enum Comments:
    NONE, AHEAD, ANYWHERE

cdef struct Bad:
    Py_ssize_t record, line, start, length
    Verdict verdict
    int column

cdef class CsvParser:
    """Parses blocks of whole lines into columns.

    ``columns`` is a list of (kind, wanted, optional, finite, smallest and largest number or None,
    smallest and largest number of characters, whether texts are numbers), in the order of the file,
    where kind is an Arrow type: string, int64, float64 or bool. ``comments``: which lines that begin with # are none: "none"
    of them, those "ahead" of the first line that is none and that are no records themselves, or all,
    "anywhere". ``delimiter``, ``decimal``, ``thousands``: ASCII characters, the last one "" for none.
    ``nulls``: the texts of fields without a value. ``careful_lines`` counts those that were not plain.
    """

    cdef vector[Column] columns
    cdef Dialect dialect
    cdef PlainLines plain
    cdef Py_ssize_t line_length_bytes_max
    cdef Way way
    cdef Comments comments      # AHEAD until a line is none
    cdef readonly Py_ssize_t careful_lines

    def __init__(
        self,
        columns: list,
        line_length_bytes_max: int,
        comments: str,
        *,
        delimiter: str = ",",
        decimal: str = ".",
        thousands: str = "",
        nulls: tuple = (),
    ) -> None:
        cdef Column column
        if not columns:
            raise ValueError("a line has at least one column")
        memset(&column, 0, sizeof(Column))
        column.delimiter = ord(delimiter)
        self.dialect.decimal = ord(decimal)
        self.dialect.thousands = ord(thousands) if thousands else 0
        self.dialect.nulls = [text.encode() for text in nulls]
        self.dialect.foreign = (decimal, thousands, nulls) != (".", "", ())
        self.way = CAREFUL if self.dialect.foreign else _WAYS[WAY]
        self.comments = _COMMENTS[comments]
        kinds = {pa.string(): STRING, pa.int64(): INTEGER, pa.float64(): FLOAT, pa.bool_(): BOOL}
        self.line_length_bytes_max = line_length_bytes_max
        for kind, wanted, optional, finite, interval, (shortest, longest), digits in columns:
            column.kind = kinds[kind]
            column.wanted, column.optional, column.finite = wanted, optional, finite
            column.digits = digits and self.dialect.foreign
            column.ranged = interval is not None
            column.low, column.high = INT64_MIN, INT64_MAX
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
                data, size, is_final, self.way, self.columns, self.dialect, self.plain,
                self.line_length_bytes_max, &self.comments, rejected, &lines, &used,
                &self.careful_lines,
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
            values = offsets = valid = None
            if column.wanted:
                width = rows if column.kind == BOOL else 8 * rows
                if column.kind == STRING:
                    width = size + SLACK_BYTES
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
    Way way,
    vector[Column]& columns,
    const Dialect& dialect,
    PlainLines& plain,
    Py_ssize_t length_bytes_max,
    Comments* comments,
    vector[Bad]& rejected,
    Py_ssize_t* lines,
    Py_ssize_t* used,
    Py_ssize_t* careful_lines,
) noexcept nogil:
    """Parse every record but a last one that may go on, and return the number of good ones."""
    cdef const uint8_t* p = data
    cdef const uint8_t* end = data + size
    cdef const uint8_t* first
    cdef const uint8_t* stop
    cdef const uint8_t* line_end
    cdef Py_ssize_t rows = 0, read
    cdef bint known = False, ascii = False, quotes = False      # of the whole block
    cdef bool goes_on
    cdef bint comment
    cdef int careful = 0, step = 0      # how many lines are to be read carefully; the last number
    cdef Bad bad
    plain.begin(data, end, columns, way)
    plain.comments = comments[0] != NONE
    while p < end:
        if careful <= 0:
            read = plain.read(&p, columns, length_bytes_max, rows, read_field, &goes_on)
            if read > 0:
                rows += read
                lines[0] += read
                step = 0
                if comments[0] == AHEAD:
                    comments[0] = NONE
                    plain.comments = False
            if goes_on:
                continue
            # This one, and more and more of them where none is plain.
            step = min(2 * step + 1, CAREFUL_LINES_MAX)
            careful = step
        careful -= 1
        careful_lines[0] += 1
        if not known:
            known = True
            ascii = memchr(p, 0, end - p) == NULL and is_ascii(p, end - p)
            quotes = memchr(p, b'"', end - p) != NULL
        stop = <const uint8_t*>memchr(p, b"\n", end - p)
        if stop == NULL:
            stop = end
        line_end = stop - 1 if stop > p and (stop - 1)[0] == b"\r" else stop
        comment = comments[0] == ANYWHERE and p[0] == b"#"
        if comments[0] == AHEAD and line_end > p:
            comment = p[0] == b"#" and (
                line_end - p > length_bytes_max
                or _judge(p, line_end, ascii, columns, dialect, rows, &bad.column) != GOOD
            )
            if not comment:
                comments[0] = NONE
                plain.comments = False
        if line_end > p and not comment:
            bad.line, bad.column = lines[0], -1
            if line_end - p > length_bytes_max:
                bad.verdict = TOO_LONG
            elif quotes and memchr(p, b'"', line_end - p) != NULL:
                bad.verdict = _judge(p, line_end, ascii, columns, dialect, rows, &bad.column)
                if bad.verdict != GOOD:
                    first = stop
                    stop = _record_stop(p, end, final, length_bytes_max, columns[0].delimiter)
                    if stop == NULL:
                        break
                    if stop != first:
                        lines[0] += newlines(first, stop - first)
                        line_end = stop - 1 if (stop - 1)[0] == b"\r" else stop
                        bad.verdict = _judge(p, line_end, ascii, columns, dialect, rows, &bad.column)
            else:
                bad.verdict = GOOD if ascii else _ill_formed(p, line_end)
                if bad.verdict == GOOD:
                    bad.verdict = parse_line(
                        p, line_end, False, columns, dialect, rows, &bad.column
                    )
            if bad.verdict == GOOD:
                rows += 1
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
    bint ascii,
    vector[Column]& columns,
    const Dialect& dialect,
    Py_ssize_t row,
    int* at,
) noexcept nogil:
    """Parse a record with quotes in it."""
    cdef Verdict verdict = GOOD if ascii else _ill_formed(p, end)
    at[0] = -1
    return verdict if verdict != GOOD else parse_line(p, end, True, columns, dialect, row, at)


cdef const uint8_t* _record_stop(
    const uint8_t* p, const uint8_t* end, bint final, Py_ssize_t length_bytes_max, uint8_t delimiter
) noexcept nogil:
    """Where the record at ``p`` stops: at a line's end that is not in quotes; null if unknown yet.

    Quotes that are not closed within the length of a record, or not before a delimiter or a line's
    end, or not opened at a field's beginning, are a mistake, which costs this line alone: it stops
    at the first line's end. So every quote opens or closes, and a line that leaves quotes open
    would close them again: so bytes scanned in vain for one line are not scanned for the next.
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
            if p < last and p[0] != delimiter and p[0] != b"\n":
                return first
        while p < last and p[0] != delimiter and p[0] != b"\n":
            if p[0] == b'"':
                return first
            p += 1
        if p == end or (p < last and p[0] == b"\n"):
            length = p - start - ((p - 1)[0] == b"\r")
            return p if length <= length_bytes_max else first
        if p == last:
            return first
        p += 1
