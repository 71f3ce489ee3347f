# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of exact float sums: any order of adds, removes and merges gives the same bits.

A sum is read as ``math.fsum`` reads it: the double nearest to the exact sum, ties to even; a
sum of exactly zero is +0.0 whatever the signs of its terms. NaN and the infinities are counted,
so removing them restores the finite sum: a NaN, or infinities of both signs, read as NaN.
``accumulator.h`` has the representation and its source.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from ripple.aggregate.integers cimport IntegerSums, i128
from ripple.keys.checked cimport check_length, check_slots


cdef extern from "rounding.h" nogil:
    ctypedef struct Real:
        pass
    Real real_of_integer(i128 value)
    int real_ratio(Real x, Real y, double* out)
    double real_round(Real x)
    int real_is_zero(Real x)


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
    int accumulators_resize(Accumulators* a, int64_t count)
    int64_t accumulators_nbytes(const Accumulators* a)
    int add_double(Accumulators* a, int64_t slot, double value, int64_t direction)
    int add_integer(Accumulators* a, int64_t slot, int64_t value, int64_t direction)
    int add_square(Accumulators* a, int64_t slot, double value, int64_t direction)
    int add_integer_square(Accumulators* a, int64_t slot, int64_t value, int64_t direction)
    int merge_slots(Accumulators* a, int64_t into, int64_t source)
    void clear_slot(Accumulators* a, int64_t slot)
    Real value_real(const Accumulators* a, int64_t slot)
    double slot_sum(const Accumulators* a, int64_t slot)
    double slot_quotient(const Accumulators* a, int64_t slot, int64_t divisor)
    int special_value(const Accumulators* a, int64_t slot, double* out)
    int value_span(const Accumulators* a, int64_t slot, int* low, int* high)
    Special slot_special(const Accumulators* a, int64_t slot)
    int count_special(Accumulators* a, int64_t slot, Special more)
    void value_bytes(const Accumulators* a, int64_t slot, int low, int count, unsigned char* out)
    int load_bytes(
        Accumulators* a, int64_t slot, int low, int count, const unsigned char* data
    )


ctypedef fused Number:
    double
    int64_t

ctypedef fused Factor:
    double
    int64_t


cdef int sum_loop(
    Accumulators* a, const int64_t[::1] slots, const Number[::1] values, int64_t direction
) noexcept nogil:
    cdef int failed = 0
    cdef Py_ssize_t i
    for i in range(slots.shape[0]):
        if Number is double:
            failed |= add_double(a, slots[i], values[i], direction)
        else:
            failed |= add_integer(a, slots[i], values[i], direction)
    return failed


cdef int square_loop(
    Accumulators* a, const int64_t[::1] slots, const Number[::1] values, int64_t direction
) noexcept nogil:
    cdef int failed = 0
    cdef Py_ssize_t i
    for i in range(slots.shape[0]):
        if Number is double:
            failed |= add_square(a, slots[i], values[i], direction)
        else:
            failed |= add_integer_square(a, slots[i], values[i], direction)
    return failed


cdef int product_loop(
    Accumulators* a,
    const int64_t[::1] slots,
    const Number[::1] left,
    const Factor[::1] right,
    int64_t direction,
) noexcept nogil:
    cdef int failed = 0
    cdef Py_ssize_t i
    for i in range(slots.shape[0]):
        failed |= add_double(a, slots[i], <double>left[i] * <double>right[i], direction)
    return failed


cdef bint is_integer(values):
    return values.dtype.kind == "i"


