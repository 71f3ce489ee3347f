# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns on their way into compiled rows of slots, and back."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy
from libcpp.string cimport string
from libcpp.vector cimport vector

from ripple.core.int64s cimport int64s
from ripple.model.keys.checked cimport check_length

cdef extern from "strips.hpp" namespace "ripple" nogil:
    cppclass Strip:
        char kind
        const int64_t* numbers
        const int64_t* starts
        const char* text
        const uint8_t* valid
    cppclass Encoded:
        vector[int64_t] numbers
        vector[int64_t] ends
        string text
        vector[uint8_t] valid
        void reserve(size_t rows, char kind) except +


cdef inline Strip strip(tuple column, char kind, Py_ssize_t n) except *:
    """Return where a column's values are, which stay there as long as the column does."""
    cdef Strip found
    cdef const int64_t[::1] numbers
    cdef const uint8_t[::1] part
    cdef Py_ssize_t i
    values, starts, text, valid = column
    found.kind = kind
    if kind == b"s":
        numbers = starts
        check_length(n + 1, numbers.shape[0])
        part = text
        for i in range(n):
            if not 0 <= numbers[i] <= numbers[i + 1] <= part.shape[0]:
                raise ValueError("texts that are not where they should be")
        found.starts = &numbers[0]
        found.text = <const char*>&part[0] if part.shape[0] else NULL
    else:
        numbers = values
        check_length(n, numbers.shape[0])
        found.numbers = &numbers[0]
    if valid is not None:
        part = valid
        check_length(n, part.shape[0])
        found.valid = &part[0]
    return found


cdef inline vector[Strip] strips(columns, const string& kinds, Py_ssize_t n) except *:
    """Return the same of several columns, of which each has a letter."""
    cdef vector[Strip] found
    check_length(kinds.size(), len(columns))
    for at, column in enumerate(columns):
        found.push_back(strip(column, kinds[<size_t>at], n))
    return found


cdef inline tuple encoded(const Encoded& column):
    """Return a column as ``strip`` takes it."""
    import numpy as np  # a .pxd has no module to import it once
    cdef uint8_t[::1] out
    ends = np.concatenate([np.zeros(1, np.int64), int64s(column.ends)])
    valid = np.empty(column.valid.size(), np.uint8)
    if column.valid.size():
        out = valid
        memcpy(&out[0], column.valid.data(), column.valid.size())
    return int64s(column.numbers), ends, np.frombuffer(<bytes>column.text, np.uint8), valid


cdef inline tuple encoded_rows(
    starts, const vector[int64_t]& places, const Encoded& by, const vector[Encoded]& fields
):
    """Return where each slot's rows start, their places, the values that decide, and the fields."""
    cdef list columns = []
    cdef size_t at
    for at in range(fields.size()):
        columns.append(encoded(fields[at]))
    return starts, int64s(places).reshape(-1, 2), encoded(by), columns
