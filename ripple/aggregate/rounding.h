/* Exact reals and the one rounding that turns them into a double (half to even).
 *
 * Needs a compiler with unsigned __int128 (GCC, Clang). Nothing here depends on the
 * floating-point environment: results are assembled from integers.
 */
#ifndef RIPPLE_ROUNDING_H
#define RIPPLE_ROUNDING_H

#include <stdint.h>
#include <string.h>

typedef __int128 i128;
typedef unsigned __int128 u128;

/* |value| = top * 2^exponent + rest with 0 <= rest < 2^exponent, and rest > 0 exactly when
 * sticky is set. Invariant: top == 0 means zero; sticky implies top >= 2^60, so that the
 * rounding position lies inside top. Normal: zero, or bit 127 of top is set. */
typedef struct {
    u128 top;
    int32_t exponent;
    int sticky;
    int negative;
} Real;

static inline int real_is_zero(Real x) { return x.top == 0; }

static inline int bit_length64(uint64_t x) { return x ? 64 - __builtin_clzll(x) : 0; }

static inline int bit_length128(u128 x)
{
    uint64_t high = (uint64_t)(x >> 64);
    return high ? 64 + bit_length64(high) : bit_length64((uint64_t)x);
}

static inline double double_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static inline uint64_t bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

/* The double nearest to x: subnormals and overflow to infinity included; an exact zero is
 * +0.0, a value too small for the smallest subnormal keeps its sign. */
static inline double real_round(Real x)
{
    const uint64_t sign = (uint64_t)(x.negative != 0) << 63;
    if (x.top == 0)
        return 0.0;
    int lowest = x.exponent + bit_length128(x.top) - 53; /* of the result, if it is normal */
    if (lowest < -1074)
        lowest = -1074;
    const int drop = lowest - x.exponent;
    uint64_t mantissa;
    if (drop <= 0) {
        mantissa = (uint64_t)(x.top << -drop);
    } else if (drop > 128) {
        mantissa = 0; /* below half of the smallest subnormal */
    } else {
        const u128 half = (u128)1 << (drop - 1);
        const u128 below = x.top & (half - 1);
        mantissa = drop == 128 ? 0 : (uint64_t)(x.top >> drop);
        if ((x.top & half) && (below || x.sticky || (mantissa & 1)))
            mantissa++;
    }
    /* mantissa carries its leading bit into the exponent field; so does rounding up. */
    if (lowest > 971 || (lowest == 971 && mantissa >> 53))
        return double_of_bits(sign | 0x7FF0000000000000ULL);
    return double_of_bits(sign | ((((uint64_t)(lowest + 1074)) << 52) + mantissa));
}

/* x / divisor, exactly; x is normal (real_of_limbs, real_of_integer), divisor > 0. */
static inline Real real_divide(Real x, uint64_t divisor)
{
    const u128 quotient = x.top / divisor;
    Real out = {quotient, x.exponent, x.sticky || quotient * divisor != x.top, x.negative};
    return out;
}

/* x / divisor for a count that removals may have taken below zero; zero divides to zero. */
static inline Real real_divide_signed(Real x, int64_t divisor)
{
    if (divisor == 0)
        x.top = 0, x.sticky = 0, divisor = 1;
    x.negative = x.negative != (divisor < 0);
    return real_divide(x, divisor < 0 ? 0 - (uint64_t)divisor : (uint64_t)divisor);
}

/* The double nearest to x / y, both normal; 0 when truncated operands cannot decide it. */
static inline int real_ratio(Real x, Real y, double* out)
{
    *out = 0.0;
    if (x.top == 0)
        return 1;
    const uint64_t divisor = (uint64_t)(y.top >> 64);
    Real low = x;
    low.negative = x.negative != y.negative;
    low.exponent = x.exponent - (y.exponent + 64);
    if (!y.sticky && !(uint64_t)y.top) {
        *out = real_round(real_divide(low, divisor));
        return 1;
    }
    /* divisor <= |y| < divisor + 1 in units of its last place: bracket the quotient, and
     * both ends must round alike. Ambiguous about once in 500. */
    Real high = low;
    low.top = divisor == UINT64_MAX ? x.top >> 64 : x.top / (divisor + 1);
    high.top = x.top / divisor + 2;
    low.sticky = high.sticky = 0;
    *out = real_round(low);
    return bits_of_double(*out) == bits_of_double(real_round(high));
}

static inline Real real_of_integer(i128 value)
{
    const u128 magnitude = value < 0 ? 0 - (u128)value : (u128)value;
    const int shift = magnitude ? 128 - bit_length128(magnitude) : 0;
    Real out = {magnitude << shift, -shift, 0, value < 0};
    return out;
}

/* The real in `count` two's complement limbs whose lowest bit weighs 2^exponent.
 * scratch: of the same length; has the magnitude of a negative one then. */
static inline Real real_of_limbs(const uint64_t* limb, int count, int exponent, uint64_t* scratch)
{
    Real out = {0, 0, 0, 0};
    const uint64_t* magnitude = limb;
    int top = count - 1;
    out.negative = (int)(limb[top] >> 63);
    if (out.negative) {
        unsigned carry = 1;
        for (int j = 0; j < count; j++) {
            scratch[j] = ~limb[j] + carry;
            carry = carry && scratch[j] == 0;
        }
        magnitude = scratch;
    }
    while (top >= 0 && magnitude[top] == 0)
        top--;
    if (top < 0)
        return out;
    const int shift = __builtin_clzll(magnitude[top]);
    const uint64_t second = top >= 1 ? magnitude[top - 1] : 0;
    const uint64_t third = top >= 2 ? magnitude[top - 2] : 0;
    out.top = ((u128)magnitude[top] << 64 | second) << shift;
    if (shift)
        out.top |= third >> (64 - shift);
    out.exponent = exponent + 64 * (top - 1) - shift;
    uint64_t rest = third << shift;
    for (int j = top - 3; j >= 0 && !rest; j--)
        rest = magnitude[j];
    out.sticky = rest != 0;
    return out;
}

#endif
