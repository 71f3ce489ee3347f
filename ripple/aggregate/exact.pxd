from libc.stdint cimport int64_t


cdef extern from "accumulator.h" nogil:
    ctypedef struct Accumulators:
        int64_t count


cdef class ExactSums:
    cdef Accumulators sums
    # One slot, for compiled callers; slot must be in range, direction is +1 or -1.
    cdef int add_one(self, int64_t slot, double value, int64_t direction) noexcept nogil
    cdef double sum_one(self, int64_t slot) noexcept nogil
    cdef int check(self, const int64_t[::1] slots, values) except -1
    cdef int accumulate(self, const int64_t[::1] slots, values, int64_t direction) except -1
    cdef int accumulate_squares(self, const int64_t[::1] slots, values, int64_t direction) except -1
    cdef int accumulate_products(
        self, const int64_t[::1] slots, left, right, int64_t direction
    ) except -1
