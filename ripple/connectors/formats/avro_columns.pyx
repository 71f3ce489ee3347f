# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Flat Avro records to columns, one writer's schema at a time.

https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy

import numpy as np
import pyarrow as pa

# What a writer's field is, by number; a text is bytes, too.
KINDS = {"null": 0, "boolean": 1, "int": 2, "long": 3, "float": 4, "double": 5, "string": 6, "bytes": 6}

cdef enum:
    NULL_KIND = 0
    BOOLEAN = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    TEXT = 6
    FIELDS_MAX = 512

cdef struct Step:
    int kind        # one of KINDS
    int null_at     # which member of its union null is, -1: it is no union
    bint is_wanted
    int64_t* numbers
    double* floats
    uint8_t* valid
    uint8_t* flags
    int32_t* ends
    uint8_t* text


def decode(
    const uint8_t[::1] data not None,
    const int32_t[::1] ends not None,
    const int64_t[::1] rows not None,
    Py_ssize_t skipped,
    fields,
):
    """Return the columns of those fields that are wanted, and which rows are not sound.

    Row i is ``data[ends[i] + skipped:ends[i + 1]]``. fields: of the writer, in order: (kind, which
    member of its union null is or -1, whether it is wanted); at most 512. Unsound rows are
    (index among ``rows``, number of the field, or that of all fields where bytes are left over),
    and null in all columns from that field on; texts may not be UTF-8 yet: columns of them are
    binary.
    """
    cdef Step steps[FIELDS_MAX]
    cdef Py_ssize_t count = rows.shape[0], values = ends.shape[0] - 1, i, row, size = 0
    cdef int at, of = len(fields), failed
    cdef const uint8_t* held = &data[0] if data.shape[0] else NULL
    if of > FIELDS_MAX:
        raise ValueError("too many fields")
    for i in range(count):
        row = rows[i]
        if row < 0 or row >= values or ends[row] < 0 or ends[row + 1] < ends[row]:
            raise ValueError("values end where there is nothing")
        if ends[row + 1] > data.shape[0]:
            raise ValueError("values end where there is nothing")
        size += ends[row + 1] - ends[row]
    kept = []
    for at, (kind, null_at, is_wanted) in enumerate(fields):
        kept.append(_column(&steps[at], kind, null_at, is_wanted, count, size))
    unsound = []
    for i in range(count):
        row = rows[i]
        if ends[row + 1] - ends[row] < skipped:
            failed = 0
            _absent(steps, of, 0, i)
        else:
            failed = _record(steps, of, held + ends[row] + skipped, held + ends[row + 1], i)
        if failed >= 0:
            unsound.append((i, failed))
    return [_array(&steps[at], kept[at], count) for at in range(of) if steps[at].is_wanted], unsound


cdef object _column(
    Step* step, int kind, int null_at, bint is_wanted, Py_ssize_t rows, Py_ssize_t size
):
    """Room for a column; nothing where the field is passed over."""
    step.kind, step.null_at, step.is_wanted = kind, null_at, is_wanted
    step.numbers, step.floats, step.flags, step.ends, step.text = NULL, NULL, NULL, NULL, NULL
    if not is_wanted:
        return None
    valid = np.zeros(rows, np.uint8)
    step.valid = <uint8_t*><uintptr_t>valid.ctypes.data
    if kind == TEXT:
        ends = np.zeros(rows + 1, np.int32)
        text = pa.allocate_buffer(size, resizable=True)
        step.ends = <int32_t*><uintptr_t>ends.ctypes.data
        step.text = <uint8_t*><uintptr_t>text.address
        return valid, ends, text
    if kind in (FLOAT, DOUBLE):
        floats = np.zeros(rows, np.float64)
        step.floats = <double*><uintptr_t>floats.ctypes.data
        return valid, floats
    if kind == BOOLEAN:
        flags = np.zeros(rows, np.uint8)
        step.flags = <uint8_t*><uintptr_t>flags.ctypes.data
        return valid, flags
    numbers = np.zeros(rows, np.int64)
    step.numbers = <int64_t*><uintptr_t>numbers.ctypes.data
    return valid, numbers


