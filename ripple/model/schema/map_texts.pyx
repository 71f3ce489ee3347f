# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of maps as texts: objects of JSON in canonical form, and their members.

Canonical: the names in the order of their bytes, each once, without blanks and needless escapes; a
float as Python's ``repr``. A column is its validity as uint8[n] or None, its offsets as
int32[n + 1] and its bytes.
"""

from cpython.mem cimport PyMem_Free
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp, memcpy

import numpy as np

cdef extern from "Python.h":
    double PyOS_string_to_double(const char* text, char** end, object overflow) except? -1.0
    char* PyOS_double_to_string(double value, char form, int precision, int flags, int* kind) except NULL
    enum: Py_DTSF_ADD_DOT_0

cdef enum:
    INTS = 0
    FLOATS = 1
    BOOLS = 2
    TEXTS = 3
    MEMBERS_MAX = 128       # of a map that is read here; sorted by insertion
    INT_DIGITS_MAX = 18
    EXACT_DIGITS_MAX = 15   # of a whole number that each float holds
    NUMBER_MAX = 40         # letters
    FLOAT_LETTERS_MAX = 26  # of a float in canonical form

KINDS = {"int": INTS, "float": FLOATS, "bool": BOOLS, "text": TEXTS}


cdef struct Member:
    const uint8_t* name
    const uint8_t* value
    int32_t name_length, value_length   # of texts with their quotes


cdef inline const uint8_t* blanks_end(const uint8_t* p, const uint8_t* end) noexcept nogil:
    while p < end and (p[0] == 32 or p[0] == 9 or p[0] == 10 or p[0] == 13):
        p += 1
    return p


cdef inline const uint8_t* plain_end(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Return the end of a text in quotes, NULL for one with an escape, and for none."""
    if p == end or p[0] != 34:
        return NULL
    p += 1
    while p < end and p[0] != 34:
        if p[0] == 92 or p[0] < 32:
            return NULL
        p += 1
    return NULL if p == end else p + 1


cdef inline const uint8_t* digits_end(const uint8_t* p, const uint8_t* end) noexcept nogil:
    while p < end and 48 <= p[0] <= 57:
        p += 1
    return p


cdef const uint8_t* number_end(const uint8_t* p, const uint8_t* end, int kind) noexcept nogil:
    """Return the end of a number that is read here, else NULL."""
    cdef const uint8_t* start = p
    cdef const uint8_t* after
    cdef bint is_whole = True
    if p < end and p[0] == 45:
        p += 1
    after = digits_end(p, end)
    if after == p or (p[0] == 48 and after - p > 1):
        return NULL
    if kind == INTS:
        return NULL if after - p > INT_DIGITS_MAX or (p[0] == 48 and p > start) else after
    is_whole = True
    if after < end and after[0] == 46:
        is_whole = False
        start, after = after + 1, digits_end(after + 1, end)
        if after == start:
            return NULL
    if after < end and (after[0] == 101 or after[0] == 69):
        is_whole = False
        after += 1
        if after < end and (after[0] == 43 or after[0] == 45):
            after += 1
        start, after = after, digits_end(after, end)
        if after == start:
            return NULL
    # A whole number becomes the float that it is, and -0 the integer 0.
    if is_whole and (after - p > EXACT_DIGITS_MAX or (p[0] == 48 and p[-1] == 45)):
        return NULL
    return after


cdef inline const uint8_t* value_end(const uint8_t* p, const uint8_t* end, int kind) noexcept nogil:
    if kind == TEXTS:
        return plain_end(p, end)
    if kind == BOOLS:
        if end - p >= 4 and memcmp(p, b"true", 4) == 0:
            return p + 4
        return p + 5 if end - p >= 5 and memcmp(p, b"false", 5) == 0 else NULL
    return number_end(p, end, kind)


cdef inline int compared(Member* one, Member* other) noexcept nogil:
    """Return the order of two names without their quotes."""
    cdef int32_t left = one.name_length - 2, right = other.name_length - 2
    cdef int found = memcmp(one.name + 1, other.name + 1, left if left < right else right)
    return found if found else (left > right) - (left < right)


cdef int read(const uint8_t* p, const uint8_t* end, int kind, Member* members) noexcept nogil:
    """Read an object into sorted members; returns their number, -1 for another text."""
    cdef const uint8_t* after
    cdef Member found
    cdef int count = 0, at, k, order
    p = blanks_end(p, end)
    if p == end or p[0] != 123:
        return -1
    p = blanks_end(p + 1, end)
    if p < end and p[0] == 125:
        return 0 if blanks_end(p + 1, end) == end else -1
    while True:
        after = plain_end(p, end)
        if after == NULL or count == MEMBERS_MAX:
            return -1
        found.name, found.name_length = p, <int32_t>(after - p)
        p = blanks_end(after, end)
        if p == end or p[0] != 58:
            return -1
        p = blanks_end(p + 1, end)
        after = value_end(p, end, kind)
        if after == NULL:
            return -1
        found.value, found.value_length = p, <int32_t>(after - p)
        at, order = count, 1
        while at > 0:
            order = compared(&found, &members[at - 1])
            if order >= 0:
                break
            at -= 1
        if at > 0 and order == 0:
            members[at - 1] = found     # the last of equal names
        else:
            for k in range(count, at, -1):
                members[k] = members[k - 1]
            members[at] = found
            count += 1
        p = blanks_end(after, end)
        if p == end:
            return -1
        if p[0] == 125:
            return count if blanks_end(p + 1, end) == end else -1
        if p[0] != 44:
            return -1
        p = blanks_end(p + 1, end)


