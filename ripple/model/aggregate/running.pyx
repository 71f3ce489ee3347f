# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The best so far of each slot, for streams that only grow: min, max, first and last.

One event of 32 bytes a slot, in the same total orders as the ordered multisets, so that a
result does not depend on whether a stream may retract.
"""

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from ripple.model.aggregate.errors import InsertOnlyError
from ripple.model.keys.checked cimport check_length, check_pairs, check_slots


cdef extern from "ordered.hpp" namespace "ripple" nogil:
    cppclass Event:
        int64_t time_ns
        int64_t offset
        uint64_t bits
        int64_t count
        cbool operator<(const Event& other)
    uint64_t key_of(double value)
    uint64_t key_of_integer "ripple::key_of"(int64_t value)
    double double_of(uint64_t key)
    int64_t integer_of(uint64_t key)


cdef class Running:
    """The common part of values and events; count is 0 while a slot is empty."""

    cdef vector[Event] best
    cdef readonly bint integer
    cdef readonly bint last

    def __init__(self, *, integer, last):
        self.integer = integer
        self.last = last

    cdef inline void offer(self, int64_t slot, const Event& event) noexcept nogil:
        if not self.best[slot].count or (
            self.best[slot] < event if self.last else event < self.best[slot]
        ):
            self.best[slot] = event

    def resize(self, Py_ssize_t slots):
        self.best.resize(slots)

    def remove(self, slots, *columns):
        raise InsertOnlyError

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        cdef Py_ssize_t i
        check_pairs(into, source, self.best.size())
        for i in range(into.shape[0]):
            if into[i] != source[i] and self.best[source[i]].count:
                self.offer(into[i], self.best[source[i]])
                self.best[source[i]].count = 0

    def clear(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        check_slots(slots, self.best.size())
        for i in range(slots.shape[0]):
            self.best[slots[i]].count = 0

    def encode(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        cdef Event event
        check_slots(slots, self.best.size())
        bits = np.zeros(slots.shape[0], np.uint64)
        places = np.zeros((2, slots.shape[0]), np.int64)
        valid = np.zeros(slots.shape[0], np.bool_)
        cdef uint64_t[::1] view = bits
        cdef int64_t[:, ::1] place = places
        cdef unsigned char[::1] mask = valid.view(np.uint8)
        for i in range(slots.shape[0]):
            event = self.best[slots[i]]
            if event.count:
                view[i], place[0, i], place[1, i] = event.bits, event.time_ns, event.offset
                mask[i] = 1
        return bits, places, valid

    cdef int check(self, const int64_t[::1] slots, values) except -1:
        check_length(slots.shape[0], len(values))
        return check_slots(slots, self.best.size())

    @property
    def nbytes(self):
        return <int64_t>(self.best.capacity() * sizeof(Event))


cdef class RunningValues(Running):
    """The smallest value of each slot so far, or with ``last`` the largest."""

    def add(self, const int64_t[::1] slots not None, values not None):
        cdef Py_ssize_t i
        cdef const double[::1] reals
        cdef const int64_t[::1] integers
        cdef Event event
        self.check(slots, values)
        event.time_ns = event.offset = 0
        event.count = 1
        if self.integer:
            integers = values
            with nogil:
                for i in range(slots.shape[0]):
                    event.bits = key_of_integer(integers[i])
                    self.offer(slots[i], event)
        else:
            reals = values
            with nogil:
                for i in range(slots.shape[0]):
                    event.bits = key_of(reals[i])
                    self.offer(slots[i], event)

    def result(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        bits, _, valid = self.encode(slots)
        cdef uint64_t[::1] keys = bits
        out = np.empty(slots.shape[0], np.int64 if self.integer else np.float64)
        cdef double[::1] reals
        cdef int64_t[::1] integers
        if self.integer:
            integers = out
            for i in range(slots.shape[0]):
                integers[i] = integer_of(keys[i])
        else:
            reals = out
            for i in range(slots.shape[0]):
                reals[i] = double_of(keys[i])
        return out, valid


cdef class RunningEvents(Running):
    """The value of the earliest (time, offset) of each slot, or with ``last`` the latest."""

    def add(
        self,
        const int64_t[::1] slots not None,
        values not None,
        const int64_t[::1] time_ns not None,
        const int64_t[::1] offset not None,
    ):
        cdef Py_ssize_t i
        cdef Event event
        for column in (values, time_ns, offset):
            self.check(slots, column)
        if values.dtype != (np.int64 if self.integer else np.float64):
            raise TypeError(f"{values.dtype} in a column of another type")
        cdef const uint64_t[::1] bits = np.ascontiguousarray(values).view(np.uint64)
        event.count = 1
        with nogil:
            for i in range(slots.shape[0]):
                event.time_ns, event.offset, event.bits = time_ns[i], offset[i], bits[i]
                self.offer(slots[i], event)

    def result(self, const int64_t[::1] slots not None):
        bits, _, valid = self.encode(slots)
        return bits.view(np.int64 if self.integer else np.float64), valid
