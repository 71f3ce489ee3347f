from libc.stdint cimport int64_t, uint32_t


cdef inline int64_t next_room(int64_t room, int64_t wanted) noexcept nogil:
    """Return the room that follows ``room`` and has ``wanted``: an eighth more, in steps of 64."""
    return (max(wanted, room + room // 8) + 63) // 64 * 64


cdef class SlotSet:
    cdef uint32_t* _place       # by slot: its position in _slots + 1, or 0
    cdef int64_t* _slots
    cdef int64_t _room          # slots that _place covers
    cdef int64_t _capacity      # entries that _slots holds
    cdef readonly int64_t size

    cdef int reserve(self, int64_t slots) except -1 nogil

    cdef inline int push(self, int64_t slot) except -1 nogil:
        """Insert one slot, below the reserved room."""
        if self._place[slot]:
            return 0
        if self.size == self._capacity:
            self._make_room(self.size + 1)
        self._slots[self.size] = slot
        self.size += 1
        self._place[slot] = <uint32_t>self.size
        return 0

    cdef inline void empty(self) noexcept nogil:
        cdef int64_t i
        for i in range(self.size):
            self._place[self._slots[i]] = 0
        self.size = 0

    cdef int push_all(self, const int64_t* slots, Py_ssize_t n) except -1 nogil
    cdef int _make_room(self, int64_t members) except -1 nogil
    cdef void shed(self) noexcept nogil
