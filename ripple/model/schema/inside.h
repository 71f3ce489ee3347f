/* Whether all values of a column are within bounds.
 *
 * Loops without branches, in terms that vector instructions have: a value outside sets the highest
 * bit of what is gathered.
 */
#ifndef RIPPLE_INSIDE_H
#define RIPPLE_INSIDE_H

#include <stdint.h>
#include <string.h>

/* Two of them, of which compilers for any processor make what it has. A comparison is -1 or 0. */
typedef double Doubles __attribute__((vector_size(16)));
typedef int64_t Masks __attribute__((vector_size(16)));

/* Of float64 in [low, high]; NaN is not. */
static inline int all_floats_inside(const double* values, int64_t n, double low, double high)
{
    const Doubles lows = {low, low}, highs = {high, high};
    Masks inside = {-1, -1};
    int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
        Doubles two;
        memcpy(&two, values + i, sizeof two);
        inside &= (two >= lows) & (two <= highs);
    }
    if (i < n && !(values[i] >= low && values[i] <= high))
        return 0;
    return inside[0] && inside[1];
}

/* Of int64 in [low, high]. */
static inline int all_integers_inside(const int64_t* values, int64_t n, int64_t low, int64_t high)
{
    uint64_t outside = 0;
    if (low >= 0) {
        /* No difference of two numbers of one sign wraps; a negative number shows itself. */
        for (int64_t i = 0; i < n; i++) {
            const uint64_t value = (uint64_t)values[i];
            outside |= value | (value - (uint64_t)low) | ((uint64_t)high - value);
        }
        return !(outside >> 63);
    }
    const uint64_t span = (uint64_t)high - (uint64_t)low;
    for (int64_t i = 0; i < n; i++)
        outside |= (uint64_t)values[i] - (uint64_t)low > span;
    return !outside;
}

/* Of texts that end at `ends` and have `shortest` bytes or more. */
static inline int all_lengths_from(const int32_t* ends, int64_t n, int32_t shortest)
{
    uint32_t outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= (uint32_t)ends[i + 1] - (uint32_t)ends[i] - (uint32_t)shortest;
    return !(outside >> 31);
}

/* Of texts of that many characters of UTF-8. */
static inline int all_texts_inside(const int32_t* ends, const uint8_t* text, int64_t n,
                                   int64_t shortest, int64_t longest)
{
    int inside = 1;
    /* A text of one byte or more has one character or more, and need not be looked at. */
    if (shortest <= 1 && longest >= (int64_t)1 << 31)
        return all_lengths_from(ends, n, (int32_t)shortest);
    for (int64_t i = 0; i < n; i++) {
        int64_t length = ends[i + 1] - ends[i];
        for (int32_t j = ends[i]; j < ends[i + 1]; j++)
            length -= (text[j] & 0xC0) == 0x80; /* not the first byte of a character */
        inside &= shortest <= length && length <= longest;
    }
    return inside;
}

#endif
