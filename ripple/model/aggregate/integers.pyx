# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of counts and of exact integer sums.

Slots are ``int64`` arrays; a slot may occur more than once in one call.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from ripple.model.aggregate.part cimport PLAIN, How, Operand, Part, Read, are_one
from ripple.model.keys.checked cimport check_length, check_pairs, check_slots

from ripple.model.aggregate.errors import IntegerRangeError


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


cdef class IntegerSums(Part):
    """Sums of int64 values, 128 bits a slot: adding never wraps."""

    # Invariant: every sum has fewer than 2^63 terms, so |sum| < 2^126.

    cdef int width(self) noexcept:
        return 16

    cdef void open(self, int64_t slot) noexcept nogil:
        memset(self.at(slot), 0, 16)

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
        cdef const int64_t* values = <const int64_t*>operands[0].values
        cdef Py_ssize_t i
        cdef int64_t row
        for i in range(n):
            row = rows[i] if rows else i
            if not chosen or chosen[row]:
                integer_add(self.at(slots[i]), values[row], direction)
        return 0

    def add(self, const int64_t[::1] slots not None, values not None):
        cdef const int64_t[::1] integers = values  # nothing else
        self.change(slots, PLAIN, 1, values)

    def remove(self, const int64_t[::1] slots not None, values not None):
        cdef const int64_t[::1] integers = values  # nothing else
        self.change(slots, PLAIN, -1, values)

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        cdef Py_ssize_t i
        check_pairs(into, source, self.room())
        for i in range(into.shape[0]):
            if into[i] != source[i]:
                integer_move(self.at(into[i]), self.at(source[i]))

    def result(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i, wide = -1
        out = np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] view = out
        check_slots(slots, self.room())
        with nogil:
            for i in range(slots.shape[0]):
                if integer_read(self.at(slots[i]), &view[i]) and wide < 0:
                    wide = i
        return out, wide

    def integer(self, Py_ssize_t slot):
        if not 0 <= slot < self.room():
            raise IndexError(f"slot {slot} is outside 0..{self.room() - 1}")
        return int.from_bytes((<char*>self.at(slot))[:16], "little", signed=True)

    def encode(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        out = np.empty(slots.shape[0] * 16, np.uint8)
        cdef unsigned char[::1] view = out
        check_slots(slots, self.room())
        for i in range(slots.shape[0]):
            memcpy(&view[16 * i], self.at(slots[i]), 16)
        return out

    def decode(self, const int64_t[::1] slots not None, const unsigned char[::1] data not None):
        cdef Py_ssize_t i
        check_length(slots.shape[0] * 16, data.shape[0])
        check_slots(slots, self.room())
        for i in range(slots.shape[0]):
            memcpy(self.at(slots[i]), &data[16 * i], 16)

    @property
    def nbytes(self):
        return self.room() * 16


cdef class Counts(Part):
    """How many values each slot holds."""

    cdef int width(self) noexcept:
        return 8

    cdef void open(self, int64_t slot) noexcept nogil:
        self.at(slot)[0] = 0

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
        cdef Py_ssize_t i
        if not chosen and are_one(slots, n):
            self.at(slots[0])[0] += n * direction
            return 0
        for i in range(n):
            if not chosen or chosen[rows[i] if rows else i]:
                self.at(slots[i])[0] += direction
        return 0

    def add(self, const int64_t[::1] slots not None):
        self.change(slots, PLAIN, 1)

    def remove(self, const int64_t[::1] slots not None):
        self.change(slots, PLAIN, -1)

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        cdef Py_ssize_t i
        check_pairs(into, source, self.room())
        for i in range(into.shape[0]):
            if into[i] != source[i]:
                self.at(into[i])[0] += self.at(source[i])[0]
                self.at(source[i])[0] = 0

    def encode(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        out = np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] view = out
        check_slots(slots, self.room())
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = self.at(slots[i])[0]
        return out

    def decode(self, const int64_t[::1] slots not None, const int64_t[::1] counts not None):
        cdef Py_ssize_t i
        check_length(slots.shape[0], counts.shape[0])
        check_slots(slots, self.room())
        for i in range(slots.shape[0]):
            self.at(slots[i])[0] = counts[i]

    def result(self, slots not None):
        return self.encode(slots)

    @property
    def nbytes(self):
        return self.room() * 8


cdef class CountRead(Read):
    """Counts as they are."""

    cdef Counts counts

    def __init__(self, Counts counts not None):
        self.counts = counts
        self.parts = (counts,)

    cdef int read(
        self, const int64_t* slots, Py_ssize_t n, int64_t* bits, uint8_t* valid
    ) except -1:
        cdef Py_ssize_t i
        for i in range(n):
            bits[i] = self.counts.at(slots[i])[0]
            valid[i] = 1
        return 0


cdef class IntegerRead(Read):
    """Integer sums; raises IntegerRangeError for one outside int64."""

    cdef IntegerSums sums

    def __init__(self, IntegerSums sums not None):
        self.sums = sums
        self.parts = (sums,)

    cdef int read(
        self, const int64_t* slots, Py_ssize_t n, int64_t* bits, uint8_t* valid
    ) except -1:
        cdef Py_ssize_t i
        for i in range(n):
            valid[i] = 1
            if integer_read(self.sums.at(slots[i]), &bits[i]):
                raise IntegerRangeError(self.sums.integer(slots[i]), i)
        return 0


cdef class IntegerQuotientRead(Read):
    """Integer sums divided by counts, rounded once; none where the count is 0."""

    cdef IntegerSums sums
    cdef Counts counts

    def __init__(self, IntegerSums sums not None, Counts counts not None):
        self.sums, self.counts = sums, counts
        self.parts = (sums, counts)
        self.is_float = self.is_nullable = True

    cdef int read(
        self, const int64_t* slots, Py_ssize_t n, int64_t* bits, uint8_t* valid
    ) except -1:
        cdef Py_ssize_t i
        cdef int64_t count
        for i in range(n):
            count = self.counts.at(slots[i])[0]
            valid[i] = count != 0
            bits[i] = 0
            if count:
                (<double*>bits)[i] = real_round(
                    real_divide_signed(real_of_integer(self.sums.at(slots[i])[0]), count)
                )
        return 0
