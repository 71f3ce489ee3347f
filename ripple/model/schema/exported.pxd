# cython: language_level=3
from libc.stdint cimport int64_t, uint8_t

cdef extern from *:
    """
    #include <stdint.h>
    #ifndef ARROW_C_DATA_INTERFACE
    #define ARROW_C_DATA_INTERFACE
    struct ArrowArray { /* https://arrow.apache.org/docs/format/CDataInterface.html */
        int64_t length, null_count, offset, n_buffers, n_children;
        const void** buffers;
        struct ArrowArray** children;
        struct ArrowArray* dictionary;
        void (*release)(struct ArrowArray*);
        void* private_data;
    };
    #endif
    """
    ctypedef struct ArrowArray "struct ArrowArray":
        int64_t length, null_count, offset, n_buffers, n_children
        const void** buffers
        ArrowArray** children
        void (*release)(ArrowArray*)
        void* private_data


cdef class Whole:
    cdef ArrowArray whole

    cdef Lent lend(self, int64_t at, char kind)


cdef class Exported(Whole):
    pass


cdef class Lendable(Whole):
    cdef object batch, schema


cdef class Part(Whole):
    cdef Lendable of
    cdef int64_t at
    cdef object batch           # as Arrow has it, once asked for


cdef class Made(Whole):
    cdef readonly object schema
    cdef object batch           # as Arrow has it, once asked for


cdef class Lent:
    cdef Whole owner
    cdef const ArrowArray* array
    cdef char[2] kind           # of a number: its code as Python's module struct has it, and an end
    cdef Py_ssize_t length, width


cdef inline const uint8_t* valid_bits(const ArrowArray* column) noexcept nogil:
    """The validity bitmap, or null where no row is null."""
    return <const uint8_t*>column.buffers[0] if column.null_count else NULL


cdef inline const void* values_of(const ArrowArray* column, int width) noexcept nogil:
    """The first value of a column of numbers of ``width`` bytes."""
    return <const uint8_t*>column.buffers[1] + width * column.offset
