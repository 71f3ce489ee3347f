# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of exact float sums: any order of adds, removes and merges gives the same bits.

A sum is read as ``math.fsum`` reads it: the double nearest to the exact sum, ties to even; a
sum of exactly zero is +0.0 for any signs of its terms. NaN and the infinities are counted,
so removing them restores the finite sum: a NaN, or infinities of both signs, read as NaN.
``accumulator.h`` has the representation and its source.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from ripple.model.aggregate.integers cimport Counts, IntegerSums, i128
from ripple.model.aggregate.part cimport (
    PLAIN, PRODUCT, SQUARE, How, Operand, Part, Read, are_one, check_memory
)
from ripple.model.keys.checked cimport check_length, check_slots


cdef extern from "rounding.h" nogil:
    ctypedef struct Real:
        pass
    Real real_of_integer(i128 value)
    int real_ratio(Real x, Real y, double* out)
    double real_round(Real x)
    int real_is_zero(Real x)


cdef extern from "integers.h" nogil:
    int integer_read(const i128* total, int64_t* out)


cdef extern from "accumulator.h" nogil:
    enum:
        WIDE_LIMBS
        BIAS
    ctypedef struct Special:
        int64_t nan
        int64_t positive
        int64_t negative
    void accumulators_open(Accumulators* a)
    void accumulators_close(Accumulators* a)
    void open_slot(Accumulators* a, int64_t slot)
    int64_t accumulators_nbytes(const Accumulators* a)
    int add_double(Accumulators* a, int64_t slot, double value, int64_t direction)
    int replace_double(Accumulators* a, int64_t slot, double old, double value)
    int add_doubles(
        Accumulators* a, int64_t slot, const double* values, const uint8_t* chosen, int64_t n,
        int64_t direction,
    )
    int add_integer(Accumulators* a, int64_t slot, int64_t value, int64_t direction)
    int add_square(Accumulators* a, int64_t slot, double value, int64_t direction)
    int add_integer_square(Accumulators* a, int64_t slot, int64_t value, int64_t direction)
    int merge_slots(Accumulators* a, int64_t into, int64_t source)
    void clear_slot(Accumulators* a, int64_t slot)
    Real value_real(const Accumulators* a, int64_t slot)
    double slot_sum(const Accumulators* a, int64_t slot)
    double slot_quotient(const Accumulators* a, int64_t slot, int64_t divisor)
    int slot_divided(const Accumulators* a, int64_t slot, uint64_t divisor, double* out)
    int special_value(const Accumulators* a, int64_t slot, double* out)
    int value_span(const Accumulators* a, int64_t slot, int* low, int* high)
    Special slot_special(const Accumulators* a, int64_t slot)
    int count_special(Accumulators* a, int64_t slot, Special more)
    void value_bytes(const Accumulators* a, int64_t slot, int low, int count, unsigned char* out)
    int load_bytes(
        Accumulators* a, int64_t slot, int low, int count, const unsigned char* data
    )


