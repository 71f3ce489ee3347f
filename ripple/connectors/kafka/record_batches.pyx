# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Record batches (message format v2) to columns, as readers of committed records see them.

A response is a run of batches, the last of which may be cut off. Of each the checksum is
checked before anything in it is believed, but for its first 12 bytes, its base offset and length,
which a broker writes and no checksum covers. Every length is checked before it is used, and records
are parsed without the GIL.

https://kafka.apache.org/documentation/#recordbatch
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy

from collections import deque

import numpy as np
import pyarrow as pa

from ripple.core.codec.crc import crc32c
from ripple.connectors.kafka.decompression import decompressed
from ripple.connectors.kafka.errors import DamagedError, OldFormatError, UnreadableError
from ripple.connectors.kafka.headers import HeaderColumn
from ripple.connectors.kafka.refused_batches import refused
from ripple.world.broker import Read, Records

PIECE_BYTES = 8 << 20
BATCH_BYTES_MAX = 64 << 20

cdef enum:
    # Where a batch has what.
    LENGTH_AT = 8
    MAGIC_AT = 16
    CRC_AT = 17
    CHECKED_AT = 21
    LAST_DELTA_AT = 23
    FIRST_TIME_AT = 27
    MAX_TIME_AT = 35
    PRODUCER_AT = 43
    COUNT_AT = 57
    HEAD_BYTES = 61
    PREFIX_BYTES = 12       # base offset and length, which the length does not count
    # Its attributes.
    CODEC_BITS = 7
    APPEND_TIME = 8
    TRANSACTIONAL = 16
    CONTROL = 32
    RECORD_BYTES_MIN = 7
    ABORT = 0

cdef int64_t OFFSET_MAX = <int64_t>1 << 62

cdef struct Batch:
    int64_t base, first_time, max_time, producer
    int32_t last_delta, count
    int attributes

cdef struct Columns:
    int64_t* offsets
    int64_t* times
    int32_t* key_ends
    int32_t* value_ends
    int32_t* header_ends
    uint8_t* keys
    uint8_t* values
    uint8_t* headers
    uint8_t* has_key
    uint8_t* has_value
    Py_ssize_t rows, null_keys, null_values, headers_found


def next_offset(const uint8_t[::1] data not None, from_offset: int) -> int:
    """Return the offset after the last whole batch of a response, fetched from ``from_offset`` on.

    Only the heads of batches are read. Raises DamagedError.
    """
    cdef int64_t found = from_offset, from_at = from_offset
    cdef Py_ssize_t at = 0, size
    cdef Batch batch
    while True:
        size = _whole(data, at, found)
        if size == 0:
            return found
        _read_head(&data[at], &batch)
        found = _behind(&batch, found, from_at, at == 0)
        at += size


