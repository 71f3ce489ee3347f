# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""How many bytes a packed piece will hold, read off it without unpacking it.

Arrow's codecs write into a buffer of the length they are told and do not say how much of it they
filled, so the length must be known, and known to be right, before.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    NIBBLE_MAX = 15
    MATCH_BYTES_MIN = 4
    OFFSET_BYTES = 2
    BLOCK_HEADER_BYTES = 3
    BLOCK_RLE = 1
    BLOCK_RESERVED = 3
    CHECKSUM_BYTES = 4
    ZSTD_MAGIC = 0xFD2FB528


def lz4_block_bytes(const uint8_t[::1] block not None):
    """Return the bytes that an LZ4 block unpacks to, or -1 if it is not made of sequences.

    https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md: a token of two nibbles, literals,
    and, in all sequences but the last, where to copy from and how much.
    """
    if block.shape[0] == 0:
        return -1
    return _lz4(&block[0], block.shape[0])


cdef int64_t _lz4(const uint8_t* data, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t at = 0
    cdef int64_t total = 0, length
    cdef uint8_t token
    while at < end:
        token = data[at]
        at += 1
        length = _counted(data, end, &at, token >> 4)
        if length < 0 or length > end - at:
            return -1
        at += length
        total += length
        if at == end:
            return total
        at += OFFSET_BYTES
        length = _counted(data, end, &at, token & NIBBLE_MAX)
        if length < 0:
            return -1
        total += length + MATCH_BYTES_MIN
    return -1  # a block ends with literals


cdef inline int64_t _counted(
    const uint8_t* data, Py_ssize_t end, Py_ssize_t* at, int64_t nibble
) noexcept nogil:
    """Return a count that begins in a nibble and goes on in bytes, or -1 past the end."""
    cdef int64_t count = nibble
    cdef uint8_t more = 255
    if nibble < NIBBLE_MAX:
        return count
    while more == 255:
        if at[0] >= end:
            return -1
        more = data[at[0]]
        at[0] += 1
        count += more
    return count


def zstd_frame_bytes(const uint8_t[::1] frame not None):
    """Return the content size that a Zstandard frame announces.

    -1 if the bytes are not exactly one frame, or it announces none (RFC 8878, 3.1.1).
    """
    if frame.shape[0] == 0:
        return -1
    return _zstd(&frame[0], frame.shape[0])


cdef int64_t _zstd(const uint8_t* data, Py_ssize_t end) noexcept nogil:
    cdef uint8_t descriptor
    cdef bint is_single, is_checked
    cdef int dictionary, announced
    cdef uint64_t content, block
    cdef Py_ssize_t at = 5
    if end < at or _little(data, 4) != ZSTD_MAGIC:
        return -1
    descriptor = data[4]
    is_single = descriptor & 0x20
    is_checked = descriptor & 0x04
    dictionary = descriptor & 0x03
    announced = 1 << (descriptor >> 6)
    if announced == 1 and not is_single:
        return -1  # no content size
    if not is_single:
        at += 1  # the window's size
    at += 4 if dictionary == 3 else dictionary
    if end - at < announced:
        return -1
    content = _little(data + at, announced)
    if announced == 2:
        content += 256
    if content >> 63:
        return -1
    at += announced
    while end - at >= BLOCK_HEADER_BYTES:
        block = _little(data + at, BLOCK_HEADER_BYTES)
        at += BLOCK_HEADER_BYTES
        if (block >> 1 & 3) == BLOCK_RESERVED:
            return -1
        at += 1 if (block >> 1 & 3) == BLOCK_RLE else <Py_ssize_t>(block >> 3)
        if block & 1:
            at += CHECKSUM_BYTES if is_checked else 0
            return <int64_t>content if at == end else -1
    return -1


cdef inline uint64_t _little(const uint8_t* data, int count) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(count):
        value |= <uint64_t>data[i] << (8 * i)
    return value
