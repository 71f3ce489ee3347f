# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Columns to lines of text, CSV or JSON, in one pass without the GIL.

A line is a prefix and a value for each column, then a suffix; the two forms differ in these
literals and in how a string, a null and a float that is no number are written.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.math cimport fabs, isfinite, isnan, signbit
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcpy, memset
from libcpp.string cimport string
from libcpp.vector cimport vector

from ripple.connectors.text_values cimport is_ascii, is_utf8
from ripple.model.schema.exported cimport ArrowArray, Exported, Whole, valid_bits

from ripple.core.row_ops import OP_NAMES, OP_REMOVE


cdef extern from "float_text.hpp":
    char* text_of_float(char* out, double value) nogil


cdef extern from *:
    """
    #include <charconv>
    typedef unsigned __int128 uint128;
    static inline char* fixed_decimals(char* out, double value, int decimals) {
        return std::to_chars(out, out + 400, value, std::chars_format::fixed, decimals).ptr;
    }
    static const uint64_t TENS[] = {
        1ULL, 10ULL, 100ULL, 1000ULL, 10000ULL, 100000ULL, 1000000ULL, 10000000ULL, 100000000ULL,
        1000000000ULL, 10000000000ULL, 100000000000ULL, 1000000000000ULL, 10000000000000ULL,
        100000000000000ULL, 1000000000000000ULL, 10000000000000000ULL, 100000000000000000ULL,
        1000000000000000000ULL, 10000000000000000000ULL};
    #define HALF (1ULL << 63)
    /* The three digits of each number below 1000 as text, the first one lowest; above them, how many
       bits are zeros in front. */
    struct Threes {
        uint32_t of[1000];
        constexpr Threes() : of() {
            for (uint32_t i = 0; i < 1000; i++)
                of[i] = (0x303030 + i / 100 + (i / 10 % 10 << 8) + (i % 10 << 16))
                        | (i < 10 ? 16u : i < 100 ? 8u : 0u) << 24;
        }
    };
    static constexpr Threes THREES;
    /* Each of these writes more than counts, at most 4 bytes. */
    static inline char* three_digits(char* out, uint32_t text, uint32_t left_out) {
        text >>= left_out;
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        text = __builtin_bswap32(text);
    #endif
        memcpy(out, &text, 4);
        return out + 3 - left_out / 8;
    }
    static inline char* last_three(char* out, uint32_t value) {     /* of a longer number */
        return three_digits(out, THREES.of[value], 0);
    }
    static inline char* first_three(char* out, uint32_t value) {    /* without zeros in front */
        return three_digits(out, THREES.of[value], THREES.of[value] >> 24);
    }
    static inline char* below_1e9(char* out, uint32_t value) {
        if (value < 1000)
            return first_three(out, value);
        const uint32_t thousands = value / 1000;
        if (thousands < 1000)
            out = first_three(out, thousands);
        else {
            out = first_three(out, thousands / 1000);
            out = last_three(out, thousands % 1000);
        }
        return last_three(out, value % 1000);
    }
    static inline char* nine_digits(char* out, uint32_t value) {
        out = last_three(out, value / 1000000);
        out = last_three(out, value / 1000 % 1000);
        return last_three(out, value % 1000);
    }
    static inline char* unsigned_digits(char* out, uint64_t value) {
        if (__builtin_expect(value < 1000000000, 1))
            return below_1e9(out, (uint32_t)value);
        const uint64_t high = value / 1000000000;
        if (high < 1000000000)
            out = below_1e9(out, (uint32_t)high);
        else {
            out = below_1e9(out, (uint32_t)(high / 1000000000));
            out = nine_digits(out, (uint32_t)(high % 1000000000));
        }
        return nine_digits(out, (uint32_t)(value % 1000000000));
    }
    /* The point and the first of nine digits, 1 to 9 of them. */
    static inline char* after_point(char* out, uint32_t nine, int decimals) {
        *out = '.';
        last_three(out + 1, nine / 1000000);
        if (decimals > 3)
            last_three(out + 4, nine / 1000 % 1000);
        if (decimals > 6)
            last_three(out + 7, nine % 1000);
        return out + 1 + decimals;
    }
    /* Texts are short: two pieces that may overlap, and no call. */
    static inline char* copied(char* out, const void* text, size_t length) {
        const char* in = (const char*)text;
        if (length > 16)
            memcpy(out, in, length);
        else if (length >= 8) {
            uint64_t first, last;
            memcpy(&first, in, 8);
            memcpy(&last, in + length - 8, 8);
            memcpy(out, &first, 8);
            memcpy(out + length - 8, &last, 8);
        } else if (length >= 4) {
            uint32_t first, last;
            memcpy(&first, in, 4);
            memcpy(&last, in + length - 4, 4);
            memcpy(out, &first, 4);
            memcpy(out + length - 4, &last, 4);
        } else if (length) {
            out[0] = in[0];
            out[length / 2] = in[length / 2];
            out[length - 1] = in[length - 1];
        }
        return out + length;
    }
    /* Of n texts, the length of the longest. */
    static inline int32_t longest(const int32_t* ends, int64_t n) {
        int32_t most = 0;
        for (int64_t i = 0; i < n; i++)
            most = ends[i + 1] - ends[i] > most ? ends[i + 1] - ends[i] : most;
        return most;
    }
    /* Whether CSV has no other use for any of these bytes. */
    static inline int are_plain(const uint8_t* text, int64_t length) {
        uint8_t special = 0;
        for (int64_t i = 0; i < length; i++)
            special |= (uint8_t)((text[i] == ',' ? 1 : 0) | (text[i] == '"' ? 1 : 0)
                                 | (text[i] == 10 ? 1 : 0) | (text[i] == 13 ? 1 : 0));
        return !special;
    }
    """
    ctypedef unsigned long long uint128     # 128 bits: the C declaration above counts
    char* fixed_decimals(char* out, double value, int decimals) nogil
    char* unsigned_digits(char* out, uint64_t value) nogil
    char* after_point(char* out, unsigned int nine, int decimals) nogil
    char* copied(char* out, const void* text, size_t length) nogil
    int32_t longest(const int32_t* ends, int64_t n) nogil
    bint are_plain(const uint8_t* text, int64_t length) nogil
    const uint64_t[20] TENS
    const uint64_t HALF

