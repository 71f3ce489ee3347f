cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t

from ripple.model.expression.program cimport Program
from ripple.notebook.keyed cimport KeyedColumn
from ripple.model.keys.slots cimport SlotSet


cdef struct Input:
    int column      # which of `columns`, or -1: a cell
    int place       # the field of the column, or which of `cells`
    int kind        # of ripple.engine.graph.column
    PyObject* source  # the column, borrowed: `columns` has it


@cython.final
cdef class MapColumn(KeyedColumn):
    cdef list columns
    cdef list cells
    cdef object function
    cdef Program program    # None: only the function is there
    cdef Input* inputs      # of the program
    cdef int input_count
    cdef bint masked        # some input may be null
    cdef bint is_scalar     # the program takes scalars, of every column one and of no cell
    cdef object blamed      # the expression that the program was compiled from
    cdef SlotSet due        # slots of rows to compute, or to drop
    cdef bint everything    # all of them

    cdef int start(self) except -1
    cdef bint alive(self, int64_t slot) noexcept
    cdef int make_everything_due(self) except -1
    cdef int run_program(self) except -1
    cdef bint compute_row(self, int64_t slot, int64_t* bits) noexcept
    cdef int run_chunk(
        self, const int64_t* slots, Py_ssize_t n, int64_t* cells, uint8_t* masks, int64_t* out,
        uint8_t* states
    ) except -1
    cdef int run_function(self) except -1
    cdef int raise_failure(self, int64_t slot, int state) except -1
    cdef object evaluate(self, slots)
    cdef int store(self, int64_t slot, int64_t bits, bint valid) except -1
