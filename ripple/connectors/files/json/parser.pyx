# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Lines or values of JSON to columns, in one pass without the GIL and without recursion.

Each is one object (RFC 8259); ``NaN``, ``Infinity`` and ``-Infinity`` are numbers too, as many
writers make them. Every line that is not blank takes a row: one that is refused is null all over,
and the caller drops it.
"""

from cython cimport final
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.string cimport memchr, memcmp, memcpy
from libcpp.string cimport string
from libcpp.vector cimport vector

from ripple.core.json_text cimport (
    literal_end, number_end, skip_blanks, string_end, unescape,
)
from ripple.connectors.files.json.plain cimport (
    begins_with, copy, plain_decimal, plain_integer, plain_string_end,
)
from ripple.connectors.text_values cimport (
    BEYOND_DOUBLE, BEYOND_INT64, READ, Reading, is_ascii, is_digit, is_utf8, newlines,
    read_decimal, read_integer, short_decimal,
)

from json import dumps

import numpy as np
import pyarrow as pa


# The order is that of REASONS in json_source.py.
cdef enum Verdict:
    GOOD, TOO_LONG, NOT_UTF8, NOT_JSON, TWICE, NOT_OF_TYPE, TOO_BIG, TOO_LARGE, TOO_SMALL, NOT_TEXT
    NOT_RECORD

cdef enum:
    NO_COLUMN = -2147483648

cdef enum Kind:
    STRING, INTEGER, FLOAT, BOOL

cdef struct Column:
    Kind kind
    bint digits             # whether a number is taken, too, by its source text
    bint array              # whether it is the source text of an array
    Py_ssize_t seen         # the row of the last member of this name
    uint8_t* values         # int64, double, one byte per truth value, or the bytes of strings
    int32_t* offsets        # strings only
    uint8_t* valid          # one byte per row

# A member that is wanted: of a column, or (~ its number) an object with further ones.
cdef struct Member:
    string name
    string written          # the name in quotes with its colon, and eight bytes to look at
    size_t length           # of that; 0 if it has to be escaped
    int of

cdef struct Object:
    vector[Member] members
    Py_ssize_t seen         # the row of the last one of this name
    int first               # a column in it

cdef struct Level:
    int object
    size_t expected         # the member that comes next if they are in order

cdef struct Bad:
    Py_ssize_t row
    Verdict verdict
    int column              # or the number of columns and that of an object


@final
cdef class JsonParser:
    """Parses blocks of whole lines into columns.

    ``columns`` is a list of (member name, Arrow type: string, int64, float64 or bool). ``paths``:
    the parts of names that are paths, too; a member of the whole name may also have the value.
    ``digits``: the names of strings that also take numbers, by their source text. ``arrays``: the
    names of strings that take the source texts of arrays, and nothing else.
    ``objects``: the paths of the objects that have columns within, numbered after the columns.
    """

    cdef readonly list objects
    cdef vector[Column] columns
    cdef vector[Object] known       # the first is the record itself
    cdef vector[Level] levels       # the objects around the one that is read
    cdef vector[uint8_t] open       # the brackets that a value has opened
    cdef vector[uint8_t] scratch    # a member name without its escapes
    cdef size_t met                 # how many columns the record has had members of
    cdef Py_ssize_t line_length_bytes_max

    def __init__(
        self, columns: list, line_length_bytes_max: int, paths: dict | None = None,
        digits: frozenset = frozenset(), arrays: frozenset = frozenset(),
    ) -> None:
        cdef Column column
        cdef int at
        kinds = {pa.string(): STRING, pa.int64(): INTEGER, pa.float64(): FLOAT, pa.bool_(): BOOL}
        self.line_length_bytes_max = line_length_bytes_max
        self.objects = []
        self.known.resize(1)
        self.known[0].first = 0
        for at, (name, kind) in enumerate(columns):
            column.kind = kinds[kind]
            column.digits = name in digits
            column.array = name in arrays
            self.columns.push_back(column)
            *around, last = (paths or {}).get(name, (name,))
            self._add(self._object_at(around, at), last, at)
        for at, (name, _) in enumerate(columns):
            if name in (paths or {}):
                self._add(0, name, at)

    cdef int _object_at(self, list parts, int column) except -1:
        """The number of the object at a path, which is made if it is not there."""
        cdef int at
        if not parts:
            return 0
        *before, last = parts
        path = ".".join(parts)
        if path not in self.objects:
            at = self._object_at(before, column)
            self.objects.append(path)
            self.known.resize(self.known.size() + 1)
            self.known.back().first = column
            self._add(at, last, ~<int>len(self.objects))
        return 1 + self.objects.index(path)

    cdef int _add(self, int at, str name, int of) except -1:
        cdef Member member
        member.name, member.of = name.encode(), of
        written = dumps(name, ensure_ascii=False)
        member.written = f"{written}:".encode() + bytes(8)
        member.length = len(name.encode()) + 3 if written == f'"{name}"' else 0
        self.known[at].members.push_back(member)
        return 0

    def parse(self, const uint8_t[::1] block not None) -> tuple:
        """Parse all lines of ``block``.

        Returns (rows, line ends, arrays, refused): how many lines are not blank, how many line ends
        there are, an Arrow array of so many rows per column, and (row, verdict, column) of each
        line that is no record.
        """
        cdef Py_ssize_t size = block.shape[0], rows = 0, line_ends
        cdef const uint8_t* data = &block[0] if size else NULL
        cdef vector[Bad] refused
        cdef Bad bad
        cdef int i
        with nogil:
            line_ends = newlines(data, size)
        buffers = self._allocate(line_ends + 1, size)
        with nogil:
            rows = self._parse_lines(data, size, refused)
        arrays = [_array(self.columns[i], rows, buffers[i]) for i in range(len(buffers))]
        return rows, line_ends, arrays, [(bad.row, <int>bad.verdict, bad.column) for bad in refused]

    def parse_values(self, const uint8_t[::1] data not None, const int32_t[::1] ends not None):
        """Parse values that lie one after the other: value i is ``data[ends[i]:ends[i + 1]]``.

        Each is one object, which may go over several lines. Returns (arrays, refused) of as many
        rows as there are values; see ``parse``.
        """
        cdef Py_ssize_t rows = ends.shape[0] - 1, row
        cdef Py_ssize_t first = ends[0], size = ends[rows] - first
        cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
        cdef vector[Bad] refused
        cdef bint plain
        cdef Bad bad
        cdef int i
        if first < 0 or size < 0 or ends[rows] > data.shape[0]:
            raise ValueError("values end where there is nothing")
        buffers = self._allocate(rows, size)
        with nogil:
            plain = is_ascii(start + first, size)
            for row in range(rows):
                self._row(start + ends[row], start + ends[row + 1], plain, row, refused)
        arrays = [_array(self.columns[i], rows, buffers[i]) for i in range(len(buffers))]
        return arrays, [(bad.row, <int>bad.verdict, bad.column) for bad in refused]

    cdef list _allocate(self, Py_ssize_t rows, Py_ssize_t size):
        """Give every column room for ``rows`` rows; memory never written costs nothing."""
        cdef Column* column
        cdef int i
        for i in range(<int>self.known.size()):
            self.known[i].seen = -1
        buffers = []
        for i in range(<int>self.columns.size()):
            column = &self.columns[i]
            column.seen = -1
            width = size if column.kind == STRING else rows if column.kind == BOOL else 8 * rows
            values = pa.allocate_buffer(width, resizable=True)
            column.values = <uint8_t*><uintptr_t>values.address
            offsets = None
            column.offsets = NULL
            if column.kind == STRING:
                offsets = pa.allocate_buffer(4 * (rows + 1), resizable=True)
                column.offsets = <int32_t*><uintptr_t>offsets.address
                column.offsets[0] = 0
            valid = pa.allocate_buffer(rows, resizable=True)
            column.valid = <uint8_t*><uintptr_t>valid.address
            buffers.append((values, offsets, valid))
        return buffers

    cdef Py_ssize_t _parse_lines(
        self, const uint8_t* data, Py_ssize_t size, vector[Bad]& refused
    ) noexcept nogil:
        """Parse every line, and return the number of rows."""
        cdef const uint8_t* p = data
        cdef const uint8_t* end = data + size
        cdef const uint8_t* stop
        cdef Py_ssize_t rows = 0
        cdef bint plain = is_ascii(data, size)
        while p < end:
            stop = <const uint8_t*>memchr(p, b"\n", end - p)
            stop = end if stop == NULL else stop
            if skip_blanks(p, stop) != stop:
                self._row(p, stop, plain, rows, refused)
                rows += 1
            p = stop + 1
        return rows

    cdef void _row(
        self, const uint8_t* p, const uint8_t* stop, bint plain, Py_ssize_t row, vector[Bad]& refused
    ) noexcept nogil:
        """Parse the text of one object into a row."""
        cdef Bad bad
        cdef size_t i
        bad.column = -1
        self.met = 0
        # Of a carriage return before the line's end a line may be longer.
        if stop - p > self.line_length_bytes_max + (stop > p and (stop - 1)[0] == b"\r"):
            bad.verdict = TOO_LONG
        elif not plain and not is_utf8(p, stop):
            bad.verdict = NOT_UTF8
        else:
            bad.verdict = self._object(p, stop, row, &bad.column)
        if bad.verdict != GOOD:
            bad.row = row
            refused.push_back(bad)
            for i in range(self.columns.size()):
                _clear(&self.columns[i], row)
        elif self.met < self.columns.size():
            for i in range(self.columns.size()):
                if self.columns[i].seen != row:
                    _clear(&self.columns[i], row)

    cdef Verdict _object(
        self, const uint8_t* p, const uint8_t* end, Py_ssize_t row, int* at
    ) noexcept nogil:
        """Parse the object that is all of the text; on failure ``at`` is the column to blame.

        Text that is not JSON is refused as such, whatever members it has.
        """
        cdef Verdict first = GOOD, verdict
        cdef Level level
        cdef Object* inner
        cdef int i, astray = 0
        level.object, level.expected = 0, 0
        self.levels.clear()
        p = skip_blanks(p, end)
        if p == end or p[0] != b"{":
            return NOT_JSON
        p = skip_blanks(p + 1, end)
        if p < end and p[0] == b"}":
            return GOOD if skip_blanks(p + 1, end) == end else NOT_JSON
        while True:
            i = self._member(&p, end, &self.known[level.object], &level.expected)
            if p == NULL:
                return NOT_JSON
            if i == NO_COLUMN:
                p = self._skip_value(p, end)
            elif i >= 0:
                verdict = TWICE if self.columns[i].seen == row else self._value(&p, end, i, row)
                if verdict != GOOD:
                    if first == GOOD:
                        first, at[0] = verdict, i
                    p = self._skip_value(p, end)
                self.met += self.columns[i].seen != row
                self.columns[i].seen = row
            else:
                inner = &self.known[~i]
                if inner.seen == row:
                    if first == GOOD:
                        first, at[0] = TWICE, <int>self.columns.size() + ~i - 1
                    p = self._skip_value(p, end)
                elif p < end and p[0] == b"{":
                    inner.seen = row
                    self.levels.push_back(level)
                    level.object, level.expected = ~i, 0
                    p = skip_blanks(p + 1, end)
                    if p == end or p[0] != b"}":
                        continue
                else:
                    inner.seen = row
                    if literal_end(p, end, b"null", 4) == NULL and not astray:
                        astray = ~i
                    p = self._skip_value(p, end)
            if p == NULL:
                return NOT_JSON
            p = skip_blanks(p, end)
            while p < end and p[0] == b"}":
                p = skip_blanks(p + 1, end)
                if self.levels.empty():
                    if p != end:
                        return NOT_JSON
                    # Its values may have come under their whole names.
                    i = self.known[astray].first
                    if first == GOOD and astray and self.columns[i].seen != row:
                        first, at[0] = NOT_RECORD, <int>self.columns.size() + astray - 1
                    return first
                level = self.levels.back()
                self.levels.pop_back()
            if p == end or p[0] != b",":
                return NOT_JSON
            p = skip_blanks(p + 1, end)

    cdef int _member(
        self, const uint8_t** at, const uint8_t* end, Object* object, size_t* expected
    ) noexcept nogil:
        """The column of the member at ``at``, or ~ its object; leaves ``at`` at its value.

        Null if no member is there. Members mostly come in the order of the columns.
        """
        cdef const uint8_t* p = at[0]
        cdef const uint8_t* name = p + 1
        cdef bint escaped = False
        cdef Py_ssize_t length
        cdef Member* member
        cdef size_t i = expected[0]
        if i < object.members.size():
            member = &object.members[i]
            if begins_with(p, end, member.written.data(), member.length):
                at[0] = skip_blanks(p + member.length, end)
                expected[0] = i + 1
                return member.of
        if p < end and p[0] == b'"':
            p = string_end(p, end, &escaped)
        else:
            p = NULL
        if p == NULL:
            at[0] = NULL
            return NO_COLUMN
        length = p - 1 - name
        p = skip_blanks(p, end)
        if p == end or p[0] != b":":
            at[0] = NULL
            return NO_COLUMN
        at[0] = skip_blanks(p + 1, end)
        if escaped:
            self.scratch.resize(length)
            length = unescape(name, name + length, self.scratch.data())
            name = self.scratch.data()
        if i >= object.members.size() or not _is_named(object.members[i], name, length):
            i = 0
            while i < object.members.size() and not _is_named(object.members[i], name, length):
                i += 1
            if i == object.members.size():
                return NO_COLUMN
        expected[0] = i + 1
        return object.members[i].of

    cdef Verdict _value(
        self, const uint8_t** at, const uint8_t* end, int i, Py_ssize_t row
    ) noexcept nogil:
        """Parse a value into a column; moves ``at`` past it if it is good."""
        cdef Column* column = &self.columns[i]
        cdef const uint8_t* p = at[0]
        cdef const uint8_t* after
        cdef bint escaped = False
        cdef int64_t integer = 0
        cdef double number = 0
        cdef Reading reading
        cdef Py_ssize_t length
        if p == end:
            return NOT_JSON
        after = literal_end(p, end, b"null", 4) if p[0] == b"n" else NULL
        if after != NULL:
            _clear(column, row)
            at[0] = after
            return GOOD
        if column.kind == STRING:
            if p[0] == b'"' and not column.array:
                after = plain_string_end(p, end)
                if after == NULL:
                    after = string_end(p, end, &escaped)
            if after == NULL and (column.digits or column.array):
                if column.array:
                    after = self._skip_value(p, end) if p[0] == b"[" or p[0] == b"{" else NULL
                else:
                    after = number_end(p, end)
                if after != NULL:
                    length = after - p
                    memcpy(column.values + column.offsets[row], p, length)
                    column.offsets[row + 1] = <int32_t>(column.offsets[row] + length)
                    column.valid[row] = True
                    at[0] = after
                    return GOOD
            if after == NULL:
                return NOT_OF_TYPE
            length = after - p - 2
            if escaped:
                length = unescape(
                    p + 1, after - 1, column.values + column.offsets[row]
                )
                if length < 0:
                    return NOT_TEXT
            else:
                copy(column.values + column.offsets[row], p + 1, length, end)
            column.offsets[row + 1] = <int32_t>(column.offsets[row] + length)
        elif column.kind == BOOL:
            after = literal_end(p, end, b"true", 4)
            column.values[row] = after != NULL
            if after == NULL:
                after = literal_end(p, end, b"false", 5)
            if after == NULL:
                return NOT_OF_TYPE
        elif column.kind == INTEGER:
            after = plain_integer(p, end, &integer)
            if after == NULL:
                after = number_end(p, end)
                if after == NULL:
                    return NOT_OF_TYPE
                reading = read_integer(&p, after, &integer)
                if p != after:
                    return NOT_OF_TYPE      # a point or an exponent
                if reading != READ:
                    return TOO_BIG
            (<int64_t*>column.values)[row] = integer
        else:
            after = plain_decimal(p, end, &number)
            if after == NULL:
                after = number_end(p, end)
                if after == NULL:
                    after = _infinite(p, end, &number)
                    if after == NULL:
                        return NOT_OF_TYPE
                elif short_decimal(p, after, &number) == NULL:
                    reading = read_decimal(&p, after, &number)
                    if reading != READ:
                        return TOO_LARGE if reading == BEYOND_DOUBLE else TOO_SMALL
            (<double*>column.values)[row] = number
        column.valid[row] = True
        at[0] = after
        return GOOD

    cdef const uint8_t* _skip_value(self, const uint8_t* p, const uint8_t* end) noexcept nogil:
        """The end of any value, of any depth; null where there is none."""
        cdef bint escaped = False
        cdef double number
        self.open.clear()
        while True:
            p = skip_blanks(p, end)
            if p == end:
                return NULL
            if p[0] == b"{" or p[0] == b"[":
                self.open.push_back(p[0])
                p = skip_blanks(p + 1, end)
                # In ASCII the closing bracket of either kind is the opening one + 2.
                if p < end and p[0] == self.open.back() + 2:
                    self.open.pop_back()
                    p += 1
                elif self.open.back() == b"[":
                    continue
                else:
                    p = _name_end(p, end)
                    if p == NULL:
                        return NULL
                    continue
            elif p[0] == b'"':
                p = string_end(p, end, &escaped)
            elif is_digit(p[0]) or p[0] == b"-":
                p = _number_or_infinite_end(p, end)
            else:
                p = _word_end(p, end)
            if p == NULL:
                return NULL
            # At the end of a value: close all that end here, and go on with the next one.
            while True:
                if self.open.empty():
                    return p
                p = skip_blanks(p, end)
                if p == end:
                    return NULL
                if p[0] == b",":
                    p = skip_blanks(p + 1, end)
                    if self.open.back() == b"{":
                        p = _name_end(p, end)
                        if p == NULL:
                            return NULL
                    break
                if p[0] != self.open.back() + 2:
                    return NULL
                self.open.pop_back()
                p += 1


cdef object _array(Column& column, Py_ssize_t rows, tuple buffers):
    """A column as an Arrow array."""
    values, offsets, valid = buffers
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
    return pa.py_buffer(np.packbits(np.frombuffer(flags, np.uint8)[:rows], bitorder="little"))


cdef inline void _clear(Column* column, Py_ssize_t row) noexcept nogil:
    """Make a row null."""
    column.valid[row] = False
    if column.kind == STRING:
        column.offsets[row + 1] = column.offsets[row]
    elif column.kind == BOOL:
        column.values[row] = 0
    else:
        (<int64_t*>column.values)[row] = 0


cdef inline bint _is_named(Member& member, const uint8_t* name, Py_ssize_t length) noexcept nogil:
    return length == <Py_ssize_t>member.name.size() and (
        memcmp(name, member.name.data(), length) == 0
    )


# Each of the following begins at a value's first byte and returns where it ends, or null.

cdef const uint8_t* _infinite(const uint8_t* p, const uint8_t* end, double* value) noexcept nogil:
    cdef const uint8_t* after = literal_end(p, end, b"NaN", 3)
    value[0] = NAN
    if after == NULL:
        after = literal_end(p, end, b"Infinity", 8)
        value[0] = INFINITY
    if after == NULL:
        after = literal_end(p, end, b"-Infinity", 9)
        value[0] = -INFINITY
    return after


cdef const uint8_t* _number_or_infinite_end(const uint8_t* p, const uint8_t* end) noexcept nogil:
    cdef const uint8_t* after = number_end(p, end)
    return literal_end(p, end, b"-Infinity", 9) if after == NULL else after


cdef const uint8_t* _word_end(const uint8_t* p, const uint8_t* end) noexcept nogil:
    cdef double number
    cdef const uint8_t* after = literal_end(p, end, b"null", 4)
    if after == NULL:
        after = literal_end(p, end, b"true", 4)
    if after == NULL:
        after = literal_end(p, end, b"false", 5)
    return _infinite(p, end, &number) if after == NULL else after


cdef const uint8_t* _name_end(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """The end of a member's name and colon."""
    cdef bint escaped = False
    if p == end or p[0] != b'"':
        return NULL
    p = string_end(p, end, &escaped)
    if p == NULL:
        return NULL
    p = skip_blanks(p, end)
    return p + 1 if p < end and p[0] == b":" else NULL
