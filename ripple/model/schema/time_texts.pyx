# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of texts as times, nanoseconds since 1970, UTC, or as dates, in the Gregorian calendar.

A column is its validity as bool[n] or None, its offsets as int32[n + 1] and its bytes. A loop gives
int64[n] and uint8[n], 0 where a text is no time of the form, or none of 64 bits; null rows are
passed over. No text is taken in two ways, and none in part.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp

import numpy as np

cdef extern from *:
    """
    static inline int times_overflow(int64_t s, int64_t ns, int64_t* out) {
        /* Towards 0, so that the least time is not passed on the way to it. */
        if (s < 0 && ns > 0) { s += 1; ns -= 1000000000; }
        return __builtin_mul_overflow(s, (int64_t)1000000000, &s)
            || __builtin_add_overflow(s, ns, out);
    }
    """
    int times_overflow(int64_t s, int64_t ns, int64_t* out) noexcept nogil

cdef int64_t[10] POWERS = [1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000]
cdef enum:
    DAYS_LEAST = -719162    # of year 1

cdef uint8_t[13] DAYS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


cdef struct Moment:
    int32_t year, month, day, hour, minute, second
    int64_t nanosecond
    int64_t east_s      # of UTC


# Neighbours are mostly of one day, which is then looked at once.
cdef struct Date:
    const uint8_t* text     # ten letters, or null before the first date
    int64_t days


cdef inline int number(const uint8_t* p, int digits) noexcept nogil:
    """Return the number of so many digits, or a negative one where one of them is none."""
    cdef unsigned int found = 0
    cdef int k, bad = 0
    cdef uint8_t digit
    for k in range(digits):
        digit = <uint8_t>(p[k] - 48)
        bad |= digit > 9
        found = found * 10 + digit
    return -1 if bad else <int>found


cdef inline int pair(const uint8_t* p) noexcept nogil:
    """Return the number of two digits, or 100 where one of them is none."""
    cdef uint8_t tens = <uint8_t>(p[0] - 48), ones = <uint8_t>(p[1] - 48)
    return 100 if (tens > 9) | (ones > 9) else 10 * tens + ones


cdef inline const uint8_t* fraction(
    const uint8_t* p, const uint8_t* end, int64_t* value
) noexcept nogil:
    """Read 1 to 9 digits of a second; null where there are none, or more."""
    cdef const uint8_t* start = p
    cdef int64_t found = 0
    cdef uint8_t digit
    while p < end and p - start < 10:
        digit = <uint8_t>(p[0] - 48)
        if digit > 9:
            break
        found = found * 10 + digit
        p += 1
    if p == start or p - start > 9:
        return NULL
    value[0] = found * POWERS[9 - (p - start)]
    return p


cdef inline const uint8_t* zone(
    const uint8_t* p, const uint8_t* end, int64_t* east_s
) noexcept nogil:
    """Read ``Z``, ``+HH``, ``+HHMM`` or ``+HH:MM``; null where there is none."""
    cdef int hours, minutes = 0
    cdef bint west
    if p == end:
        return NULL
    if p[0] == b"Z":
        east_s[0] = 0
        return p + 1
    if (p[0] != b"+" and p[0] != b"-") or end - p < 3:
        return NULL
    west = p[0] == b"-"
    hours = number(p + 1, 2)
    p += 3
    if p < end and p[0] == b":":
        if end - p < 3:
            return NULL
        minutes = number(p + 1, 2)
        p += 3
    elif end - p >= 2 and <uint8_t>(p[0] - 48) <= 9:
        minutes = number(p, 2)
        p += 2
    if not (0 <= hours <= 23 and 0 <= minutes <= 59):
        return NULL
    east_s[0] = 3600 * hours + 60 * minutes
    if west:
        east_s[0] = -east_s[0]
    return p


cdef inline bint is_date(int64_t year, int month, int day, int64_t* days) noexcept nogil:
    """Write the days from 1970 to a date; false where there is no such one."""
    cdef int64_t era, of_era
    cdef bint leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not (1 <= month <= 12 and 1 <= day <= DAYS[month] + (leap and month == 2)):
        return False
    # Years from March on, so that a leap day is the last of its year; none is negative.
    year += 400 - (month <= 2)
    era = year // 400
    of_era = year % 400
    days[0] = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days[0] += 365 * of_era + of_era // 4 - of_era // 100 + 146097 * (era - 1) - 719468
    return True