def decoded(
    data: bytes,
    from_offset: int,
    aborted,
    *,
    piece_bytes: int = PIECE_BYTES,
    batch_bytes_max: int = BATCH_BYTES_MAX,
    headers: bool = False,
    refuses: bool = False,
):
    """Yield ``Read``s of a response, fetched from ``from_offset`` on, in pieces of bounded size.

    aborted: (producer id, first offset) of the aborted transactions among it, as the broker lists
    them; their records are skipped, and so are the marks of transactions. piece_bytes: a piece
    is whole batches, and ends with that which reaches so many bytes. batch_bytes_max: size of a
    batch after decompression. headers: whether to keep those of records. refuses: whether a
    batch that is as it was sent, and cannot be read, is refused record by record; else it is raised.
    Nothing is yielded where there is no whole batch. Raises DamagedError, after what came before.
    """
    cdef const uint8_t[::1] view = data
    cdef int64_t from_at = from_offset, found = from_offset, told
    cdef Py_ssize_t at = 0, size, held = 0
    cdef Batch batch
    held_view = memoryview(data)
    waiting = deque(sorted(aborted, key=_first_offset))
    open_ones = set()
    bodies = []
    told = found
    try:
        while True:
            size = _whole(view, at, found)
            if size == 0:
                break
            _check_sum(held_view, at, size, found)
            _read_head(&view[at], &batch)
            behind = _behind(&batch, found, from_at, at == 0)
            while waiting and waiting[0][1] < behind:
                open_ones.add(waiting.popleft()[0])
            if batch.attributes & CONTROL:
                body = _body(held_view, at, size, &batch, batch_bytes_max)
                if _is_abort(body, &batch):
                    open_ones.discard(batch.producer)
            elif not (batch.attributes & TRANSACTIONAL and batch.producer in open_ones):
                if behind > from_at:
                    try:
                        body = _body(held_view, at, size, &batch, batch_bytes_max)
                    except UnreadableError as error:
                        if not refuses:
                            raise
                        piece, bodies, held, told = bodies, [], 0, behind
                        if piece:
                            yield from _pieces(data, piece, from_offset, found, headers, refuses)
                        yield from refused(max(found, from_at), behind, error.reason, str(error))
                    else:
                        bodies.append((at, body))
                        held += len(body)
            found = behind
            at += size
            if held >= piece_bytes:
                piece, bodies, held, told = bodies, [], 0, found
                yield from _pieces(data, piece, from_offset, found, headers, refuses)
    except DamagedError:
        if bodies:
            yield from _pieces(data, bodies, from_offset, found, headers, refuses)
        raise
    if bodies or found > told:
        yield from _pieces(data, bodies, from_offset, found, headers, refuses)


def _pieces(data: bytes, bodies: list, from_offset: int, found: int, headers: bool, refuses: bool):
    """Yield a piece; where a batch in it is not sound, one of each, and its refused records."""
    cdef const uint8_t[::1] view = data
    cdef Batch batch
    cdef Py_ssize_t at
    try:
        yield _piece(data, bodies, from_offset, found, headers)
        return
    except UnreadableError:
        if not refuses:
            raise
    begin = from_offset
    for number, (at, body) in enumerate(bodies, 1):
        _read_head(&view[at], &batch)
        behind = found if number == len(bodies) else batch.base + batch.last_delta + 1
        try:
            yield _piece(data, [(at, body)], from_offset, behind, headers)
        except UnreadableError as error:
            yield from refused(max(batch.base, begin), behind, error.reason, str(error))
        begin = behind


def _first_offset(one: tuple) -> int:
    return one[1]


cdef Py_ssize_t _whole(const uint8_t[::1] data, Py_ssize_t at, int64_t offset) except -1:
    """The length of the batch at ``at``, 0 if it is not there to its end."""
    cdef Py_ssize_t left = data.shape[0] - at
    cdef int32_t length
    cdef int magic
    if left < MAGIC_AT + 1:
        return 0
    length = <int32_t>_big32(&data[at + LENGTH_AT])
    magic = data[at + MAGIC_AT]
    if magic in (0, 1):
        raise OldFormatError(
            f"what is at offset {offset} is of message format v{magic}, as brokers before Kafka "
            "0.11 wrote it; such a topic must be copied"
        )
    if magic != 2:
        raise DamagedError(f"what is at offset {offset} has message format {magic}, not 2")
    if length < HEAD_BYTES - PREFIX_BYTES:
        raise DamagedError(f"the batch at offset {offset} has a length of {length} bytes")
    return PREFIX_BYTES + length if length <= left - PREFIX_BYTES else 0


cdef _check_sum(object view, Py_ssize_t at, Py_ssize_t size, int64_t offset):
    if crc32c(view[at + CHECKED_AT : at + size]) != int.from_bytes(
        view[at + CRC_AT : at + CHECKED_AT], "big"
    ):
        raise DamagedError(f"the batch at offset {offset} is damaged: its checksum is wrong")


