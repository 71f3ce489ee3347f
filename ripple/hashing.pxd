from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef uint32_t murmur2(const uint8_t* data, Py_ssize_t length) noexcept nogil
cdef uint64_t xxh64(const uint8_t* data, Py_ssize_t length, uint64_t seed) noexcept nogil


cdef inline uint64_t mix(uint64_t h, uint64_t value) noexcept nogil:
    """Fold a 64-bit value into a hash: a multiply-xor step and MurmurHash3's 64-bit finaliser."""
    h = (h * 0x9E3779B97F4A7C15ULL) ^ value
    h ^= h >> 33
    h *= 0xFF51AFD7ED558CCDULL
    h ^= h >> 33
    h *= 0xC4CEB9FE1A85EC53ULL
    return h ^ (h >> 33)
