"""Accumulators side by side: a slot has one record, of which each part has a field."""

from libc.stdint cimport int64_t, uint8_t

from ripple.model.schema.exported cimport ArrowArray


cdef enum How:
    PLAIN, SQUARE, PRODUCT


cdef struct Operand:            # one value a row
    const void* values          # doubles, or int64
    bint is_integer


cdef class Records:
    cdef void* memory           # in which the block is
    cdef char* block            # aligned to 64 bytes, like every cache line
    cdef readonly int64_t stride
    cdef readonly int64_t slots
    cdef list parts

    cdef int resize(self, int64_t slots) except -1


cdef class Part:
    cdef Records records
    cdef char* base             # of slot 0; valid below records.slots
    cdef int64_t stride

    # What a kind of part defines.
    cdef int width(self) noexcept               # bytes of a slot: of 16 if they need such alignment
    cdef void moved(self) noexcept              # base and stride are new
    # Make an empty slot of any bytes; of all slots the same.
    cdef void open(self, int64_t slot) noexcept nogil
    cdef void shut(self, int64_t slot) noexcept nogil       # free memory outside the record
    # For n entries: row i is rows[i], or i where rows is NULL, and left out if chosen is 0 there.
    # Slots must be in range. Not 0 without memory; the values are lost then.
    cdef int fold_in(
        self,
        const int64_t* slots,
        Py_ssize_t n,
        const int64_t* rows,
        const uint8_t* chosen,
        const Operand* operands,
        How how,
        int64_t direction,
    ) noexcept nogil

    cdef Py_ssize_t room(self) except -1
    cdef int change(
        self, const int64_t[::1] slots, How how, int64_t direction, a=*, b=*
    ) except -1


cdef int check_memory(int failed) except -1


cdef enum:
    MANY = 64   # values for one slot that are added apart


cdef inline bint are_one(const int64_t* slots, Py_ssize_t n) noexcept nogil:
    """Whether these are the same slot many times."""
    cdef Py_ssize_t i
    if n < MANY:
        return False
    for i in range(1, n):
        if slots[i] != slots[0]:
            return False
    return True


cdef class Read:
    cdef tuple parts                # those that are read
    cdef readonly bint is_float     # else int64
    cdef readonly bint is_nullable

    # Write the results of slots, which must be in range: 64 bits each, and whether there is one.
    # Raises AggregateError when one of them cannot be read.
    cdef int read(
        self, const int64_t* slots, Py_ssize_t n, int64_t* bits, uint8_t* valid
    ) except -1


cdef class KeptRows:
    """The base of rows by slot that take columns as they came, and are shown as they are kept."""

    # Add a row to each of n slots. kinds: per column "q", "d", "s" or "?" (bool), as Arrow has it.
    # time_ns: NULL if it decides nothing.
    cdef int add_columns(
        self, const int64_t* slots, Py_ssize_t n, const ArrowArray** columns, const char* kinds,
        const int64_t* time_ns, const int64_t* offset,
    ) except -1
    # Write a field of each slot: the bits of numbers, the addresses of texts, which are there until
    # the state changes; and whether there is a value. Slots must be in range.
    cdef int show(
        self, const int64_t* slots, Py_ssize_t n, Py_ssize_t field, int64_t* bits, uint8_t* valid
    ) except -1