cdef void _read_head(const uint8_t* p, Batch* batch) noexcept nogil:
    batch.base = <int64_t>_big64(p)
    batch.attributes = p[CHECKED_AT] << 8 | p[CHECKED_AT + 1]
    batch.last_delta = <int32_t>_big32(p + LAST_DELTA_AT)
    batch.first_time = <int64_t>_big64(p + FIRST_TIME_AT)
    batch.max_time = <int64_t>_big64(p + MAX_TIME_AT)
    batch.producer = <int64_t>_big64(p + PRODUCER_AT)
    batch.count = <int32_t>_big32(p + COUNT_AT)


cdef int64_t _behind(Batch* batch, int64_t found, int64_t from_offset, bint first) except -1:
    """The offset after a batch. Offsets are in order, and the first batch has some."""
    if batch.last_delta < 0 or not 0 <= batch.base <= OFFSET_MAX:
        raise DamagedError(
            f"the batch at offset {found} says that it begins at {batch.base} and goes on for "
            f"{batch.last_delta}"
        )
    if batch.base < found and not (first and batch.base + batch.last_delta >= from_offset):
        raise DamagedError(f"behind offset {found} comes a batch that begins at {batch.base}")
    return batch.base + batch.last_delta + 1


cdef object _body(
    object view, Py_ssize_t at, Py_ssize_t size, Batch* batch, object bytes_max
):
    """The records of a batch, decompressed; its count is one that they can have."""
    cdef int codec = batch.attributes & CODEC_BITS
    body = view[at + HEAD_BYTES : at + size]
    if codec:
        try:
            body = memoryview(decompressed(codec, body, bytes_max)).cast("B")
        except UnreadableError as error:
            said = f"the batch at offset {batch.base}: {error}"
            raise UnreadableError(said, error.reason) from error
    elif len(body) > bytes_max:
        raise UnreadableError(
            f"the batch at offset {batch.base} has more than {bytes_max} bytes",
            f"the batch has more than {bytes_max} bytes",
        )
    if batch.count < 0 or batch.count > len(body) // RECORD_BYTES_MIN:
        raise UnreadableError(
            f"the batch at offset {batch.base} says that it has {batch.count} records, and has "
            f"{len(body)} bytes",
            "the batch has no room for its records",
        )
    return body


cdef bint _is_abort(object body, Batch* batch) except -1:
    """Whether a control batch is the mark of an aborted transaction."""
    cdef Py_ssize_t rows
    columns, buffers = _allocated(batch.count, len(body), False)
    rows = _parse(body, batch, 0, columns)
    if rows != 1:
        raise DamagedError(f"the control batch at offset {batch.base} is none")
    key = buffers[1].to_pybytes()[: _ends(buffers[0], 2)[1]]
    if len(key) < 4:
        raise DamagedError(f"the control batch at offset {batch.base} is none")
    return int.from_bytes(key[2:4], "big") == ABORT


cdef object _ends(object buffer, Py_ssize_t count):
    return np.frombuffer(buffer, np.int32, count)


cdef class _Columns:
    cdef Columns columns