cdef class ExactSums(Part):
    """Exact sums, one per slot, of float64 or int64 values, of their squares or of products.

    A product is rounded to a double before it is added; a value and a square are added exactly.
    Values are one-dimensional contiguous arrays of float64 or int64, one value for each slot of
    the int64 array ``slots``, in which a slot may occur more than once. A slot costs 40 bytes;
    a slot with terms that span more than 190 bits costs 544 more until they no longer do.
    """

    def __cinit__(self):
        accumulators_open(&self.sums)

    def __dealloc__(self):
        accumulators_close(&self.sums)

    cdef int width(self) noexcept:
        return 40

    cdef void moved(self) noexcept:
        self.sums.slots, self.sums.stride = self.base, self.stride

    cdef void open(self, int64_t slot) noexcept nogil:
        open_slot(&self.sums, slot)

    cdef void shut(self, int64_t slot) noexcept nogil:
        clear_slot(&self.sums, slot)

    @property
    def nbytes(self):
        return self.room() * 40 + accumulators_nbytes(&self.sums)

    cdef int fold_in(
        self,
        const int64_t* slots,
        Py_ssize_t n,
        const int64_t* rows,
        const uint8_t* chosen,
        const Operand* operands,
        How how,
        int64_t direction,
    ) noexcept nogil:
        cdef Accumulators* a = &self.sums
        cdef const double* reals = <const double*>operands[0].values
        cdef const int64_t* integers = <const int64_t*>operands[0].values
        cdef const double* factors
        cdef const int64_t* whole
        cdef bint is_integer = operands[0].is_integer
        cdef double left
        cdef int failed = 0
        cdef Py_ssize_t i
        cdef int64_t row
        if how == PRODUCT:
            factors = <const double*>operands[1].values
            whole = <const int64_t*>operands[1].values
            if not rows and not chosen and not is_integer:
                # How it nearly always is: the same without questions.
                if operands[1].is_integer:
                    for i in range(n):
                        failed |= add_double(a, slots[i], reals[i] * <double>whole[i], direction)
                else:
                    for i in range(n):
                        failed |= add_double(a, slots[i], reals[i] * factors[i], direction)
                return failed
            for i in range(n):
                row = rows[i] if rows else i
                if not chosen or chosen[row]:
                    left = <double>integers[row] if is_integer else reals[row]
                    left *= <double>whole[row] if operands[1].is_integer else factors[row]
                    failed |= add_double(a, slots[i], left, direction)
            return failed
        if how == PLAIN and not rows and not is_integer and are_one(slots, n):
            return add_doubles(a, slots[0], reals, chosen, n, direction)
        if how == PLAIN and not rows and not chosen and not is_integer:
            for i in range(n):
                failed |= add_double(a, slots[i], reals[i], direction)
            return failed
        for i in range(n):
            row = rows[i] if rows else i
            if chosen and not chosen[row]:
                continue
            if how == PLAIN:
                if is_integer:
                    failed |= add_integer(a, slots[i], integers[row], direction)
                else:
                    failed |= add_double(a, slots[i], reals[row], direction)
            elif is_integer:
                failed |= add_integer_square(a, slots[i], integers[row], direction)
            else:
                failed |= add_square(a, slots[i], reals[row], direction)
        return failed

    def add(self, const int64_t[::1] slots not None, values not None):
        self.change(slots, PLAIN, 1, values)

    def remove(self, const int64_t[::1] slots not None, values not None):
        self.change(slots, PLAIN, -1, values)

    def add_square(self, const int64_t[::1] slots not None, values not None):
        self.change(slots, SQUARE, 1, values)

    def remove_square(self, const int64_t[::1] slots not None, values not None):
        self.change(slots, SQUARE, -1, values)

    def add_product(self, const int64_t[::1] slots not None, left not None, right not None):
        self.change(slots, PRODUCT, 1, left, right)

    def remove_product(self, const int64_t[::1] slots not None, left not None, right not None):
        self.change(slots, PRODUCT, -1, left, right)

    cdef int add_one(self, int64_t slot, double value, int64_t direction) noexcept nogil:
        return add_double(&self.sums, slot, value, direction)

    cdef int replace_one(self, int64_t slot, double old, double new) noexcept nogil:
        return replace_double(&self.sums, slot, old, new)

    cdef double sum_one(self, int64_t slot) noexcept nogil:
        return slot_sum(&self.sums, slot)

    cdef int check(self, const int64_t[::1] slots, values) except -1:
        check_length(slots.shape[0], len(values))
        return check_slots(slots, self.room())

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        cdef Py_ssize_t i
        cdef int failed = 0
        self.check(into, source)
        check_slots(source, self.room())
        with nogil:
            for i in range(into.shape[0]):
                if into[i] != source[i]:
                    failed |= merge_slots(&self.sums, into[i], source[i])
        check_memory(failed)

    def result(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        out = np.empty(slots.shape[0], np.float64)
        cdef double[::1] view = out
        check_slots(slots, self.room())
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = slot_sum(&self.sums, slots[i])
        return out

    def quotient(self, const int64_t[::1] slots not None, const int64_t[::1] divisors not None):
        cdef Py_ssize_t i
        out = np.empty(slots.shape[0], np.float64)
        cdef double[::1] view = out
        self.check(slots, divisors)
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = slot_quotient(&self.sums, slots[i], divisors[i])
        return out

    def ratio(self, slots not None, ExactSums divisors not None):
        return RatioRead(self, divisors).column(slots)

    def fraction(self, Py_ssize_t slot):
        cdef int low, high
        if not 0 <= slot < self.room():
            raise IndexError(f"slot {slot} is outside 0..{self.room() - 1}")
        if not value_span(&self.sums, slot, &low, &high):
            return 0, 0
        cdef int count = (high - low) // 8 + 1
        data = bytearray(count)
        cdef unsigned char[::1] view = data
        value_bytes(&self.sums, slot, low, count, &view[0])
        return int.from_bytes(data, "little", signed=True), low - BIAS

    def encode(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        cdef int64_t total = 0
        cdef int low, high
        cdef Special special
        check_slots(slots, self.room())
        exponents = np.zeros(slots.shape[0], np.int32)
        offsets = np.zeros(slots.shape[0] + 1, np.int64)
        specials = np.empty((3, slots.shape[0]), np.int64)
        cdef int32_t[::1] exponent = exponents
        cdef int64_t[::1] offset = offsets
        cdef int64_t[:, ::1] counted = specials
        with nogil:
            for i in range(slots.shape[0]):
                if value_span(&self.sums, slots[i], &low, &high):
                    exponent[i] = low - BIAS
                    total += (high - low) // 8 + 1
                offset[i + 1] = total
                special = slot_special(&self.sums, slots[i])
                counted[0, i] = special.nan
                counted[1, i] = special.positive
                counted[2, i] = special.negative
        digits = np.empty(max(total, 1), np.uint8)
        cdef unsigned char[::1] view = digits
        with nogil:
            for i in range(slots.shape[0]):
                if offset[i] < offset[i + 1]:
                    value_bytes(
                        &self.sums,
                        slots[i],
                        exponent[i] + BIAS,
                        <int>(offset[i + 1] - offset[i]),
                        &view[offset[i]],
                    )
        return exponents, offsets, digits[:total], specials

    def decode(
        self,
        const int64_t[::1] slots not None,
        const int32_t[::1] exponents not None,
        const int64_t[::1] offsets not None,
        const unsigned char[::1] digits not None,
        const int64_t[:, ::1] specials not None,
    ):
        cdef Py_ssize_t i
        cdef int64_t start, size
        cdef int outcome
        cdef Special special
        self.check(slots, exponents)
        check_length(slots.shape[0] + 1, offsets.shape[0])
        check_length(slots.shape[0], specials.shape[1])
        check_length(3, specials.shape[0])
        for i in range(slots.shape[0]):
            start = offsets[i]
            size = offsets[i + 1] - start
            if start < 0 or size < 0 or start > digits.shape[0] - size:
                raise ValueError(f"digits of sum {i} lie outside their buffer")
            if size > 8 * WIDE_LIMBS or not -BIAS <= exponents[i] < 64 * WIDE_LIMBS - BIAS:
                raise ValueError(f"sum {i} lies outside the range of sums of doubles")
            clear_slot(&self.sums, slots[i])
            special.nan = specials[0, i]
            special.positive = specials[1, i]
            special.negative = specials[2, i]
            check_memory(count_special(&self.sums, slots[i], special))
            if size:
                outcome = load_bytes(
                    &self.sums, slots[i], exponents[i] + BIAS, <int>size, &digits[start]
                )
                if outcome > 0:
                    raise ValueError(f"sum {i} lies outside the range of sums of doubles")
                check_memory(outcome)


cdef class SumRead(Read):
    """Sums, each rounded once."""

    cdef ExactSums sums

    def __init__(self, ExactSums sums not None):
        self.sums = sums
        self.parts = (sums,)
        self.is_float = True

    cdef int read(
        self, const int64_t* slots, Py_ssize_t n, int64_t* bits, uint8_t* valid
    ) except -1:
        cdef Py_ssize_t i
        for i in range(n):
            valid[i] = 1
            (<double*>bits)[i] = slot_sum(&self.sums.sums, slots[i])
        return 0


cdef class QuotientRead(Read):
    """Sums divided by counts, rounded once; none where the count is 0."""

    cdef ExactSums sums
    cdef Counts counts

    def __init__(self, ExactSums sums not None, Counts counts not None):
        self.sums, self.counts = sums, counts
        self.parts = (sums, counts)
        self.is_float = self.is_nullable = True

    cdef int read(
        self, const int64_t* slots, Py_ssize_t n, int64_t* bits, uint8_t* valid
    ) except -1:
        cdef Py_ssize_t i
        cdef int64_t count
        for i in range(n):
            count = self.counts.at(slots[i])[0]
            valid[i] = count != 0
            bits[i] = 0
            if count:
                (<double*>bits)[i] = slot_quotient(&self.sums.sums, slots[i], count)
        return 0


cdef class RatioRead(Read):
    """Sums divided by sums of another part, of floats or of integers; none where those are 0."""

    cdef ExactSums sums
    cdef ExactSums reals            # one of the two is what it divides by
    cdef IntegerSums integers

    def __init__(self, ExactSums sums not None, Part divisors not None):
        self.sums = sums
        self.parts = (sums, divisors)
        if isinstance(divisors, ExactSums):
            self.reals = divisors
        else:
            self.integers = divisors
        self.is_float = self.is_nullable = True

    cdef int read(
        self, const int64_t* slots, Py_ssize_t n, int64_t* bits, uint8_t* valid
    ) except -1:
        cdef Accumulators* a = &self.sums.sums
        cdef double* out = <double*>bits
        cdef double divisor
        cdef int64_t whole
        cdef Py_ssize_t i
        cdef Real y
        for i in range(n):
            valid[i] = 1
            if self.integers is not None:
                if integer_read(self.integers.at(slots[i]), &whole) == 0 and whole > 0:
                    if slot_divided(a, slots[i], whole, &out[i]):
                        continue
                y = real_of_integer(self.integers.at(slots[i])[0])
            elif special_value(&self.reals.sums, slots[i], &divisor):
                out[i] = slot_sum(a, slots[i]) / divisor
                continue
            else:
                y = value_real(&self.reals.sums, slots[i])
            if real_is_zero(y):
                valid[i] = 0
                bits[i] = 0
            elif special_value(a, slots[i], &out[i]):
                out[i] = out[i] / real_round(y)
            elif not real_ratio(value_real(a, slots[i]), y, &out[i]):
                out[i] = quotient_of(self.sums.fraction(slots[i]), self.divisor(slots[i]))
        return 0

    cdef object divisor(self, int64_t slot):
        if self.integers is None:
            return self.reals.fraction(slot)
        return self.integers.integer(slot), 0


def quotient_of(dividend: tuple[int, int], divisor: tuple[int, int]) -> float:
    """The double nearest to the quotient of two integers times powers of two (not zero)."""
    shift = dividend[1] - divisor[1]
    numerator = dividend[0] << max(shift, 0)
    denominator = divisor[0] << max(-shift, 0)
    try:
        return numerator / denominator  # of integers: Python rounds the exact quotient once
    except OverflowError:
        return float("inf") if (numerator < 0) == (denominator < 0) else float("-inf")
