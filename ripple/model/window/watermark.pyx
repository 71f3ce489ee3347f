# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Watermarks and verdicts, event by event in offset order.

The watermark of an input partition is the largest event time so far minus the declared
out-of-orderness. An event is judged against the watermark *before* it, so the verdict is a
function of the prefix of its own input and a replay repeats it, in any batches.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

from ripple.model.schema.exported cimport Lent, values_of

cdef extern from *:
    """
    #define NO_WATERMARK INT64_MIN
    #define TIME_BOUND (1LL << 62)
    """
    const int64_t NO_WATERMARK, TIME_BOUND

ANY_LATENESS_NS = (1 << 64) - 1  # nothing is very late
ANY_FUTURE_NS = (1 << 64) - 1  # nothing is too far ahead
NONE = NO_WATERMARK  # before the first event: everything is on time
END = (1 << 63) - 1  # after the last one: every window is complete
EVENT_TIME_NS_MAX = (1 << 62) - 1  # an event time outside [-2^62, 2^62) is malformed

ON_TIME, MILDLY_LATE, VERY_LATE, FUTURE, OUT_OF_RANGE, TOO_FAR = range(6)


def judge(
    const int64_t[::1] times_ns not None,
    int64_t watermark_ns,
    int64_t out_of_order_ns,
    uint64_t lateness_ns,
    uint64_t future_ns,
    uint64_t future_ns_max,
):
    """Judge a run of events of one input partition.

    Returns (watermark_ns after them, verdicts uint8[n], mildly late, very late, future, refused);
    the verdicts are None where all are on time, which is how it nearly always is.
    An event is mildly late below the watermark, very late below watermark - lateness_ns, and future
    above watermark + future_ns. Refused are those out of range and those too far ahead, above
    watermark + future_ns_max: they do not move the watermark.
    """
    cdef Py_ssize_t first, n = times_ns.shape[0]
    cdef Verdicts found
    cdef uint8_t[::1] out
    if n == 0:
        return watermark_ns, None, 0, 0, 0, 0
    with nogil:
        first = on_time(
            &times_ns[0], n, &watermark_ns, out_of_order_ns, min(future_ns, future_ns_max)
        )
    if first == n:
        return watermark_ns, None, 0, 0, 0, 0
    verdicts = np.zeros(n, np.uint8)
    out = verdicts
    with nogil:
        found = weigh(
            &times_ns[0], first, n, &watermark_ns, out_of_order_ns, lateness_ns, future_ns,
            future_ns_max, &out[0],
        )
    if not (found.late or found.very_late or found.future or found.refused):
        verdicts = None
    return watermark_ns, verdicts, found.late, found.very_late, found.future, found.refused


cdef Verdicts weigh(
    const int64_t* times_ns,
    Py_ssize_t first,
    Py_ssize_t n,
    int64_t* watermark_ns,
    int64_t out_of_order_ns,
    uint64_t lateness_ns,
    uint64_t future_ns,
    uint64_t future_ns_max,
    uint8_t* out,
) noexcept nogil:
    """Judge events from ``first`` on as ``judge`` does.

    out: where verdicts other than 0 go, NULL for nowhere.
    """
    cdef Py_ssize_t i
    cdef int64_t t, mark = watermark_ns[0], late = 0, very_late = 0, future = 0, refused = 0
    cdef uint8_t verdict
    cdef Verdicts found
    for i in range(first, n):
        t = times_ns[i]
        if not -TIME_BOUND <= t < TIME_BOUND:
            verdict = 4
        elif mark != NO_WATERMARK and t < mark:
            # Event times and watermarks lie further apart than int64 reaches.
            if <uint64_t>mark - <uint64_t>t > lateness_ns:
                verdict = 2
                very_late += 1
            else:
                verdict = 1
                late += 1
        elif mark != NO_WATERMARK and _is_too_far(t, mark, future_ns_max):
            verdict = 5
        else:
            if mark == NO_WATERMARK or <uint64_t>t - <uint64_t>mark <= future_ns:
                mark = max(mark, t - out_of_order_ns)
                continue
            verdict = 3
            future += 1
            mark = max(mark, t - out_of_order_ns)
        refused += verdict > 3
        if out != NULL:
            out[i] = verdict
    watermark_ns[0] = mark
    found.late, found.very_late, found.future, found.refused = late, very_late, future, refused
    return found