KINDS = ("string", "integer", "float", "bool", "raw", "op")

cdef uint8_t REMOVE = OP_REMOVE

cdef enum Kind:
    STRING, INTEGER, FLOAT, BOOL, RAW, OP

cdef enum:
    DECIMALS_MAX = 30
    NUMBER_BYTES_MAX = 1 + 309 + 1 + DECIMALS_MAX
    ESCAPED = 6             # bytes that one byte of a text becomes at most
    DIGITS = 9              # of a number that is written by threes
    FEW = 6                 # digits after the point, which prices and the like have at most
    SLACK_BYTES = 16        # bytes after a value that may be written, to be written over
    FEWEST_BYTES = 1 << 12

cdef struct Column:
    Kind kind
    int position            # in the batch, -1 for none: an op that is the first one
    int decimals            # -1: as many as it takes to read the same double again
    string prefix
    char[SLACK_BYTES] start     # of the prefix
    const uint8_t* valid    # bitmap, null when there are no nulls
    const uint8_t* values
    const int32_t* offsets
    Py_ssize_t first        # of the array in its buffers
    bint plain              # of texts in CSV: only a first byte can make quotes needed


cdef class RowFormatter:
    """Formats rows of the ``columns``: a list of (position, prefix, kind, decimals or None).

    ``kind`` is "string", "integer" (int64), "float" (float64), "bool", "raw" (text that is
    written as it is) or "op" (int8, written as one of OP_NAMES). ``decimals`` is how many digits of
    a float come after the point, rounded half to even from its exact binary value as C's printf
    does; None writes what Python's repr does. A null is nothing in CSV; nulls, NaN and infinities
    are ``null`` in JSON. ``left_out``: where the op is by which removed rows are left out, or -1.
    """

    cdef vector[Column] columns
    cdef vector[string] ops
    cdef string suffix
    cdef char[SLACK_BYTES] suffix_start
    cdef char* out          # kept between calls, so that it grows once
    cdef size_t room
    cdef bint json
    cdef int left_out

    def __init__(self, columns: list, suffix: bytes, *, json: bool = False, left_out: int = -1) -> None:
        cdef Column column
        self.suffix, self.json, self.left_out = suffix, json, left_out
        _start(self.suffix, self.suffix_start)
        for name in OP_NAMES:
            self.ops.push_back((f'"{name}"' if json else name).encode())
        for position, prefix, kind, decimals in columns:
            if decimals is not None and not 0 <= decimals <= DECIMALS_MAX:
                raise ValueError(f"decimals must be in 0..{DECIMALS_MAX}, not {decimals}")
            column.position, column.prefix, column.kind = position, prefix, KINDS.index(kind)
            column.decimals = -1 if decimals is None else decimals
            _start(column.prefix, column.start)
            self.columns.push_back(column)

    def __dealloc__(self):
        free(self.out)

    def format(self, batch) -> bytes:
        """Return the lines of a batch with columns of the declared types.

        Raises UnicodeError when a text is not UTF-8.
        """
        return PyBytes_FromStringAndSize(self.out, self.formatted(batch, NULL))

    def values(self, batch, int32_t[::1] ends not None) -> bytes:
        """Return the same, and put into ``ends``, where row i begins, in i, and its end in i + 1.

        A row that is left out has no bytes. Raises OverflowError for more than 2 GiB.
        """
        if ends.shape[0] != batch.num_rows + 1:
            raise ValueError(f"{batch.num_rows} rows have {batch.num_rows + 1} ends")
        ends[0] = 0
        return PyBytes_FromStringAndSize(self.out, self.formatted(batch, &ends[1]))

    cdef Py_ssize_t formatted(self, object batch, int32_t* ends) except -1:
        """Format a batch into ``out``; return how many bytes."""
        cdef Whole exported = batch if isinstance(batch, Whole) else Exported(batch)
        cdef const ArrowArray* rows = &exported.whole
        cdef const uint8_t* ops = NULL
        cdef bint is_text, has_ops
        cdef Py_ssize_t used = 0
        self.find(rows)
        if self.left_out >= 0:
            ops = _values(rows.children[self.left_out]) + rows.children[self.left_out].offset
        with nogil:
            is_text = _are_utf8(self.columns, rows.length)
            has_ops = _are_ops(self.columns, self.ops.size(), rows.length)
            if is_text and has_ops:
                used = self.format_rows(rows.length, ops, ends)
        if not is_text:
            raise UnicodeError("a text is not UTF-8")
        if not has_ops:
            raise IndexError(f"an op is none of {OP_NAMES}")
        if used < 0:
            raise MemoryError
        if ends != NULL and used > <Py_ssize_t>0x7FFFFFFF:
            raise OverflowError("the rows take more than 2 GiB")
        return used

    cdef int find(self, const ArrowArray* rows) except -1:
        """Find the values of the columns."""
        cdef Column* column
        cdef const ArrowArray* array
        cdef size_t i
        cdef int32_t start
        for i in range(self.columns.size()):
            column = &self.columns[i]
            column.values = NULL
            column.valid = NULL
            column.offsets = NULL
            if column.position < 0:
                continue
            array = rows.children[column.position]
            column.first = array.offset
            column.valid = valid_bits(array)
            column.values = _values(array)
            if column.kind == STRING or column.kind == RAW:
                column.offsets = <const int32_t*>column.values
                column.values = <const uint8_t*>array.buffers[2]
                start = column.offsets[column.first]
                column.plain = column.kind == RAW or not self.json and are_plain(
                    column.values + start, column.offsets[column.first + rows.length] - start
                )
        return 0

    cdef Py_ssize_t format_rows(
        self, Py_ssize_t rows, const uint8_t* op, int32_t* ends
    ) noexcept nogil:
        """Write rows, without those that ``op`` removes; return how many bytes, -1 without memory."""
        cdef const Column* columns = self.columns.data()
        cdef const Column* column
        cdef size_t count = self.columns.size(), i, need = self.suffix.size() + SLACK_BYTES
        cdef Py_ssize_t row
        cdef char* p = self.out
        cdef char* end = p + self.room
        for i in range(count):
            need += columns[i].prefix.size() + NUMBER_BYTES_MAX
            if columns[i].offsets != NULL:
                need += 2 + ESCAPED * <size_t>longest(columns[i].offsets + columns[i].first, rows)
        for row in range(rows):
            if op != NULL and op[row] == REMOVE:
                if ends != NULL:
                    ends[row] = <int32_t>(p - self.out)
                continue
            if <size_t>(end - p) < need:
                p = self.grow(p - self.out, need)
                if p == NULL:
                    return -1
                end = self.out + self.room
            for i in range(count):
                column = columns + i
                p = _again(p, column.prefix, column.start)
                p = _value(p, column, column.first + row, self.json, self.ops)
            p = _again(p, self.suffix, self.suffix_start)
            if ends != NULL:
                ends[row] = <int32_t>(p - self.out)
        return p - self.out

    cdef char* grow(self, size_t used, size_t need) noexcept nogil:
        """Make room for ``need`` bytes more; return where they begin, or null without memory."""
        cdef size_t room = 2 * (used + need) + FEWEST_BYTES
        cdef char* grown = <char*>realloc(self.out, room)
        if grown == NULL:
            return NULL
        self.out, self.room = grown, room
        return grown + used


