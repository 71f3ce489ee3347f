# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The hashes that results rest on: Kafka's murmur2 for partitions, XXH64 for row digests.

Python's ``hash()`` is salted per process and is never used. Both functions here are fixed by
their published definitions, and the tests pin their published vectors.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #define MIX_ALL                                                                               \\
        for (Py_ssize_t i = 0; i < n; i++) hashes[i] = ripple_mix(hashes[i], values[places[i]]);
    typedef const uint64_t* __restrict Values;
    typedef const int64_t* __restrict Places;
    static void mix_alone(uint64_t* __restrict hashes, Values values, Places places, Py_ssize_t n) {
        MIX_ALL
    }
    #if defined(__x86_64__) && defined(__GNUC__)
    /* The same, eight at a time: this processor multiplies so many 64-bit numbers at once. */
    __attribute__((target("avx512f,avx512dq,avx512vl")))
    static void mix_widely(uint64_t* __restrict hashes, Values values, Places places, Py_ssize_t n) {
        MIX_ALL
    }
    static inline int is_wide(void) {
        return __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    }
    #else
    #define mix_widely mix_alone
    static inline int is_wide(void) { return 0; }
    #endif
    """
    bint is_wide() noexcept nogil
    void mix_alone(
        uint64_t* hashes, const uint64_t* values, const int64_t* places, Py_ssize_t n
    ) noexcept nogil
    void mix_widely(
        uint64_t* hashes, const uint64_t* values, const int64_t* places, Py_ssize_t n
    ) noexcept nogil

HAS_WIDE = bool(is_wide())    # whether mixes are made eight at a time


cdef uint32_t murmur2(const uint8_t* data, Py_ssize_t length) noexcept nogil:
    """Austin Appleby's MurmurHash2 with the seed that Kafka's DefaultPartitioner uses."""
    cdef uint32_t m = 0x5BD1E995U
    cdef uint32_t h = 0x9747B28CU ^ <uint32_t>length
    cdef uint32_t k
    cdef Py_ssize_t i = 0
    while length - i >= 4:
        memcpy(&k, data + i, 4)
        k *= m
        k ^= k >> 24
        k *= m
        h *= m
        h ^= k
        i += 4
    if length - i == 3:
        h ^= <uint32_t>data[i + 2] << 16
    if length - i >= 2:
        h ^= <uint32_t>data[i + 1] << 8
    if length - i >= 1:
        h ^= data[i]
        h *= m
    h ^= h >> 13
    h *= m
    h ^= h >> 15
    return h


cdef uint64_t xxh64(const uint8_t* data, Py_ssize_t length, uint64_t seed) noexcept nogil:
    """Yann Collet's XXH64."""
    cdef const uint8_t* p = data
    cdef const uint8_t* end = data + length
    cdef uint64_t h, lane, v1, v2, v3, v4
    if length >= 32:
        v1 = seed + P1 + P2
        v2 = seed + P2
        v3 = seed
        v4 = seed - P1
        while end - p >= 32:
            memcpy(&lane, p, 8)
            v1 = xxh_round(v1, lane)
            memcpy(&lane, p + 8, 8)
            v2 = xxh_round(v2, lane)
            memcpy(&lane, p + 16, 8)
            v3 = xxh_round(v3, lane)
            memcpy(&lane, p + 24, 8)
            v4 = xxh_round(v4, lane)
            p += 32
        h = rotl(v1, 1) + rotl(v2, 7) + rotl(v3, 12) + rotl(v4, 18)
        h = (h ^ xxh_round(0, v1)) * P1 + P4
        h = (h ^ xxh_round(0, v2)) * P1 + P4
        h = (h ^ xxh_round(0, v3)) * P1 + P4
        h = (h ^ xxh_round(0, v4)) * P1 + P4
    else:
        h = seed + P5
    return xxh_end(h + <uint64_t>length, p, end)


cdef void mix_at(
    uint64_t* hashes, const uint64_t* values, const int64_t* places, Py_ssize_t n
) noexcept nogil:
    """Fold ``values[places[i]]`` into ``hashes[i]``, which lie apart from both."""
    if is_wide():
        mix_widely(hashes, values, places, n)
    else:
        mix_alone(hashes, values, places, n)


