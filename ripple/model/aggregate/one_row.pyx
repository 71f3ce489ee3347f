# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""The best row of each slot, of a stream that only grows, shown as fields."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset
from libcpp.vector cimport vector

from ripple.model.aggregate.strips cimport Encoded, Strip, encoded_rows, strip, strips
from ripple.model.keys.checked cimport check_length, check_pairs, check_range, check_slots
from ripple.model.schema.exported cimport ArrowArray, valid_bits, values_of

from ripple.model.aggregate.errors import InsertOnlyError


cdef class OneRowOf(KeptRows):
    """The row of a slot with the smallest value, or with ``largest`` the largest.

    by, latest, kinds, and columns: as of ``BestOf``. Columns share its texts, so that it takes
    rows under the GIL, unlike ``BestOf``.
    """

    def __init__(self, *, str by, bint largest, bint latest, str kinds):
        self.rows.by_kind = ord(by) if by else 0
        self.rows.largest, self.rows.latest = largest, latest
        self.rows.kinds = kinds.encode()
        self.rows.lay_out()
        self.scratch.resize(len(kinds))

    def resize(self, Py_ssize_t slots):
        self.rows.resize(slots)

    def add(
        self,
        const int64_t[::1] slots not None,
        tuple by,
        list fields not None,
        const int64_t[::1] time_ns not None,
        const int64_t[::1] offset not None,
    ):
        cdef Py_ssize_t n = slots.shape[0]
        cdef Strip first
        check_slots(slots, self.rows.size())
        check_length(n, time_ns.shape[0])
        check_length(n, offset.shape[0])
        if n == 0:
            return
        if self.rows.by_kind:
            first = strip(by, self.rows.by_kind, n)
        others = strips(fields, self.rows.kinds, n)
        self.rows.add(&slots[0], n, first, &time_ns[0], &offset[0], others)

    cdef int add_columns(
        self, const int64_t* slots, Py_ssize_t n, const ArrowArray** columns, const char* kinds,
        const int64_t* time_ns, const int64_t* offset,
    ) except -1:
        cdef vector[Strip] fields
        cdef Strip nothing
        cdef size_t f
        assert not self.rows.by_kind, "the place alone decides"
        check_range(slots, n, self.rows.size())
        fields.resize(self.scratch.size())
        for f in range(fields.size()):
            check_length(n, columns[f].length)
            fields[f] = taken(columns[f], kinds[f], n, &self.scratch[f])
        self.rows.add(slots, n, nothing, time_ns, offset, fields)
        return 0

    cdef int show(
        self, const int64_t* slots, Py_ssize_t n, Py_ssize_t field, int64_t* bits, uint8_t* valid
    ) except -1:
        self.rows.show(slots, n, field, bits, valid)
        return 0

    def remove(self, slots, *columns):
        raise InsertOnlyError

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        cdef Py_ssize_t i
        check_pairs(into, source, self.rows.size())
        for i in range(into.shape[0]):
            if into[i] != source[i]:
                self.rows.merge(into[i], source[i])

    def clear(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        check_slots(slots, self.rows.size())
        for i in range(slots.shape[0]):
            self.rows.clear(slots[i])

    def encode(self, const int64_t[::1] slots not None):
        """Return the rows of slots; see ``BestOf``."""
        cdef Py_ssize_t i
        cdef vector[int64_t] places
        cdef Encoded by
        cdef vector[Encoded] fields
        check_slots(slots, self.rows.size())
        cdef size_t at
        fields.resize(self.rows.kinds.size())
        starts = np.zeros(slots.shape[0] + 1, np.int64)
        cdef int64_t[::1] start = starts
        by.reserve(slots.shape[0], self.rows.by_kind)
        for at in range(fields.size()):
            fields[at].reserve(slots.shape[0], self.rows.kinds[at])
        for i in range(slots.shape[0]):
            self.rows.encode(slots[i], places, by, fields)
            start[i + 1] = places.size() // 2
        return encoded_rows(starts, places, by, fields)

    @property
    def nbytes(self):
        return self.rows.nbytes()


cdef Strip taken(const ArrowArray* column, char kind, Py_ssize_t n, Scratch* scratch) noexcept nogil:
    """Return where a column's values are, which stay there until the next call."""
    cdef Strip found
    cdef const uint8_t* bits = valid_bits(column)
    cdef const uint8_t* flags
    cdef const int32_t* starts
    cdef Py_ssize_t i
    cdef int64_t at
    found.kind = b"i" if kind in (b"q", b"?") else kind
    if bits != NULL:
        scratch.valid.resize(n)
        found.valid = scratch.valid.data()
        if column.null_count == n:
            memset(scratch.valid.data(), 0, n)
            return found
        for i in range(n):
            at = column.offset + i
            scratch.valid[i] = bits[at >> 3] >> (at & 7) & 1
    if kind == b"s":
        starts = <const int32_t*>column.buffers[1] + column.offset
        scratch.numbers.resize(n + 1)
        for i in range(n + 1):
            scratch.numbers[i] = starts[i]
        found.starts = scratch.numbers.data()
        found.text = <const char*>column.buffers[2]
    elif kind == b"?":
        flags = <const uint8_t*>column.buffers[1]
        scratch.numbers.resize(n)
        for i in range(n):
            at = column.offset + i
            scratch.numbers[i] = flags[at >> 3] >> (at & 7) & 1
        found.numbers = scratch.numbers.data()
    else:
        found.numbers = <const int64_t*>values_of(column, 8)
    return found
