"""The accumulators of one fold, compiled from its aggregates: their inputs and their results."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector

from ripple.model.aggregate.part cimport How, Operand, Records
from ripple.engine.graph.column cimport Column
from ripple.model.schema.exported cimport ArrowArray


cdef struct Add:
    PyObject* part          # of States.parts, which keep it alive
    How how
    int[2] inputs           # positions in States.inputs, -1 for none
    int nulls               # which rows are left out: a position in States.nullable


cdef class States:
    """One accumulator per aggregate and slot."""

    cdef list aggregates, states
    cdef list inputs            # expressions, each once
    cdef list summed            # those that parts take in; None for the others
    cdef list columns           # the name of each of these that is a column, None for the others
    cdef vector[char] is_taken  # by input: whether a part takes its values in
    cdef list nullable          # of nullable inputs: positions in `inputs`, each set once
    cdef list parts             # of sums and counts, each once
    cdef vector[Add] adds       # the inputs of each of them
    cdef list others            # (aggregate, its state, positions of its inputs) of the rest
    cdef list one_rows          # by position there: the rows of a state with one a slot, or None, and
                                # the columns that it takes as they came, or None
    cdef Records records
    cdef list named             # of every result: (name, Read, or None and its place in `others`)
    cdef list shown             # per field of the rows: as above, or its name if it is none
    cdef object typed
    cdef list computed
    cdef readonly bint may_fail     # whether ``failed`` may have something to say
    cdef bint retractable
    cdef int64_t room
    # Results on their way into a column: kept, so that room for them is found once.
    cdef vector[int64_t] bits
    cdef vector[uint8_t] valid
    # Likewise columns on their way into such rows, and their kinds.
    cdef vector[const ArrowArray*] taken
    cdef vector[char] kinds

    cdef int input_at(self, bound) except -1
    cdef int compile(self, state, list inputs, dict known) except -1
    cdef int nulls_at(self, tuple nulls) except -1
    cdef int compile_one(self, part, How how, tuple taken, int nulls) except -1
    cdef bint may_be_null(self, int at) except -1
    cdef int add_found(self, const int64_t* slots, Py_ssize_t n, rows) except -1
    cdef list columns_of(self, aggregate)
    cdef bint took_columns(
        self, Py_ssize_t at, const int64_t* slots, Py_ssize_t n, rows
    ) except -1
    cdef int add_to_others(self, slots, rows, index) except -1
    cdef int add_to_other(self, Py_ssize_t k, slots, rows, index) except -1
    cdef int fold_checked(self, const int64_t[::1] slots, rows, index, int64_t direction) except -1
    cdef int fold_in(
        self, const int64_t* slots, Py_ssize_t n, rows, const int64_t* row, int64_t direction
    ) except -1
    cdef int fold_given(
        self,
        const int64_t* slots,
        Py_ssize_t n,
        const int64_t* row,
        const vector[Operand]& operands,
        const vector[const uint8_t*]& chosen,
        int64_t direction,
    ) except -1
    cdef void fetch(self, const int64_t* slots, Py_ssize_t n) noexcept nogil
    cdef dict read(self, slots)
    cpdef reserve(self, int64_t slots)
    cdef int show_found(
        self, Column column, const int64_t* slots, Py_ssize_t n, dict beside
    ) except -1


cdef object listed(const int64_t* slots, Py_ssize_t n)     # as an array
