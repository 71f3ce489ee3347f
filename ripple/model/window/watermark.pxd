# cython: language_level=3
from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef struct Verdicts:
    int64_t late, very_late, future, refused


cdef Py_ssize_t on_time(
    const int64_t* times_ns, Py_ssize_t n, int64_t* watermark_ns, int64_t out_of_order_ns,
    uint64_t near_ns,
) noexcept nogil

cdef Verdicts weigh(
    const int64_t* times_ns, Py_ssize_t first, Py_ssize_t n, int64_t* watermark_ns,
    int64_t out_of_order_ns, uint64_t lateness_ns, uint64_t future_ns, uint64_t future_ns_max,
    uint8_t* out,
) noexcept nogil