cdef void _start(const string& text, char* start) noexcept:
    memset(start, 0, SLACK_BYTES)
    memcpy(start, text.data(), min(text.size(), <size_t>SLACK_BYTES))


cdef inline const uint8_t* _values(const ArrowArray* array) noexcept nogil:
    return <const uint8_t*>array.buffers[1]


cdef bint _are_utf8(const vector[Column]& columns, Py_ssize_t rows) noexcept nogil:
    cdef const Column* column
    cdef const uint8_t* text
    cdef const int32_t* ends
    cdef Py_ssize_t row
    cdef size_t i
    for i in range(columns.size()):
        column = &columns[i]
        if column.offsets == NULL or rows == 0:
            continue
        ends, text = column.offsets + column.first, column.values
        if is_ascii(text + ends[0], ends[rows] - ends[0]):
            continue
        for row in range(rows):
            if _is_null(column, column.first + row):
                continue
            if not is_utf8(text + ends[row], text + ends[row + 1]):
                return False
    return True


cdef bint _are_ops(const vector[Column]& columns, int count, Py_ssize_t rows) noexcept nogil:
    cdef Py_ssize_t row
    cdef size_t i
    cdef bint bad = False
    for i in range(columns.size()):
        if columns[i].kind == OP and columns[i].values != NULL:
            for row in range(columns[i].first, columns[i].first + rows):
                bad |= columns[i].values[row] >= count
    return not bad


