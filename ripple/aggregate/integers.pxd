from libc.stdint cimport int64_t


cdef extern from "rounding.h" nogil:
    ctypedef long i128  # really 128 bits: all arithmetic on it stays in C


cdef class IntegerSums:
    cdef i128* sums
    cdef readonly Py_ssize_t slots
    cdef int accumulate(
        self, const int64_t[::1] slots, const int64_t[::1] values, int64_t direction
    ) except -1


cdef class Counts:
    cdef int64_t* counts
    cdef readonly Py_ssize_t slots
    cdef int accumulate(self, const int64_t[::1] slots, int64_t direction) except -1
