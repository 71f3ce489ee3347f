# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows of flat columns as binary values, one a row: Avro records, and maps of MessagePack.

https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy

import numpy as np
import pyarrow as pa

cdef enum:
    INTEGER = 0
    FLOAT = 1
    BOOLEAN = 2
    TEXT = 3
    BINARY = 4
    RAW = 5                     # bytes of a value, as they are
    COLUMNS_MAX = 512
    NUMBER_BYTES_MAX = 10       # of an integer, a double, a length, in either form
    VALUES_BYTES_MAX = 0x7FFFFFFF

KINDS = {pa.int64(): 0, pa.float64(): 1, pa.bool_(): 2, pa.string(): 3, pa.binary(): 4}

cdef struct Column:
    int kind
    bint is_union           # Avro: with null first
    const uint8_t* label
    Py_ssize_t label_size
    Py_ssize_t offset       # of its array, where it is a slice
    const uint8_t* valid    # bits; NULL: all are there
    const int64_t* numbers
    const uint64_t* floats
    const uint8_t* flags
    const int32_t* ends
    const uint8_t* text


def encode(columns, labels, unions, head: bytes, is_there, *, avro: bool, raw=()):
    """Return each row as binary, null where it is not there.

    columns: int64, double, bool, string or binary, of one length, at most 512. labels: the bytes before
    each value. unions: for Avro, of each column whether it may be null; in others nothing may. head:
    the first bytes of each. is_there: uint8 by row. raw: the places of binary columns with values in
    the form already. Raises OverflowError for 2 GiB and more.
    """
    cdef Column held[COLUMNS_MAX]
    cdef Py_ssize_t rows = len(is_there), row, at, of = len(columns), bound = len(head)
    cdef Py_ssize_t head_size = len(head)
    cdef const uint8_t* first = head
    cdef const uint8_t[::1] there = is_there
    cdef bint is_avro = avro
    cdef int32_t[::1] ends
    cdef uint8_t* out
    cdef uint8_t* start
    if of > COLUMNS_MAX:
        raise ValueError("too many columns")
    texts = 0
    for at in range(of):
        _take(&held[at], columns[at], labels[at], unions[at])
        if at in raw:
            held[at].kind = RAW
        bound += len(labels[at]) + NUMBER_BYTES_MAX
        if held[at].kind >= TEXT and rows:
            texts += int(
                held[at].ends[held[at].offset + rows] - held[at].ends[held[at].offset]
            )
    if bound * rows + texts > VALUES_BYTES_MAX:
        raise OverflowError("values of 2 GiB")
    buffer = pa.allocate_buffer(bound * rows + texts, resizable=True)
    found = np.zeros(rows + 1, np.int32)
    ends = found
    start = out = <uint8_t*><uintptr_t>buffer.address
    with nogil:
        for row in range(rows):
            if there[row]:
                if head_size:
                    memcpy(out, first, head_size)
                out += head_size
                for at in range(of):
                    out = _value(&held[at], row, out, is_avro)
            ends[row + 1] = <int32_t>(out - start)
    buffer.resize(out - start, shrink_to_fit=True)
    valid = None
    if not is_there.all():
        valid = pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), rows, [valid, pa.py_buffer(found), buffer])


cdef int _take(Column* column, array, label: bytes, bint is_union) except -1:
    """Note where an array lies; the caller holds it, and its label."""
    buffers = array.buffers()
    column.kind, column.is_union = KINDS[array.type], is_union
    column.label, column.label_size = label, len(label)
    column.offset = array.offset
    column.valid = NULL
    if array.null_count:
        column.valid = <const uint8_t*><uintptr_t>buffers[0].address
    if column.kind >= TEXT:
        column.ends = <const int32_t*><uintptr_t>buffers[1].address
        column.text = NULL
        if buffers[2] is not None:
            column.text = <const uint8_t*><uintptr_t>buffers[2].address
    elif column.kind == INTEGER:
        column.numbers = <const int64_t*><uintptr_t>buffers[1].address
    elif column.kind == FLOAT:
        column.floats = <const uint64_t*><uintptr_t>buffers[1].address
    else:
        column.flags = <const uint8_t*><uintptr_t>buffers[1].address
    return 0