def if_on_time(
    Lent times_ns not None, int64_t watermark_ns, int64_t out_of_order_ns, uint64_t near_ns
):
    """Return the watermark after events all of which are on time, None where they may not be.

    near_ns: how far ahead of the watermark an event is not future.
    """
    cdef Py_ssize_t n = times_ns.length, first
    if times_ns.kind[0] != b"q":
        return None
    first = on_time(
        <const int64_t*>values_of(times_ns.array, 8), n, &watermark_ns, out_of_order_ns, near_ns
    )
    return watermark_ns if first == n else None


cdef Py_ssize_t on_time(
    const int64_t* times_ns,
    Py_ssize_t n,
    int64_t* watermark_ns,
    int64_t out_of_order_ns,
    uint64_t near_ns,
) noexcept nogil:
    """Judge events as long as they are on time; return the first that may not be."""
    cdef int64_t before = watermark_ns[0], mark = before, t
    cdef Py_ssize_t i
    cdef bint is_behind = False
    if before == NO_WATERMARK:
        return 0
    if -TIME_BOUND <= before and 0 <= out_of_order_ns < TIME_BOUND:
        for i in range(n):
            t = times_ns[i]
            is_behind |= t < mark
            mark = max(mark, <int64_t>(<uint64_t>t - <uint64_t>out_of_order_ns))
        # None is further ahead than this, which is how it nearly always is.
        if (
            not is_behind and mark < TIME_BOUND - out_of_order_ns
            and <uint64_t>(mark + out_of_order_ns) - <uint64_t>before <= near_ns
        ):
            watermark_ns[0] = mark
            return n
    i, mark = 0, before
    while i < n:
        t = times_ns[i]
        if not (
            mark <= t < TIME_BOUND and t >= -TIME_BOUND and <uint64_t>t - <uint64_t>mark <= near_ns
        ):
            break
        mark = max(mark, t - out_of_order_ns)
        i += 1
    watermark_ns[0] = mark
    return i


cdef inline bint _is_too_far(
    int64_t time_ns, int64_t watermark_ns, uint64_t future_ns_max
) noexcept nogil:
    return time_ns > watermark_ns and <uint64_t>time_ns - <uint64_t>watermark_ns > future_ns_max


def last_crossing(
    const int64_t[::1] times_ns not None,
    int64_t watermark_ns,
    int64_t out_of_order_ns,
    uint64_t future_ns_max,
    int64_t others_ns,
    int64_t interval_ns,
):
    """Return the last event after which min(own watermark, others_ns) entered a new interval.

    Returns -1 when none did. Intervals are [k * interval_ns, (k + 1) * interval_ns). The first
    watermark of all enters an interval too, but no window is open before it. Events that ``judge``
    refuses do not count.
    """
    cdef Py_ssize_t i, found = -1
    cdef int64_t merged = min(watermark_ns, others_ns)
    cdef int64_t bound
    cdef bint known = merged != NO_WATERMARK
    if others_ns == NO_WATERMARK:
        return -1
    # The first watermark at or above `bound` enters a new interval.
    bound = _next_multiple(merged, interval_ns) if known else NO_WATERMARK + 1
    for i in range(times_ns.shape[0]):
        if not -TIME_BOUND <= times_ns[i] < TIME_BOUND:
            continue
        if watermark_ns != NO_WATERMARK and _is_too_far(times_ns[i], watermark_ns, future_ns_max):
            continue
        if times_ns[i] - out_of_order_ns > watermark_ns:
            watermark_ns = times_ns[i] - out_of_order_ns
            merged = min(watermark_ns, others_ns)
            if merged >= bound:
                found = i
                bound = _next_multiple(merged, interval_ns)
    return found


cdef int64_t _next_multiple(int64_t value, int64_t interval) noexcept nogil:
    """Return the smallest multiple of ``interval`` above ``value``."""
    cdef int64_t remainder = value % interval
    return value - remainder + interval if remainder >= 0 else value - remainder
