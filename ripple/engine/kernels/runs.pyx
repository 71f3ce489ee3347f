# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Rows of each slot in the order of their times, and those of them that are near to a time."""

from libc.stdint cimport INT64_MAX, int64_t
from libcpp.vector cimport vector

import numpy as np

from ripple.core.int64s cimport int64s
from ripple.model.keys.checked cimport check_length, check_slots

cdef extern from "runs.hpp" namespace "ripple" nogil:
    cppclass Run:
        pass

    cppclass CRuns "ripple::Runs":
        vector[Run] slots
        int64_t rows
        int64_t add(const int64_t*, const int64_t*, int64_t, int64_t, int64_t) except +
        int64_t match(
            const int64_t*,
            const int64_t*,
            const int64_t*,
            int64_t,
            int64_t,
            int64_t,
            int64_t,
            int64_t,
            int64_t*,
            vector[int64_t]&,
        ) except +
        void free_below(const int64_t*, int64_t, int64_t, vector[int64_t]&) except +
        int64_t nbytes()


cdef class Runs:
    """The numbers of the rows of each slot, in the order of their times."""

    cdef CRuns held

    @property
    def count(self):
        """The number of rows."""
        return self.held.rows

    @property
    def nbytes(self):
        """Bytes held."""
        return self.held.nbytes()

    def add(
        self,
        const int64_t[::1] slots not None,
        const int64_t[::1] times_ns not None,
        int64_t number,
        int64_t capacity,
        int64_t free_ns,
    ):
        """Add rows with rising numbers, from ``number`` on. Every slot is below ``capacity``.

        free_ns: rows before it may be freed. Raises ValueError where the times of a slot would fall.
        """
        cdef Py_ssize_t n = slots.shape[0]
        cdef int64_t early
        check_slots(slots, capacity)
        check_length(n, times_ns.shape[0])
        if not n:
            return
        with nogil:
            if <size_t>capacity > self.held.slots.size():
                self.held.slots.resize(capacity)
            early = self.held.add(&slots[0], &times_ns[0], n, number, free_ns)
        if early >= 0:
            raise ValueError(f"the row at position {early} is before the last one of its slot")

    def match(
        self,
        const int64_t[::1] slots not None,
        const int64_t[::1] times_ns not None,
        int64_t lo_ns,
        int64_t hi_ns,
        int64_t most,
        const int64_t[::1] records=None,
        int64_t room=INT64_MAX,
    ):
        """Find the rows of each slot from lo_ns to hi_ns past each time, both included.

        Returns (counts int64[n], numbers): those of each in their order. Of a row with which its
        record has more than ``most`` there are none, and the count is ``most`` + 1. A slot that has
        no rows may be any number. records: numbers that tell the records of rows apart, which stand
        together; by default each row is one. room: once there are so many numbers no further record
        is begun, and there are fewer counts.
        """
        cdef Py_ssize_t n = slots.shape[0]
        cdef const int64_t* record = NULL
        cdef vector[int64_t] found
        cdef int64_t seen
        check_length(n, times_ns.shape[0])
        if records is not None:
            check_length(n, records.shape[0])
        counts = np.zeros(n, np.int64)
        cdef int64_t[::1] out = counts
        if not n:
            return counts, np.empty(0, np.int64)
        if records is not None:
            record = &records[0]
        with nogil:
            seen = self.held.match(
                &slots[0], &times_ns[0], record, n, lo_ns, hi_ns, most, room, &out[0], found
            )
        return counts[:seen], int64s(found)

    def free_below(self, const int64_t[::1] slots not None, int64_t time_ns):
        """Free the rows of distinct slots before a time; return the slots that have none left."""
        cdef vector[int64_t] empty
        cdef Py_ssize_t n = slots.shape[0]
        own = np.asarray(slots)
        without = own[own >= self.held.slots.size()]
        cdef const int64_t[::1] known = own[own < self.held.slots.size()]
        check_slots(known, self.held.slots.size())
        if known.shape[0]:
            with nogil:
                self.held.free_below(&known[0], known.shape[0], time_ns, empty)
        return np.concatenate((int64s(empty), without))


def records_of(const int64_t[::1] times_ns not None, const int64_t[::1] places not None, int64_t rows):
    """Return the number of each row's record: int64[n], rising by one from 0.

    Rows of a record stand together, have one time, and places that are equal divided by ``rows``.
    """
    cdef Py_ssize_t i, n = times_ns.shape[0]
    cdef int64_t number = 0, base, before = 0
    check_length(n, places.shape[0])
    records = np.empty(n, np.int64)
    cdef int64_t[::1] out = records
    for i in range(n):
        base = places[i] - modulo(places[i], rows)
        if i and (base != before or times_ns[i] != times_ns[i - 1]):
            number += 1
        before = base
        out[i] = number
    return records


def paired(
    const int64_t[::1] records not None,
    const int64_t[::1] places not None,
    const int64_t[::1] counts not None,
    const int64_t[::1] numbers not None,
    int64_t most,
    const int64_t[::1] least=None,
    int64_t first=0,
):
    """Pair rows with their partners, as ``match`` has them: counts and numbers.

    records: as there, each wholly here. One with more than ``most`` pairs has none. least: 1 for a
    row that makes a pair without partners, too; None for none. first: is taken from the numbers.

    Returns (of each pair its row, its partner's number or -1, its place, int64[m] each; the rows of
    records without their pairs, int64[k]; how many of the others have no partner). A place is that
    of the row's record, a multiple of ``most``, and an index among the pairs of the record.
    """
    cdef Py_ssize_t i = 0, end, row, n = records.shape[0]
    cdef int64_t k = 0, made, index, number, alone = 0
    cdef vector[int64_t] at, found, place, lost
    check_length(n, places.shape[0])
    check_length(n, counts.shape[0])
    if least is not None:
        check_length(n, least.shape[0])
    for row in range(n):
        k += counts[row] if counts[row] <= most else 0
    check_length(k, numbers.shape[0])
    k = 0
    at.reserve(numbers.shape[0])
    found.reserve(numbers.shape[0])
    place.reserve(numbers.shape[0])
    while i < n:
        end, made = i, 0
        while end < n and records[end] == records[i]:
            made += max(counts[end], least[end] if least is not None else 0)
            end += 1
        index = 0
        for row in range(i, end):
            if made > most:
                lost.push_back(row)
                k += counts[row] if counts[row] <= most else 0
                continue
            alone += counts[row] == 0
            for number in range(max(counts[row], least[row] if least is not None else 0)):
                at.push_back(row)
                found.push_back(numbers[k + number] - first if counts[row] else -1)
                place.push_back(places[row] - modulo(places[row], most) + index)
                index += 1
            k += counts[row]
        i = end
    return int64s(at), int64s(found), int64s(place), int64s(lost), alone


cdef inline int64_t modulo(int64_t value, int64_t by) noexcept nogil:
    """Return the rest of a division, which is never below 0."""
    cdef int64_t rest = value % by
    return rest + by if rest < 0 else rest
