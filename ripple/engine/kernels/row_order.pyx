# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Rows in the order of their slots, times and places, among which others may come."""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t
from libcpp.vector cimport vector

import numpy as np

from ripple.core.int64s cimport int64s
from ripple.model.keys.checked cimport check_length

cdef class Near:
    """Which rows match one at a time: the last before it, the next after it, the nearer of both."""

    def __init__(self, str strategy not None, *, bint is_strict, tolerance_ns):
        """Match ``backward``, ``forward`` or ``nearest``; is_strict: not at the time itself.

        tolerance_ns: how far a match may be; None for any distance.
        """
        self.near.before, self.near.after = strategy != "forward", strategy != "backward"
        self.near.is_strict = is_strict
        self.near.tolerance = -1 if tolerance_ns is None else min(tolerance_ns, INT64_MAX)


cdef class RowOrder:
    """The numbers of rows by (slot, time, place), in pieces, so that one that comes moves few.

    A place is below 2^63 - 1. Ranges count in this order, and hold until rows are added or taken.
    """

    def __len__(self):
        return self.held.count

    @property
    def nbytes(self):
        """Bytes held."""
        return self.held.nbytes()

    def add(
        self,
        const int64_t[::1] slots not None,
        const int64_t[::1] times not None,
        const int64_t[::1] places not None,
        const int64_t[::1] numbers not None,
    ):
        """Add rows."""
        cdef vector[OrderRow] rows
        cdef Py_ssize_t i, n = slots.shape[0]
        for length in (times.shape[0], places.shape[0], numbers.shape[0]):
            check_length(n, length)
        rows.resize(n)
        with nogil:
            for i in range(n):
                rows[i].key.slot, rows[i].key.time = slots[i], times[i]
                rows[i].key.place, rows[i].number = places[i], numbers[i]
            self.held.add(rows)

    def first_at(self, const int64_t[::1] slots not None, const int64_t[::1] times not None):
        """Return where the rows of these slots from these times on begin: int64[n]."""
        return self.below(slots, times, INT64_MIN)

    def end_at(self, const int64_t[::1] slots not None, const int64_t[::1] times not None):
        """Return where the rows of these slots up to these times end: int64[n]."""
        return self.below(slots, times, INT64_MAX)

    cdef below(self, const int64_t[::1] slots, const int64_t[::1] times, int64_t place):
        cdef vector[int64_t] found
        cdef OrderKey key
        cdef Py_ssize_t i, n = slots.shape[0]
        check_length(n, times.shape[0])
        key.place = place
        with nogil:
            for i in range(n):
                key.slot, key.time = slots[i], times[i]
                found.push_back(self.held.below(key))
        return int64s(found)

    def numbers_in(self, const int64_t[::1] begins not None, const int64_t[::1] ends not None):
        """Return the numbers of the rows in each of some ranges, one after the other: int64[n]."""
        cdef vector[int64_t] found
        cdef Py_ssize_t i
        self.check_ranges(begins, ends)
        with nogil:
            for i in range(begins.shape[0]):
                self.held.numbers_in(begins[i], ends[i], found)
        return int64s(found)

    def covered(self, const int64_t[::1] begins not None, const int64_t[::1] ends not None):
        """Return the numbers of the rows in any of some ranges, and in how many each is."""
        cdef vector[int64_t] found, ranges
        cdef Py_ssize_t n = begins.shape[0]
        self.check_ranges(begins, ends)
        if n:
            with nogil:
                self.held.covered(&begins[0], &ends[0], n, found, ranges)
        return int64s(found), int64s(ranges)

    cdef int check_ranges(self, const int64_t[::1] begins, const int64_t[::1] ends) except -1:
        cdef Py_ssize_t i
        check_length(begins.shape[0], ends.shape[0])
        for i in range(begins.shape[0]):
            if begins[i] < ends[i] and not 0 <= begins[i] < ends[i] <= self.held.count:
                raise IndexError(f"range {begins[i]}..{ends[i]} is outside 0..{self.held.count}")
        return 0

    def matches(
        self,
        const int64_t[::1] slots not None,
        const int64_t[::1] times not None,
        Near near not None,
    ):
        """Return the numbers of the rows that match at these times, -1 for none: int64[n]."""
        cdef vector[int64_t] found
        cdef Py_ssize_t i, n = slots.shape[0]
        check_length(n, times.shape[0])
        found.resize(n)
        with nogil:
            for i in range(n):
                found[i] = self.held.match(slots[i], times[i], near.near)
        return int64s(found)

    def touched(
        self,
        const int64_t[::1] slots not None,
        const int64_t[::1] times not None,
        const int64_t[::1] places not None,
        RowOrder waiting not None,
        Near near not None,
    ):
        """Return the numbers of waiting rows that may match some of the rows here: int64[n].

        A match stands next to its row: so these are the ones up to the neighbours of each row.
        """
        cdef vector[int64_t] found
        cdef OrderKey key
        cdef Py_ssize_t i, n = slots.shape[0]
        check_length(n, times.shape[0])
        check_length(n, places.shape[0])
        with nogil:
            for i in range(n):
                key.slot, key.time, key.place = slots[i], times[i], places[i]
                self.held.touched(key, near.near, waiting.held, found)
        return int64s(found)

    def take_below(self, int64_t time_ns):
        """Take out the rows of slot 0 before a time, and return their numbers in order: int64[n]."""
        cdef vector[int64_t] found
        self.held.take_below(time_ns, found)
        return int64s(found)

    def renumbered(self, const int64_t[::1] numbers not None):
        """Return some of the rows under new numbers; numbers: by the old one, -1 for none."""
        cdef RowOrder found = RowOrder()
        _, _, held = self.rows()
        if len(held) and not 0 <= held.min() <= held.max() < numbers.shape[0]:
            raise IndexError(f"numbers of rows are outside 0..{numbers.shape[0] - 1}")
        if self.held.count:
            found.held = self.held.renumbered(&numbers[0])
        return found

    def rows(self):
        """Return the slots, times and numbers of all rows: int64[n] each."""
        made = [np.empty(self.held.count, np.int64) for _ in range(3)]
        cdef int64_t[::1] slots = made[0]
        cdef int64_t[::1] times = made[1]
        cdef int64_t[::1] numbers = made[2]
        if self.held.count:
            self.held.dump(&slots[0], &times[0], &numbers[0])
        return tuple(made)
