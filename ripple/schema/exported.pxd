# cython: language_level=3
"""A record batch by Arrow's C data interface: where its buffers are, without a copy."""

from libc.stdint cimport int64_t, uint8_t, uintptr_t

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


cdef inline int export(object batch, ArrowArray* into) except -1:
    """Get the buffers of a record batch, which are there until they are given back."""
    batch._export_to_c(<uintptr_t>into)
    return 0


cdef inline void give_back(ArrowArray* batch) noexcept:
    batch.release(batch)


cdef inline const uint8_t* valid_bits(const ArrowArray* column) noexcept nogil:
    """The bitmap of what is not null, or null where nothing is."""
    return <const uint8_t*>column.buffers[0] if column.null_count else NULL
