# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of counts and of exact integer sums.

Slots are ``int64`` arrays; a slot may occur more than once in one call.
"""

import numpy as np

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from ripple.keys.checked cimport check_length, check_slots


cdef extern from "integers.h" nogil:
    void integer_add(i128* sum, int64_t value, int64_t direction)
    void integer_move(i128* into, i128* source)
    int integer_read(const i128* sum, int64_t* out)


cdef extern from "rounding.h" nogil:
    ctypedef struct Real:
        pass
    Real real_of_integer(i128 value)
    Real real_divide_signed(Real x, int64_t divisor)
    double real_round(Real x)


cdef class IntegerSums:
    """Sums of int64 values, 128 bits a slot: adding never wraps."""

    # Invariant: every sum has fewer than 2^63 terms, so |sum| < 2^126.

    def __dealloc__(self):
        free(self.sums)

    def resize(self, Py_ssize_t slots):
        cdef i128* sums = <i128*>realloc(self.sums, max(slots, 1) * 16)
        if sums == NULL:
            raise MemoryError
        self.sums = sums
        if slots > self.slots:
            memset(sums + self.slots, 0, (slots - self.slots) * 16)
        self.slots = slots

    def add(self, const int64_t[::1] slots not None, const int64_t[::1] values not None):
        self.accumulate(slots, values, 1)

    def remove(self, const int64_t[::1] slots not None, const int64_t[::1] values not None):
        self.accumulate(slots, values, -1)

    cdef int accumulate(
        self, const int64_t[::1] slots, const int64_t[::1] values, int64_t direction
    ) except -1:
        cdef Py_ssize_t i
        check_length(slots.shape[0], values.shape[0])
        check_slots(slots, self.slots)
        with nogil:
            for i in range(slots.shape[0]):
                integer_add(self.sums + slots[i], values[i], direction)
        return 0

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        cdef Py_ssize_t i
        check_length(into.shape[0], source.shape[0])
        check_slots(into, self.slots)
        check_slots(source, self.slots)
        for i in range(into.shape[0]):
            if into[i] != source[i]:
                integer_move(self.sums + into[i], self.sums + source[i])

    def clear(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        check_slots(slots, self.slots)
        for i in range(slots.shape[0]):
            memset(self.sums + slots[i], 0, 16)

    def result(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i, wide = -1
        out = np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] view = out
        check_slots(slots, self.slots)
        with nogil:
            for i in range(slots.shape[0]):
                if integer_read(self.sums + slots[i], &view[i]) and wide < 0:
                    wide = i
        return out, wide

    def quotient(self, const int64_t[::1] slots not None, const int64_t[::1] divisors not None):
        cdef Py_ssize_t i
        out = np.empty(slots.shape[0], np.float64)
        cdef double[::1] view = out
        check_length(slots.shape[0], divisors.shape[0])
        check_slots(slots, self.slots)
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = real_round(
                    real_divide_signed(real_of_integer(self.sums[slots[i]]), divisors[i])
                )
        return out

    def integer(self, Py_ssize_t slot):
        if not 0 <= slot < self.slots:
            raise IndexError(f"slot {slot} is outside 0..{self.slots - 1}")
        return int.from_bytes((<char*>(self.sums + slot))[:16], "little", signed=True)

    def encode(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        out = np.empty(slots.shape[0] * 16, np.uint8)
        cdef unsigned char[::1] view = out
        check_slots(slots, self.slots)
        for i in range(slots.shape[0]):
            memcpy(&view[16 * i], self.sums + slots[i], 16)
        return out

    def decode(self, const int64_t[::1] slots not None, const unsigned char[::1] data not None):
        cdef Py_ssize_t i
        check_length(slots.shape[0] * 16, data.shape[0])
        check_slots(slots, self.slots)
        for i in range(slots.shape[0]):
            memcpy(self.sums + slots[i], &data[16 * i], 16)

    @property
    def nbytes(self):
        return self.slots * 16


cdef class Counts:
    """How many values each slot holds."""

    def __dealloc__(self):
        free(self.counts)

    def resize(self, Py_ssize_t slots):
        cdef int64_t* counts = <int64_t*>realloc(self.counts, max(slots, 1) * 8)
        if counts == NULL:
            raise MemoryError
        self.counts = counts
        if slots > self.slots:
            memset(counts + self.slots, 0, (slots - self.slots) * 8)
        self.slots = slots

    def add(self, const int64_t[::1] slots not None):
        self.accumulate(slots, 1)

    def remove(self, const int64_t[::1] slots not None):
        self.accumulate(slots, -1)

    cdef int accumulate(self, const int64_t[::1] slots, int64_t direction) except -1:
        cdef Py_ssize_t i
        check_slots(slots, self.slots)
        with nogil:
            for i in range(slots.shape[0]):
                self.counts[slots[i]] += direction
        return 0

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        cdef Py_ssize_t i
        check_length(into.shape[0], source.shape[0])
        check_slots(into, self.slots)
        check_slots(source, self.slots)
        for i in range(into.shape[0]):
            if into[i] != source[i]:
                self.counts[into[i]] += self.counts[source[i]]
                self.counts[source[i]] = 0

    def clear(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        check_slots(slots, self.slots)
        for i in range(slots.shape[0]):
            self.counts[slots[i]] = 0

    def encode(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        out = np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] view = out
        check_slots(slots, self.slots)
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = self.counts[slots[i]]
        return out

    def decode(self, const int64_t[::1] slots not None, const int64_t[::1] counts not None):
        cdef Py_ssize_t i
        check_length(slots.shape[0], counts.shape[0])
        check_slots(slots, self.slots)
        for i in range(slots.shape[0]):
            self.counts[slots[i]] = counts[i]

    def result(self, slots not None):
        return self.encode(slots)

    @property
    def nbytes(self):
        return self.slots * 8