cdef tuple _allocated(Py_ssize_t rows, Py_ssize_t size, bint headers):
    """Room for so many rows with ``size`` bytes of keys, values and headers."""
    cdef _Columns held = _Columns()
    cdef Columns* c = &held.columns
    key_ends, value_ends = pa.allocate_buffer(4 * (rows + 1)), pa.allocate_buffer(4 * (rows + 1))
    keys = pa.allocate_buffer(size, resizable=True)
    values = pa.allocate_buffer(size, resizable=True)
    offsets, times = np.empty(rows, np.int64), np.empty(rows, np.int64)
    has_key, has_value = np.empty(rows, np.uint8), np.empty(rows, np.uint8)
    c.key_ends = <int32_t*><uintptr_t>key_ends.address
    c.value_ends = <int32_t*><uintptr_t>value_ends.address
    c.key_ends[0] = c.value_ends[0] = 0
    c.keys = <uint8_t*><uintptr_t>keys.address
    c.values = <uint8_t*><uintptr_t>values.address
    c.offsets = <int64_t*><uintptr_t>offsets.ctypes.data
    c.times = <int64_t*><uintptr_t>times.ctypes.data
    c.has_key = <uint8_t*><uintptr_t>has_key.ctypes.data
    c.has_value = <uint8_t*><uintptr_t>has_value.ctypes.data
    header_ends = header_bytes = None
    c.header_ends, c.headers = NULL, NULL
    if headers:
        header_ends, header_bytes = pa.allocate_buffer(4 * (rows + 1)), pa.allocate_buffer(size)
        c.header_ends = <int32_t*><uintptr_t>header_ends.address
        c.headers = <uint8_t*><uintptr_t>header_bytes.address
        c.header_ends[0] = 0
    c.rows = c.null_keys = c.null_values = c.headers_found = 0
    return held, (
        key_ends, keys, value_ends, values, offsets, times, has_key, has_value, header_ends,
        header_bytes,
    )


cdef Py_ssize_t _parse(
    object body, Batch* batch, int64_t from_offset, _Columns held
) except -1:
    """Parse the records of a batch into the columns; return how many these have now."""
    cdef const uint8_t[::1] view = body
    cdef const uint8_t* data = &view[0] if view.shape[0] else NULL
    cdef Py_ssize_t size = view.shape[0]
    cdef bint sound
    with nogil:
        sound = _records(data, data + size, batch, from_offset, &held.columns)
    if not sound:
        raise UnreadableError(
            f"the batch at offset {batch.base} has a sound checksum, and records that are not sound",
            "the batch has records that are not sound",
        )
    return held.columns.rows


def _piece(data: bytes, bodies: list, from_offset: int, found: int, headers: bool):
    """The records of whole batches, given as (where its head is, its body), as columns."""
    cdef const uint8_t[::1] view = data
    cdef Batch batch
    cdef Py_ssize_t at, rows = 0, size = 0
    cdef _Columns held
    for at, body in bodies:
        _read_head(&view[at], &batch)
        rows += batch.count
        size += len(body)
    held, buffers = _allocated(rows, size, headers)
    for at, body in bodies:
        _read_head(&view[at], &batch)
        _parse(body, &batch, from_offset, held)
    key_ends, keys, value_ends, values, offsets, times, has_key, has_value, heads, head_bytes = (
        buffers
    )
    rows = held.columns.rows
    keys.resize(held.columns.key_ends[rows], shrink_to_fit=True)
    values.resize(held.columns.value_ends[rows], shrink_to_fit=True)
    return Read(
        offsets[:rows],
        Records(
            _binary(rows, has_key, held.columns.null_keys, key_ends, keys),
            _binary(rows, has_value, held.columns.null_values, value_ends, values),
            times[:rows],
            HeaderColumn(pa.Array.from_buffers(pa.binary(), rows, [None, heads, head_bytes]))
            if headers and held.columns.headers_found else None,
        ),
        found,
    )


cdef object _binary(Py_ssize_t rows, object valid, Py_ssize_t nulls, object ends, object data):
    bits = pa.py_buffer(np.packbits(valid[:rows], bitorder="little")) if nulls else None
    return pa.Array.from_buffers(pa.binary(), rows, [bits, ends, data], nulls)


def headers_of(bytes data) -> tuple:
    """Return the headers of a record from its bytes; one without a value has an empty one.

    Raises DamagedError.
    """
    cdef const uint8_t* p = data
    cdef const uint8_t* end = p + len(data)
    cdef int64_t count = 0, length = 0
    found = []
    p = _varint(p, end, &count)
    if p == NULL or count < 0:
        raise DamagedError("a record's headers are not sound")
    while len(found) < count:
        pair = []
        for is_value in (False, True):
            p = _varint(p, end, &length)
            if p == NULL or length > end - p or length < -1 or (length < 0 and not is_value):
                raise DamagedError("a record's headers are not sound")
            length = max(length, 0)
            pair.append(p[:length])
            p += length
        found.append((pair[0].decode("utf-8", "replace"), pair[1]))
    if p != end:
        raise DamagedError("a record's headers are not sound")
    return tuple(found)


