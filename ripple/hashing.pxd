from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef uint32_t murmur2(const uint8_t* data, Py_ssize_t length) noexcept nogil
cdef uint64_t xxh64(const uint8_t* data, Py_ssize_t length, uint64_t seed) noexcept nogil