cdef inline bint _is_null(const Column* column, Py_ssize_t at) noexcept nogil:
    return column.valid != NULL and not (column.valid[at >> 3] >> (at & 7)) & 1


cdef inline char* _value(
    char* p, const Column* column, Py_ssize_t at, bint json, const vector[string]& ops
) noexcept nogil:
    cdef const uint8_t* text
    cdef Py_ssize_t length
    cdef int op = 0
    if _is_null(column, at):
        return _literal(p, b"null", 4) if json else p
    if column.kind == INTEGER:
        return _integer(p, (<const int64_t*>column.values)[at])
    if column.kind == FLOAT:
        return _float(p, (<const double*>column.values)[at], column.decimals, json)
    if column.kind == BOOL:
        if (column.values[at >> 3] >> (at & 7)) & 1:
            return _literal(p, b"true", 4)
        return _literal(p, b"false", 5)
    if column.kind == OP:
        op = column.values[at] if column.values != NULL else 0
        return _literal(p, ops[op].data(), ops[op].size())
    text = column.values + column.offsets[at]
    length = column.offsets[at + 1] - column.offsets[at]
    if column.plain and (column.kind == RAW or not _is_quoted(text, length)):
        return copied(p, text, length)
    return _json_string(p, text, length) if json else _csv_string(p, text, length)


cdef inline char* _again(char* p, const string& text, const char* start) noexcept nogil:
    """Write what every row has; ``start`` is its first SLACK_BYTES, which are nearly always all."""
    memcpy(p, start, SLACK_BYTES)
    if text.size() > SLACK_BYTES:
        memcpy(p, text.data(), text.size())
    return p + text.size()


cdef inline char* _literal(char* p, const char* text, Py_ssize_t length) noexcept nogil:
    memcpy(p, text, length)
    return p + length


cdef inline char* _integer(char* p, int64_t value) noexcept nogil:
    if value < 0:
        p[0] = b"-"
        return unsigned_digits(p + 1, 0 - <uint64_t>value)
    return unsigned_digits(p, <uint64_t>value)


cdef inline char* _float(char* p, double value, int decimals, bint json) noexcept nogil:
    cdef uint64_t bits
    cdef int shift
    memcpy(&bits, &value, 8)
    shift = 1075 - <int>((bits >> 52) & 0x7FF)
    if 0 <= decimals <= DIGITS and 1 <= shift <= 63:
        return _fixed(p, bits, shift, decimals)
    if not isfinite(value):
        if json:
            return _literal(p, b"null", 4)
        if isnan(value):
            return _literal(p, b"nan", 3)
        return _literal(p, b"-inf", 4) if value < 0 else _literal(p, b"inf", 3)
    return _shortest(p, value) if decimals < 0 else fixed_decimals(p, value, decimals)


