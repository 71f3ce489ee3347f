from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #include <stdint.h>
    #define P1 0x9E3779B185EBCA87ULL
    #define P2 0xC2B2AE3D27D4EB4FULL
    #define P3 0x165667B19E3779F9ULL
    #define P4 0x85EBCA77C2B2AE63ULL
    #define P5 0x27D4EB2F165667C5ULL
    static inline uint64_t ripple_mix(uint64_t h, uint64_t value) {
        h = (h * 0x9E3779B97F4A7C15ULL) ^ value;
        h ^= h >> 33;
        h *= 0xFF51AFD7ED558CCDULL;
        h ^= h >> 33;
        h *= 0xC4CEB9FE1A85EC53ULL;
        return h ^ (h >> 33);
    }
    """
    const uint64_t P1, P2, P3, P4, P5
    # Folds a 64-bit value into a hash: a multiply-xor step and MurmurHash3's 64-bit finaliser.
    uint64_t mix "ripple_mix"(uint64_t h, uint64_t value) noexcept nogil

cdef uint32_t murmur2(const uint8_t* data, Py_ssize_t length) noexcept nogil
cdef uint64_t xxh64(const uint8_t* data, Py_ssize_t length, uint64_t seed) noexcept nogil
cdef void mix_at(
    uint64_t* hashes, const uint64_t* values, const int64_t* places, Py_ssize_t n
) noexcept nogil


cdef inline uint64_t rotl(uint64_t x, int r) noexcept nogil:
    return (x << r) | (x >> (64 - r))


cdef inline uint64_t xxh_round(uint64_t acc, uint64_t lane) noexcept nogil:
    return rotl(acc + lane * P2, 31) * P1


cdef inline uint64_t xxh_end(uint64_t h, const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Take the last bytes in, fewer than 32, and finish."""
    cdef uint64_t lane
    cdef uint32_t half
    while end - p >= 8:
        memcpy(&lane, p, 8)
        h = rotl(h ^ xxh_round(0, lane), 27) * P1 + P4
        p += 8
    if end - p >= 4:
        memcpy(&half, p, 4)
        h = rotl(h ^ (<uint64_t>half * P1), 23) * P2 + P3
        p += 4
    while p < end:
        h = rotl(h ^ (p[0] * P5), 11) * P1
        p += 1
    h = (h ^ (h >> 33)) * P2
    h = (h ^ (h >> 29)) * P3
    return h ^ (h >> 32)
