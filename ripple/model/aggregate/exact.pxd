from libc.stdint cimport int64_t

from ripple.model.aggregate.part cimport Part


cdef extern from "accumulator.h" nogil:
    ctypedef struct Accumulators:
        char* slots
        int64_t stride


cdef class ExactSums(Part):
    cdef Accumulators sums
    # One slot, for compiled callers; slot must be in range, direction is +1 or -1.
    cdef int add_one(self, int64_t slot, double value, int64_t direction) noexcept nogil
    cdef int replace_one(self, int64_t slot, double old, double new) noexcept nogil
    cdef double sum_one(self, int64_t slot) noexcept nogil
    cdef int check(self, const int64_t[::1] slots, values) except -1
