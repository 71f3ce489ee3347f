# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Logarithms, exponentials and powers of columns of floats, and which are not sure yet."""

from libc.stdint cimport int64_t, uint8_t

from decimal import (
    MAX_EMAX, MIN_EMIN, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext,
)
from math import factorial, frexp

import numpy as np

cdef extern from "rounded.h":
    ctypedef struct Pair:
        double head
        double tail
    ctypedef struct Logarithm:
        double inverse
        double head
        double tail
    cdef enum:
        LOGS
        POWERS
    Logarithm logarithms[LOGS]
    Pair powers[POWERS]
    double log2_parts[3]
    double step_parts[3]
    Pair log_of_2, per_log2, per_log10
    Pair reciprocals[8]
    Pair factorials[6]
    double powers_of_log2[5]

cdef extern from "quick.h":
    ctypedef enum Which:
        LOG, LOG2, LOG10, LOG1P, EXP, EXP2, EXPM1, POW, ROUND
    bint can_fuse() noexcept nogil
    void make_quick_tables() noexcept nogil
    int64_t each_alone(
        Which which, const double* x, const double* y, double* out, uint8_t* doubt, int64_t n
    ) noexcept nogil
    int64_t each_fused(
        Which which, const double* x, const double* y, double* out, uint8_t* doubt, int64_t n
    ) noexcept nogil

CAN_FUSE = bool(can_fuse())     # whether this processor multiplies and adds with one rounding, four at once
FUNCTIONS = {
    "log": LOG, "log2": LOG2, "log10": LOG10, "log1p": LOG1P,
    "exp": EXP, "exp2": EXP2, "expm1": EXPM1, "pow": POW,
    "round": ROUND,
}
cdef object NO_ROWS = np.empty(0, np.int64)


cdef Pair _pair(object value):
    cdef Pair pair
    pair.head = float(value)
    pair.tail = float(value - Decimal(pair.head))
    return pair


cdef void _cut(double* parts, object value, int bits):
    """Put a number below 1 as two of so many bits, and the rest."""
    for k in range(2):
        unit = Decimal(2) ** (frexp(float(value))[1] - bits)
        parts[k] = float((value / unit).to_integral_value(ROUND_FLOOR) * unit)
        value -= Decimal(parts[k])
    parts[2] = float(value)


def _make_tables():
    """Compute the tables from decimals, whose rounding is the same everywhere."""
    cdef int i
    cdef Pair pair
    log_2 = Decimal(2).ln()
    _cut(log2_parts, log_2, 42)
    _cut(step_parts, log_2 / POWERS, 34)
    global log_of_2, per_log2, per_log10
    log_of_2, per_log2, per_log10 = _pair(log_2), _pair(1 / log_2), _pair(1 / Decimal(10).ln())
    for i in range(LOGS):
        # The middle of a cell, in units of 2^-10; the two cells beside 1 have 1.
        middle = 2 * (352 + i) + 1 if i < 160 else 4 * (i + 96) + 2
        inverse = Decimal(1 if i in (159, 160) else round(512 * 1024 / middle) / 512)
        pair = _pair(-inverse.ln())
        logarithms[i] = Logarithm(float(inverse), pair.head, pair.tail)
    for i in range(POWERS):
        powers[i] = _pair((log_2 * i / POWERS).exp())
    for i in range(1, 8):
        reciprocals[i] = _pair(1 / Decimal(i))
    for i in range(1, 6):
        factorials[i] = _pair(1 / Decimal(factorial(i)))
        powers_of_log2[i - 1] = float(log_2**i / factorial(i))


with localcontext(Context(45, ROUND_HALF_EVEN, MIN_EMIN, MAX_EMAX, traps=[])):
    _make_tables()
make_quick_tables()


def compute(str name, const double[::1] x not None, const double[::1] y=None, *, bint fused=CAN_FUSE):
    """Return the correctly rounded results, float64[n], and the rows that are not sure, int64[m].

    y: the exponents of ``pow``, or the one power of 10 of ``round``. fused: with products and sums
    that this processor rounds once, for the same.
    """
    cdef Which which = FUNCTIONS[name]
    cdef int64_t n = x.shape[0], doubts = 0
    assert (y.shape[0] if y is not None else 0) == (n if which == POW else which == ROUND)
    assert CAN_FUSE or not fused
    found, doubtful = np.empty(n), np.zeros(n, np.uint8)
    cdef double[::1] out = found
    cdef uint8_t[::1] doubt = doubtful
    cdef const double* second = NULL
    if n:
        second = &y[0] if y is not None else NULL
        with nogil:
            if fused:
                doubts = each_fused(which, &x[0], second, &out[0], &doubt[0], n)
            else:
                doubts = each_alone(which, &x[0], second, &out[0], &doubt[0], n)
    return found, np.flatnonzero(doubtful) if doubts else NO_ROWS
