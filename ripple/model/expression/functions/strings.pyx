# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Loops over columns of texts, for what Arrow does slowly, or not alike in each release.

A column is its validity as bool[n] or None, its offsets as int32[n + 1] and its bytes, valid UTF-8.
A loop gives the same for another column, or numbers. Null rows are passed over: what they have is
not looked at.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

import numpy as np

from ripple.core.hashing cimport xxh64

cdef extern from *:
    const int64_t INT64_MIN

cdef extern from "Python.h":
    double PyOS_string_to_double(const char* s, char** end, void* overflow) except? -1.0

cdef extern from "float_text.hpp":
    cdef enum:
        FLOAT_LETTERS_MAX
    char* text_of_float(char* out, double value) nogil

cdef enum:
    BYTES_MAX = 2147483647      # of the texts of a column


cdef const char* found(const char* text, Py_ssize_t size, const char* part, Py_ssize_t length) noexcept nogil:
    """Return where a part, not empty, first is in a text, or NULL."""
    cdef const char* last
    if size < length:  # a column of empty texts may have no bytes, and no place before them
        return NULL
    last = text + size - length
    while text <= last:
        text = <const char*>memchr(text, part[0], last - text + 1)
        if text == NULL or memcmp(text, part, length) == 0:
            return text
        text += 1
    return NULL


def split_part(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data,
               bytes separator, Py_ssize_t number):
    """Return (validity, begins, ends) of the part of that number, from 0; null where it is none."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j, k, length = len(separator)
    cdef const char* part = PyBytes_AS_STRING(separator)
    cdef const char* start = <const char*>&data[0] if data.shape[0] else NULL
    cdef const char* at
    cdef const char* end
    cdef const char* next
    there = np.zeros(n, np.uint8)
    begins, ends = np.zeros(n, np.int32), np.zeros(n, np.int32)
    cdef uint8_t[::1] is_there = there
    cdef int32_t[::1] begin = begins
    cdef int32_t[::1] finish = ends
    with nogil:
        for j in range(n):
            if valid is not None and not valid[j]:
                continue
            at = start + offsets[j]
            end = start + offsets[j + 1]
            for k in range(number + 1):
                next = found(at, end - at, part, length)
                if k == number:
                    is_there[j] = 1
                    begin[j] = <int32_t>(at - start)
                    finish[j] = <int32_t>((end if next == NULL else next) - start)
                elif next == NULL:
                    break
                else:
                    at = next + length
    return there, begins, ends


cdef bint is_ascii(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Tell whether all bytes are ASCII."""
    cdef uint8_t any = 0
    while at < end:
        any |= at[0]
        at += 1
    return any < 0x80


cdef inline bint continues(uint8_t byte) noexcept nogil:
    """Tell whether a byte is not the first of its letter."""
    return byte & 0xC0 == 0x80


