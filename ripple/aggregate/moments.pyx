# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Variance and standard deviation from exact sums: the true value, rounded once."""

from math import isqrt, nan

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from ripple.aggregate.exact cimport Accumulators, ExactSums
from ripple.keys.checked cimport check_length, check_slots

from ripple.aggregate.exact import quotient_of


cdef extern from "moments.h" nogil:
    ctypedef struct Real:
        pass
    Real real_divide(Real x, uint64_t divisor)
    double real_round(Real x)
    int real_root(Real x, uint64_t divisor, double* out)
    int special_value(const Accumulators* a, int64_t slot, double* out)
    int moment_real(
        const Accumulators* sums, const Accumulators* squares, int64_t slot, uint64_t n, Real* out
    )


def spread(
    const int64_t[::1] slots not None,
    ExactSums sums not None,
    ExactSums squares not None,
    const int64_t[::1] counts not None,
    int64_t ddof,
    bint root,
):
    cdef Py_ssize_t i, opens = 0
    cdef int64_t n
    cdef uint64_t divisor
    cdef Real moment
    cdef double special
    out = np.zeros(slots.shape[0], np.float64)
    valid = np.zeros(slots.shape[0], np.bool_)
    cdef double[::1] view = out
    cdef unsigned char[::1] mask = valid.view(np.uint8)
    cdef unsigned char[::1] open_ = np.zeros(slots.shape[0], np.uint8)
    check_length(slots.shape[0], counts.shape[0])
    check_slots(slots, sums.sums.count)
    check_slots(slots, squares.sums.count)
    with nogil:
        for i in range(slots.shape[0]):
            n = counts[i]
            if n <= ddof or n <= 0:
                continue
            mask[i] = 1
            if special_value(&sums.sums, slots[i], &special):
                open_[i] = 1
                opens += 1
            elif (
                n >> 32 == 0
                and moment_real(&sums.sums, &squares.sums, slots[i], <uint64_t>n, &moment)
            ):
                divisor = <uint64_t>n * <uint64_t>(n - ddof)
                if not root:
                    view[i] = real_round(real_divide(moment, divisor))
                elif not real_root(moment, divisor, &view[i]):
                    open_[i] = 1
                    opens += 1
            else:
                open_[i] = 1
                opens += 1
    if opens:
        for i in range(slots.shape[0]):
            if not open_[i]:
                continue
            if special_value(&sums.sums, slots[i], &special):
                view[i] = nan  # no value lies at a finite distance from an infinite mean
            else:
                view[i] = spread_of(
                    sums.fraction(slots[i]), squares.fraction(slots[i]), counts[i], ddof, root
                )
    return out, valid


def spread_of(total, squares, n, ddof, root):
    """The same with integers of any length: sums as (integer, power of two)."""
    low = min(2 * total[1], squares[1])
    moment = n * (squares[0] << (squares[1] - low)) - (
        total[0] * total[0] << (2 * total[1] - low)
    )
    divisor = n * (n - ddof)
    if moment < 0:
        return nan  # removals ran ahead of their adds
    if not root:
        return quotient_of((moment, low), (divisor, 0))
    # 64 bits of the root and more, and a last bit that says whether anything was cut off.
    shift = max(0, 130 + divisor.bit_length() - moment.bit_length())
    shift += (low - shift) & 1
    scaled, rest = divmod(moment << shift, divisor)
    whole = isqrt(scaled)
    cut = int(rest != 0 or whole * whole != scaled)
    return quotient_of((2 * whole + cut, (low - shift) // 2 - 1), (1, 0))
