"""Whether all values of a column pass, which is how it nearly always is."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from ripple.model.schema.exported cimport ArrowArray, values_of

cdef extern from "inside.h" nogil:
    bint all_floats_inside(const double* values, int64_t n, double low, double high)
    bint all_integers_inside(const int64_t* values, int64_t n, int64_t low, int64_t high)
    bint all_texts_inside(
        const int32_t* ends, const uint8_t* text, int64_t n, int64_t shortest, int64_t longest
    )


cdef inline bint floats_are_inside(const ArrowArray* column, double low, double high) noexcept nogil:
    return all_floats_inside(<const double*>values_of(column, 8), column.length, low, high)


cdef inline bint integers_are_inside(
    const ArrowArray* column, int64_t low, int64_t high
) noexcept nogil:
    return all_integers_inside(<const int64_t*>values_of(column, 8), column.length, low, high)


cdef inline bint texts_are_inside(
    const ArrowArray* column, int64_t shortest, int64_t longest
) noexcept nogil:
    return all_texts_inside(
        <const int32_t*>values_of(column, 4), <const uint8_t*>column.buffers[2], column.length,
        shortest, longest,
    )