def lengths(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return the code points of each text, int64[n], 0 for null."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j, i
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    cdef int64_t count
    cdef bint plain
    counts = np.zeros(n, np.int64)
    cdef int64_t[::1] out = counts
    with nogil:
        plain = is_ascii(start + offsets[0], start + offsets[n])
        for j in range(n):
            if valid is not None and not valid[j]:
                continue
            count = offsets[j + 1] - offsets[j]
            if not plain:
                for i in range(offsets[j], offsets[j + 1]):
                    count -= continues(start[i])
            out[j] = count
    return counts


def sliced(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data,
           int64_t first, int64_t length):
    """Return (begins, ends) of each text from a code point on, as many of them at most.

    first: below 0 it counts from the end. A text that is shorter has all of its code points.
    """
    cdef Py_ssize_t n = offsets.shape[0] - 1, j
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    cdef const uint8_t* at
    cdef const uint8_t* end
    cdef int64_t size, left
    cdef bint plain
    begins, ends = np.zeros(n, np.int32), np.zeros(n, np.int32)
    cdef int32_t[::1] begin = begins
    cdef int32_t[::1] finish = ends
    with nogil:
        plain = is_ascii(start + offsets[0], start + offsets[n])
        for j in range(n):
            if valid is not None and not valid[j]:
                continue
            if plain:
                size = offsets[j + 1] - offsets[j]
                left = min(first, size) if first >= 0 else max(size + first, 0)
                begin[j] = <int32_t>(offsets[j] + left)
                finish[j] = <int32_t>(begin[j] + min(length, size - left))
                continue
            at = start + offsets[j]
            end = start + offsets[j + 1]
            left = first
            if first < 0:
                at = end
                while left < 0 and at > start + offsets[j]:
                    at -= 1
                    left += not continues(at[0])
            else:
                at = after(at, end, first)
            begin[j] = <int32_t>(at - start)
            finish[j] = <int32_t>(after(at, end, length) - start)
    return begins, ends


cdef inline const uint8_t* after(const uint8_t* at, const uint8_t* end, int64_t count) noexcept nogil:
    """Return the place behind as many code points, or the end."""
    while count > 0 and at < end:
        at += 1
        while at < end and continues(at[0]):
            at += 1
        count -= 1
    return at


def gathered(const int32_t[::1] begins, const int32_t[::1] ends, const uint8_t[::1] data):
    """Return (offsets, bytes) of the pieces of a column between begins and ends."""
    cdef Py_ssize_t n = begins.shape[0], j
    cdef int64_t size = 0
    offsets = np.empty(n + 1, np.int32)
    cdef int32_t[::1] offset = offsets
    offset[0] = 0
    for j in range(n):
        size += ends[j] - begins[j]
        if size > BYTES_MAX:
            raise OverflowError("the texts of a column have more than 2 GiB")
        offset[j + 1] = <int32_t>size
    pieces = np.empty(size, np.uint8)
    cdef uint8_t[::1] target = pieces
    if size:
        with nogil:
            for j in range(n):
                if ends[j] > begins[j]:
                    memcpy(&target[offset[j]], &data[begins[j]], ends[j] - begins[j])
    return offsets, pieces


def hashed(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data,
           uint64_t seed):
    """Return the XXH64 of each text: int64[n], the same bits."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    hashes = np.zeros(n, np.int64)
    cdef int64_t[::1] out = hashes
    with nogil:
        for j in range(n):
            if valid is None or valid[j]:
                out[j] = <int64_t>xxh64(start + offsets[j], offsets[j + 1] - offsets[j], seed)
    return hashes


def hashed_values(const uint8_t[:, ::1] values, uint64_t seed):
    """Return the XXH64 of each row of bytes: int64[n], the same bits."""
    cdef Py_ssize_t n = values.shape[0], width = values.shape[1], j
    hashes = np.empty(n, np.int64)
    cdef int64_t[::1] out = hashes
    with nogil:
        for j in range(n):
            out[j] = <int64_t>xxh64(&values[j, 0], width, seed)
    return hashes


def count(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data,
          bytes part):
    """Return how often a part, not empty, is in each text: int64[n]."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j, length = len(part)
    cdef const char* wanted = PyBytes_AS_STRING(part)
    cdef const char* start = <const char*>&data[0] if data.shape[0] else NULL
    cdef const char* at
    cdef const char* end
    cdef char letter = wanted[0]
    cdef int64_t k, times
    counts = np.zeros(n, np.int64)
    cdef int64_t[::1] total = counts
    with nogil:
        for j in range(n):
            if valid is not None and not valid[j]:
                continue
            at = start + offsets[j]
            end = start + offsets[j + 1]
            times = 0
            if length == 1:
                for k in range(end - at):
                    times += at[k] == letter
            else:
                while True:
                    at = found(at, end - at, wanted, length)
                    if at == NULL:
                        break
                    times += 1
                    at += length
            total[j] = times
    return counts


def mapped(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data,
           const uint32_t[::1] letters):
    """Return (offsets, bytes) with each letter replaced by the one at its code point, if there."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j, i, length, known = letters.shape[0]
    cdef uint32_t point
    cdef uint8_t byte
    # A letter of two bytes may become one of three, and a byte that is no UTF-8 one of two.
    cdef Py_ssize_t room = 2 * <Py_ssize_t>(offsets[n] - offsets[0]) + 4, size = 0
    if room > BYTES_MAX:
        raise OverflowError("the texts of a column have more than 2 GiB")
    result, places = np.empty(room, np.uint8), np.empty(n + 1, np.int32)
    cdef uint8_t[::1] out = result
    cdef int32_t[::1] place = places
    place[0] = 0
    with nogil:
        for j in range(n):
            i = offsets[j]
            while (valid is None or valid[j]) and i < offsets[j + 1]:
                byte = data[i]
                length = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
                if i + length > offsets[j + 1]:
                    length = 1
                if length == 1:
                    point = byte
                elif length == 2:
                    point = (byte & 0x1F) << 6 | (data[i + 1] & 0x3F)
                elif length == 3:
                    point = (byte & 0x0F) << 12 | (data[i + 1] & 0x3F) << 6 | (data[i + 2] & 0x3F)
                else:
                    point = ((byte & 0x07) << 18 | (data[i + 1] & 0x3F) << 12
                             | (data[i + 2] & 0x3F) << 6 | (data[i + 3] & 0x3F))
                i += length
                if point < known:
                    point = letters[point]
                if point < 0x80:
                    out[size] = point
                    size += 1
                elif point < 0x800:
                    out[size] = 0xC0 | point >> 6
                    out[size + 1] = 0x80 | (point & 0x3F)
                    size += 2
                elif point < 0x10000:
                    out[size] = 0xE0 | point >> 12
                    out[size + 1] = 0x80 | (point >> 6 & 0x3F)
                    out[size + 2] = 0x80 | (point & 0x3F)
                    size += 3
                else:
                    out[size] = 0xF0 | point >> 18
                    out[size + 1] = 0x80 | (point >> 12 & 0x3F)
                    out[size + 2] = 0x80 | (point >> 6 & 0x3F)
                    out[size + 3] = 0x80 | (point & 0x3F)
                    size += 4
            place[j + 1] = <int32_t>size
    return places, result[:size]


cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    return 0x30 <= byte <= 0x39


def integers(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return (int64[n], failed uint8[n]): decimal digits with a sign or without one, in 64 bits."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j, i, end
    cdef int64_t value, digit
    cdef bint negative, good
    values, failed = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    cdef int64_t[::1] out = values
    cdef uint8_t[::1] bad = failed
    with nogil:
        for j in range(n):
            if valid is not None and not valid[j]:
                continue
            i, end = offsets[j], offsets[j + 1]
            negative = i < end and data[i] == 0x2D
            i += negative or (i < end and data[i] == 0x2B)
            good = i < end
            value = 0
            # Summed up below zero, where there is one more.
            while good and i < end:
                digit = data[i] - 0x30
                good = is_digit(data[i]) and value >= (INT64_MIN + digit) // 10
                # The least quotient rounds towards zero, as the last step needs it.
                if good:
                    value = value * 10 - digit
                i += 1
            if good and not negative:
                good = value != INT64_MIN
                value = -value if good else 0
            out[j] = value if good else 0
            bad[j] = not good
    return values, failed


cdef Py_ssize_t digits(const uint8_t[::1] data, Py_ssize_t i, Py_ssize_t end) noexcept nogil:
    while i < end and is_digit(data[i]):
        i += 1
    return i


cdef bint is_float(const uint8_t[::1] data, Py_ssize_t i, Py_ssize_t end) noexcept nogil:
    """Tell whether bytes are a sign or none, digits with a point or without, an exponent or none."""
    cdef Py_ssize_t start, count
    i += i < end and (data[i] == 0x2D or data[i] == 0x2B)
    start, i = i, digits(data, i, end)
    count = i - start
    if i < end and data[i] == 0x2E:
        start, i = i + 1, digits(data, i + 1, end)
        count += i - start
    if count == 0:
        return False
    if i < end and (data[i] | 0x20) == 0x65:
        i += 1
        i += i < end and (data[i] == 0x2D or data[i] == 0x2B)
        start, i = i, digits(data, i, end)
        if i == start:
            return False
    return i == end


def floats(const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data):
    """Return (float64[n], failed uint8[n]): the nearest float of a decimal number."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, j, length
    cdef char short_text[64]
    cdef char* text
    values, failed = np.zeros(n, np.float64), np.zeros(n, np.uint8)
    cdef double[::1] out = values
    cdef uint8_t[::1] bad = failed
    for j in range(n):
        if valid is not None and not valid[j]:
            continue
        length = offsets[j + 1] - offsets[j]
        if not is_float(data, offsets[j], offsets[j + 1]):
            bad[j] = 1
            continue
        text = short_text
        if length >= 64:
            text = <char*>PyMem_Malloc(length + 1)
            if text == NULL:
                raise MemoryError
        memcpy(text, &data[offsets[j]], length)
        text[length] = 0
        try:
            out[j] = PyOS_string_to_double(text, NULL, NULL)
        finally:
            if text != short_text:
                PyMem_Free(text)
    return values, failed


def of_floats(const double[::1] values):
    """Return (offsets, bytes) of the texts that Python's ``repr`` gives."""
    cdef Py_ssize_t n = values.shape[0], j
    if n > BYTES_MAX // FLOAT_LETTERS_MAX:
        raise OverflowError("the texts of a column have more than 2 GiB")
    room, places = np.empty(n * FLOAT_LETTERS_MAX + 1, np.uint8), np.zeros(n + 1, np.int32)
    cdef uint8_t[::1] target = room
    cdef int32_t[::1] place = places
    cdef char* start = <char*>&target[0]
    cdef char* out = start
    with nogil:
        for j in range(n):
            out = text_of_float(out, values[j])
            place[j + 1] = <int32_t>(out - start)
    return places, room[: places[n]]  # what was not written takes no memory


cdef enum:
    FORM_MAX = 1024             # bytes of a form of times


cdef inline int64_t floored(int64_t a, int64_t b) noexcept nogil:
    return a // b - (a % b < 0)


cdef inline uint8_t* put(uint8_t* out, int64_t value, int width) noexcept nogil:
    cdef int k
    for k in range(width - 1, -1, -1):
        out[k] = <uint8_t>(0x30 + value % 10)
        value //= 10
    return out + width


cdef void civil(int64_t days, int64_t* year, int64_t* month, int64_t* day) noexcept nogil:
    """Set the date of a day since 1970; years begin in March until the end."""
    cdef int64_t era = floored(days + 719468, 146097)
    cdef int64_t of_era = days + 719468 - era * 146097
    cdef int64_t years = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    cdef int64_t of_year = of_era - (365 * years + years // 4 - years // 100)
    cdef int64_t from_march = (5 * of_year + 2) // 153
    day[0] = of_year - (153 * from_march + 2) // 5 + 1
    month[0] = from_march + 3 if from_march < 10 else from_march - 9
    year[0] = years + era * 400 + (from_march >= 10)


def formatted(const int64_t[::1] times, bytes form):
    """Return (offsets, bytes) of times, nanoseconds since 1970, in a form of known directives."""
    cdef Py_ssize_t n = times.shape[0], j, k, length = len(form)
    cdef const char* letters = PyBytes_AS_STRING(form)
    cdef int64_t t, days, last_days = 0, of_day, year = 0, month = 0, day = 0, unused, first
    cdef int64_t width = len(formatted_width(form))
    cdef int64_t second_ns = 1000000000, minute_ns = 60 * second_ns
    cdef int64_t hour_ns = 60 * minute_ns, day_ns = 24 * hour_ns
    cdef char directive
    if length > FORM_MAX or n * width > BYTES_MAX:
        raise OverflowError("the texts of a column have more than 2 GiB")
    offsets = (np.arange(n + 1, dtype=np.int64) * width).astype(np.int32)
    texts = np.empty(n * width, np.uint8)
    cdef uint8_t[::1] target = texts
    if not n or not width:
        return offsets, texts
    cdef uint8_t* out = &target[0]
    with nogil:
        civil(0, &year, &month, &day)
        for j in range(n):
            t = times[j]
            days = floored(t, day_ns)
            of_day = t % day_ns + day_ns * (t % day_ns < 0)
            if days != last_days:
                civil(days, &year, &month, &day)
                last_days = days
            k = 0
            while k < length:
                if letters[k] != 0x25:
                    out[0] = letters[k]
                    out += 1
                    k += 1
                    continue
                directive = letters[k + 1]
                k += 2
                if directive == 0x59:  # Y
                    out = put(out, year, 4)
                elif directive == 0x6D:  # m
                    out = put(out, month, 2)
                elif directive == 0x64:  # d
                    out = put(out, day, 2)
                elif directive == 0x48:  # H
                    out = put(out, of_day // hour_ns, 2)
                elif directive == 0x4D:  # M
                    out = put(out, of_day // minute_ns % 60, 2)
                elif directive == 0x53:  # S
                    out = put(out, of_day // second_ns % 60, 2)
                elif directive == 0x6A:  # j
                    unused = month + (9 if month <= 2 else -3)
                    first = (153 * unused + 2) // 5 + day - 1
                    # From March on; the year's own begin is 59 days, or 60, before.
                    if month > 2:
                        first += 60 + (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
                    else:
                        first += 1 - 306
                    out = put(out, first, 3)
                elif directive == 0x75:  # u
                    out = put(out, days + 3 - floored(days + 3, 7) * 7 + 1, 1)
                elif directive == 0x25:
                    out[0] = 0x25
                    out += 1
                else:  # 3f, 6f, 9f
                    k += 1
                    unused = of_day % second_ns
                    if directive == 0x33:
                        out = put(out, unused // 1000000, 3)
                    elif directive == 0x36:
                        out = put(out, unused // 1000, 6)
                    else:
                        out = put(out, unused, 9)
    return offsets, texts


_WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "j": 3, "u": 1, "%": 1,
           "3": 3, "6": 6, "9": 9}


def formatted_width(bytes form):
    """Return an example of what a form gives, of as many bytes; KeyError for another directive."""
    letters = iter(form.decode("latin-1"))
    text = ""
    for letter in letters:
        if letter == "%":
            directive = next(letters, "")
            letter = "0" * _WIDTHS[directive]
            if directive in "369" and next(letters, "") != "f":
                raise KeyError(directive)
        text += letter
    return text
