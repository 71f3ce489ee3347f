# cython: language_level=3, boundscheck=False, wraparound=False
"""Slots come from outside a compiled loop, so their range is checked before it starts."""

from libc.stdint cimport int64_t, uint64_t


cdef inline Py_ssize_t first_outside(const int64_t[::1] slots, Py_ssize_t count) noexcept nogil:
    """The position of the first slot that is not below ``count``, or -1."""
    cdef Py_ssize_t i
    cdef uint64_t bad = 0
    for i in range(slots.shape[0]):
        bad |= <uint64_t>(<uint64_t>slots[i] >= <uint64_t>count)
    if not bad:
        return -1
    for i in range(slots.shape[0]):
        if <uint64_t>slots[i] >= <uint64_t>count:
            return i
    return -1


cdef inline int check_range(const int64_t* slots, Py_ssize_t n, int64_t count) except -1:
    """The same of slots in memory: raises IndexError for one that is not below ``count``."""
    cdef Py_ssize_t i
    cdef uint64_t bad = 0
    for i in range(n):
        bad |= <uint64_t>(<uint64_t>slots[i] >= <uint64_t>count)
    if bad:
        raise IndexError(f"one of {n} slots is outside 0..{count - 1}")
    return 0


cdef inline int check_slots(const int64_t[::1] slots, Py_ssize_t count) except -1:
    cdef Py_ssize_t position = first_outside(slots, count)
    if position >= 0:
        raise IndexError(f"slot {slots[position]} at position {position} is outside 0..{count - 1}")
    return 0


cdef inline int check_length(Py_ssize_t slots, Py_ssize_t values) except -1:
    if slots != values:
        raise ValueError(f"{slots} slots, but {values} values: give one value for each slot")
    return 0


cdef inline int check_pairs(
    const int64_t[::1] into, const int64_t[::1] source, Py_ssize_t count
) except -1:
    """Check slots to be merged, and their partners."""
    check_length(into.shape[0], source.shape[0])
    check_slots(into, count)
    return check_slots(source, count)