cdef inline char* _fixed(char* p, uint64_t bits, int shift, int decimals) noexcept nogil:
    """The exact binary value rounded half to even to ``decimals`` digits after the point.

    The double is mantissa / 2**shift. The bits shifted out, as a fraction of 2**64, times
    10**decimals are the digits after the point, and below them the part to round by.
    """
    cdef uint64_t mantissa, whole, part, rest, scale = TENS[decimals]
    cdef uint128 product
    if bits >> 63:
        p[0] = b"-"
        p += 1
    mantissa = (bits & ((<uint64_t>1 << 52) - 1)) | (<uint64_t>1 << 52)
    whole = mantissa >> shift
    product = <uint128>(mantissa << (64 - shift)) * scale
    part, rest = <uint64_t>(product >> 64), <uint64_t>product
    # No branch for a condition that is as likely as not.
    part += (rest > HALF) | ((rest == HALF) & ((whole * scale + part) & 1))
    if part == scale:
        part = 0
        whole += 1
    p = unsigned_digits(p, whole)
    return after_point(p, part * TENS[DIGITS - decimals], decimals) if decimals else p


cdef inline char* _shortest(char* p, double value) noexcept nogil:
    """The fewest digits that read back as the same double, laid out as Python's repr does."""
    cdef int decimals = FEW
    cdef double size = fabs(value)
    cdef uint64_t bits, scaled
    if value == <double><int64_t>value and fabs(value) < 1e15 and not (value == 0 and signbit(value)):
        return _literal(_integer(p, <int64_t>value), b".0", 2)
    if 1e-3 <= size < 1e9:
        # No two decimals of 15 digits are the same double: the one that is found is the shortest.
        scaled = <uint64_t>(size * TENS[FEW] + 0.5)
        if <double>scaled / <double>TENS[FEW] == size:
            while scaled % 10 == 0:
                scaled //= 10
                decimals -= 1
            memcpy(&bits, &value, 8)
            return _fixed(p, bits, 1075 - <int>((bits >> 52) & 0x7FF), decimals)
    return text_of_float(p, value)


cdef inline bint _is_quoted(const uint8_t* text, Py_ssize_t length) noexcept nogil:
    """Whether its beginning is why a text is quoted: none, that of a comment, a mark."""
    return length == 0 or text[0] == b"#" or (
        length >= 3 and text[0] == 0xEF and text[1] == 0xBB and text[2] == 0xBF
    )


cdef inline char* _csv_string(char* p, const uint8_t* text, Py_ssize_t length) noexcept nogil:
    """Plain, or in quotes where a reader would see an end, a comment, a mark or a null."""
    cdef Py_ssize_t i
    cdef uint8_t c
    cdef bint quoted = _is_quoted(text, length)
    for i in range(length):
        c = text[i]
        quoted |= c == b"," or c == b'"' or c == b"\n" or c == b"\r"
    if not quoted:
        memcpy(p, text, length)
        return p + length
    p[0] = b'"'
    p += 1
    for i in range(length):
        if text[i] == b'"':
            p[0] = b'"'
            p += 1
        p[0] = text[i]
        p += 1
    p[0] = b'"'
    return p + 1


cdef inline char* _json_string(char* p, const uint8_t* text, Py_ssize_t length) noexcept nogil:
    """A JSON string, escaped where RFC 8259 requires it."""
    cdef const char* hexadecimal = b"0123456789abcdef"
    cdef const char* escapes = b'"\\\b\f\n\r\t'
    cdef const char* letters = b'"\\bfnrt'
    cdef const char* found
    cdef Py_ssize_t i
    cdef uint8_t c
    p[0] = b'"'
    p += 1
    for i in range(length):
        c = text[i]
        if c >= 0x20 and c != b'"' and c != b"\\":
            p[0] = c
            p += 1
            continue
        found = <const char*>memchr(escapes, c, 7)
        p[0] = b"\\"
        if found != NULL:
            p[1] = letters[found - escapes]
            p += 2
        else:
            p = _literal(p + 1, b"u00", 3)
            p[0] = hexadecimal[c >> 4]
            p[1] = hexadecimal[c & 15]
            p += 2
    p[0] = b'"'
    return p + 1
