# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Accumulators side by side: a slot has one record, of which each part has a field.

So an event touches one or two cache lines, however many parts there are. Slots are ``int64``
arrays; a slot may occur more than once in one call.
"""

from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

import numpy as np

from ripple.model.keys.checked cimport check_length, check_slots

cdef enum:
    LINE_BYTES = 64

cdef int64_t CACHED_BYTES = 1 << 15


cdef class Records:
    """The memory of parts: one record for each slot."""

    def __init__(self, parts):
        """Put ``parts``, none of which is in use, side by side."""
        cdef Part part
        cdef int64_t at = 0
        self.parts = sorted(parts, key=needs)
        for part in self.parts:
            if part.records is not None:
                raise ValueError("a part is in records already")
            part.base = <char*>at  # for now: where its field begins
            at += part.width()
            part.records = self
        widest = max([16 if (<Part>part).width() % 16 == 0 else 8 for part in self.parts], default=8)
        self.stride = (at + widest - 1) // widest * widest

    def __dealloc__(self):
        free(self.memory)

    cdef int resize(self, int64_t slots) except -1:
        cdef Part part
        cdef char* was = <char*>self.memory
        cdef char* block
        cdef char* opened
        cdef int64_t slot, count, kept = min(slots, self.slots)
        for part in self.parts:
            for slot in range(slots, self.slots):
                part.shut(slot)
        # The system moves much memory without copying it.
        block = <char*>realloc(self.memory, slots * self.stride + LINE_BYTES)
        if not block:
            raise MemoryError
        self.memory = block
        was = block + (self.block - was if was else 0)
        block += -<uintptr_t>block % LINE_BYTES
        if kept and block != was:
            memmove(block, was, kept * self.stride)
        for part in self.parts:
            part.base = block + (part.base - self.block)
            part.stride = self.stride
            part.moved()
        self.block = block
        if kept < slots and self.stride:
            for part in self.parts:
                part.open(kept)
            # All are alike: copies of the first ones, which are in a cache.
            opened = self.block + kept * self.stride
            slot = kept + 1
            while slot < slots:
                count = min(slot - kept, slots - slot, max(1, CACHED_BYTES // self.stride))
                memcpy(self.block + slot * self.stride, opened, count * self.stride)
                slot += count
        self.slots = slots
        return 0

    @property
    def nbytes(self):
        """Bytes of the records, without the parts' memory outside them."""
        return self.slots * self.stride


def needs(Part part not None):
    """Return the sort key of parts that aligns each as its type needs."""
    return part.width() % 16 != 0


cdef class Part:
    """A column of accumulators, in records of its own until others share them."""

    cdef int width(self) noexcept:
        return 0

    cdef void moved(self) noexcept:
        pass

    cdef void open(self, int64_t slot) noexcept nogil:
        pass

    cdef void shut(self, int64_t slot) noexcept nogil:
        pass

    cdef int fold_in(
        self,
        const int64_t* slots,
        Py_ssize_t n,
        const int64_t* rows,
        const uint8_t* chosen,
        const Operand* operands,
        How how,
        int64_t direction,
    ) noexcept nogil:
        return 0

    cdef Py_ssize_t room(self) except -1:
        return 0 if self.records is None else self.records.slots

    @property
    def slots(self):
        """How many there are."""
        return self.room()

    def resize(self, Py_ssize_t slots):
        """Set the number of slots, of all parts in its records; new ones are empty."""
        if self.records is None:
            Records([self])
        if slots != self.records.slots:
            self.records.resize(slots)

    cdef int change(
        self, const int64_t[::1] slots, How how, int64_t direction, a=None, b=None
    ) except -1:
        """Add one value, or product, a slot, or remove it."""
        cdef Operand[2] operands
        cdef const double[::1] reals
        cdef const int64_t[::1] integers
        cdef int failed, k = 0
        cdef Py_ssize_t n = slots.shape[0]
        check_slots(slots, self.room())
        if n == 0:
            return 0
        for values in (a, b):
            if values is None:
                break
            check_length(n, len(values))
            operands[k].is_integer = values.dtype.kind == "i"
            if operands[k].is_integer:
                integers = values
                operands[k].values = &integers[0]
            else:
                reals = values
                operands[k].values = &reals[0]
            k += 1
        with nogil:
            failed = self.fold_in(&slots[0], n, NULL, NULL, operands, how, direction)
        return check_memory(failed)

    def clear(self, const int64_t[::1] slots not None):
        """Empty the slots."""
        cdef Py_ssize_t i
        check_slots(slots, self.room())
        with nogil:
            for i in range(slots.shape[0]):
                self.shut(slots[i])
                self.open(slots[i])


cdef int check_memory(int failed) except -1:
    """Raise MemoryError if ``failed``, what ``fold_in`` has returned."""
    if failed:
        raise MemoryError("no memory left for exact sums; their values are lost")
    return 0


cdef class Read:
    """One result of each slot, read from parts."""

    cdef int read(
        self, const int64_t* slots, Py_ssize_t n, int64_t* bits, uint8_t* valid
    ) except -1:
        raise NotImplementedError(type(self).__name__)

    def column(self, const int64_t[::1] slots not None):
        """Return the results of ``slots``: float64 or int64[n], and which exist, or None."""
        cdef Py_ssize_t n = slots.shape[0]
        for part in self.parts:
            check_slots(slots, (<Part>part).room())
        values = np.empty(n, np.int64)
        valid = np.ones(n, np.bool_)
        cdef int64_t[::1] bits = values
        cdef uint8_t[::1] mask = valid.view(np.uint8)
        if n:
            self.read(&slots[0], n, &bits[0], &mask[0])
        if self.is_float:
            values = values.view(np.float64)
        return values, valid if self.is_nullable else None


# An extension type cannot be abstract: `Read` and `KeptRows` refuse what their kinds define. `KeptRows`
# is here, so that a fold loads the module of a kind only where it has such rows.
cdef class KeptRows:
    cdef int add_columns(
        self, const int64_t* slots, Py_ssize_t n, const ArrowArray** columns, const char* kinds,
        const int64_t* time_ns, const int64_t* offset,
    ) except -1:
        raise NotImplementedError(type(self).__name__)

    cdef int show(
        self, const int64_t* slots, Py_ssize_t n, Py_ssize_t field, int64_t* bits, uint8_t* valid
    ) except -1:
        raise NotImplementedError(type(self).__name__)
