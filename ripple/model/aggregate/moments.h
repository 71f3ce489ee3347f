/* Spread from exact moments: n * sum(x^2) - sum(x)^2, its quotient and the root of that.
 *
 * Every function returns 0 when the short form cannot decide; the caller then computes with
 * integers of any length.
 */
#ifndef RIPPLE_MOMENTS_H
#define RIPPLE_MOMENTS_H

#include "accumulator.h"

enum { MOMENT_LIMBS = 24 };

/* limb[0..3] times limb[0..3], all unsigned. */
static inline void limbs_square(const uint64_t* limb, uint64_t* out)
{
    memset(out, 0, 2 * LIMBS * 8);
    for (int i = 0; i < LIMBS; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < LIMBS; j++) {
            const u128 sum = (u128)limb[i] * limb[j] + out[i + j] + carry;
            out[i + j] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
        out[i + LIMBS] = carry;
    }
}

/* n * squares - sums^2, which is never negative for n values (Cauchy-Schwarz). */
static inline int moment_real(const Accumulators* sums, const Accumulators* squares,
                              int64_t slot, uint64_t n, Real* out)
{
    const Value s = value_of(sums, slot), q = value_of(squares, slot);
    uint64_t negated[LIMBS], square[2 * LIMBS + 1], scaled[LIMBS + 2];
    uint64_t difference[MOMENT_LIMBS], scratch[MOMENT_LIMBS];
    const Real zero = {0, 0, 0, 0};
    if (s.count != LIMBS || q.count != LIMBS || q.limb[LIMBS - 1] >> 63)
        return 0;
    *out = zero;
    if (!(q.limb[0] | q.limb[1] | q.limb[2] | q.limb[3]))
        return 1;
    const int low_q = q.base - BIAS;
    /* A sum of zero has no place of its own. */
    const int low_s = s.limb[0] | s.limb[1] | s.limb[2] | s.limb[3] ? 2 * (s.base - BIAS) : low_q;
    const int low = low_s < low_q ? low_s : low_q;
    if (low_s - low > 64 * (MOMENT_LIMBS - 2 * LIMBS - 1) ||
        low_q - low > 64 * (MOMENT_LIMBS - LIMBS - 2))
        return 0;
    limbs_square(real_of_limbs(s.limb, LIMBS, 0, negated).negative ? negated : s.limb, square);
    square[2 * LIMBS] = 0;
    uint64_t carry = 0;
    for (int j = 0; j < LIMBS; j++) {
        const u128 product = (u128)q.limb[j] * n + carry;
        scaled[j] = (uint64_t)product;
        carry = (uint64_t)(product >> 64);
    }
    scaled[LIMBS] = carry;
    scaled[LIMBS + 1] = 0;
    uint64_t borrow = 0;
    for (int j = 0; j < MOMENT_LIMBS; j++) {
        const uint64_t left = limbs_at(scaled, LIMBS + 2, 64 * j - (low_q - low));
        const uint64_t right = limbs_at(square, 2 * LIMBS + 1, 64 * j - (low_s - low));
        const u128 value = (u128)left - right - borrow;
        difference[j] = (uint64_t)value;
        borrow = (uint64_t)(value >> 64) & 1;
    }
    *out = real_of_limbs(difference, MOMENT_LIMBS, low, scratch);
    return !out->negative;
}

static inline uint64_t root64(u128 x) /* floor of the square root; x < 2^127 */
{
    uint64_t root = (uint64_t)__builtin_sqrt((double)x);
    if (root)
        root = (uint64_t)((root + x / root) / 2);
    while ((u128)root * root > x)
        root--;
    while ((u128)(root + 1) * (root + 1) <= x)
        root++;
    return root;
}

/* The double nearest to the square root of x / divisor; x normal. */
static inline int real_root(Real x, uint64_t divisor, double* out)
{
    *out = 0.0;
    if (x.top == 0)
        return 1;
    /* x / divisor lies in [low, high] * 2^exponent with an even exponent and 126 or 127 bits,
     * so that the root has 63 or 64; both ends must agree on its integer part. */
    const u128 quotient = x.top / divisor;
    const u128 rest = x.top - quotient * divisor;
    const int shift = 128 - bit_length128(quotient);
    const u128 more = rest << shift;
    u128 low = quotient << shift | more / divisor;
    int exponent = x.exponent - shift;
    const int drop = exponent & 1 ? 1 : 2;
    const int lost =
        x.sticky || more % divisor != 0 || (low & (((u128)1 << drop) - 1)) != 0;
    low >>= drop;
    exponent += drop;
    const u128 high = low + 3 + (((u128)1 << shift) / divisor >> drop);
    Real root = {root64(low), exponent / 2, 0, 0};
    root.sticky = lost || root.top * root.top != low;
    *out = real_round(root);
    return !lost || root64(high) == (uint64_t)root.top;
}

#endif
