# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Whether all values of a column pass, which is how it nearly always is.

Values at nulls count, though they are meaningless: they can only make an answer False.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from ripple.schema.exported cimport Lent, values_of


def floats_inside(Lent column not None, double low, double high) -> bool:
    """Tell whether all of float64 are in [low, high]; NaN is not."""
    cdef const double* values = <const double*>values_of(column.array, 8)
    cdef Py_ssize_t i, n = column.array.length
    cdef bint inside = True
    with nogil:
        for i in range(n):
            inside &= (values[i] >= low) & (values[i] <= high)
    return inside


def integers_inside(Lent column not None, int64_t low, int64_t high) -> bool:
    """Tell whether all of int64 are in [low, high]."""
    cdef const int64_t* values = <const int64_t*>values_of(column.array, 8)
    cdef Py_ssize_t i, n = column.array.length
    cdef bint inside = True
    with nogil:
        for i in range(n):
            inside &= (values[i] >= low) & (values[i] <= high)
    return inside


def texts_inside(Lent column not None, int64_t shortest, int64_t longest) -> bool:
    """Tell whether all of these texts have so many characters."""
    cdef const int32_t* ends = <const int32_t*>values_of(column.array, 4)
    cdef const uint8_t* text = <const uint8_t*>column.array.buffers[2]
    cdef Py_ssize_t i, j, n = column.array.length
    # A text of one byte or more has one character or more, and need not be looked at.
    cdef bint counts = shortest > 1 or longest < 1 << 31
    cdef bint inside = True
    cdef int64_t length
    with nogil:
        for i in range(n):
            length = ends[i + 1] - ends[i]
            if counts:
                for j in range(ends[i], ends[i + 1]):
                    length -= (text[j] & 0xC0) == 0x80  # not the first byte of a character
            inside &= shortest <= length <= longest
    return inside
