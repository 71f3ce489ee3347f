# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Events on their way into a fold by key, or by key and window.

Each is found, added to its state and noted as touched, all in one call.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np

from ripple.engine.kernels.columns cimport Columns
from ripple.engine.kernels.states cimport States, listed
from ripple.model.keys.checked cimport check_length
from ripple.model.keys.index cimport KeyIndex
from ripple.model.keys.slots cimport SlotSet
from ripple.model.schema.exported cimport Lent
from ripple.model.window.assign cimport Tumbling

from ripple.model.keys.space import TextKeys

NONE = np.empty(0, np.int64)


cdef class Keyed:
    """Finds the slots of events' keys, compiled from the fields of the keys."""

    cdef object keys
    cdef list names
    cdef KeyIndex texts         # of keys that are one text; None for others
    cdef vector[int64_t] found  # their slots, of the batch at hand
    cdef vector[int64_t] windows    # the slots of their windows

    def __init__(self, keys, names):
        """Find keys in the space ``keys``; ``names`` are the columns that they are made of."""
        self.keys, self.names = keys, list(names)
        if isinstance(keys, TextKeys):
            self.texts = keys.index

    def slots(self, rows):
        """Return the slot of each row's key, adding new ones: int64[n]."""
        cdef Columns columns = rows.columns
        if self.texts is not None:
            key = columns.key(self.names[0])
            if isinstance(key, Lent):
                return self.texts.slots_of_texts(<Lent>key, None)
            return self.keys.slots([key])
        # A total over everything: any column tells how many rows there are.
        found = [columns.key(name) for name in self.names] or [np.empty(rows.count)]
        slots = self.keys.slots(found)
        self.keys.adopt(slots)
        return slots

    def add(self, rows, States states not None, SlotSet touched not None, ledger):
        """Add rows to the states of their keys, which become touched.

        ledger: hears of it before, if it marks.
        """
        cdef Py_ssize_t n = self.find(rows)
        cdef int64_t capacity = self.keys.capacity if self.texts is None else self.texts.capacity
        states.reserve(capacity)
        if ledger.marks:
            ledger.copy(listed(self.found.data(), n))
        states.add_found(self.found.data(), n, rows)
        if n:
            touched.reserve(capacity)
            touched.push_all(self.found.data(), n)

    def add_to_windows(
        self, rows, Tumbling windows not None, space, States states not None,
        SlotSet touched not None, ledger,
    ):
        """Do the same with the windows of their keys; return those that were not touched: int64[n].

        space: of the windows' slots.
        """
        assert rows.times_ns is not None, "windows are of events that have a time"
        cdef const int64_t[::1] times_ns = rows.times_ns
        cdef Py_ssize_t n = self.find(rows)
        cdef int64_t before = touched.size
        check_length(n, times_ns.shape[0])
        if n == 0:
            return NONE
        self.windows.resize(n)
        with nogil:
            windows.find(self.found.data(), &times_ns[0], n, self.windows.data())
        touched.reserve(windows.index.capacity)
        touched.push_all(self.windows.data(), n)
        new = NONE
        if touched.size > before:
            new = listed(touched._slots + before, touched.size - before)
            space.adopt(new)
        states.reserve(windows.index.capacity)
        if ledger.marks:
            ledger.copy(listed(self.windows.data(), n))
        states.add_found(self.windows.data(), n, rows)
        return new

    cdef Py_ssize_t find(self, rows) except -1:
        """Find the slots of the rows' keys; return how many."""
        cdef const int64_t[::1] slots
        cdef Lent key = None
        if self.texts is not None:
            key = (<Columns>rows.columns).lent(self.names[0])
        if key is not None:
            self.found.resize(key.length)
            with nogil:
                self.texts.find_texts(key.array, NULL, key.length, self.found.data())
            return key.length
        slots = self.slots(rows)
        self.found.resize(slots.shape[0])
        if slots.shape[0]:
            memcpy(self.found.data(), &slots[0], slots.shape[0] * sizeof(int64_t))
        return slots.shape[0]
