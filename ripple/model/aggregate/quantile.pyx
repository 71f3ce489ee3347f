# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Where quantiles lie, and the exact interpolation between two values, rounded once."""

import numpy as np

from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint64_t

from ripple.model.keys.checked cimport check_length


cdef extern from "accumulator.h" nogil:
    ctypedef struct Slot:
        pass
    ctypedef struct Accumulators:
        char* slots
    void accumulators_open(Accumulators* a)
    void accumulators_close(Accumulators* a)
    void open_slot(Accumulators* a, int64_t slot)
    void clear_slot(Accumulators* a, int64_t slot)
    int add_weighted_double(Accumulators* a, int64_t slot, double value, uint64_t weight)
    int add_weighted_integer(Accumulators* a, int64_t slot, int64_t value, uint64_t weight)
    double slot_quotient(const Accumulators* a, int64_t slot, int64_t divisor)
    int64_t quantile_rank(
        int64_t size, uint64_t numerator, uint64_t denominator, int64_t* remainder
    )
    int64_t nearest_rank(int64_t size, uint64_t numerator, uint64_t denominator)


def positions(
    const int64_t[::1] sizes not None, uint64_t numerator, uint64_t denominator, bint nearest
):
    cdef Py_ssize_t i
    ranks = np.zeros(sizes.shape[0], np.int64)
    remainders = np.zeros(sizes.shape[0], np.int64)
    cdef int64_t[::1] rank = ranks
    cdef int64_t[::1] remainder = remainders
    for i in range(sizes.shape[0]):
        if sizes[i] > 0:
            if nearest:
                rank[i] = nearest_rank(sizes[i], numerator, denominator)
            else:
                rank[i] = quantile_rank(sizes[i], numerator, denominator, &remainder[i])
    return ranks, remainders


ctypedef fused Number:
    double
    int64_t


cdef int blend(
    const Number[::1] low,
    const Number[::1] high,
    const int64_t[::1] remainders,
    int64_t denominator,
    double[::1] out,
) noexcept nogil:
    cdef Accumulators sums
    cdef Slot only
    cdef Py_ssize_t i
    cdef int failed = 0
    accumulators_open(&sums)
    sums.slots = <char*>&only
    open_slot(&sums, 0)
    for i in range(out.shape[0]):
        if failed:
            break
        if not (isfinite(<double>low[i]) and isfinite(<double>high[i])):
            out[i] = <double>low[i] if remainders[i] == 0 else <double>low[i] + <double>high[i]
            continue
        if Number is double:
            failed |= add_weighted_double(&sums, 0, low[i], denominator - remainders[i])
            failed |= add_weighted_double(&sums, 0, high[i], remainders[i])
        else:
            failed |= add_weighted_integer(&sums, 0, low[i], denominator - remainders[i])
            failed |= add_weighted_integer(&sums, 0, high[i], remainders[i])
        out[i] = slot_quotient(&sums, 0, denominator)
        clear_slot(&sums, 0)
    accumulators_close(&sums)
    return failed


def interpolate(low, high, const int64_t[::1] remainders not None, int64_t denominator):
    cdef const double[::1] low_reals
    cdef const double[::1] high_reals
    cdef const int64_t[::1] low_integers
    cdef const int64_t[::1] high_integers
    cdef int failed
    out = np.empty(remainders.shape[0], np.float64)
    cdef double[::1] view = out
    check_length(remainders.shape[0], len(low))
    check_length(remainders.shape[0], len(high))
    if low.dtype.kind == "i":
        low_integers, high_integers = low, high
        failed = blend(low_integers, high_integers, remainders, denominator, view)
    else:
        low_reals, high_reals = low, high
        failed = blend(low_reals, high_reals, remainders, denominator, view)
    if failed:
        raise MemoryError
    return out
