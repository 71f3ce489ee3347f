# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Events on their way into a fold by key: found, added and noted as touched, in one call."""

from libc.stdint cimport int64_t

import numpy as np

from ripple.fold.columns cimport Columns
from ripple.fold.states cimport States
from ripple.keys.index cimport KeyIndex
from ripple.keys.slots cimport SlotSet
from ripple.schema.exported cimport Lent

from ripple.keys.space import TextKeys


cdef class Keyed:
    """Finds the slots of events' keys, compiled from what keys are made of."""

    cdef object keys
    cdef list names
    cdef KeyIndex texts         # of keys that are one text; None for others

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
        cdef const int64_t[::1] at
        cdef int64_t capacity
        slots = self.slots(rows)
        capacity = self.keys.capacity if self.texts is None else self.texts.capacity
        states.reserve(capacity)
        if ledger.marks:
            ledger.copy(slots)
        states.add(slots, rows, None)  # which has checked them
        at = slots
        if at.shape[0]:
            with nogil:
                touched.reserve(capacity)
                touched.push_all(&at[0], at.shape[0])