def murmur2_of(const uint8_t[::1] data not None) -> int:
    """Return Kafka's murmur2 of ``data`` as an unsigned 32-bit integer."""
    return murmur2(&data[0] if data.shape[0] else NULL, data.shape[0])


def xxh64_of(const uint8_t[::1] data not None, seed: int = 0) -> int:
    """Return the XXH64 of ``data`` as an unsigned 64-bit integer."""
    return xxh64(&data[0] if data.shape[0] else NULL, data.shape[0], seed)


def xxh64_each(
    const int32_t[::1] offsets not None,
    const uint8_t[::1] data not None,
    uint64_t[::1] out not None,
) -> None:
    """Fill ``out[i]`` with the XXH64 of the bytes ``data[offsets[i]:offsets[i + 1]]``."""
    cdef Py_ssize_t i
    cdef const uint8_t* base = &data[0] if data.shape[0] else NULL
    with nogil:
        for i in range(out.shape[0]):
            out[i] = xxh64(base + offsets[i], offsets[i + 1] - offsets[i], 0)


def mix_of(h: int, value: int) -> int:
    """Return ``mix`` of two unsigned 64-bit integers."""
    return mix(h, value)


def mix_each(uint64_t[::1] hashes not None, const uint64_t[::1] values not None) -> None:
    """Fold ``values[i]`` into ``hashes[i]`` in place."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(hashes.shape[0]):
            hashes[i] = mix(hashes[i], values[i])


def mix_words(
    uint64_t[::1] hashes not None,
    const uint64_t[::1] values not None,
    const uint8_t[::1] valid,
    *,
    bint are_floats,
) -> None:
    """Fold the hash of each value, and of whether it is one, into ``hashes[i]`` in place.

    valid: 0 for nulls, None if there are none. are_floats: all NaNs are one.
    """
    cdef Py_ssize_t i
    cdef uint64_t value
    assert values.shape[0] == hashes.shape[0]
    assert valid is None or valid.shape[0] == hashes.shape[0]
    with nogil:
        for i in range(hashes.shape[0]):
            if valid is not None and not valid[i]:
                hashes[i] = mix(hashes[i], mix(0, 0))
                continue
            value = values[i]
            if are_floats and value & 0x7FFFFFFFFFFFFFFFU > 0x7FF0000000000000U:
                value = 0x7FF8000000000000U
            hashes[i] = mix(hashes[i], mix(1, value))


def mix_each_at(
    uint64_t[::1] hashes not None, const uint64_t[::1] values not None,
    const int64_t[::1] places not None, *, bint wide,
) -> None:
    """Fold ``values[places[i]]`` into ``hashes[i]``, as this processor can or one by one: for tests."""
    assert hashes.shape[0] == places.shape[0]
    if hashes.shape[0] == 0:
        return
    assert 0 <= min(places) and max(places) < values.shape[0]
    if wide:
        mix_at(&hashes[0], &values[0], &places[0], places.shape[0])
    else:
        mix_alone(&hashes[0], &values[0], &places[0], places.shape[0])


def partition_of(const uint8_t[::1] key not None, partitions: int) -> int:
    """Return the partition that Kafka's default partitioner gives ``key``."""
    cdef uint32_t h = murmur2(&key[0] if key.shape[0] else NULL, key.shape[0])
    return (h & 0x7FFFFFFF) % <uint32_t>partitions


def partitions_of(
    const int32_t[::1] offsets not None,
    const uint8_t[::1] data not None,
    int32_t[::1] out not None,
    partitions: int,
) -> None:
    """Fill ``out[i]`` with the partition of the bytes ``data[offsets[i]:offsets[i + 1]]``."""
    cdef Py_ssize_t i
    cdef uint32_t n = partitions
    cdef const uint8_t* base = &data[0] if data.shape[0] else NULL
    with nogil:
        for i in range(out.shape[0]):
            out[i] = (murmur2(base + offsets[i], offsets[i + 1] - offsets[i]) & 0x7FFFFFFF) % n
