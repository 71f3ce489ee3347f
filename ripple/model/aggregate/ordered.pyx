# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of ordered multisets: of numbers, and of events by (time, offset).

``ordered.hpp`` has the structure. The order of numbers is total: -0.0 is 0.0, and all NaNs are
one value above every other. Slots are ``int64`` arrays; one may occur more than once in a call.
"""

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from ripple.model.aggregate.errors import AggregateError
from ripple.model.keys.checked cimport check_length, check_pairs, check_slots


cdef extern from "ordered.hpp" namespace "ripple" nogil:
    cppclass Counted:
        uint64_t key
        int64_t count
    cppclass Event:
        int64_t time_ns
        int64_t offset
        uint64_t bits
        int64_t count
    cppclass Multiset[Entry]:
        int64_t size
        int64_t distinct
        void insert(const Entry& entry) except +
        cbool erase(const Entry& entry)
        const Entry& first()
        const Entry& last()
        const Entry& select(int64_t rank)
        void take(Multiset& other) except +
        void clear()
        void copy(Entry* out)
        int64_t largest(int64_t limit, Entry* out)
        int64_t nbytes()
        cbool check()
    uint64_t key_of(double value)
    uint64_t key_of_integer "ripple::key_of"(int64_t value)
    double double_of(uint64_t key)
    int64_t integer_of(uint64_t key)


ctypedef fused Entry:
    Counted
    Event


cdef int merge_all(
    vector[Multiset[Entry]]& sets, const int64_t[::1] into, const int64_t[::1] source
) except -1:
    cdef Py_ssize_t i
    check_pairs(into, source, sets.size())
    for i in range(into.shape[0]):
        if into[i] != source[i]:
            sets[into[i]].take(sets[source[i]])
    return 0


cdef int clear_all(vector[Multiset[Entry]]& sets, const int64_t[::1] slots) except -1:
    cdef Py_ssize_t i
    check_slots(slots, sets.size())
    for i in range(slots.shape[0]):
        sets[slots[i]].clear()
    return 0


cdef sizes_of(vector[Multiset[Entry]]& sets, const int64_t[::1] slots, bint distinct):
    cdef Py_ssize_t i
    out = np.empty(slots.shape[0], np.int64)
    cdef int64_t[::1] view = out
    check_slots(slots, sets.size())
    for i in range(slots.shape[0]):
        view[i] = sets[slots[i]].distinct if distinct else sets[slots[i]].size
    return out


cdef object offsets_of(vector[Multiset[Entry]]& sets, const int64_t[::1] slots):
    """Where each slot's entries start in a dump, and where the last one's end."""
    out = np.zeros(slots.shape[0] + 1, np.int64)
    np.cumsum(sizes_of(sets, slots, True), out=out[1:])
    return out


cdef int64_t bytes_of(vector[Multiset[Entry]]& sets):
    cdef size_t i
    cdef int64_t total = 0
    for i in range(sets.size()):
        total += sets[i].nbytes()
    return total


cdef bint check_all(vector[Multiset[Entry]]& sets):
    cdef size_t i
    for i in range(sets.size()):
        if not sets[i].check():
            return False
    return True


cdef bits_of(values):
    """A float64 or int64 array as the uint64 array of its bits."""
    if values.dtype.kind not in "fi" or values.dtype.itemsize != 8:
        raise TypeError(f"{values.dtype} where float64 or int64 should be")
    return np.ascontiguousarray(values).view(np.uint64)


cdef class OrderedValues:
    """Ordered multisets of float64, or with ``integer`` of int64."""

    cdef vector[Multiset[Counted]] sets
    cdef readonly bint integer

    def __init__(self, *, integer):
        self.integer = integer

    def resize(self, Py_ssize_t slots):
        self.sets.resize(slots)

    cdef keys_of(self, const int64_t[::1] slots, values):
        cdef Py_ssize_t i
        cdef const double[::1] reals
        cdef const int64_t[::1] integers
        check_length(slots.shape[0], len(values))
        check_slots(slots, self.sets.size())
        keys = np.empty(slots.shape[0], np.uint64)
        cdef uint64_t[::1] view = keys
        if self.integer:
            integers = values
            with nogil:
                for i in range(slots.shape[0]):
                    view[i] = key_of_integer(integers[i])
        else:
            reals = values
            with nogil:
                for i in range(slots.shape[0]):
                    view[i] = key_of(reals[i])
        return keys

    cdef values_of(self, const uint64_t[::1] keys):
        cdef Py_ssize_t i
        cdef double[::1] reals
        cdef int64_t[::1] integers
        if self.integer:
            out = np.empty(keys.shape[0], np.int64)
            integers = out
            for i in range(keys.shape[0]):
                integers[i] = integer_of(keys[i])
        else:
            out = np.empty(keys.shape[0], np.float64)
            reals = out
            for i in range(keys.shape[0]):
                reals[i] = double_of(keys[i])
        return out

    def add(self, const int64_t[::1] slots not None, values not None):
        cdef Py_ssize_t i
        cdef Counted entry
        cdef const uint64_t[::1] keys = self.keys_of(slots, values)
        entry.count = 1
        with nogil:
            for i in range(slots.shape[0]):
                entry.key = keys[i]
                self.sets[slots[i]].insert(entry)

    def remove(self, const int64_t[::1] slots not None, values not None):
        cdef Py_ssize_t i, absent = -1
        cdef Counted entry
        cdef const uint64_t[::1] keys = self.keys_of(slots, values)
        entry.count = 1
        with nogil:
            for i in range(slots.shape[0]):
                entry.key = keys[i]
                if not self.sets[slots[i]].erase(entry) and absent < 0:
                    absent = i
        if absent >= 0:
            raise_absent(values[absent].item())

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        merge_all(self.sets, into, source)

    def clear(self, const int64_t[::1] slots not None):
        clear_all(self.sets, slots)

    def size(self, const int64_t[::1] slots not None):
        return sizes_of(self.sets, slots, False)

    def distinct(self, const int64_t[::1] slots not None):
        return sizes_of(self.sets, slots, True)

    def select(self, const int64_t[::1] slots not None, const int64_t[::1] ranks not None):
        cdef Py_ssize_t i
        cdef int64_t rank, size
        check_length(slots.shape[0], ranks.shape[0])
        check_slots(slots, self.sets.size())
        keys = np.full(slots.shape[0], 1 << 63, np.uint64)
        cdef uint64_t[::1] view = keys
        with nogil:
            for i in range(slots.shape[0]):
                size = self.sets[slots[i]].size
                rank = ranks[i] if ranks[i] >= 0 else ranks[i] + size
                if rank == 0 and size:
                    view[i] = self.sets[slots[i]].first().key
                elif rank == size - 1 and size:
                    view[i] = self.sets[slots[i]].last().key
                elif 0 <= rank < size:
                    view[i] = self.sets[slots[i]].select(rank).key
        return self.values_of(keys)

    def upper(self, const int64_t[::1] slots not None, int64_t limit):
        """Return up to ``limit`` largest values of each slot, descending, and where they start."""
        cdef Py_ssize_t i
        cdef int64_t j, left, entries
        cdef vector[Counted] found
        cdef vector[uint64_t] values
        check_slots(slots, self.sets.size())
        starts = np.zeros(slots.shape[0] + 1, np.int64)
        cdef int64_t[::1] start = starts
        for i in range(slots.shape[0]):
            entries = min(limit, self.sets[slots[i]].distinct)
            if <int64_t>found.size() < entries:
                found.resize(entries)
            self.sets[slots[i]].largest(entries, found.data())
            left = limit
            for j in range(entries):
                values.insert(values.end(), <size_t>min(left, found[j].count), found[j].key)
                left -= min(left, found[j].count)
            start[i + 1] = values.size()
        keys = np.empty(values.size(), np.uint64)
        cdef uint64_t[::1] out = keys
        if values.size():
            memcpy(&out[0], values.data(), values.size() * sizeof(uint64_t))
        return starts, self.values_of(keys)

    def encode(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i, j
        cdef const int64_t[::1] offsets
        cdef vector[Counted] found
        check_slots(slots, self.sets.size())
        starts = offsets_of(self.sets, slots)
        offsets = starts
        found.resize(max(offsets[slots.shape[0]], 1))
        for i in range(slots.shape[0]):
            self.sets[slots[i]].copy(found.data() + offsets[i])
        keys = np.empty(offsets[slots.shape[0]], np.uint64)
        counts = np.empty(offsets[slots.shape[0]], np.int64)
        cdef uint64_t[::1] key = keys
        cdef int64_t[::1] count = counts
        for j in range(key.shape[0]):
            key[j] = found[j].key
            count[j] = found[j].count
        return starts, self.values_of(keys), counts

    def decode(
        self,
        const int64_t[::1] slots not None,
        const int64_t[::1] offsets not None,
        values not None,
        const int64_t[::1] counts not None,
    ):
        cdef Py_ssize_t i, j
        cdef Counted entry
        check_offsets(slots, offsets, counts)
        owners = np.repeat(slots, np.diff(offsets))
        cdef const int64_t[::1] owner = owners
        cdef const uint64_t[::1] keys = self.keys_of(owners, values)
        clear_all(self.sets, slots)
        for j in range(owner.shape[0]):
            entry.key = keys[j]
            entry.count = counts[j]
            self.sets[owner[j]].insert(entry)

    def check(self):
        return check_all(self.sets)

    @property
    def nbytes(self):
        return bytes_of(self.sets)


cdef class OrderedEvents:
    """Ordered multisets of float64 or with ``integer`` int64 values by (time_ns, offset)."""

    cdef vector[Multiset[Event]] sets
    cdef readonly bint integer

    def __init__(self, *, integer):
        self.integer = integer

    def resize(self, Py_ssize_t slots):
        self.sets.resize(slots)

    cdef const uint64_t[::1] bits(self, const int64_t[::1] slots, values, times, offsets) except *:
        for column in (values, times, offsets):
            check_length(slots.shape[0], len(column))
        check_slots(slots, self.sets.size())
        if (values.dtype.kind == "i") != self.integer:
            raise TypeError(f"{values.dtype} in a column of {'int64' if self.integer else 'float64'}")
        return bits_of(values)

    def add(
        self,
        const int64_t[::1] slots not None,
        values not None,
        const int64_t[::1] time_ns not None,
        const int64_t[::1] offset not None,
    ):
        cdef Py_ssize_t i
        cdef Event event
        cdef const uint64_t[::1] bits = self.bits(slots, values, time_ns, offset)
        event.count = 1
        with nogil:
            for i in range(slots.shape[0]):
                event.time_ns, event.offset, event.bits = time_ns[i], offset[i], bits[i]
                self.sets[slots[i]].insert(event)

    def remove(
        self,
        const int64_t[::1] slots not None,
        values not None,
        const int64_t[::1] time_ns not None,
        const int64_t[::1] offset not None,
    ):
        cdef Py_ssize_t i, absent = -1
        cdef Event event
        cdef const uint64_t[::1] bits = self.bits(slots, values, time_ns, offset)
        event.count = 1
        with nogil:
            for i in range(slots.shape[0]):
                event.time_ns, event.offset, event.bits = time_ns[i], offset[i], bits[i]
                if not self.sets[slots[i]].erase(event) and absent < 0:
                    absent = i
        if absent >= 0:
            raise_absent((time_ns[absent], offset[absent], values[absent].item()))

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        merge_all(self.sets, into, source)

    def clear(self, const int64_t[::1] slots not None):
        clear_all(self.sets, slots)

    def size(self, const int64_t[::1] slots not None):
        return sizes_of(self.sets, slots, False)

    def edge(self, const int64_t[::1] slots not None, bint last):
        cdef Py_ssize_t i
        check_slots(slots, self.sets.size())
        bits = np.zeros(slots.shape[0], np.uint64)
        valid = np.zeros(slots.shape[0], np.bool_)
        cdef uint64_t[::1] view = bits
        cdef unsigned char[::1] mask = valid.view(np.uint8)
        for i in range(slots.shape[0]):
            if self.sets[slots[i]].size:
                mask[i] = 1
                view[i] = (
                    self.sets[slots[i]].last() if last else self.sets[slots[i]].first()
                ).bits
        return bits.view(np.int64 if self.integer else np.float64), valid

    def encode(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i, j
        cdef const int64_t[::1] offsets
        cdef vector[Event] found
        check_slots(slots, self.sets.size())
        starts = offsets_of(self.sets, slots)
        offsets = starts
        found.resize(max(offsets[slots.shape[0]], 1))
        for i in range(slots.shape[0]):
            self.sets[slots[i]].copy(found.data() + offsets[i])
        columns = np.empty((3, offsets[slots.shape[0]]), np.int64)
        bits = np.empty(offsets[slots.shape[0]], np.uint64)
        cdef int64_t[:, ::1] column = columns
        cdef uint64_t[::1] view = bits
        for j in range(view.shape[0]):
            view[j] = found[j].bits
            column[0, j] = found[j].time_ns
            column[1, j] = found[j].offset
            column[2, j] = found[j].count
        values = bits.view(np.int64 if self.integer else np.float64)
        return starts, values, columns[0], columns[1], columns[2]

    def decode(
        self,
        const int64_t[::1] slots not None,
        const int64_t[::1] offsets not None,
        values not None,
        const int64_t[::1] time_ns not None,
        const int64_t[::1] offset not None,
        const int64_t[::1] counts not None,
    ):
        cdef Py_ssize_t j
        cdef Event event
        check_offsets(slots, offsets, counts)
        owners = np.repeat(slots, np.diff(offsets))
        cdef const int64_t[::1] owner = owners
        cdef const uint64_t[::1] bits = self.bits(owner, values, time_ns, offset)
        clear_all(self.sets, slots)
        for j in range(owner.shape[0]):
            event.time_ns, event.offset, event.bits = time_ns[j], offset[j], bits[j]
            event.count = counts[j]
            self.sets[owner[j]].insert(event)

    def check(self):
        return check_all(self.sets)

    @property
    def nbytes(self):
        return bytes_of(self.sets)


def raise_absent(value):
    raise AggregateError(
        f"cannot remove {value!r}, which was not added: "
        "removes must repeat the values of earlier adds to the same key"
    )


cdef int check_offsets(
    const int64_t[::1] slots, const int64_t[::1] offsets, const int64_t[::1] counts
) except -1:
    """Dumped lists must cover their entries, and every entry must occur."""
    cdef Py_ssize_t i
    check_length(slots.shape[0] + 1, offsets.shape[0])
    for i in range(slots.shape[0]):
        if offsets[i] > offsets[i + 1]:
            raise ValueError(f"offsets descend at {i}")
    if offsets[0] != 0 or offsets[slots.shape[0]] != counts.shape[0]:
        raise ValueError("offsets do not cover the entries")
    for i in range(counts.shape[0]):
        if counts[i] <= 0:
            raise ValueError(f"count {counts[i]} of entry {i} is not positive")
    return 0
