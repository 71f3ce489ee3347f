# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What is due when the watermark moves: a binary heap of (time, slot), one live entry a slot."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc

import numpy as np

from ripple.keys.checked cimport check_length, check_slots

cdef extern from *:
    """
    #define UNARMED INT64_MAX
    typedef struct { int64_t time_ns; int64_t slot; } ripple_timer;
    """
    const int64_t UNARMED
    ctypedef struct ripple_timer:
        int64_t time_ns
        int64_t slot


cdef inline bint before(ripple_timer a, ripple_timer b) noexcept nogil:
    return a.time_ns < b.time_ns or (a.time_ns == b.time_ns and a.slot < b.slot)


cdef class Timers:
    # Invariant: an armed slot has exactly one entry whose time is _armed[slot]. Entries that
    # disagree with _armed are stale (the slot was disarmed or armed anew) and dropped when met.

    cdef ripple_timer* _heap
    cdef int64_t* _armed
    cdef int64_t _size, _capacity, _room

    def __dealloc__(self):
        free(self._heap)
        free(self._armed)

    def arm_new(
        self,
        const int64_t[::1] slots not None,
        const int64_t[::1] times_ns not None,
        int64_t capacity,
    ):
        """Arm the slots that are not armed yet; return them in order of first appearance."""
        cdef Py_ssize_t i, found = 0
        new = np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] out = new
        check_slots(slots, capacity)
        check_length(slots.shape[0], times_ns.shape[0])
        with nogil:
            self._reserve(capacity)
            for i in range(slots.shape[0]):
                if self._armed[slots[i]] == UNARMED:
                    self._push(times_ns[i], slots[i])
                    out[found] = slots[i]
                    found += 1
        return new[:found].copy() if found < slots.shape[0] else new

    def arm(self, const int64_t[::1] slots not None, const int64_t[::1] times_ns not None):
        """Arm slots that have been armed before, replacing what they waited for."""
        cdef Py_ssize_t i
        check_slots(slots, self._room)
        check_length(slots.shape[0], times_ns.shape[0])
        for i in range(slots.shape[0]):
            self._push(times_ns[i], slots[i])

    def bring_forward(
        self, const int64_t[::1] slots not None, const int64_t[::1] times_ns not None
    ):
        """Arm those of the slots that wait for a later time, or for nothing."""
        cdef Py_ssize_t i
        check_slots(slots, self._room)
        check_length(slots.shape[0], times_ns.shape[0])
        for i in range(slots.shape[0]):
            if times_ns[i] < self._armed[slots[i]]:
                self._push(times_ns[i], slots[i])

    def disarm(self, const int64_t[::1] slots not None):
        """Let the slots wait for nothing."""
        cdef Py_ssize_t i
        check_slots(slots, self._room)
        for i in range(slots.shape[0]):
            self._armed[slots[i]] = UNARMED

    def pop_due(self, int64_t limit_ns):
        """Disarm and return the slots whose time is at most ``limit_ns``, in order of time."""
        cdef ripple_timer timer
        cdef list due = []
        while self._size and self._heap[0].time_ns <= limit_ns:
            timer = self._heap[0]
            self._drop_first()
            if self._armed[timer.slot] == timer.time_ns:
                self._armed[timer.slot] = UNARMED
                due.append(timer.slot)
        return np.array(due, np.int64)

    @property
    def nbytes(self):
        """Bytes held."""
        return self._capacity * <int64_t>sizeof(ripple_timer) + self._room * 8

    cdef int _reserve(self, int64_t slots) except -1 nogil:
        cdef int64_t i
        cdef void* grown
        if slots <= self._room:
            return 0
        grown = realloc(self._armed, slots * sizeof(int64_t))
        if not grown:
            with gil:
                raise MemoryError
        self._armed = <int64_t*>grown
        for i in range(self._room, slots):
            self._armed[i] = UNARMED
        self._room = slots
        return 0

    cdef int _push(self, int64_t time_ns, int64_t slot) except -1 nogil:
        cdef int64_t at = self._size, parent, capacity
        cdef void* grown
        cdef ripple_timer timer
        if self._size == self._capacity:
            capacity = self._capacity * 2 if self._capacity else 64
            grown = realloc(self._heap, capacity * sizeof(ripple_timer))
            if not grown:
                with gil:
                    raise MemoryError
            self._heap = <ripple_timer*>grown
            self._capacity = capacity
        self._armed[slot] = time_ns
        timer.time_ns = time_ns
        timer.slot = slot
        self._size += 1
        while at:
            parent = (at - 1) >> 1
            if not before(timer, self._heap[parent]):
                break
            self._heap[at] = self._heap[parent]
            at = parent
        self._heap[at] = timer
        return 0

    cdef void _drop_first(self) noexcept nogil:
        cdef int64_t at = 0, child
        cdef ripple_timer last
        self._size -= 1
        last = self._heap[self._size]
        while True:
            child = 2 * at + 1
            if child >= self._size:
                break
            if child + 1 < self._size and before(self._heap[child + 1], self._heap[child]):
                child += 1
            if not before(self._heap[child], last):
                break
            self._heap[at] = self._heap[child]
            at = child
        self._heap[at] = last