cdef Py_ssize_t put_float(Member* member, uint8_t* to) except -1:
    """Write a float in canonical form; returns its length, 0 for one that is not read here."""
    cdef char text[NUMBER_MAX + 1]
    cdef double value
    cdef char* made
    cdef Py_ssize_t length = 0
    if member.value_length > NUMBER_MAX:
        return 0
    memcpy(text, member.value, member.value_length)
    text[member.value_length] = 0
    value = PyOS_string_to_double(text, NULL, None)
    if value - value != 0:
        return 0
    made = PyOS_double_to_string(value, b"r", 0, Py_DTSF_ADD_DOT_0, NULL)
    while made[length]:
        to[length] = <uint8_t>made[length]
        length += 1
    PyMem_Free(made)
    return length


def canonical(valid, const int32_t[::1] offsets, const uint8_t[::1] data, int kind):
    """Return the offsets and the bytes of canonical texts, and uint8[n], 1 where there is one.

    Not where the map is null, is none, or has what Python reads: escapes, and unusual numbers.
    kind: of values, as in ``KINDS``.
    """
    cdef Py_ssize_t n = offsets.shape[0] - 1, i, k, length, at = 0
    cdef const uint8_t[::1] there = None if valid is None else valid
    cdef bint some = valid is not None
    cdef Member[MEMBERS_MAX] members
    cdef int count
    cdef Py_ssize_t first = offsets[0], size = offsets[n] - first, begun
    spare = int(np.count_nonzero(np.asarray(data)[first:first + size] == 58)) if kind == FLOATS else 0
    made = np.empty(size + spare * FLOAT_LETTERS_MAX + 1, np.uint8)
    ends = np.zeros(n + 1, np.int32)
    good = np.zeros(n, np.uint8)
    cdef uint8_t[::1] to = made
    cdef int32_t[::1] until = ends
    cdef uint8_t[::1] is_good = good
    cdef const uint8_t* base = &data[0] if data.shape[0] else NULL
    for i in range(n):
        until[i + 1] = <int32_t>at
        if (some and not there[i]) or offsets[i] == offsets[i + 1]:
            continue
        count = read(base + offsets[i], base + offsets[i + 1], kind, members)
        if count < 0:
            continue
        begun = at
        to[at] = 123
        at += 1
        for k in range(count):
            if k:
                to[at] = 44
                at += 1
            memcpy(&to[at], members[k].name, members[k].name_length)
            at += members[k].name_length
            to[at] = 58
            at += 1
            length = members[k].value_length
            if kind == FLOATS:
                length = put_float(&members[k], &to[at])
                if not length:
                    break
            else:
                memcpy(&to[at], members[k].value, length)
            at += length
        else:
            to[at] = 125
            at += 1
            is_good[i] = 1
            until[i + 1] = <int32_t>at
            continue
        at = begun
    return ends, made[:at], good


cdef inline const uint8_t* quoted_end(const uint8_t* p) noexcept nogil:
    """Return the end of a text of a canonical map."""
    p += 1
    while p[0] != 34:
        p += 2 if p[0] == 92 else 1
    return p + 1


def members(valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return the members of canonical texts: int64[n] of how many, and columns of all of them.

    Each column is its offsets and its bytes: the names and the values, as they are written, texts
    without their quotes.
    """
    cdef Py_ssize_t n = offsets.shape[0] - 1, i, count = 0, names_at = 0, values_at = 0, begun
    cdef const uint8_t[::1] there = None if valid is None else valid
    cdef bint some = valid is not None, is_text
    cdef Py_ssize_t first = offsets[0], size = offsets[n] - first
    most = int(np.count_nonzero(np.asarray(data)[first:first + size] == 58))
    counts = np.zeros(n, np.int64)
    name_ends, value_ends = np.zeros(most + 1, np.int32), np.zeros(most + 1, np.int32)
    names, values = np.empty(size + 1, np.uint8), np.empty(size + 1, np.uint8)
    cdef int64_t[::1] how_many = counts
    cdef int32_t[::1] names_until = name_ends, values_until = value_ends
    cdef uint8_t[::1] to_names = names, to_values = values
    cdef const uint8_t* base = &data[0] if data.shape[0] else NULL
    cdef const uint8_t* p
    cdef const uint8_t* after
    cdef const uint8_t* end
    for i in range(n):
        if (some and not there[i]) or offsets[i + 1] - offsets[i] <= 2:
            continue
        p, end, begun = base + offsets[i] + 1, base + offsets[i + 1] - 1, count
        while p < end:
            after = quoted_end(p)
            memcpy(&to_names[names_at], p + 1, after - p - 2)
            names_at += after - p - 2
            p = after + 1
            is_text = p[0] == 34
            if is_text:
                after = quoted_end(p)
            else:
                after = p
                while after < end and after[0] != 44:
                    after += 1
            memcpy(&to_values[values_at], p + is_text, after - p - 2 * is_text)
            values_at += after - p - 2 * is_text
            count += 1
            names_until[count], values_until[count] = <int32_t>names_at, <int32_t>values_at
            p = after + 1
        how_many[i] = count - begun
    return (
        counts,
        (name_ends[:count + 1], names[:names_at]),
        (value_ends[:count + 1], values[:values_at]),
    )
