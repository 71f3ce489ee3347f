# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A set of slots that remembers the order of first insertion: dirty slots, due slots."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

import numpy as np

from ripple.model.keys.checked cimport check_slots

NONE = np.empty(0, np.int64)


cdef object members_from(SlotSet members, int64_t first):
    cdef int64_t count = members.size - first
    if count == 0:
        return NONE
    listed = np.empty(count, np.int64)
    cdef int64_t[::1] out = listed
    memcpy(&out[0], members._slots + first, count * sizeof(int64_t))
    return listed


cdef class SlotSet:
    # Invariant: _slots[:size] are distinct, and _place[s] is i + 1 exactly where _slots[i] is s.

    def __dealloc__(self):
        free(self._place)
        free(self._slots)

    cdef int reserve(self, int64_t slots) except -1 nogil:
        """Make room for slots below ``slots``: a capacity, which grows by more than one at a time."""
        cdef int64_t room = max(<int64_t>64, slots)
        cdef void* place
        if slots <= self._room:
            return 0
        place = realloc(self._place, room * sizeof(uint32_t))
        if not place:
            with gil:
                raise MemoryError
        self._place = <uint32_t*>place
        memset(self._place + self._room, 0, (room - self._room) * sizeof(uint32_t))
        self._room = room
        return 0

    cdef int push_all(self, const int64_t* slots, Py_ssize_t n) except -1 nogil:
        """Insert slots, below the reserved room."""
        cdef int64_t size = self.size
        cdef uint32_t* place = self._place
        cdef int64_t* members
        cdef Py_ssize_t i
        self._make_room(min(size + n, self._room))
        members = self._slots
        for i in range(n):
            if not place[slots[i]]:
                members[size] = slots[i]
                size += 1
                place[slots[i]] = <uint32_t>size
        self.size = size
        return 0

    cdef int _make_room(self, int64_t members) except -1 nogil:
        """Make room for so many members, by an eighth more at least than there was."""
        cdef int64_t capacity = next_room(self._capacity, members)
        cdef void* grown
        if members <= self._capacity:
            return 0
        grown = realloc(self._slots, capacity * sizeof(int64_t))
        if not grown:
            with gil:
                raise MemoryError
        self._slots = <int64_t*>grown
        self._capacity = capacity
        return 0

    cdef void shed(self) noexcept nogil:
        """Empty the set and give its memory back."""
        free(self._place)
        free(self._slots)
        self._place = NULL
        self._slots = NULL
        self.size = self._room = self._capacity = 0

    def add(self, const int64_t[::1] slots not None, int64_t capacity):
        """Insert ``slots``, all below ``capacity``; return those that were no members, in order."""
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef int64_t before = self.size
        cdef const uint32_t* place
        check_slots(slots, capacity)
        with nogil:
            self.reserve(capacity)
            place = self._place
            for i in range(n):
                if not place[slots[i]]:
                    self.push(slots[i])
        return members_from(self, before)

    def members(self):
        """Return the members in order of first insertion: int64[n]."""
        return members_from(self, 0)

    def take(self):
        """Return the members in order of first insertion, int64[n], and empty the set."""
        taken = self.members()
        self.empty()
        return taken

    def has(self, const int64_t[::1] slots not None):
        """Return whether each of ``slots`` is a member: bool[n]."""
        cdef Py_ssize_t i
        found = np.zeros(slots.shape[0], np.bool_)
        cdef uint8_t[::1] out = found.view(np.uint8)
        for i in range(slots.shape[0]):
            out[i] = 0 <= slots[i] < self._room and self._place[slots[i]] != 0
        return found

    def __len__(self):
        return self.size

    @property
    def nbytes(self):
        """Bytes held."""
        return self._room * 4 + self._capacity * 8

    def check_invariants(self):
        """Raise AssertionError when members and flags disagree."""
        cdef int64_t i
        members = {self._slots[i] for i in range(self.size)}
        assert len(members) == self.size
        assert {i for i in range(self._room) if self._place[i]} == members
        assert all(self._place[self._slots[i]] == i + 1 for i in range(self.size))
