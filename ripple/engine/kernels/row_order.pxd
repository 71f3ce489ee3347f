from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

cdef extern from "row_order.hpp" namespace "ripple" nogil:
    cppclass OrderKey:
        int64_t slot, time, place

    cppclass OrderRow:
        OrderKey key
        int64_t number

    cppclass Nearness:
        cbool before, after, is_strict
        int64_t tolerance

    cppclass CRowOrder "ripple::RowOrder":
        CRowOrder()
        int64_t count
        void add(vector[OrderRow]&) except +
        int64_t below(const OrderKey&) except +
        int64_t match(int64_t, int64_t, const Nearness&)
        void touched(const OrderKey&, const Nearness&, const CRowOrder&, vector[int64_t]&) except +
        void numbers_in(int64_t, int64_t, vector[int64_t]&) except +
        void covered(
            const int64_t*, const int64_t*, int64_t, vector[int64_t]&, vector[int64_t]&
        ) except +
        void take_below(int64_t, vector[int64_t]&) except +
        CRowOrder renumbered(const int64_t*) except +
        void dump(int64_t*, int64_t*, int64_t*)
        int64_t nbytes()


cdef class Near:
    cdef Nearness near


cdef class RowOrder:
    cdef CRowOrder held

    cdef below(self, const int64_t[::1] slots, const int64_t[::1] times, int64_t place)
    cdef int check_ranges(self, const int64_t[::1] begins, const int64_t[::1] ends) except -1
