# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The value at a path in each text of JSON of a column, found in one pass over the text."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from ripple.core.json_text cimport literal_end, number_end, skip_blanks, string_end, unescape

import numpy as np

cdef enum:
    LEVELS = 64         # of objects and arrays in each other, the bound of recursion
    STEPS = 64

LEVELS_MAX = LEVELS
STEPS_MAX = STEPS

# name: the key of an object, or NULL for an index of an array.
cdef struct Step:
    const char* name
    Py_ssize_t length
    int64_t index

# begin, end: of the value that was found last, or NULL. scratch: has room for any of the texts.
cdef struct Search:
    Step steps[STEPS]
    int count
    const uint8_t* begin
    const uint8_t* end
    uint8_t* scratch


cdef const uint8_t* text_end(const uint8_t* p, const uint8_t* end, Search* search) noexcept nogil:
    """Return the end of a string if its escapes are Unicode, else NULL."""
    cdef bint escaped = False
    cdef const uint8_t* after = string_end(p, end, &escaped)
    if after != NULL and escaped and unescape(p + 1, after - 1, search.scratch) < 0:
        return NULL
    return after


cdef bint is_named(const uint8_t* p, const uint8_t* end, Search* search, int step) noexcept nogil:
    """Return whether a sound string is the name of a step."""
    cdef Step* wanted = &search.steps[step]
    cdef Py_ssize_t length = unescape(p, end, search.scratch)
    return length == wanted.length and memcmp(search.scratch, wanted.name, length) == 0


cdef const uint8_t* value_end(
    const uint8_t* p, const uint8_t* end, int level, int step, Search* search
) noexcept nogil:
    """Return the end of the value at p, NULL if there is none, and note it if it is wanted.

    level: of an object or array, 1 for the outermost. step: how many steps of the path lead to this value, -1 if it is beside the path.
    """
    cdef const uint8_t* begin = p
    cdef const uint8_t* name
    cdef uint8_t closing
    cdef int64_t number = 0
    cdef bint inner = 0 <= step < search.count, taken
    if p == end:
        return NULL
    if p[0] == b"{" or p[0] == b"[":
        if level > LEVELS:
            return NULL
        closing = p[0] + 2  # of either kind, in ASCII
        p = skip_blanks(p + 1, end)
        while p < end and (number > 0 or p[0] != closing):
            taken = inner and search.steps[step].name == NULL and search.steps[step].index == number
            if closing == b"}":
                if p[0] != b'"':
                    return NULL
                name = p + 1
                p = text_end(p, end, search)
                if p == NULL:
                    return NULL
                taken = inner and search.steps[step].name != NULL
                taken = taken and is_named(name, p - 1, search, step)
                p = skip_blanks(p, end)
                if p == end or p[0] != b":":
                    return NULL
                p = skip_blanks(p + 1, end)
            elif inner and search.steps[step].name != NULL:
                taken = False
            if taken:
                search.begin = NULL  # of two members of the same name the last one counts
            p = value_end(p, end, level + 1, step + 1 if taken else -1, search)
            if p == NULL:
                return NULL
            p = skip_blanks(p, end)
            if p == end or (p[0] != b"," and p[0] != closing):
                return NULL
            if p[0] == closing:
                break
            p = skip_blanks(p + 1, end)
            number += 1
        if p == end:
            return NULL
        p += 1
    elif p[0] == b'"':
        p = text_end(p, end, search)
    elif p[0] == b"-" or b"0" <= p[0] <= b"9":
        p = number_end(p, end)
    else:
        p = literal_end(begin, end, b"true", 4)
        if p == NULL:
            p = literal_end(begin, end, b"false", 5)
        if p == NULL:
            p = literal_end(begin, end, b"null", 4)
    if step == search.count and p != NULL:
        search.begin, search.end = begin, p
    return p


def matched(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data,
            list steps not None):
    """Return (validity, offsets, bytes) of the found values, and uint8[n]: 1 if no JSON.

    A string is its text, another value its source text. A missing value and ``null`` are null.
    steps: the keys as bytes and indexes as integers, STEPS_MAX at most.
    """
    cdef Py_ssize_t n = offsets.shape[0] - 1, j, longest = 0
    cdef int64_t size = 0
    cdef Search search
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    cdef const uint8_t* p
    cdef const uint8_t* end
    assert len(steps) <= STEPS
    search.count = 0
    for step in steps:
        search.steps[search.count] = Step(NULL, 0, -1)
        if isinstance(step, bytes):
            search.steps[search.count].name = step
            search.steps[search.count].length = len(step)
        else:
            search.steps[search.count].index = step
        search.count += 1
    found, wrong = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    places, pieces = np.zeros(n + 1, np.int32), np.empty(offsets[n] - offsets[0] + 4, np.uint8)
    cdef uint8_t[::1] there = found
    cdef uint8_t[::1] is_wrong = wrong
    cdef int32_t[::1] place = places
    cdef uint8_t[::1] out = pieces
    for j in range(n):
        longest = max(longest, offsets[j + 1] - offsets[j])
    search.scratch = <uint8_t*>malloc(longest + 4)
    if search.scratch == NULL:
        raise MemoryError
    with nogil:
        for j in range(n):
            if valid is None or valid[j]:
                search.begin = NULL
                end = start + offsets[j + 1]
                p = value_end(skip_blanks(start + offsets[j], end), end, 1, 0, &search)
                if p == NULL or skip_blanks(p, end) != end:
                    is_wrong[j] = 1
                elif search.begin != NULL and search.begin[0] == b'"':
                    there[j] = 1
                    size += unescape(search.begin + 1, search.end - 1, &out[size])
                elif search.begin != NULL and search.begin[0] != b"n":
                    there[j] = 1
                    memcpy(&out[size], search.begin, search.end - search.begin)
                    size += search.end - search.begin
            place[j + 1] = <int32_t>size
    free(search.scratch)
    return found, places, pieces[:size], wrong