cdef class ExactSums:
    """Exact sums, one per slot, of float64 or int64 values, of their squares or of products.

    A product is rounded to a double before it is added; a value and a square are added exactly.
    Values are one-dimensional contiguous arrays of float64 or int64, one value for each slot of
    the int64 array ``slots``, in which a slot may occur more than once. A slot costs 40 bytes;
    one whose terms span more than 190 bits costs 544 more until they no longer do.
    """

    def __cinit__(self):
        accumulators_open(&self.sums)

    def __dealloc__(self):
        accumulators_close(&self.sums)

    @property
    def slots(self):
        return self.sums.count

    @property
    def nbytes(self):
        return accumulators_nbytes(&self.sums)

    def resize(self, Py_ssize_t slots):
        if accumulators_resize(&self.sums, slots):
            raise MemoryError

    def add(self, const int64_t[::1] slots not None, values not None):
        self.accumulate(slots, values, 1)

    def remove(self, const int64_t[::1] slots not None, values not None):
        self.accumulate(slots, values, -1)

    def add_square(self, const int64_t[::1] slots not None, values not None):
        self.accumulate_squares(slots, values, 1)

    def remove_square(self, const int64_t[::1] slots not None, values not None):
        self.accumulate_squares(slots, values, -1)

    def add_product(self, const int64_t[::1] slots not None, left not None, right not None):
        self.accumulate_products(slots, left, right, 1)

    def remove_product(self, const int64_t[::1] slots not None, left not None, right not None):
        self.accumulate_products(slots, left, right, -1)

    cdef int add_one(self, int64_t slot, double value, int64_t direction) noexcept nogil:
        return add_double(&self.sums, slot, value, direction)

    cdef double sum_one(self, int64_t slot) noexcept nogil:
        return slot_sum(&self.sums, slot)

    cdef int check(self, const int64_t[::1] slots, values) except -1:
        check_length(slots.shape[0], len(values))
        return check_slots(slots, self.sums.count)

    cdef int accumulate(self, const int64_t[::1] slots, values, int64_t direction) except -1:
        cdef const double[::1] reals
        cdef const int64_t[::1] integers
        cdef int failed
        self.check(slots, values)
        if is_integer(values):
            integers = values
            with nogil:
                failed = sum_loop(&self.sums, slots, integers, direction)
        else:
            reals = values
            with nogil:
                failed = sum_loop(&self.sums, slots, reals, direction)
        return check_memory(failed)

    cdef int accumulate_squares(self, const int64_t[::1] slots, values, int64_t direction) except -1:
        cdef const double[::1] reals
        cdef const int64_t[::1] integers
        cdef int failed
        self.check(slots, values)
        if is_integer(values):
            integers = values
            with nogil:
                failed = square_loop(&self.sums, slots, integers, direction)
        else:
            reals = values
            with nogil:
                failed = square_loop(&self.sums, slots, reals, direction)
        return check_memory(failed)

    cdef int accumulate_products(
        self, const int64_t[::1] slots, left, right, int64_t direction
    ) except -1:
        cdef const double[::1] reals
        cdef const double[::1] factors
        cdef const int64_t[::1] integers
        cdef int failed
        self.check(slots, left)
        self.check(slots, right)
        if is_integer(left):
            left = left.astype(np.float64)  # rare: prices are floats
        reals = left
        if is_integer(right):
            integers = right
            with nogil:
                failed = product_loop(&self.sums, slots, reals, integers, direction)
        else:
            factors = right
            with nogil:
                failed = product_loop(&self.sums, slots, reals, factors, direction)
        return check_memory(failed)

    def merge(self, const int64_t[::1] into not None, const int64_t[::1] source not None):
        cdef Py_ssize_t i
        cdef int failed = 0
        self.check(into, source)
        check_slots(source, self.sums.count)
        with nogil:
            for i in range(into.shape[0]):
                if into[i] != source[i]:
                    failed |= merge_slots(&self.sums, into[i], source[i])
        check_memory(failed)

    def clear(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        check_slots(slots, self.sums.count)
        with nogil:
            for i in range(slots.shape[0]):
                clear_slot(&self.sums, slots[i])

    def result(self, const int64_t[::1] slots not None):
        cdef Py_ssize_t i
        out = np.empty(slots.shape[0], np.float64)
        cdef double[::1] view = out
        check_slots(slots, self.sums.count)
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

    def ratio(self, const int64_t[::1] slots not None, ExactSums divisors not None):
        cdef Py_ssize_t i
        cdef double divisor
        out = np.empty(slots.shape[0], np.float64)
        valid = np.ones(slots.shape[0], np.bool_)
        cdef double[::1] view = out
        cdef unsigned char[::1] mask = valid.view(np.uint8)
        cdef unsigned char[::1] open_ = np.zeros(slots.shape[0], np.uint8)
        cdef int opens = 0
        cdef Real x, y
        check_slots(slots, self.sums.count)
        check_slots(slots, divisors.sums.count)
        with nogil:
            for i in range(slots.shape[0]):
                x = value_real(&self.sums, slots[i])
                y = value_real(&divisors.sums, slots[i])
                if special_value(&divisors.sums, slots[i], &divisor):
                    view[i] = slot_sum(&self.sums, slots[i]) / divisor
                elif real_is_zero(y):
                    mask[i] = 0
                    view[i] = 0.0
                elif special_value(&self.sums, slots[i], &view[i]):
                    view[i] = view[i] / real_round(y)
                elif not real_ratio(x, y, &view[i]):
                    open_[i] = 1
                    opens += 1
        if opens:
            for i in range(slots.shape[0]):
                if open_[i]:
                    view[i] = quotient_of(self.fraction(slots[i]), divisors.fraction(slots[i]))
        return out, valid

    def ratio_to_integers(self, const int64_t[::1] slots not None, IntegerSums divisors not None):
        cdef Py_ssize_t i
        out = np.empty(slots.shape[0], np.float64)
        valid = np.ones(slots.shape[0], np.bool_)
        cdef double[::1] view = out
        cdef unsigned char[::1] mask = valid.view(np.uint8)
        cdef int opens = 0
        cdef unsigned char[::1] open_ = np.zeros(slots.shape[0], np.uint8)
        cdef Real y
        check_slots(slots, self.sums.count)
        check_slots(slots, divisors.slots)
        with nogil:
            for i in range(slots.shape[0]):
                y = real_of_integer(divisors.sums[slots[i]])
                if real_is_zero(y):
                    mask[i] = 0
                    view[i] = 0.0
                elif special_value(&self.sums, slots[i], &view[i]):
                    view[i] = view[i] / real_round(y)
                elif not real_ratio(value_real(&self.sums, slots[i]), y, &view[i]):
                    open_[i] = 1
                    opens += 1
        if opens:
            for i in range(slots.shape[0]):
                if open_[i]:
                    view[i] = quotient_of(
                        self.fraction(slots[i]), (divisors.integer(slots[i]), 0)
                    )
        return out, valid

    def fraction(self, Py_ssize_t slot):
        cdef int low, high
        if not 0 <= slot < self.sums.count:
            raise IndexError(f"slot {slot} is outside 0..{self.sums.count - 1}")
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
        check_slots(slots, self.sums.count)
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


cdef int check_memory(int failed) except -1:
    if failed:
        raise MemoryError("no memory left for exact sums; their values are lost")
    return 0


def quotient_of(dividend: tuple[int, int], divisor: tuple[int, int]) -> float:
    """The double nearest to the quotient of two integers times powers of two (not zero)."""
    shift = dividend[1] - divisor[1]
    numerator = dividend[0] << max(shift, 0)
    denominator = divisor[0] << max(-shift, 0)
    try:
        return numerator / denominator  # of integers: Python rounds the exact quotient once
    except OverflowError:
        return float("inf") if (numerator < 0) == (denominator < 0) else float("-inf")