cdef bint _records(
    const uint8_t* p, const uint8_t* end, Batch* batch, int64_t from_offset, Columns* c
) noexcept nogil:
    """Parse all records of a body, of which those before ``from_offset`` are passed over."""
    cdef const uint8_t* stop
    cdef int64_t length = 0, time = 0, delta = 0, before = -1
    cdef int32_t i
    cdef Py_ssize_t row = c.rows
    cdef int32_t key_end = c.key_ends[row], value_end = c.value_ends[row]
    for i in range(batch.count):
        p = _varint(p, end, &length)
        if p == NULL or length < 1 or length > end - p:
            return False
        stop = p + length
        p = _varint(p + 1, stop, &time)     # after its attributes, which have no meaning
        if p == NULL:
            return False
        p = _varint(p, stop, &delta)
        if p == NULL or delta <= before or delta > batch.last_delta:
            return False
        before = delta
        if batch.attributes & APPEND_TIME:
            c.times[row] = batch.max_time
        else:
            c.times[row] = <int64_t>(<uint64_t>batch.first_time + <uint64_t>time)
        c.offsets[row] = batch.base + delta
        p = _varint(p, stop, &length)
        if p == NULL or length > stop - p or length < -1:
            return False
        c.has_key[row] = length >= 0
        if length > 0:
            memcpy(c.keys + key_end, p, length)
            p += length
            c.key_ends[row + 1] = key_end + <int32_t>length
        else:
            c.key_ends[row + 1] = key_end
        p = _varint(p, stop, &length)
        if p == NULL or length > stop - p or length < -1:
            return False
        c.has_value[row] = length >= 0
        if length > 0:
            memcpy(c.values + value_end, p, length)
            p += length
            c.value_ends[row + 1] = value_end + <int32_t>length
        else:
            c.value_ends[row + 1] = value_end
        if p == stop:
            return False        # not even a count of headers
        if c.headers != NULL:
            memcpy(c.headers + c.header_ends[row], p, stop - p)
            c.header_ends[row + 1] = c.header_ends[row] + <int32_t>(stop - p)
        if c.offsets[row] >= from_offset:
            c.headers_found += p[0] != 0
            c.null_keys += not c.has_key[row]
            c.null_values += not c.has_value[row]
            key_end, value_end = c.key_ends[row + 1], c.value_ends[row + 1]
            row += 1
        p = stop
    c.rows = row
    return p == end


cdef inline const uint8_t* _varint(
    const uint8_t* p, const uint8_t* end, int64_t* value
) noexcept nogil:
    """Read a zigzag varint of up to 64 bits and return its end, null if it has none."""
    cdef uint64_t found
    cdef int shift = 7
    if p >= end:
        return NULL
    found = p[0]
    p += 1
    if found >= 0x80:
        found &= 0x7F
        while True:
            if p >= end or shift > 63:
                return NULL
            found |= <uint64_t>(p[0] & 0x7F) << shift
            shift += 7
            p += 1
            if (p - 1)[0] < 0x80:
                break
    value[0] = <int64_t>(found >> 1) ^ -<int64_t>(found & 1)
    return p


cdef inline uint32_t _big32(const uint8_t* p) noexcept nogil:
    return <uint32_t>p[0] << 24 | <uint32_t>p[1] << 16 | <uint32_t>p[2] << 8 | p[3]


cdef inline uint64_t _big64(const uint8_t* p) noexcept nogil:
    return <uint64_t>_big32(p) << 32 | _big32(p + 4)
