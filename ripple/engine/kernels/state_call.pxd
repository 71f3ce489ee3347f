cdef class GivenRows:
    cdef list columns
    cdef Py_ssize_t count
    cdef tuple row(self, Py_ssize_t i)


cdef class Filled:
    cdef object one
    cdef bint has_dict
    cdef tuple names
    cdef int fill(self, tuple values) except -1
    cdef int fill_at(self, GivenRows rows, Py_ssize_t i) except -1


cdef class StateCall:
    cdef object function, instance, fit_state, fit_row, result_of
    cdef readonly object result
    cdef Filled state, row
    cdef tuple state_names, row_names
    cdef bytes state_kinds, row_kinds
    cdef tuple after(self, tuple before, tuple row)
    cdef tuple after_at(self, tuple before, GivenRows rows, Py_ssize_t i)
    cdef tuple called(self, object row)
    cdef tuple stored(self)
    cdef tuple made(self, object result)