cdef inline bint is_time(int64_t days, const Moment* t, int64_t* value) noexcept nogil:
    """Write the time of a day; false where there is no such one, or none of 64 bits."""
    if (t.hour > 23) | (t.minute > 59) | (t.second > 59):
        return False
    return not times_overflow(
        86400 * days + 3600 * t.hour + 60 * t.minute + t.second - t.east_s, t.nanosecond, value
    )


cdef inline bint iso(
    const uint8_t* p, const uint8_t* end, bint has_zone, int64_t east_s, bint short_ones,
    Date* last, int64_t* value
) noexcept nogil:
    cdef Moment t
    cdef int year
    t.second = 0
    t.nanosecond = 0
    t.east_s = east_s
    if end - p < 10:
        return False
    if last.text == NULL or memcmp(p, last.text, 10):
        year = number(p, 4)
        if year < 0 or p[4] != b"-" or p[7] != b"-":
            return False
        if not is_date(year, pair(p + 5), pair(p + 8), &last.days):
            last.text = NULL
            return False
        last.text = p
    p += 10
    if p == end and short_ones and has_zone:
        t.hour = t.minute = 0
        return is_time(last.days, &t, value)
    if end - p < 3 or (p[0] != b"T" and p[0] != b" "):
        return False
    t.hour = pair(p + 1)
    t.minute = 0
    p += 3
    if p < end and p[0] == b":":
        if end - p < 3:
            return False
        t.minute = pair(p + 1)
        p += 3
        if p < end and p[0] == b":":
            if end - p < 3:
                return False
            t.second = pair(p + 1)
            p += 3
            if p < end and p[0] == b".":
                p = fraction(p + 1, end, &t.nanosecond)
                if p == NULL:
                    return False
    elif not short_ones:
        return False
    if p < end:
        p = zone(p, end, &t.east_s)
        if p != end:
            return False
    elif not has_zone:
        return False
    return is_time(last.days, &t, value)


cdef inline bint formed(
    const uint8_t* p, const uint8_t* end, const char* form, Py_ssize_t length, int64_t east_s,
    Moment* told, int64_t* days
) noexcept nogil:
    """Read a text by a form of the letters that ``pattern`` leaves."""
    cdef Moment t
    cdef Py_ssize_t k = 0
    cdef char letter
    cdef int digits, found
    t.year = 1970
    t.month = t.day = 1
    t.hour = t.minute = t.second = 0
    t.nanosecond = 0
    t.east_s = east_s
    while k < length:
        letter = form[k]
        k += 1
        if letter != 0x25:
            if p == end or <char>p[0] != letter:
                return False
            p += 1
            continue
        letter = form[k]
        k += 1
        if letter == 0x25:
            if p == end or p[0] != 0x25:
                return False
            p += 1
        elif letter == 0x7A:  # z
            p = zone(p, end, &t.east_s)
            if p == NULL:
                return False
        elif letter == 0x66:  # f
            p = fraction(p, end, &t.nanosecond)
            if p == NULL:
                return False
        elif 0x31 <= letter <= 0x39:  # 3f, 6f, 9f
            k += 1
            digits = letter - 48
            if end - p < digits:
                return False
            found = number(p, digits)
            if found < 0:
                return False
            t.nanosecond = found * POWERS[9 - digits]
            p += digits
        else:
            digits = 4 if letter == 0x59 else 2
            if end - p < digits:
                return False
            found = number(p, digits)
            if found < 0:
                return False
            p += digits
            if letter == 0x59:
                t.year = found
            elif letter == 0x6D:
                t.month = found
            elif letter == 0x64:
                t.day = found
            elif letter == 0x48:
                t.hour = found
            elif letter == 0x4D:
                t.minute = found
            else:
                t.second = found
    told[0] = t
    return p == end and is_date(t.year, t.month, t.day, days)


cdef inline bint day(const uint8_t* p, Py_ssize_t length, int64_t* days) noexcept nogil:
    """Read a date of ISO 8601, ten letters."""
    cdef int year
    if length != 10:
        return False
    year = number(p, 4)
    return year >= 0 and p[4] == b"-" and p[7] == b"-" and is_date(
        year, pair(p + 5), pair(p + 8), days
    )


