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
    uint64_t top = (uint64_t)(x.top >> 64), rest = (uint64_t)x.top;
    int exponent = x.exponent + 64;
    if (!top) {
        top = rest, rest = 0, exponent -= 64;
        if (!top)
            return 0.0;
    }
    const int shift = __builtin_clzll(top);
    if (shift) {
        top = top << shift | rest >> (64 - shift);
        rest <<= shift, exponent -= shift;
    }
    int drop = 11; /* bits of top, the highest of which is set now, that are not the result's */
    if (__builtin_expect(exponent + drop < -1074, 0)) {
        drop = -1074 - exponent;
        if (drop > 63) /* half of the smallest subnormal, or not even that */
            return double_of_bits(sign | (drop == 64 && (top << 1 || rest || x.sticky)));
    }
    /* No branch for what is as likely as not. */
    uint64_t mantissa = top >> drop;
    const uint64_t half = 1ULL << (drop - 1), below = top & (2 * half - 1);
    mantissa += (below + (half - 1) + ((mantissa | (rest != 0) | (x.sticky != 0)) & 1)) >> drop;
    /* mantissa carries its leading bit into the exponent field; so does rounding up. */
    const int lowest = exponent + drop;
    if (lowest > 971 || (lowest == 971 && mantissa >> 53))
        return double_of_bits(sign | 0x7FF0000000000000ULL);
    return double_of_bits(sign | ((((uint64_t)(lowest + 1074)) << 52) + mantissa));
}

/* The quotient of 128 bits; high < divisor, so that it fits. C has no word for this instruction. */
static inline uint64_t divide_128(uint64_t high, uint64_t low, uint64_t divisor, uint64_t* rest)
{
#ifdef __x86_64__
    uint64_t quotient;
    __asm__("divq %4" : "=a"(quotient), "=d"(*rest) : "0"(low), "1"(high), "r"(divisor) : "cc");
    return quotient;
#else
    const u128 dividend = (u128)high << 64 | low;
    *rest = (uint64_t)(dividend % divisor);
    return (uint64_t)(dividend / divisor);
#endif
}

/* x / divisor, as exact as a Real is: 64 bits and whether there is more. x is normal (real_of_limbs,
 * real_of_integer), divisor > 0. */
static inline Real real_divide(Real x, uint64_t divisor)
{
    const int shift = __builtin_clzll(divisor);
    const uint64_t high = (uint64_t)(x.top >> 64), low = (uint64_t)x.top;
    uint64_t rest;
    divisor <<= shift;
    /* Halved if the quotient would not fit: no branch, for it is as likely as not. */
    const uint64_t halved = high >= divisor;
    x.top = divide_128(high >> halved, low >> halved | (high & halved) << 63, divisor, &rest);
    x.exponent += shift + (int)halved;
    x.sticky |= (rest | (low & halved)) != 0;
    return x;
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
    const uint64_t divisor = (uint64_t)(y.top >> 64);
    x.negative = x.negative != y.negative;
    x.exponent -= y.exponent + 64;
    Real high = real_divide(x, divisor);
    *out = real_round(high);
    if (x.top == 0 || (!y.sticky && !(uint64_t)y.top))
        return 1;
    /* divisor <= |y| < divisor + 1 in units of its last place: bracket the quotient, and
     * both ends must round alike. Ambiguous about once in 500. */
    high.top++;
    high.sticky = 0;
    Real low = x;
    low.top >>= 64;
    if (divisor != UINT64_MAX)
        low = real_divide(x, divisor + 1);
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
static inline __attribute__((always_inline)) Real
real_of_limbs(const uint64_t* limb, int count, int exponent, uint64_t* scratch)
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
