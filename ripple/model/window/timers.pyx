# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Timers by the watermark: a binary heap of times, with the slots that wait for each.

Windows that end together are one entry of the heap, so that the end of many costs little more than
a list of them.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libcpp.algorithm cimport pop_heap, push_heap
from libcpp.vector cimport vector

import numpy as np

from ripple.model.keys.checked cimport check_length, check_slots

NONE = np.empty(0, np.int64)

cdef extern from *:
    """
    #define UNARMED INT64_MAX
    #define RECENT 64 /* a power of two */
    struct ripple_timer {
        int64_t time_ns, first;
        /* The heap has its greatest in front, which is to be the earliest. */
        bool operator<(const ripple_timer& other) const { return time_ns > other.time_ns; }
    };
    struct ripple_waiting { int64_t slot, next; };
    """
    const int64_t UNARMED
    enum:
        RECENT
    cppclass ripple_timer:
        int64_t time_ns
        int64_t first
    cppclass ripple_waiting:
        int64_t slot
        int64_t next


cdef inline int recent_at(int64_t time_ns) noexcept nogil:
    return <int>((<uint64_t>time_ns * <uint64_t>0x9E3779B97F4A7C15) >> 58)


cdef class Timers:
    # Invariants: an armed slot is once in the list of a timer with the time _armed[slot]. Places in
    # lists that disagree with _armed are stale (the slot was disarmed or armed anew) and dropped
    # when met. Several timers may have one time; one in _recent is in the heap.

    cdef vector[ripple_timer] _heap
    cdef vector[ripple_waiting] _waiting    # of the lists: a slot, and the next place or -1
    cdef int64_t _free                      # the first place that is in no list, or -1
    cdef ripple_timer[RECENT] _recent       # by a hash of the time; first is -1 for none
    cdef int64_t* _armed
    cdef int64_t _room

    def __cinit__(self):
        cdef int i
        self._free = -1
        for i in range(RECENT):
            self._recent[i].first = -1

    def __dealloc__(self):
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
        """Disarm and return the slots with times up to ``limit_ns``, in order of time."""
        cdef vector[int64_t] due
        cdef ripple_timer timer
        cdef ripple_timer* recent
        cdef int64_t place, next
        cdef size_t i
        while self._heap.size() and self._heap.front().time_ns <= limit_ns:
            timer = self._heap.front()
            pop_heap(self._heap.begin(), self._heap.end())
            self._heap.pop_back()
            recent = &self._recent[recent_at(timer.time_ns)]
            if recent.time_ns == timer.time_ns:
                recent.first = -1
            place = timer.first
            while place >= 0:
                next = self._waiting[place].next
                if self._armed[self._waiting[place].slot] == timer.time_ns:
                    self._armed[self._waiting[place].slot] = UNARMED
                    due.push_back(self._waiting[place].slot)
                self._waiting[place].next = self._free
                self._free = place
                place = next
        if due.size() == 0:
            return NONE
        slots = np.empty(due.size(), np.int64)
        cdef int64_t[::1] out = slots
        for i in range(due.size()):
            out[i] = due[i]
        return slots

    @property
    def nbytes(self):
        """Bytes held."""
        return (
            <int64_t>(self._heap.capacity() + self._waiting.capacity()) * 16 + self._room * 8
        )

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
        cdef ripple_timer* recent = &self._recent[recent_at(time_ns)]
        cdef ripple_timer timer
        cdef ripple_waiting waiting
        cdef int64_t place = self._free
        self._armed[slot] = time_ns
        waiting.slot, waiting.next = slot, -1
        if recent.first >= 0 and recent.time_ns == time_ns:
            # After the first, so that the timer need not know.
            waiting.next = self._waiting[recent.first].next
        if place < 0:
            place = self._waiting.size()
            self._waiting.push_back(waiting)
        else:
            self._free = self._waiting[place].next
            self._waiting[place] = waiting
        if recent.first >= 0 and recent.time_ns == time_ns:
            self._waiting[recent.first].next = place
            return 0
        timer.time_ns, timer.first = time_ns, place
        self._heap.push_back(timer)
        push_heap(self._heap.begin(), self._heap.end())
        recent[0] = timer
        return 0
