# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Which windows an event belongs to, for whole batches. Starts are aligned to the epoch."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np

from ripple.model.keys.checked cimport check_length, check_slots
from ripple.model.keys.index cimport KeyIndex

NONE = np.empty(0, np.int64)

cdef int64_t SLOTS_MAX = 4294967294  # of the key index


cdef inline int64_t floor_to(int64_t t, int64_t step) noexcept nogil:
    cdef int64_t remainder = t % step
    return t - remainder - (step if remainder < 0 else 0)


cdef class Tumbling:
    """Tumbling windows: events to slots of (key, start).

    Invariant: latest[k] is a slot below SLOTS_MAX, or -1, where the window of key k's next event
    is looked for first; what the index has there decides.
    """

    def __init__(self, KeyIndex index not None, int64_t size_ns):
        """Find the slots in an index of pairs (key slot, window start)."""
        self.index, self.size_ns = index, size_ns

    def slots(self, const int64_t[::1] keys not None, const int64_t[::1] times_ns not None):
        """Return the slot of each event's window, adding new ones: int64[n]."""
        cdef Py_ssize_t n = keys.shape[0]
        slots = np.empty(n, np.int64)
        cdef int64_t[::1] out = slots
        check_slots(keys, SLOTS_MAX)
        check_length(n, times_ns.shape[0])
        if n:
            with nogil:
                self.find(&keys[0], &times_ns[0], n, &out[0])
        return slots

    cdef int find(
        self, const int64_t* keys, const int64_t* times_ns, Py_ssize_t n, int64_t* out
    ) except -1 nogil:
        """Write the slots of n windows, one at least."""
        cdef int64_t start, size = self.size_ns
        cdef Py_ssize_t i
        reserve(self, keys, n)
        start = floor_to(times_ns[0], size)
        for i in range(n):
            # Neighbours mostly share a window: one subtraction instead of a division.
            if not 0 <= times_ns[i] - start < size:
                start = floor_to(times_ns[i], size)
            out[i] = slot_at(self, keys[i], start)
        return 0


cdef inline int reserve(Tumbling windows, const int64_t* keys, Py_ssize_t n) except -1 nogil:
    cdef int64_t greatest = -1
    cdef Py_ssize_t i
    for i in range(n):
        greatest = max(greatest, keys[i])
    if <int64_t>windows.latest.size() <= greatest:
        windows.latest.resize(max(greatest + 1, 2 * <int64_t>windows.latest.size()), -1)
    return 0


cdef inline int64_t slot_at(Tumbling windows, int64_t key, int64_t start) except -1 nogil:
    cdef int64_t slot = windows.latest[key]
    if not windows.index.has_pair(slot, key, start):
        slot = windows.latest[key] = windows.index.find_or_add_pair(key, start)
    return slot


cdef class Zoned(Tumbling):
    """Windows of a zone's calendar: the same, with starts from a table.

    Invariants: _begins ascends, the first is the least and the last the greatest of 64 bits.
    """

    cdef const int64_t[::1] _begins

    def __init__(
        self, KeyIndex index not None, const int64_t[::1] begins_ns not None, int64_t elapsed_ns
    ):
        """Find the slots in an index of pairs (key slot, window start).

        begins_ns: of days and longer spans. elapsed_ns: of the windows that divide them, or 0.
        """
        assert begins_ns.shape[0] > 1
        self.index, self.size_ns, self._begins = index, elapsed_ns, begins_ns

    cdef int find(
        self, const int64_t* keys, const int64_t* times_ns, Py_ssize_t n, int64_t* out
    ) except -1 nogil:
        cdef int64_t begin = 0, start = 0, end = 0, size = self.size_ns
        cdef Py_ssize_t i, place
        reserve(self, keys, n)
        for i in range(n):
            if not start <= times_ns[i] < end:
                place = self.place_of(times_ns[i])
                begin, end = self._begins[place], self._begins[place + 1]
                start = begin
                if size:
                    start += (times_ns[i] - begin) // size * size
                    end = min(end - start, size) + start
            out[i] = slot_at(self, keys[i], start)
        return 0

    cdef Py_ssize_t place_of(self, int64_t time_ns) noexcept nogil:
        """Return the last place, but that of the end, which begins by then."""
        cdef Py_ssize_t low = 0, high = self._begins.shape[0] - 1, middle
        while high - low > 1:
            middle = (low + high) // 2
            if self._begins[middle] <= time_ns:
                low = middle
            else:
                high = middle
        return low


def ended(
    KeyIndex index not None, const int64_t[::1] slots not None, int64_t size_ns, int64_t until_ns
):
    """Return the slots of (key slot, window start) with windows that end by ``until_ns``."""
    cdef vector[int64_t] found
    cdef Py_ssize_t i
    check_slots(slots, index._top)
    for i in range(slots.shape[0]):
        if <int64_t>index._keys[slots[i]].high + size_ns <= until_ns:
            found.push_back(slots[i])
    if found.size() == 0:
        return NONE
    chosen = np.empty(found.size(), np.int64)
    cdef int64_t[::1] out = chosen
    memcpy(&out[0], found.data(), found.size() * sizeof(int64_t))
    return chosen


def sliding(const int64_t[::1] times_ns not None, int64_t size_ns, int64_t slide_ns):
    """Return (row, start) for every window of every event: int64[m], int64[m].

    An event at t is in the windows that start at a multiple of slide_ns in (t - size_ns, t].
    """
    cdef Py_ssize_t i, n = times_ns.shape[0], m = 0, most = (size_ns + slide_ns - 1) // slide_ns
    cdef int64_t start, t
    rows = np.empty(n * most, np.int64)
    starts = np.empty(n * most, np.int64)
    cdef int64_t[::1] row_out = rows
    cdef int64_t[::1] start_out = starts
    with nogil:
        for i in range(n):
            t = times_ns[i]
            start = floor_to(t, slide_ns)
            while start > t - size_ns:
                row_out[m] = i
                start_out[m] = start
                m += 1
                start -= slide_ns
    return rows[:m], starts[:m]


def reached_count(const int64_t[::1] slots not None, int64_t[::1] elements not None, int64_t count):
    """Split a batch at each slot's last multiple of ``count`` elements.

    elements: int64 by slot, the elements that each slot had before; updated to include the batch.
    Returns (before uint8[n]: 1 for the events up to their slot's last multiple, fired int64[]: the
    slots that reached a multiple in this batch, in order).
    """
    cdef Py_ssize_t i, n = slots.shape[0], found = 0
    cdef int64_t slot, multiple
    before = np.zeros(n, np.uint8)
    fired = np.empty(n, np.int64)
    ordinals = np.empty(n, np.int64)
    cdef uint8_t[::1] mask = before
    cdef int64_t[::1] fired_out = fired
    cdef int64_t[::1] ordinal = ordinals
    with nogil:
        for i in range(n):
            elements[slots[i]] += 1
            ordinal[i] = elements[slots[i]]
        for i in range(n):
            slot = slots[i]
            multiple = elements[slot] - elements[slot] % count
            mask[i] = ordinal[i] <= multiple
            if ordinal[i] == multiple:
                fired_out[found] = slot
                found += 1
    return before, fired[:found]
