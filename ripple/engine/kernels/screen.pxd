from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from ripple.model.schema.exported cimport ArrowArray


cdef struct Look:
    int place               # of the column
    bint required
    char kind               # of the check: as KINDS of ripple.model.schema.exported, 0 for none
    int64_t low, high
    double low_float, high_float


cdef class Screen:
    cdef vector[Look] looks
    cdef int places

    cdef bint all_pass(self, const ArrowArray* whole) noexcept nogil
