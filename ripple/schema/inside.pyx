# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Whether all values of an Arrow column pass, which is how it nearly always is.

Values at nulls count, though they are meaningless: they can only make an answer False.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t


def floats_inside(column not None, double low, double high) -> bool:
    """Tell whether all of a float64 array are in [low, high]; NaN is not."""
    cdef const double* values = <const double*><uintptr_t>column.buffers()[1].address
    cdef Py_ssize_t i, start = column.offset, end = start + len(column)
    cdef bint inside = True
    with nogil:
        for i in range(start, end):
            inside &= (values[i] >= low) & (values[i] <= high)
    return inside


def integers_inside(column not None, int64_t low, int64_t high) -> bool:
    """Tell whether all of an int64 array are in [low, high]."""
    cdef const int64_t* values = <const int64_t*><uintptr_t>column.buffers()[1].address
    cdef Py_ssize_t i, start = column.offset, end = start + len(column)
    cdef bint inside = True
    with nogil:
        for i in range(start, end):
            inside &= (values[i] >= low) & (values[i] <= high)
    return inside


def texts_inside(column not None, int64_t shortest, int64_t longest) -> bool:
    """Tell whether all of a string array have so many characters."""
    cdef list buffers = column.buffers()
    cdef const int32_t* ends = <const int32_t*><uintptr_t>buffers[1].address
    cdef const uint8_t* text = NULL
    cdef Py_ssize_t i, j, start = column.offset, end = start + len(column)
    # A text of one byte or more has one character or more, and need not be looked at.
    cdef bint counts = shortest > 1 or longest < 1 << 31
    cdef bint inside = True
    cdef int64_t length
    if buffers[2] is not None:
        text = <const uint8_t*><uintptr_t>buffers[2].address
    with nogil:
        for i in range(start, end):
            length = ends[i + 1] - ends[i]
            if counts:
                for j in range(ends[i], ends[i + 1]):
                    length -= (text[j] & 0xC0) == 0x80  # not the first byte of a character
            inside &= shortest <= length <= longest
    return inside
