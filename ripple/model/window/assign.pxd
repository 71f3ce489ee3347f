from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from ripple.model.keys.index cimport KeyIndex


cdef class Tumbling:
    cdef readonly KeyIndex index
    cdef int64_t size_ns
    cdef vector[int64_t] latest

    cdef int find(
        self, const int64_t* keys, const int64_t* times_ns, Py_ssize_t n, int64_t* out
    ) except -1 nogil
