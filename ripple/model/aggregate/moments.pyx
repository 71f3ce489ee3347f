# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Variance and standard deviation from exact sums: the true value, rounded once."""

from math import isqrt, nan

from libc.stdint cimport int64_t, uint8_t, uint64_t

from ripple.model.aggregate.exact cimport Accumulators, ExactSums
from ripple.model.aggregate.integers cimport Counts
from ripple.model.aggregate.part cimport Read

from ripple.model.aggregate.exact import quotient_of


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


cdef class SpreadRead(Read):
    """Variances, or their roots, each rounded once; none of ``ddof`` values or fewer."""

    cdef ExactSums sums, squares
    cdef Counts counts
    cdef int64_t ddof
    cdef bint root

    def __init__(
        self,
        ExactSums sums not None,
        ExactSums squares not None,
        Counts counts not None,
        int64_t ddof,
        bint root,
    ):
        self.sums, self.squares, self.counts = sums, squares, counts
        self.parts = (sums, squares, counts)
        self.ddof, self.root = ddof, root
        self.is_float = self.is_nullable = True

    cdef int read(
        self, const int64_t* slots, Py_ssize_t n, int64_t* bits, uint8_t* valid
    ) except -1:
        cdef double* out = <double*>bits
        cdef Py_ssize_t i
        cdef int64_t count
        cdef Real moment
        cdef double special
        for i in range(n):
            count = self.counts.at(slots[i])[0]
            bits[i] = 0
            valid[i] = count > self.ddof and count > 0
            if not valid[i]:
                continue
            if special_value(&self.sums.sums, slots[i], &special):
                out[i] = nan  # no value lies at a finite distance from an infinite mean
            elif (
                count >> 32 == 0
                and moment_real(&self.sums.sums, &self.squares.sums, slots[i], count, &moment)
                and self.near(moment, count, &out[i])
            ):
                pass
            else:
                out[i] = spread_of(
                    self.sums.fraction(slots[i]),
                    self.squares.fraction(slots[i]),
                    count,
                    self.ddof,
                    self.root,
                )
        return 0

    cdef bint near(self, Real moment, int64_t count, double* out) noexcept:
        """Write the spread; false when the short form cannot decide it."""
        cdef uint64_t divisor = <uint64_t>count * <uint64_t>(count - self.ddof)
        if self.root:
            return real_root(moment, divisor, out)
        out[0] = real_round(real_divide(moment, divisor))
        return True


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
