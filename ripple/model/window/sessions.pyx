# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Session windows: which session an event falls in, and which sessions it joins into one.

A lone event at t is the session [t, t + gap). The sessions of a key are the unions of its events'
intervals that overlap, so they depend on which events were accepted and not on their order.
"""

from libc.stdint cimport int64_t
from libcpp.vector cimport vector

import numpy as np

from ripple.model.keys.checked cimport check_length, check_slots
from ripple.model.keys.index cimport KeyIndex

cdef extern from *:
    """
    typedef struct { int64_t start_ns; int64_t end_ns; int64_t slot; } ripple_session;
    """
    ctypedef struct ripple_session:
        int64_t start_ns
        int64_t end_ns
        int64_t slot


cdef Py_ssize_t SLOTS_MAX = 4294967294  # of the key index


cdef class SessionBook:
    # Invariants: the sessions of one key are sorted, disjoint and at least one gap long; a
    # session's slot is that of the pair (key slot, start) in the index it was assigned with.

    cdef vector[vector[ripple_session]] _by_key
    cdef vector[int64_t] _ends_ns       # by session slot
    cdef vector[int64_t] _moved_to      # by session slot, -1; only during one assign
    cdef readonly int64_t gap_ns
    cdef readonly int64_t live

    def __cinit__(self, int64_t gap_ns):
        self.gap_ns = gap_ns

    def assign(
        self,
        const int64_t[::1] keys not None,
        const int64_t[::1] times_ns not None,
        KeyIndex index not None,
    ):
        """Put each event into its session, joining sessions that it connects.

        keys: key slot of each event; index: pairs (key slot, session start) to session slots.
        Returns (slots int64[n], absorbed int64[m], into int64[m]): a session with a new start
        gets a new slot; ``absorbed[j]`` is the old one, and its state belongs to ``into[j]``.
        """
        cdef Py_ssize_t i, n = keys.shape[0]
        cdef vector[int64_t] absorbed
        slots = np.empty(n, np.int64)
        cdef int64_t[::1] out = slots
        check_slots(keys, SLOTS_MAX)
        check_length(n, times_ns.shape[0])
        for i in range(n):
            out[i] = self._assign_one(keys[i], times_ns[i], index, absorbed)
        sources = np.empty(absorbed.size(), np.int64)
        targets = np.empty(absorbed.size(), np.int64)
        cdef int64_t[::1] source_out = sources
        cdef int64_t[::1] target_out = targets
        if absorbed.size():
            for i in range(n):
                out[i] = self._resolve(out[i])
            for i in range(<Py_ssize_t>absorbed.size()):
                source_out[i] = absorbed[i]
                target_out[i] = self._resolve(absorbed[i])
            for i in range(<Py_ssize_t>absorbed.size()):
                self._moved_to[absorbed[i]] = -1
        return slots, sources, targets

    cdef int64_t _assign_one(
        self, int64_t key, int64_t time_ns, KeyIndex index, vector[int64_t]& absorbed
    ) except -1:
        cdef int64_t start = time_ns, end = time_ns + self.gap_ns, slot = -1
        cdef size_t first, last, j
        cdef ripple_session session
        if <size_t>key >= self._by_key.size():
            self._by_key.resize(index.capacity if index.capacity > key else key + 1)
        cdef vector[ripple_session]* sessions = &self._by_key[key]
        # Events mostly arrive in order: look from the newest session backwards.
        last = sessions.size()
        while last and sessions[0][last - 1].start_ns >= end:
            last -= 1
        first = last
        while first and sessions[0][first - 1].end_ns > start:
            first -= 1
        for j in range(first, last):
            session = sessions[0][j]
            if session.start_ns <= start:
                start = session.start_ns
                slot = session.slot
            if session.end_ns > end:
                end = session.end_ns
        if slot < 0:
            slot = index.find_or_add_pair(key, start)
        if <size_t>slot >= self._ends_ns.size():
            self._ends_ns.resize(index.capacity, 0)
            self._moved_to.resize(index.capacity, -1)
        for j in range(first, last):
            if sessions[0][j].slot != slot:
                absorbed.push_back(sessions[0][j].slot)
                self._moved_to[sessions[0][j].slot] = slot
        self._ends_ns[slot] = end
        session.start_ns = start
        session.end_ns = end
        session.slot = slot
        if first == last:
            sessions.insert(sessions.begin() + first, session)
        else:
            sessions[0][first] = session
            sessions.erase(sessions.begin() + first + 1, sessions.begin() + last)
        self.live += 1 - <int64_t>(last - first)
        return slot

    cdef int64_t _resolve(self, int64_t slot) noexcept:
        while self._moved_to[slot] >= 0:
            slot = self._moved_to[slot]
        return slot

    def ends_ns(self, const int64_t[::1] slots not None):
        """Return the current end of each session: int64[n]."""
        cdef Py_ssize_t i
        ends = np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] out = ends
        check_slots(slots, self._ends_ns.size())
        for i in range(slots.shape[0]):
            out[i] = self._ends_ns[slots[i]]
        return ends

    def restore(
        self,
        const int64_t[::1] keys not None,
        const int64_t[::1] starts_ns not None,
        const int64_t[::1] ends_ns not None,
        const int64_t[::1] slots not None,
        KeyIndex index not None,
    ):
        """Take over sessions from a snapshot; those of one key in ascending order of start."""
        cdef Py_ssize_t i
        cdef ripple_session session
        check_slots(keys, SLOTS_MAX)
        check_slots(slots, SLOTS_MAX)
        for i in range(keys.shape[0]):
            if <size_t>keys[i] >= self._by_key.size():
                self._by_key.resize(index.capacity if index.capacity > keys[i] else keys[i] + 1)
            if <size_t>slots[i] >= self._ends_ns.size():
                self._ends_ns.resize(index.capacity, 0)
                self._moved_to.resize(index.capacity, -1)
            session.start_ns = starts_ns[i]
            session.end_ns = ends_ns[i]
            session.slot = slots[i]
            self._ends_ns[slots[i]] = ends_ns[i]
            self._by_key[keys[i]].push_back(session)
            self.live += 1

    def forget(self, const int64_t[::1] keys not None, const int64_t[::1] slots not None):
        """Drop sessions that no accepted event can reach any more."""
        cdef Py_ssize_t i
        cdef size_t j
        cdef vector[ripple_session]* sessions
        check_slots(keys, self._by_key.size())
        check_length(keys.shape[0], slots.shape[0])
        for i in range(slots.shape[0]):
            sessions = &self._by_key[keys[i]]
            for j in range(sessions.size()):
                if sessions[0][j].slot == slots[i]:
                    sessions.erase(sessions.begin() + j)
                    self.live -= 1
                    break
            if sessions.size() == 0:
                sessions.shrink_to_fit()

    def check_invariants(self):
        """Raise AssertionError when sessions overlap or are out of order."""
        cdef size_t k, j
        cdef int64_t count = 0
        for k in range(self._by_key.size()):
            for j in range(self._by_key[k].size()):
                count += 1
                assert self._by_key[k][j].end_ns - self._by_key[k][j].start_ns >= self.gap_ns
                if j:
                    assert self._by_key[k][j - 1].end_ns <= self._by_key[k][j].start_ns
        assert count == self.live