cdef object _array(Step* step, tuple kept, Py_ssize_t rows):
    valid = kept[0]
    nulls = rows - int(valid.sum())
    bits = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
    if step.kind == TEXT:
        kept[2].resize(step.ends[rows], shrink_to_fit=True)
        return pa.Array.from_buffers(pa.binary(), rows, [bits, pa.py_buffer(kept[1]), kept[2]], nulls)
    if step.kind == FLOAT or step.kind == DOUBLE:
        return pa.Array.from_buffers(pa.float64(), rows, [bits, pa.py_buffer(kept[1])], nulls)
    if step.kind == BOOLEAN:
        flags = pa.py_buffer(np.packbits(kept[1], bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), rows, [bits, flags], nulls)
    return pa.Array.from_buffers(pa.int64(), rows, [bits, pa.py_buffer(kept[1])], nulls)


cdef int _record(
    Step* steps, int of, const uint8_t* p, const uint8_t* stop, Py_ssize_t row
) noexcept nogil:
    """Take one record; return which field is not sound, -1 if all are."""
    cdef int at
    cdef int64_t number = 0
    cdef uint32_t bits32
    cdef uint64_t bits64
    cdef float single
    cdef double value
    cdef Step* step
    for at in range(of):
        step = &steps[at]
        if step.null_at >= 0:
            p = _long(p, stop, &number)
            if p == NULL or number < 0 or number > 1:
                _absent(steps, of, at, row)
                return at
            if number == step.null_at:
                if step.is_wanted and step.ends != NULL:
                    step.ends[row + 1] = step.ends[row]
                continue
        if step.kind == INT or step.kind == LONG:
            p = _long(p, stop, &number)
            if p == NULL or (step.kind == INT and number != <int32_t>number):
                _absent(steps, of, at, row)
                return at
            if step.is_wanted:
                step.numbers[row] = number
        elif step.kind == FLOAT:
            if stop - p < 4:
                _absent(steps, of, at, row)
                return at
            if step.is_wanted:
                bits32 = p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24
                memcpy(&single, &bits32, 4)
                step.floats[row] = single
            p += 4
        elif step.kind == DOUBLE:
            if stop - p < 8:
                _absent(steps, of, at, row)
                return at
            if step.is_wanted:
                bits64 = (
                    <uint64_t>p[0] | <uint64_t>p[1] << 8 | <uint64_t>p[2] << 16
                    | <uint64_t>p[3] << 24 | <uint64_t>p[4] << 32 | <uint64_t>p[5] << 40
                    | <uint64_t>p[6] << 48 | <uint64_t>p[7] << 56
                )
                memcpy(&value, &bits64, 8)
                step.floats[row] = value
            p += 8
        elif step.kind == BOOLEAN:
            if p == stop or p[0] > 1:
                _absent(steps, of, at, row)
                return at
            if step.is_wanted:
                step.flags[row] = p[0]
            p += 1
        elif step.kind == TEXT:
            p = _long(p, stop, &number)
            if p == NULL or number < 0 or number > stop - p:
                _absent(steps, of, at, row)
                return at
            if step.is_wanted:
                if number:
                    memcpy(step.text + step.ends[row], p, number)
                step.ends[row + 1] = step.ends[row] + <int32_t>number
            p += number
        if step.is_wanted:
            step.valid[row] = 1
    return -1 if p == stop else of


cdef void _absent(Step* steps, int of, int at, Py_ssize_t row) noexcept nogil:
    """Let columns from a field on have nothing in a row."""
    while at < of:
        if steps[at].is_wanted and steps[at].ends != NULL:
            steps[at].ends[row + 1] = steps[at].ends[row]
        at += 1


cdef const uint8_t* _long(const uint8_t* p, const uint8_t* stop, int64_t* out) noexcept nogil:
    """Read a zigzag number of at most ten bytes; NULL where there is none."""
    cdef uint64_t found = 0
    cdef int shift = 0
    while p < stop and shift < 64:
        if shift == 63 and p[0] > 1:
            return NULL
        found |= <uint64_t>(p[0] & 0x7F) << shift
        shift += 7
        p += 1
        if (p - 1)[0] < 0x80:
            out[0] = <int64_t>(found >> 1) ^ -<int64_t>(found & 1)
            return p
    return NULL
