"""Exact sums against fractions and math.fsum, in every form and any order."""

from __future__ import annotations

import contextlib
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.model.aggregate.exact import ExactSums, RatioRead, quotient_of
from ripple.model.aggregate.integers import IntegerSums
from tests.examples import EXAMPLES, SAMPLED
from tests.model.aggregate.aggregate_twin import (
    any_floats,
    at,
    exact_sum,
    finite_floats,
    float_sum,
    floats,
    int64s,
    rounded,
    same,
    slots,
)

ZERO = slots(0)


def summed(*values: float, count: int = 1) -> ExactSums:
    sums = ExactSums()
    sums.resize(count)
    sums.add(at(0, values), floats(values))
    return sums


def read(sums: ExactSums, slot: int = 0) -> float:
    return float(sums.result(slots(slot))[0])


def exact(sums: ExactSums, slot: int = 0) -> Fraction:
    digits, exponent = sums.fraction(slot)
    return Fraction(digits) * Fraction(2) ** exponent


def encoded(sums: ExactSums, slot: int = 0) -> list[bytes]:
    return [part.tobytes() for part in sums.encode(slots(slot))]


@settings(max_examples=48 * EXAMPLES // SAMPLED)
@given(st.lists(finite_floats, max_size=40))
def test_sum_of_finite_values_equals_fsum(values):
    sums = summed(*values)
    assert exact(sums) == exact_sum(values)
    assert same(read(sums), rounded(exact_sum(values)))
    with contextlib.suppress(OverflowError):  # fsum gives up where a partial sum overflows
        assert same(read(sums), math.fsum(values))


@settings(max_examples=48 * EXAMPLES // SAMPLED)
@given(st.lists(any_floats, max_size=30), st.randoms(use_true_random=False))
def test_removing_a_part_leaves_the_sum_of_the_rest(values, random_):
    kept = [v for v in values if random_.random() < 0.5]
    gone = list(values)
    for value in kept:
        gone.remove(value)
    steps = [(1, v) for v in values]
    random_.shuffle(steps)
    gone_steps = [(-1, v) for v in gone]
    for step in gone_steps:  # anywhere, even before its own add
        steps.insert(random_.randrange(len(steps) + 1), step)
    sums = summed()
    for direction, value in steps:
        (sums.add if direction > 0 else sums.remove)(ZERO, floats([value]))
    assert same(read(sums), float_sum(kept))
    assert encoded(sums) == encoded(summed(*kept))


@settings(max_examples=24 * EXAMPLES // SAMPLED)
@given(st.lists(st.tuples(st.integers(0, 3), any_floats), max_size=40))
def test_slots_of_one_batch_do_not_mix(pairs):
    sums = ExactSums()
    sums.resize(4)
    sums.add(slots(*(s for s, _ in pairs)), floats([v for _, v in pairs]))
    for slot in range(4):
        assert same(read(sums, slot), float_sum([v for s, v in pairs if s == slot]))


@settings(max_examples=36 * EXAMPLES // SAMPLED)
@given(st.lists(any_floats, max_size=20), st.lists(any_floats, max_size=20))
def test_merge_moves_everything_and_empties_the_source(left, right):
    sums = summed(*left, count=2)
    sums.add(at(1, right), floats(right))
    sums.merge(slots(0), slots(1))
    assert same(read(sums), float_sum(left + right))
    assert encoded(sums) == encoded(summed(*left, *right))
    assert encoded(sums, 1) == encoded(summed())


@settings(max_examples=36 * EXAMPLES // SAMPLED)
@given(st.lists(any_floats, max_size=20))
def test_encoded_sums_decode_to_the_same(values):
    sums, other = summed(*values), summed(1.0, math.inf, count=3)
    other.decode(slots(2), *sums.encode(ZERO))
    assert encoded(other, 2) == encoded(sums)
    assert same(read(other, 2), read(sums))
    assert read(other) == math.inf


@settings(max_examples=48 * EXAMPLES // SAMPLED)
@given(st.lists(finite_floats, max_size=20), int64s)
def test_quotient_by_a_count_is_rounded_once(values, divisor):
    quotient = float(summed(*values).quotient(ZERO, slots(divisor))[0])
    wanted = rounded(exact_sum(values) / divisor) if divisor else 0.0
    # A quotient too small for any double keeps its sign.
    assert quotient == wanted


@settings(max_examples=48 * EXAMPLES // SAMPLED)
@given(st.lists(finite_floats, max_size=12), st.lists(finite_floats, max_size=12))
def test_ratio_of_two_sums_is_rounded_once(left, right):
    quotient, valid = summed(*left).ratio(ZERO, summed(*right))
    divisor = exact_sum(right)
    assert bool(valid[0]) == (divisor != 0)
    if divisor:
        assert quotient[0] == rounded(exact_sum(left) / divisor)


COUNT = 60_000 * EXAMPLES


def of_all_sizes(random_numbers: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """Return terms of positive sums, and positive divisors."""
    digits = random_numbers.integers(0, 53, COUNT)
    terms = random_numbers.integers(1 << digits, 2 << digits).astype(np.float64)
    other = random_numbers.random(COUNT)
    exponents = random_numbers.integers(-1074, 960, COUNT)
    near = exponents + random_numbers.integers(-140, 60, COUNT)
    terms = [np.ldexp(terms, exponents), np.ldexp(other, near)]
    return terms, random_numbers.integers(1, 2 << random_numbers.integers(0, 62, COUNT))


def of_prices(random_numbers: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """Return what prices and sizes make."""
    prices = random_numbers.integers(1, 10**6, (4, COUNT)) / 100
    sizes = random_numbers.integers(1, 10**4, (4, COUNT))
    return list(prices * sizes), sizes.sum(axis=0)


def next_to_ties(random_numbers: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """Return sums whose quotients lie half-way between two doubles, or next to it."""
    wide = random_numbers.integers(1, 27, COUNT)
    divisors = random_numbers.integers(1 << (wide - 1), 1 << wide)
    halves = random_numbers.integers(1 << 52, 1 << 53, COUNT)  # and a half: what is divided out
    scale = random_numbers.integers(-300, 300, COUNT)
    high, low = halves >> 27, halves & ((1 << 27) - 1)
    # What two neighbours leave of each other: the window need not move for so small a term.
    near = np.ldexp(1.0, random_numbers.integers(-30, 10, COUNT))
    beside = np.nextafter(near, near * random_numbers.integers(0, 3, COUNT))
    terms = [
        np.ldexp((high * divisors).astype(np.float64), 27),
        (low * divisors).astype(np.float64),
        divisors / 2,
        beside,
        -near,
    ]
    return [np.ldexp(term, scale) for term in terms], divisors


@pytest.mark.parametrize("numbers", [of_all_sizes, of_prices, next_to_ties])
@pytest.mark.parametrize("seed", range(6))
def test_quotients_of_positive_sums_are_those_of_negative_ones(numbers, seed):
    # Positive sums have a short way, negative ones only the careful one; rounding is symmetric.
    terms, divisors = numbers(np.random.default_rng(seed))
    every = np.arange(COUNT)
    sums, negative, weights = ExactSums(), ExactSums(), IntegerSums()
    for part in (sums, negative, weights):
        part.resize(COUNT)
    for term in terms:
        sums.add(every, term)
        negative.remove(every, term)
    weights.add(every, divisors)
    ratio, _ = RatioRead(sums, weights).column(every)
    careful, _ = RatioRead(negative, weights).column(every)
    assert np.array_equal((-careful).view(np.int64), ratio.view(np.int64))
    assert np.array_equal(ratio, sums.quotient(every, divisors))
    for slot in range(0, COUNT, 997):
        wanted = exact(sums, slot) / int(divisors[slot])
        assert ratio[slot] == rounded(wanted)


@pytest.mark.parametrize("step", [-1, 0, 1])
def test_ratio_on_a_rounding_boundary_is_decided_exactly(step):
    # The quotient is 2^53 + 1, a tie of two doubles, or differs from it by next to nothing;
    # the divisor is too long for the short division.
    divisor = [1.0, 2.0**-100]
    dividend = [v * w for v in divisor for w in (2.0**53, 1.0)]
    quotient, _ = summed(*dividend, step * 2.0**-300).ratio(ZERO, summed(*divisor))
    assert quotient[0] == 2.0**53 + (2 if step > 0 else 0)


@settings(max_examples=24 * EXAMPLES // SAMPLED)
@given(st.lists(finite_floats, max_size=20), st.lists(int64s, max_size=20))
def test_squares_are_added_exactly(reals, integers):
    sums = summed()
    sums.add_square(at(0, reals), floats(reals))
    sums.add_square(at(0, integers), np.array(integers, np.int64))
    wanted = exact_sum(Fraction(v) ** 2 for v in [*reals, *integers])
    assert exact(sums) == wanted
    sums.remove_square(at(0, reals), floats(reals))
    assert exact(sums) == exact_sum(v**2 for v in integers)


@settings(max_examples=24 * EXAMPLES // SAMPLED)
@given(st.lists(int64s, max_size=20))
def test_integers_are_added_exactly_and_not_as_floats(values):
    sums = summed()
    sums.add(at(0, values), np.array(values, np.int64))
    assert exact(sums) == sum(values)
    sums.remove(at(0, values), np.array(values, np.int64))
    assert exact(sums) == 0


@settings(max_examples=24 * EXAMPLES // SAMPLED)
@given(st.lists(st.tuples(any_floats, st.integers(-(2**53), 2**53)), max_size=20))
def test_products_are_rounded_once_and_added_exactly(pairs):
    left, right = floats([a for a, _ in pairs]), np.array([b for _, b in pairs], np.int64)
    products = [a * float(b) for a, b in pairs]
    for factor in (right, right.astype(np.float64)):
        sums = summed()
        sums.add_product(at(0, pairs), left, factor)
        assert same(read(sums), float_sum(products))
        sums.remove_product(at(0, pairs), left, factor)
        assert encoded(sums) == encoded(summed())


def test_nan_inf_retract_recovers():
    sums = summed(1.5, math.inf)
    assert read(sums) == math.inf
    sums.add(slots(0, 0), floats([-math.inf, math.nan]))
    assert math.isnan(read(sums))
    sums.remove(slots(0, 0), floats([math.nan, math.inf]))
    assert read(sums) == -math.inf
    sums.remove(ZERO, floats([-math.inf]))
    assert read(sums) == 1.5


def test_sum_beyond_the_largest_double_comes_back():
    sums = summed(*[1e308] * 1000)
    assert read(sums) == math.inf
    sums.remove(at(0, range(999)), np.full(999, 1e308))
    assert read(sums) == 1e308
    largest = 1.7976931348623157e308
    assert read(summed(largest, 2.0**969)) == largest
    assert read(summed(largest, 2.0**970)) == math.inf  # the tie rounds up, as IEEE 754 says


def test_small_after_large_is_not_lost():
    sums = summed(1.0, 1e17, -1e17)
    assert read(sums) == 1.0
    assert read(summed(1e300, 1.0, 1e-300, -1e300, -1.0)) == 1e-300


def test_a_billion_tenths_equal_the_exact_product():
    sums = summed(count=2)
    block = np.full(1_000_000, 0.1)
    sums.add(at(0, block), block)
    for _ in range(3):  # ten of the last, merged: 10^7, 10^8, 10^9 terms
        part = sums.encode(ZERO)
        for _ in range(9):
            sums.decode(slots(1), *part)
            sums.merge(slots(0), slots(1))
    assert exact(sums) == Fraction(0.1) * 10**9
    assert read(sums) == rounded(Fraction(0.1) * 10**9)
    assert sums.quotient(ZERO, slots(10**9))[0] == 0.1


def test_signed_zeros_sum_to_plus_zero():
    for values in ([], [-0.0], [-0.0, -0.0], [1.0, -1.0], [-5e-324, 5e-324]):
        assert same(read(summed(*values)), 0.0)


def test_wide_sum_narrows_again_and_gives_its_memory_back():
    sums = summed(1e-300, 1e300, count=100)
    wide = sums.nbytes
    assert wide > 100 * 40
    for _ in range(50):
        for slot in range(1, 100):
            sums.add(slots(slot, slot), floats([1e-300, 1e300]))
            sums.clear(slots(slot))
    sums.remove(ZERO, floats([1e300]))
    for _ in range(100):
        sums.add(ZERO, floats([1e-300]))
    assert exact(sums) == Fraction(1e-300) * 101
    assert sums.nbytes == wide  # one wide accumulator was enough all along


SPECIALS = (math.inf, -math.inf, math.nan, 0.0, -0.0, 5e-324, -2.2e-308, 2.0**-1022)
LARGEST = math.nextafter(math.inf, 0.0)


@pytest.mark.parametrize("scale", [3, 60, 1000])
@pytest.mark.parametrize("count", [63, 64, 1024, 1025, 5000])
def test_many_values_for_one_slot_at_once_are_added_like_each_alone(scale, count):
    random_ = random.Random(f"{scale}/{count}")
    values = [random_.uniform(-1, 1) * 2.0 ** random_.randint(-scale, scale) for _ in range(count)]
    for _ in range(count // 20):
        values[random_.randrange(count)] = random_.choice((*SPECIALS, LARGEST, -LARGEST))
    together, alone = summed(0.1, count=2), summed(0.1, count=2)
    together.add(at(1, values), floats(values))
    together.remove(at(0, values), floats(values))
    for value in values:
        alone.add(slots(1), floats([value]))
        alone.remove(ZERO, floats([value]))
    for slot in (0, 1):
        assert encoded(together, slot) == encoded(alone, slot)


def test_many_largest_doubles_for_one_slot_do_not_overflow():
    values = [LARGEST] * 3000
    assert exact(summed(*values)) == 3000 * Fraction(LARGEST)
    assert exact(summed(*[-value for value in values])) == -3000 * Fraction(LARGEST)


def test_long_random_walk_through_all_exponents_stays_exact():
    random_ = random.Random(5)
    sums, total = summed(), Fraction(0)
    for step in range(4000):
        scale = [3, 60, 250, 1000][step // 1000]
        value = random_.uniform(-1, 1) * 2.0 ** random_.randint(-scale, scale)
        if random_.random() < 0.5:
            sums.add(ZERO, floats([value]))
            total += Fraction(value)
        else:
            sums.remove(ZERO, floats([value]))
            total -= Fraction(value)
        if step % 50 == 0:
            assert exact(sums) == total
    assert read(sums) == rounded(total)


def test_slots_outside_and_unequal_lengths_are_refused_before_anything_changes():
    sums = summed(1.0)
    with pytest.raises(IndexError, match="slot 1 at position 1"):
        sums.add(slots(0, 1), floats([1.0, 1.0]))
    with pytest.raises(IndexError, match="slot -1"):
        sums.clear(slots(-1))
    with pytest.raises(ValueError, match="2 slots, but 1 values"):
        sums.add(slots(0, 0), floats([1.0]))
    assert read(sums) == 1.0


def test_shrinking_forgets_the_slots_beyond():
    sums = summed(1.0, count=3)
    sums.add(slots(2, 2), floats([math.nan, 1.0]))
    sums.resize(1)
    sums.resize(3)
    assert read(sums, 2) == 0.0
    assert read(sums) == 1.0


@pytest.mark.parametrize(
    ("exponent", "size"), [(-2177, 1), (2112, 1), (0, 600), (2105, 3), (-2176, 537)]
)
def test_decoding_beyond_the_range_is_refused(exponent, size):
    digits = np.full(size, 0x11, np.uint8)
    with pytest.raises(ValueError, match="range"):
        summed().decode(
            ZERO, np.array([exponent], np.int32), slots(0, size), digits, np.zeros((3, 1), np.int64)
        )


def test_decoding_offsets_outside_the_digits_is_refused():
    exponents, specials = np.zeros(1, np.int32), np.zeros((3, 1), np.int64)
    for offsets in (slots(0, 2), slots(-1, 1), slots(1, 0)):
        with pytest.raises(ValueError, match="outside their buffer"):
            summed().decode(ZERO, exponents, offsets, np.ones(1, np.uint8), specials)


def test_quotient_of_integers_overflows_to_infinity():
    assert quotient_of((1, 2000), (-1, 0)) == -math.inf
    assert quotient_of((1, 2000), (3, 2000)) == 1 / 3
