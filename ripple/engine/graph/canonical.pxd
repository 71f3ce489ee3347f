# distutils: language = c++
from libc.stdint cimport int64_t, uint8_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from ripple.core.kept cimport Kept
from ripple.model.schema.exported cimport ArrowArray

cdef extern from "canonical.hpp" namespace "ripple" nogil:
    cppclass Shape:
        char kind
        bint wide
        vector[Shape] parts
        vector[size_t] order
        vector[string] heads
    cppclass Growing:
        Growing(const Shape* of) except +
        void reserve(size_t values, size_t bytes) except +
        void append_null() except +
        const char* append(const char* at, const char* end) except +
        void append_text(const char* at, const char* end) except +
        void release_to(ArrowArray* out) except +


cdef class Form:
    cdef readonly object type
    cdef Shape shape

    cdef Written write(self, values)
    cdef Read read(
        self,
        Kept** held,
        const int64_t* places,
        Py_ssize_t n,
        const uint8_t* present,
        const uint8_t* valid,
    )


cdef class Written:
    cdef vector[Kept*] held     # NULL for null, and where it was taken out
    cdef vector[int64_t] prints


cdef class Read:
    cdef Form form
    cdef Growing* column

    cdef int hand_out(self, ArrowArray* out) except -1
