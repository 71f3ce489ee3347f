# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Values put one below the other, as lines of a file."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.string cimport memchr, memcpy

import numpy as np
import pyarrow as pa


def as_lines(const uint8_t[::1] data not None, const int32_t[::1] ends not None):
    """Return those of ``data[ends[i]:ends[i + 1]]`` that surely are one line, and the other rows.

    A line's end at the end of a value does not count. The other rows have another
    line's end, open quotes, no bytes, or a ``#`` at their beginning.
    """
    cdef Py_ssize_t rows = ends.shape[0] - 1, row, others = 0, size
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    cdef const uint8_t* p
    cdef const uint8_t* q
    cdef const uint8_t* stop
    cdef uint8_t* out
    cdef int quotes
    cdef bint any_quotes
    if ends[0] < 0 or ends[rows] < ends[0] or ends[rows] > data.shape[0]:
        raise ValueError("values end where there is nothing")
    size = ends[rows] - ends[0]
    block = pa.allocate_buffer(size + rows, resizable=True)
    other_rows = np.empty(rows, np.int64)
    cdef int64_t[::1] found = other_rows
    out = <uint8_t*><uintptr_t>block.address
    cdef uint8_t* first = out
    with nogil:
        any_quotes = size > 0 and memchr(start + ends[0], b'"', size) != NULL
        for row in range(rows):
            p = start + ends[row]
            stop = start + ends[row + 1]
            if stop > p and (stop - 1)[0] == b"\n":
                stop -= 1
                if stop > p and (stop - 1)[0] == b"\r":
                    stop -= 1
            quotes = 0
            if any_quotes:
                q = p
                while q < stop:
                    quotes += q[0] == b'"'
                    q += 1
            if stop == p or p[0] == b"#" or quotes & 1 or memchr(p, b"\n", stop - p) != NULL:
                found[others] = row
                others += 1
                continue
            memcpy(out, p, stop - p)
            out += stop - p
            out[0] = b"\n"
            out += 1
    block.resize(out - first, shrink_to_fit=False)
    return block, other_rows[:others]
