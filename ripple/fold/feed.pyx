# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Changed rows of one fold on their way into another: out of their groups, and in again."""

from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector

import numpy as np

from ripple.graph.column cimport BOOL, FLOAT, OBJECT, Column, Field
from ripple.keys.checked cimport check_length, check_slots

from ripple.expression.bound import Values


cdef class Feed:
    """Which group each row of a column is in, and the rows that leave one or come.

    Invariant: groups[s] is the group of the present row at slot s as it was taken in, or -1.
    """

    cdef Column column
    cdef list wanted            # positions of the column's fields that somebody reads
    cdef list key_names         # of its key, if somebody reads one of those
    cdef vector[int64_t] groups

    def __init__(self, Column column not None, names):
        """Feed the fields called ``names``, of the column's key or its own."""
        self.column = column
        self.wanted = [f for f, name in enumerate(column.names) if name in names]
        keys = [field.name for field in column.keys.fields]
        self.key_names = keys if any([name in names for name in keys]) else []

    def gone(self):
        """Return (groups int64[n], columns by name) of the changed rows that were in a group.

        As they were; they are in none any more.
        """
        cdef Column column = self.column
        cdef vector[int64_t] places
        cdef int64_t i, at, slot, n = 0
        cdef int64_t[::1] group
        cdef int64_t[::1] slot_out
        self.cover()
        places.reserve(column.changed_count)
        for i in range(column.changed_count):
            at = column.changed[i]
            if column.old_present[at] and self.groups[column.touched._slots[at]] >= 0:
                places.push_back(at)
        n = places.size()
        groups, slots = np.empty(n, np.int64), np.empty(n, np.int64)
        group, slot_out = groups, slots
        for i in range(n):
            slot = column.touched._slots[places[i]]
            slot_out[i] = slot
            group[i] = self.groups[slot]
            self.groups[slot] = -1
        return groups, self.columns(slots, places, True)

    def come(self):
        """Return (slots int64[n], columns by name) of the changed rows, as they are."""
        cdef Column column = self.column
        cdef vector[int64_t] places
        cdef int64_t i, slot
        cdef int64_t[::1] out
        places.reserve(column.changed_count)
        for i in range(column.changed_count):
            slot = column.touched._slots[column.changed[i]]
            if column.present[slot]:
                places.push_back(slot)
        slots = np.empty(places.size(), np.int64)
        out = slots
        for i in range(<int64_t>places.size()):
            out[i] = places[i]
        return slots, self.columns(slots, places, False)

    def changed(self):
        """Return the slots of the rows that changed: int64[n]."""
        cdef int64_t i
        slots = np.empty(self.column.changed_count, np.int64)
        cdef int64_t[::1] out = slots
        for i in range(self.column.changed_count):
            out[i] = self.column.touched._slots[self.column.changed[i]]
        return slots

    cdef dict columns(self, slots, const vector[int64_t]& places, bint old):
        """Return what somebody reads of rows at ``places``: slots, or where old rows are."""
        cdef Column column = self.column
        cdef dict named = {}
        cdef Field* field
        cdef int64_t i, n = places.size()
        cdef int64_t[::1] bits
        cdef uint8_t[::1] flags
        cdef const int64_t* from_bits
        cdef const uint8_t* from_flags
        cdef list objects
        cdef int f
        if self.key_names:
            named.update(zip(self.key_names, column.keys.arrays(slots), strict=True))
        for f in self.wanted:
            field = &column.fields[f]
            mask = None
            if field.nullable:
                from_flags = field.old_valid if old else field.valid
                mask = np.empty(n, np.bool_)
                flags = mask.view(np.uint8)
                for i in range(n):
                    flags[i] = from_flags[places[i]]
            if field.kind == OBJECT:
                objects = column.old_objects[f] if old else column.objects[f]
                named[column.names[f]] = Values([objects[places[i]] for i in range(n)], mask)
                continue
            from_bits = field.old_bits if old else field.bits
            values = np.empty(n, np.int64)
            bits = values
            for i in range(n):
                bits[i] = from_bits[places[i]]
            if field.kind == FLOAT:
                values = values.view(np.float64)
            elif field.kind == BOOL:
                values = values.astype(np.bool_)
            named[column.names[f]] = Values(values, mask)
        return named

    cdef int cover(self) except -1:
        if <int64_t>self.groups.size() < self.column.room:
            self.groups.resize(self.column.room, -1)
        return 0

    def put(self, const int64_t[::1] slots not None, const int64_t[::1] groups not None):
        """Take notice that the rows at ``slots`` are in these groups now."""
        cdef Py_ssize_t i
        self.cover()
        check_length(slots.shape[0], groups.shape[0])
        check_slots(slots, self.groups.size())
        for i in range(slots.shape[0]):
            self.groups[slots[i]] = groups[i]

    def retire(self, const int64_t[::1] slots not None):
        """Return the groups that the rows at ``slots`` are in, rising, each once: int64[n].

        The rows are final, and will be in none any more: their groups keep what they have of them.
        """
        cdef Py_ssize_t i
        left = set()
        for i in range(slots.shape[0]):
            if 0 <= slots[i] < <int64_t>self.groups.size() and self.groups[slots[i]] >= 0:
                left.add(self.groups[slots[i]])
                self.groups[slots[i]] = -1
        return np.array(sorted(left), np.int64)

    @property
    def nbytes(self):
        """Bytes held."""
        return <int64_t>(self.groups.capacity() * sizeof(int64_t))
