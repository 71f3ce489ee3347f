from ripple.engine.graph.node cimport Graph, Node

cdef enum:  # ripple.engine.graph.cutoff.Rule
    PHYSICAL
    EQUAL
    ALWAYS
    NEVER

cdef object UNSET  # the value of a cell that was never computed

cpdef bint same_bits(object old, object new) except -1


cdef class Cell(Node):
    cdef object current
    cdef object previous  # the value before a change, until settled
    cdef object equals
    cdef int rule
    cdef object serializer

    cdef int configure(self, object cutoff, object name, object serializer) except -1
    cdef int enter(self, Graph graph, list parents) except -1
    cdef int start(self) except -1
    cdef bint publish(self, object new) except -1
    cdef int agree(self, object again) except -1


cdef class Variadic(Cell):
    cdef object function

    cdef int gained(self, Cell parent) except -1
    cdef int lost(self, Cell parent) except -1
    cdef object compute(self)
    cdef int refuse_change(self, str what) except -1