cdef inline bint _bit(const uint8_t* bits, Py_ssize_t at) noexcept nogil:
    return bits[at >> 3] >> (at & 7) & 1


cdef uint8_t* _value(Column* column, Py_ssize_t row, uint8_t* out, bint is_avro) noexcept nogil:
    cdef Py_ssize_t at = column.offset + row, length
    cdef bint is_null = column.valid != NULL and not _bit(column.valid, at)
    cdef uint64_t bits
    if column.label_size:
        memcpy(out, column.label, column.label_size)
        out += column.label_size
    if is_avro and column.is_union:
        out[0] = 0 if is_null else 2
        out += 1
    if is_null:
        if not is_avro:
            out[0] = 0xC0
            out += 1
        return out
    if column.kind == INTEGER:
        if is_avro:
            return _zigzag(column.numbers[at], out)
        return _packed(column.numbers[at], out)
    if column.kind == FLOAT:
        bits = column.floats[at]
        if is_avro:
            return _little(bits, out)
        out[0] = 0xCB
        return _big(bits, 8, out + 1)
    if column.kind == BOOLEAN:
        out[0] = _bit(column.flags, at) + (0 if is_avro else 0xC2)
        return out + 1
    length = column.ends[at + 1] - column.ends[at]
    if column.kind == RAW:
        pass
    elif is_avro:
        out = _zigzag(length, out)
    elif column.kind == BINARY:
        out = _sized(length, 0xC4, out)
    elif length < 32:
        out[0] = 0xA0 | <uint8_t>length
        out += 1
    else:
        out = _sized(length, 0xD9, out)
    if length:
        memcpy(out, column.text + column.ends[at], length)
    return out + length


cdef uint8_t* _zigzag(int64_t value, uint8_t* out) noexcept nogil:
    cdef uint64_t left = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    while left >= 0x80:
        out[0] = <uint8_t>(left & 0x7F) | 0x80
        out += 1
        left >>= 7
    out[0] = <uint8_t>left
    return out + 1


cdef uint8_t* _packed(int64_t value, uint8_t* out) noexcept nogil:
    """An integer in the fewest bytes."""
    if -32 <= value < 128:
        out[0] = <uint8_t>value
        return out + 1
    if value >= 0:
        return _sized(<uint64_t>value, 0xCC, out)
    if value >= -0x80:
        out[0] = 0xD0
        return _big(<uint64_t>value, 1, out + 1)
    if value >= -0x8000:
        out[0] = 0xD1
        return _big(<uint64_t>value, 2, out + 1)
    if value >= -<int64_t>0x80000000:
        out[0] = 0xD2
        return _big(<uint64_t>value, 4, out + 1)
    out[0] = 0xD3
    return _big(<uint64_t>value, 8, out + 1)


cdef uint8_t* _sized(uint64_t value, uint8_t tag, uint8_t* out) noexcept nogil:
    """A number in the fewest of 1, 2, 4 and 8 bytes. tag: of one byte; the next ones are of more."""
    cdef int step = (value >> 8 != 0) + (value >> 16 != 0) + (value >> 32 != 0)
    out[0] = tag + <uint8_t>step
    return _big(value, 1 << step, out + 1)


cdef uint8_t* _big(uint64_t value, int size, uint8_t* out) noexcept nogil:
    cdef int at
    for at in range(size):
        out[at] = <uint8_t>(value >> 8 * (size - 1 - at))
    return out + size


cdef uint8_t* _little(uint64_t value, uint8_t* out) noexcept nogil:
    cdef int at
    for at in range(8):
        out[at] = <uint8_t>(value >> 8 * at)
    return out + 8
