# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Events on their way into a fold by key: found, added and noted as touched, in one call."""

from libc.stdint cimport int64_t
from libcpp.vector cimport vector

import numpy as np

from ripple.fold.columns cimport Columns
from ripple.fold.states cimport States, listed
from ripple.keys.index cimport KeyIndex
from ripple.keys.slots cimport SlotSet
from ripple.schema.exported cimport Lent

from ripple.keys.space import TextKeys


cdef class Keyed:
    """Finds the slots of events' keys, compiled from what keys are made of."""

    cdef object keys
    cdef list names
    cdef KeyIndex texts         # of keys that are one text; None for others
    cdef vector[int64_t] found  # their slots, of the batch at hand

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
        cdef const int64_t[::1] slots
        cdef const int64_t* at = NULL
        cdef int64_t capacity
        cdef Py_ssize_t n
        cdef Lent key = None
        if self.texts is not None:
            key = (<Columns>rows.columns).lent(self.names[0])
        if key is None:
            slots = self.slots(rows)
            n = slots.shape[0]
            if n:
                at = &slots[0]
        else:
            n = key.length
            self.found.resize(n)
            at = self.found.data()
            with nogil:
                self.texts.find_texts(key.array, NULL, n, self.found.data())
        capacity = self.keys.capacity if self.texts is None else self.texts.capacity
        states.reserve(capacity)
        if ledger.marks:
            ledger.copy(listed(at, n))
        states.add_found(at, n, rows)
        if n:
            touched.reserve(capacity)
            touched.push_all(at, n)
