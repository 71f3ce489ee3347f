# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns to the records of a batch (message format v2), in one pass without the GIL.

https://kafka.apache.org/documentation/#recordbatch
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import numpy as np

cdef extern from "Python.h":
    # As pointers: bytes become shorter in place only while there is one reference.
    PyObject* PyBytes_FromStringAndSize(const char*, Py_ssize_t) except NULL
    char* PyBytes_AS_STRING(PyObject*) nogil
    int _PyBytes_Resize(PyObject**, Py_ssize_t) except -1

cdef enum:
    # Lengths and numbers of a record at their longest, without key, value and headers.
    RECORD_BYTES_MAX = 5 + 1 + 10 + 5 + 5 + 5 + 5

cdef struct Texts:
    const int32_t* ends
    const uint8_t* data
    const uint8_t* valid    # a byte for each, null if none is null


def encoded(keys, values, const int64_t[::1] times not None, headers, Py_ssize_t first, Py_ssize_t body_bytes_max):
    """Return the bytes of records from ``first`` on, and the first record that did not fit.

    keys, values: binary arrays. headers: the same of headers as records have them, their number
    first; None where there are none. There is at least one record, which may be too large by itself.
    """
    cdef Texts key, value, header
    cdef Py_ssize_t at = first, rows = len(keys), limit = body_bytes_max, room
    cdef int64_t base = times[first]
    held = [_texts(keys, &key), _texts(values, &value)]
    header.ends = NULL
    if headers is not None:
        held.append(_texts(headers, &header))
    with nogil:
        room = _room(&key, &value, &header, at, rows, limit)
    cdef PyObject* body = PyBytes_FromStringAndSize(NULL, room)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(body)
    cdef uint8_t* p = out
    with nogil:
        while at < rows:
            # What might not fit is written only where it is the first.
            if p != out and (p - out) + _at_most(&key, &value, &header, at) > limit:
                break
            p = _record(p, &key, &value, &header, at, times[at] - base, at - first)
            at += 1
    _PyBytes_Resize(&body, p - out)
    found = <object>body
    Py_DECREF(found)
    return found, at


cdef object _texts(object array, Texts* texts):
    """Find where the texts of an array are; return the object that holds them."""
    valid, offsets, data = array.buffers()
    cdef const int32_t[::1] ends = np.frombuffer(offsets, np.int32)[array.offset :]
    texts.ends = &ends[0]
    cdef const uint8_t[::1] bytes_ = np.frombuffer(data if data is not None and data.size else b"\0", np.uint8)
    texts.data = &bytes_[0]
    texts.valid = NULL
    cdef const uint8_t[::1] flags
    if array.null_count:
        flags = array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
        texts.valid = &flags[0]
        return ends, bytes_, flags
    return ends, bytes_


cdef inline Py_ssize_t _length(const Texts* texts, Py_ssize_t at) noexcept nogil:
    if texts.valid != NULL and not texts.valid[at]:
        return -1
    return texts.ends[at + 1] - texts.ends[at]


cdef inline Py_ssize_t _at_most(
    const Texts* key, const Texts* value, const Texts* header, Py_ssize_t at
) noexcept nogil:
    cdef Py_ssize_t found = RECORD_BYTES_MAX + _length(key, at) + _length(value, at)
    if header.ends != NULL:
        found += _length(header, at)
    return found + 2


cdef Py_ssize_t _room(
    const Texts* key, const Texts* value, const Texts* header,
    Py_ssize_t at, Py_ssize_t rows, Py_ssize_t limit
) noexcept nogil:
    """How many bytes there will be at most."""
    cdef Py_ssize_t found = 0
    while at < rows and found <= limit:
        found += _at_most(key, value, header, at)
        at += 1
    return found


cdef inline uint8_t* _varint(uint8_t* p, int64_t number) noexcept nogil:
    cdef uint64_t left = (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)
    while left >= 0x80:
        p[0] = <uint8_t>(left | 0x80)
        p += 1
        left >>= 7
    p[0] = <uint8_t>left
    return p + 1


cdef inline int _varint_bytes(int64_t number) noexcept nogil:
    cdef uint64_t left = (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)
    cdef int found = 1
    while left >= 0x80:
        left >>= 7
        found += 1
    return found


cdef inline uint8_t* _text(uint8_t* p, const Texts* texts, Py_ssize_t at) noexcept nogil:
    cdef Py_ssize_t length = _length(texts, at)
    p = _varint(p, length)
    if length > 0:
        memcpy(p, texts.data + texts.ends[at], length)
        p += length
    return p


cdef inline uint8_t* _record(
    uint8_t* p, const Texts* key, const Texts* value, const Texts* header,
    Py_ssize_t at, int64_t time_delta, int64_t offset_delta
) noexcept nogil:
    cdef Py_ssize_t key_bytes = _length(key, at), value_bytes = _length(value, at)
    cdef Py_ssize_t header_bytes = 1 if header.ends == NULL else _length(header, at)
    cdef Py_ssize_t size = (
        1 + _varint_bytes(time_delta) + _varint_bytes(offset_delta)
        + _varint_bytes(key_bytes) + (key_bytes if key_bytes > 0 else 0)
        + _varint_bytes(value_bytes) + (value_bytes if value_bytes > 0 else 0)
        + header_bytes
    )
    p = _varint(p, size)
    p[0] = 0
    p = _varint(p + 1, time_delta)
    p = _varint(p, offset_delta)
    p = _text(p, key, at)
    p = _text(p, value, at)
    if header.ends == NULL:
        p[0] = 0
        return p + 1
    memcpy(p, header.data + header.ends[at], header_bytes)
    return p + header_bytes
