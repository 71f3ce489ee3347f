from libc.stdint cimport int64_t

from ripple.model.aggregate.part cimport Part


cdef extern from "rounding.h" nogil:
    ctypedef long i128  # really 128 bits: all arithmetic on it stays in C


cdef class IntegerSums(Part):
    cdef inline i128* at(self, int64_t slot) noexcept nogil:
        return <i128*>(self.base + slot * self.stride)


cdef class Counts(Part):
    cdef inline int64_t* at(self, int64_t slot) noexcept nogil:
        return <int64_t*>(self.base + slot * self.stride)
