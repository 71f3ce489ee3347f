# cython: language_level=3, cdivision=True
"""Lines in which nothing is unusual, column by column; and the careful way for one field of them."""

from libc.stdint cimport uint8_t
from libcpp cimport bool
from libcpp.vector cimport vector

from ripple.connectors.files.csv.fields cimport (
    FLOAT, GOOD, INTEGER, Column, bool_field, float_field, integer_field,
)

cdef extern from "plain_columns.h" namespace "ripple" nogil:
    enum:
        SLACK_BYTES
    ctypedef bool (*ReadField)(
        const uint8_t* p, const uint8_t* stop, Column& column, Py_ssize_t row
    ) noexcept
    enum Way:
        WIDE, VECTORS, WORDS, CAREFUL
    bool has_wide()
    cppclass PlainLines:
        void begin(
            const uint8_t* data, const uint8_t* end, const vector[Column]& columns, Way way
        )
        bool comments
        Py_ssize_t read(
            const uint8_t** p, vector[Column]& columns, Py_ssize_t length_bytes_max, Py_ssize_t row,
            ReadField read_field, bool* goes_on,
        )


cdef inline bool read_field(
    const uint8_t* p, const uint8_t* stop, Column& column, Py_ssize_t row
) noexcept nogil:
    """Read a number or a truth value that is not plain, or nothing at all."""
    if column.kind == INTEGER:
        return integer_field(&p, stop, column, row) == GOOD
    if column.kind == FLOAT:
        return float_field(&p, stop, column, row) == GOOD
    return bool_field(&p, stop, column, row) == GOOD
