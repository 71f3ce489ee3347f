# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""The rows of each slot in order: the best of a stream that only grows, or all of a table's."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.deque cimport deque
from libcpp.string cimport string
from libcpp.vector cimport vector

from ripple.model.aggregate.errors import InsertOnlyError
from ripple.model.aggregate.strips cimport Encoded, Strip, encoded, encoded_rows, strip, strips
from ripple.model.keys.checked cimport check_length, check_pairs, check_slots


cdef extern from "best.hpp" namespace "ripple" nogil:
    cppclass Entry "ripple::Best::Entry":
        pass
    cppclass Best:
        int64_t limit
        char by_kind
        cbool largest
        cbool latest
        string kinds
        deque[vector[Entry]] slots
        void add(
            const int64_t* slot, int64_t n, const Strip& by, const int64_t* time_ns,
            const int64_t* offset, const vector[Strip]& fields,
        ) except +
        void merge(int64_t into, int64_t source) except +
        void clear(int64_t slot)
        void encode(
            int64_t slot, vector[int64_t]& numbers, Encoded& by, vector[Encoded]& fields
        ) except +
        int64_t nbytes()

cdef extern from "held.hpp" namespace "ripple" nogil:
    cppclass Rows "std::multiset<ripple::HeldRow>":
        pass
    cppclass Held:
        int64_t limit, bytes
        cbool last
        size_t values, fields
        string kinds
        vector[Rows] slots
        void add(const int64_t* slot, int64_t n, const vector[Strip]& columns) except +
        int64_t remove(const int64_t* slot, int64_t n, const vector[Strip]& columns) except +
        void merge(int64_t into, int64_t source) except +
        void clear(int64_t slot)
        int64_t encode(int64_t slot, cbool all, vector[Encoded]& columns) except +


cdef class BestOf:
    """At most ``limit`` rows a slot: the smallest by a value, or with ``largest`` the largest.

    by: the kind of the value, "d", "i" or "s" (text), or "" where the place (time, offset) alone
    decides. Between equal values the earlier place is the better one, or with ``latest`` the later.
    kinds: those of the fields of a row.

    A column is a tuple (numbers, starts, bytes, valid): int64[n] with the bits of numbers, or
    int64[n + 1] and uint8[...] of texts; uint8[n], or None if no value is null.
    """

    cdef Best best

    def __init__(self, *, int64_t limit, str by, bint largest, bint latest, str kinds):
        self.best.limit = limit
        self.best.by_kind = ord(by) if by else 0
        self.best.largest, self.best.latest = largest, latest
        self.best.kinds = kinds.encode()

    def resize(self, Py_ssize_t slots):
        self.best.slots.resize(slots)

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
        cdef vector[Strip] others
        check_slots(slots, self.best.slots.size())
        check_length(n, time_ns.shape[0])
        check_length(n, offset.shape[0])
        if n == 0:
            return
        if self.best.by_kind:
            first = strip(by, self.best.by_kind, n)
        others = strips(fields, self.best.kinds, n)
        with nogil:
            self.best.add(&slots[0], n, first, &time_ns[0], &offset[0], others)

    def remove(self, slots, *columns):
        raise InsertOnlyError

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        cdef Py_ssize_t i
        check_pairs(into, source, self.best.slots.size())
        for i in range(into.shape[0]):
            if into[i] != source[i]:
                self.best.merge(into[i], source[i])

    def clear(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        check_slots(slots, self.best.slots.size())
        for i in range(slots.shape[0]):
            self.best.clear(slots[i])

    def encode(self, const int64_t[::1] slots not None):
        """Return the rows of slots, the best first.

        Where each slot's start, int64[n + 1]; their places, int64[rows, 2]; then columns as in
        ``add``: the value that decides, and the fields.
        """
        cdef Py_ssize_t i
        cdef vector[int64_t] places
        cdef Encoded by
        cdef vector[Encoded] fields
        check_slots(slots, self.best.slots.size())
        cdef size_t at, rows = 0
        fields.resize(self.best.kinds.size())
        starts = np.zeros(slots.shape[0] + 1, np.int64)
        cdef int64_t[::1] start = starts
        for i in range(slots.shape[0]):
            rows += self.best.slots[slots[i]].size()
        by.reserve(rows, self.best.by_kind)
        for at in range(fields.size()):
            fields[at].reserve(rows, self.best.kinds[at])
        for i in range(slots.shape[0]):
            self.best.encode(slots[i], places, by, fields)
            start[i + 1] = places.size() // 2
        return encoded_rows(starts, places, by, fields)

    @property
    def nbytes(self):
        return self.best.nbytes()


cdef class HeldOf:
    """All rows of each slot in the order of value, place and fields, to be shown from one end.

    values, fields, places: the kinds of a row's columns, as in ``BestOf``; ``values`` is of one or
    none. limit: how many are shown: the first ones, or with ``last`` those with the largest values,
    of equal ones the first; without a value the last.
    """

    cdef Held held

    def __init__(self, *, int64_t limit, bint last, str values, str fields, str places):
        self.held.limit, self.held.last = limit, last
        self.held.values, self.held.fields = len(values), len(fields)
        self.held.kinds = (values + fields + places).encode()

    def resize(self, Py_ssize_t slots):
        self.held.slots.resize(slots)

    def add(self, const int64_t[::1] slots not None, list columns not None):
        cdef vector[Strip] given
        check_slots(slots, self.held.slots.size())
        given = strips(columns, self.held.kinds, slots.shape[0])
        if slots.shape[0]:
            with nogil:
                self.held.add(&slots[0], slots.shape[0], given)

    def remove(self, const int64_t[::1] slots not None, list columns not None):
        """Take rows out; return the first one that is not there, or -1."""
        cdef vector[Strip] given
        check_slots(slots, self.held.slots.size())
        given = strips(columns, self.held.kinds, slots.shape[0])
        cdef int64_t absent = -1
        if slots.shape[0]:
            with nogil:
                absent = self.held.remove(&slots[0], slots.shape[0], given)
        return absent

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        cdef Py_ssize_t i
        check_pairs(into, source, self.held.slots.size())
        for i in range(into.shape[0]):
            if into[i] != source[i]:
                self.held.merge(into[i], source[i])

    def clear(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        check_slots(slots, self.held.slots.size())
        for i in range(slots.shape[0]):
            self.held.clear(slots[i])

    def encode(self, const int64_t[::1] slots not None, *, bint whole):
        """Return where each slot's rows start, int64[n + 1], and their columns as in ``add``.

        whole: all rows in their order, else those that are shown, the best first.
        """
        cdef Py_ssize_t i
        cdef vector[Encoded] columns
        check_slots(slots, self.held.slots.size())
        columns.resize(self.held.kinds.size())
        starts = np.zeros(slots.shape[0] + 1, np.int64)
        cdef int64_t[::1] start = starts
        for i in range(slots.shape[0]):
            start[i + 1] = start[i] + self.held.encode(slots[i], whole, columns)
        return starts, [encoded(columns[<size_t>at]) for at in range(columns.size())]

    @property
    def nbytes(self):
        return self.held.bytes + <int64_t>(self.held.slots.capacity() * sizeof(Rows))
