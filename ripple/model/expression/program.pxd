from libc.stdint cimport int64_t, uint8_t

ctypedef union Cell:
    double f
    int64_t i                      # integers, and bools as 0 or 1

cdef enum:
    INPUTS_MAX = 64
    REGISTERS_MAX = 320

ctypedef struct Instruction:
    int opcode
    int out
    int a
    int b
    int c

ctypedef struct Constant:
    Cell cell
    uint8_t state

cdef class Program:
    cdef readonly tuple input_kinds
    cdef readonly object result_kind
    cdef int inputs, constants, registers, length, result
    cdef int* kinds                # one a program input
    cdef int kind                  # of the result
    cdef readonly bint is_scalar   # one row without nulls takes no loops
    cdef Constant* constant
    cdef Instruction* code

    # The entry for compiled callers. values[k] points at double, int64_t or uint8_t (bool) by
    # input_kinds[k]; valid[k] is NULL or one byte a row, 0 for null. With slots, row j reads
    # values[k][slots[j]]; without, values[k][j]. Writes n results of the result's kind to out.
    # Returns 0 if all rows are good; 1 if not, with n states (GOOD, NULL or a failure) written to
    # states and zeros to out where they are not GOOD; -1 when out of memory.
    cdef int evaluate(self, const void* const* values, const uint8_t* const* valid,
                      const int64_t* slots, Py_ssize_t n, void* out,
                      uint8_t* states) noexcept nogil

    cdef int evaluate_rows(self, const void* const* values, const uint8_t* const* valid,
                           const int64_t* slots, Py_ssize_t n, void* out,
                           uint8_t* states) noexcept nogil

    # One row without nulls, where ``is_scalar``.
    cdef void load_row(self, Cell* row, const void* const* values, int64_t slot) noexcept nogil
    cdef bint evaluate_row(self, Cell* row) noexcept nogil

    cdef object _run(self, object inputs, object valid, object slots, Py_ssize_t n)