def times(
    const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data, bytes form,
    bint has_zone, int64_t east_s, bint short_ones
):
    """Return (times, found) of texts in a form, empty for ISO 8601.

    has_zone: whether a text without a zone is a time, ``east_s`` seconds east of UTC. short_ones:
    whether an hour may be without minutes, and a date without a zone alone. form: of ``%Y %m %d %H %M %S %z %f %3f %6f %9f %%``,
    which its caller has looked at; one without ``%z`` has a zone.
    """
    cdef Py_ssize_t n = offsets.shape[0] - 1, j, length = len(form)
    cdef const char* letters = PyBytes_AS_STRING(form)
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    cdef Date last
    cdef Moment told
    cdef int64_t days
    last.text = NULL
    values, good = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    cdef int64_t[::1] value = values
    cdef uint8_t[::1] is_good = good
    with nogil:
        for j in range(n):
            if valid is not None and not valid[j] or offsets[j] == offsets[j + 1]:
                continue
            if length:
                is_good[j] = formed(
                    start + offsets[j], start + offsets[j + 1], letters, length, east_s, &told,
                    &days
                ) and is_time(days, &told, &value[j])
            else:
                is_good[j] = iso(
                    start + offsets[j], start + offsets[j + 1], has_zone, east_s, short_ones,
                    &last, &value[j]
                )
    return values, good


def dates(
    const uint8_t[::1] valid, const int32_t[::1] offsets, const uint8_t[::1] data, bytes form
):
    """Return (days since 1970, found) of texts in a form, empty for ISO 8601.

    form: of ``%Y %m %d %%``, which its caller has looked at. Years are from 1 on.
    """
    cdef Py_ssize_t n = offsets.shape[0] - 1, j, length = len(form)
    cdef const char* letters = PyBytes_AS_STRING(form)
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    cdef Moment told
    cdef int64_t days = 0
    cdef bint found
    values, good = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    cdef int64_t[::1] value = values
    cdef uint8_t[::1] is_good = good
    with nogil:
        for j in range(n):
            if valid is not None and not valid[j] or offsets[j] == offsets[j + 1]:
                continue
            if length:
                found = formed(
                    start + offsets[j], start + offsets[j + 1], letters, length, 0, &told, &days
                )
            else:
                found = day(start + offsets[j], offsets[j + 1] - offsets[j], &days)
            if found and days >= DAYS_LEAST:
                value[j] = days
                is_good[j] = True
    return values, good


cdef enum:
    TIME_LETTERS = 30       # 2026-01-31T09:30:00.000000000Z


cdef inline void digits(uint8_t* p, int64_t value, int count) noexcept nogil:
    cdef int k
    for k in range(count - 1, -1, -1):
        p[k] = <uint8_t>(48 + value % 10)
        value //= 10


cdef inline void written(int64_t ns, uint8_t* p) noexcept nogil:
    """Write a time as ISO 8601 has it, with all digits."""
    cdef int64_t s = ns // 1000000000, rest = ns % 1000000000, days, of_era, year, day, month
    if rest < 0:            # C rounds towards 0
        rest += 1000000000
        s -= 1
    days = s // 86400
    s = s % 86400
    if s < 0:
        s += 86400
        days -= 1
    days += 719468          # from the first of March of year 0: no time of 64 bits is before
    of_era = days % 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    day = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day + 2) // 153
    day = day - (153 * month + 2) // 5 + 1
    year += 400 * (days // 146097)
    month += 3
    if month > 12:
        month -= 12
        year += 1
    digits(p, year, 4)
    p[4] = p[7] = b"-"
    digits(p + 5, month, 2)
    digits(p + 8, day, 2)
    p[10] = b"T"
    digits(p + 11, s // 3600, 2)
    p[13] = p[16] = b":"
    digits(p + 14, s // 60 % 60, 2)
    digits(p + 17, s % 60, 2)
    p[19] = b"."
    digits(p + 20, rest, 9)
    p[29] = b"Z"


def texts(const int64_t[::1] values):
    """Return (offsets, bytes) of the texts of times, in UTC."""
    cdef Py_ssize_t n = values.shape[0], j
    if n * TIME_LETTERS > 0x7FFFFFFF:
        raise OverflowError(f"{n} times are more than a column of texts holds")
    offsets, data = np.arange(0, (n + 1) * TIME_LETTERS, TIME_LETTERS, np.int32), np.empty(n * TIME_LETTERS, np.uint8)
    cdef uint8_t[::1] out = data
    with nogil:
        for j in range(n):
            written(values[j], &out[j * TIME_LETTERS])
    return offsets, data
