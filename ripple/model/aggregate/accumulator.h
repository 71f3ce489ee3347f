/* Columns of exact accumulators: fixed-point integers wide enough for every sum of doubles.
 *
 * The value of a slot is a two's complement integer of 256 bits (its window) times a power of
 * two chosen from what was added. A sum that does not fit moves to a wide accumulator, which
 * covers all sums of 2^63 doubles or squares of doubles. After R. M. Neal, "Fast exact
 * summation using small and large superaccumulators", arXiv:1505.05571, with one window per
 * slot instead of one large accumulator so that millions of slots stay small.
 *
 * Functions that may allocate return 0, or -1 when memory ran out; then the slot may have
 * lost its invariant, and the accumulators must be thrown away.
 */
#ifndef RIPPLE_ACCUMULATOR_H
#define RIPPLE_ACCUMULATOR_H

#include <stdlib.h>

#include "rounding.h"

enum {
    LIMBS = 4,
    WIDE_LIMBS = 67,
    BIAS = 2176,         /* weight of bit b of a wide accumulator: 2^(b - BIAS) */
    SPAN_MAX = 190,      /* bits that a window is made for; the rest is room to grow */
    NARROW_INTERVAL = 64 /* adds to a wide accumulator between two tries to narrow it */
};

#define EMPTY (INT32_MIN / 2)       /* base of a slot without a window: the value is zero */
#define SPILLED (INT32_MIN / 2 + 1) /* limb[0] is the index of a wide accumulator */
#define ABSENT (-1)

/* Invariant of a window: the two top bits are equal, so adding one term cannot wrap. */
typedef struct {
    uint64_t limb[LIMBS];
    int32_t base; /* bit 0 of the window is bit `base` of a wide accumulator; may be negative */
    int32_t special;
} Slot;

typedef struct {
    uint64_t limb[WIDE_LIMBS];
    uint64_t adds;
} Wide;

/* Values that no finite sum can hold are counted, so that removing them restores the sum. */
typedef struct {
    int64_t nan, positive, negative;
} Special;

/* Items by index, recycled; a free item holds the index of the next free one. */
typedef struct {
    char* items;
    size_t item_bytes;
    int32_t used, capacity, free;
} Pool;

/* The slots lie `stride` bytes apart, in records that other accumulators share; ripple.model.aggregate.part
 * has the records. */
typedef struct {
    char* slots;
    int64_t stride;
    Pool wides, specials;
} Accumulators;

static inline Slot* slot_at(const Accumulators* a, int64_t slot)
{
    return (Slot*)(a->slots + slot * a->stride);
}

/* -- pools ------------------------------------------------------------------------------- */

static inline void* pool_at(const Pool* pool, int64_t index)
{
    return pool->items + (size_t)index * pool->item_bytes;
}

static inline int32_t pool_take(Pool* pool) /* a zeroed item, or ABSENT without memory */
{
    int32_t index = pool->free;
    if (index != ABSENT) {
        memcpy(&pool->free, pool_at(pool, index), 4);
    } else {
        if (pool->used == pool->capacity) {
            if (pool->capacity > INT32_MAX / 2)
                return ABSENT;
            const int32_t capacity = pool->capacity ? 2 * pool->capacity : 4;
            char* items = realloc(pool->items, (size_t)capacity * pool->item_bytes);
            if (!items)
                return ABSENT;
            pool->items = items;
            pool->capacity = capacity;
        }
        index = pool->used++;
    }
    memset(pool_at(pool, index), 0, pool->item_bytes);
    return index;
}

static inline void pool_give(Pool* pool, int32_t index)
{
    memcpy(pool_at(pool, index), &pool->free, 4);
    pool->free = index;
}

/* -- limbs ------------------------------------------------------------------------------- */

static inline void limbs_carry(uint64_t* limb, int from, int count, int64_t carry)
{
    for (int j = from; carry && j < count; j++) {
        if (carry > 0)
            carry = ++limb[j] == 0;
        else
            carry = -(int64_t)(limb[j]-- == 0);
    }
}

/* Add (or, with sign all ones, subtract) term * 2^shift; shift + 128 <= 64 * count. */
static inline void limbs_add(uint64_t* limb, int count, uint32_t shift, u128 term, uint64_t sign)
{
    const uint32_t i = shift >> 6, s = shift & 63;
    const uint64_t low = (uint64_t)term, high = (uint64_t)(term >> 64);
    const uint64_t part[3] = {
        low << s,
        (high << s) | ((low >> 1) >> (63 - s)),
        (high >> 1) >> (63 - s),
    };
    uint64_t carry = sign & 1;
    for (int j = 0; j < 3; j++) {
        const u128 sum = (u128)limb[i + j] + (part[j] ^ sign) + carry;
        limb[i + j] = (uint64_t)sum;
        carry = (uint64_t)(sum >> 64);
    }
    limbs_carry(limb, i + 3, count, (int64_t)(carry + sign));
}

/* 64 bits from any bit position: zeros below the limbs, the sign above them. */
static inline uint64_t limbs_at(const uint64_t* limb, int count, int position)
{
    const int k = position >> 6, s = position & 63; /* >> rounds down: arithmetic shift */
    const uint64_t sign = 0 - (limb[count - 1] >> 63);
    const uint64_t low = k < 0 ? 0 : k < count ? limb[k] : sign;
    const uint64_t high = k + 1 < 0 ? 0 : k + 1 < count ? limb[k + 1] : sign;
    return s ? low >> s | high << (64 - s) : low;
}

/* Lowest set bit and the bit above the highest one that is not sign; 0 for zero. */
static inline int limbs_span(const uint64_t* limb, int count, int* low, int* high)
{
    const uint64_t sign = 0 - (limb[count - 1] >> 63);
    int bottom = 0, top = count - 1;
    while (bottom < count && limb[bottom] == 0)
        bottom++;
    if (bottom == count)
        return 0;
    while (top >= 0 && limb[top] == sign)
        top--;
    *low = 64 * bottom + __builtin_ctzll(limb[bottom]);
    *high = top < 0 ? 0 : 64 * top + bit_length64(limb[top] ^ sign);
    if (*high <= *low) /* minus a power of two: one bit and its sign */
        *high = *low + 1;
    return 1;
}

/* -- the value of a slot, whatever its form ---------------------------------------------- */

typedef struct {
    uint64_t* limb;
    int count, base;
} Value;

static inline Value value_of(const Accumulators* a, int64_t slot)
{
    Slot* s = slot_at(a, slot);
    Value window = {s->limb, LIMBS, s->base};
    if (s->base == SPILLED) {
        Value wide = {((Wide*)pool_at(&a->wides, (int64_t)s->limb[0]))->limb, WIDE_LIMBS, 0};
        return wide;
    }
    if (s->base == EMPTY)
        window.base = 0;
    return window;
}

static inline int value_span(const Accumulators* a, int64_t slot, int* low, int* high)
{
    const Value v = value_of(a, slot);
    if (!limbs_span(v.limb, v.count, low, high))
        return 0;
    *low += v.base;
    *high += v.base;
    return 1;
}

static inline Real value_real(const Accumulators* a, int64_t slot)
{
    uint64_t scratch[WIDE_LIMBS];
    const Slot* s = slot_at(a, slot);
    if (__builtin_expect(s->base != SPILLED, 1))
        return real_of_limbs(s->limb, LIMBS, s->base - BIAS, scratch);
    const Value v = value_of(a, slot);
    return real_of_limbs(v.limb, v.count, v.base - BIAS, scratch);
}

/* The base of a window for these bits: the same room below and above; multiples of 32 so that slots of
 * like values agree. */
static inline int32_t window_base(int low, int high)
{
    return (low - (255 - (high - low)) / 2) & ~31;
}

/* Give the slot the value that is in limbs at base (not the slot's own limbs). */
static inline int value_assign(Accumulators* a, int64_t slot, const uint64_t* limb, int count,
                               int base, int low, int high)
{
    Slot* s = slot_at(a, slot);
    if (high - low <= SPAN_MAX) {
        s->base = window_base(low, high);
        for (int j = 0; j < LIMBS; j++)
            s->limb[j] = limbs_at(limb, count, s->base + 64 * j - base);
        return 0;
    }
    const int32_t index = pool_take(&a->wides);
    if (index == ABSENT)
        return -1;
    Wide* wide = pool_at(&a->wides, index);
    for (int j = 0; j < WIDE_LIMBS; j++)
        wide->limb[j] = limbs_at(limb, count, 64 * j - base);
    s->base = SPILLED;
    s->limb[0] = (uint64_t)index;
    return 0;
}

/* Make the slot hold bits low .. high - 1 beside its value: move its window, or spill. */
static inline int make_room(Accumulators* a, int64_t slot, int low, int high)
{
    Slot* s = slot_at(a, slot);
    int own_low, own_high;
    const Slot old = *s;
    if (old.base == SPILLED)
        return 0;
    if (old.base == EMPTY && high - low <= SPAN_MAX) {
        s->base = window_base(low, high); /* all limbs are zero */
        return 0;
    }
    if (value_span(a, slot, &own_low, &own_high)) {
        low = own_low < low ? own_low : low;
        high = own_high > high ? own_high : high;
    }
    return value_assign(a, slot, old.limb, LIMBS, old.base == EMPTY ? 0 : old.base, low, high);
}

/* Restore the window's invariant after its top bits were reached. */
static inline int settle(Accumulators* a, int64_t slot)
{
    int low, high;
    if (slot_at(a, slot)->base == SPILLED || !value_span(a, slot, &low, &high))
        return 0;
    return make_room(a, slot, low, high);
}

static inline int window_is_full(const Slot* s)
{
    return (s->limb[LIMBS - 1] + (1ULL << 62)) >> 63;
}

static inline void clear_value(Accumulators* a, int64_t slot)
{
    Slot* s = slot_at(a, slot);
    if (s->base == SPILLED)
        pool_give(&a->wides, (int32_t)s->limb[0]);
    memset(s->limb, 0, sizeof s->limb);
    s->base = EMPTY;
}

static inline void clear_slot(Accumulators* a, int64_t slot)
{
    Slot* s = slot_at(a, slot);
    clear_value(a, slot);
    if (s->special != ABSENT)
        pool_give(&a->specials, s->special);
    s->special = ABSENT;
}

static inline void narrow(Accumulators* a, int64_t slot)
{
    const Wide wide = *(Wide*)pool_at(&a->wides, (int64_t)slot_at(a, slot)->limb[0]);
    int low, high;
    const int present = limbs_span(wide.limb, WIDE_LIMBS, &low, &high);
    if (present && high - low > SPAN_MAX - 32)
        return;
    clear_value(a, slot);
    if (present)
        value_assign(a, slot, wide.limb, WIDE_LIMBS, 0, low, high);
}

/* -- adding ------------------------------------------------------------------------------ */

/* Where terms are added in a loop, a call for each costs as much as the adding. */
#define IN_LOOPS inline __attribute__((always_inline))

static IN_LOOPS int add_term(Accumulators*, int64_t, uint64_t, int, uint64_t);
static inline int add_long_term(Accumulators*, int64_t, u128, int, uint64_t);

/* A term is term * 2^(position - BIAS), negated when sign is all ones. */
__attribute__((noinline, unused)) static int add_far(Accumulators* a, int64_t slot, u128 term,
                                                     int bits, int position, uint64_t sign)
{
    Slot* s = slot_at(a, slot);
    if (term == 0)
        return 0;
    if (make_room(a, slot, position, position + bits))
        return -1;
    if (s->base != SPILLED)
        return bits == 64 ? add_term(a, slot, (uint64_t)term, position, sign)
                          : add_long_term(a, slot, term, position, sign);
    Wide* wide = pool_at(&a->wides, (int64_t)s->limb[0]);
    limbs_add(wide->limb, WIDE_LIMBS, position, term, sign);
    if (++wide->adds % NARROW_INTERVAL == 0)
        narrow(a, slot);
    return 0;
}

/* A term of 64 bits: the hot path. */
static IN_LOOPS int add_term(Accumulators* a, int64_t slot, uint64_t term, int position,
                             uint64_t sign)
{
    Slot* s = slot_at(a, slot);
    const uint32_t shift = (uint32_t)(position - s->base);
    if (__builtin_expect(shift >= 64 * (LIMBS - 1), 0))
        return add_far(a, slot, term, 64, position, sign);
    uint64_t* limb = s->limb + (shift >> 6);
    const uint32_t b = shift & 63;
    /* In words of 64 bits: of longer ones compilers keep halves that are zero on the stack. */
    unsigned long long low, high;
    int64_t first = __builtin_uaddll_overflow(limb[0], (term << b) ^ sign, &low);
    first += __builtin_uaddll_overflow(low, sign & 1, &low);
    int64_t carry = __builtin_uaddll_overflow(limb[1], ((term >> 1) >> (63 - b)) ^ sign, &high);
    carry += __builtin_uaddll_overflow(high, (uint64_t)first, &high);
    carry += (int64_t)sign;
    limb[0] = low;
    limb[1] = high;
    if (__builtin_expect(carry != 0, 0))
        limbs_carry(s->limb, (int)(shift >> 6) + 2, LIMBS, carry);
    return __builtin_expect(window_is_full(s), 0) ? settle(a, slot) : 0;
}

/* A term of up to 128 bits: squares. */
static inline int add_long_term(Accumulators* a, int64_t slot, u128 term, int position,
                                uint64_t sign)
{
    Slot* s = slot_at(a, slot);
    const uint32_t shift = (uint32_t)(position - s->base);
    if (__builtin_expect(shift > 64 * (LIMBS - 2) - 1, 0))
        return add_far(a, slot, term, 128, position, sign);
    limbs_add(s->limb, LIMBS, shift, term, sign);
    return __builtin_expect(window_is_full(s), 0) ? settle(a, slot) : 0;
}

static inline Special slot_special(const Accumulators* a, int64_t slot)
{
    const Special none = {0, 0, 0};
    const int32_t index = slot_at(a, slot)->special;
    return index == ABSENT ? none : *(Special*)pool_at(&a->specials, index);
}

/* Most slots hold finite values only, so the counters come and go with what they count. */
static inline int count_special(Accumulators* a, int64_t slot, Special more)
{
    Slot* s = slot_at(a, slot);
    if (s->special == ABSENT && (s->special = pool_take(&a->specials)) == ABSENT)
        return -1;
    Special* special = pool_at(&a->specials, s->special);
    special->nan += more.nan;
    special->positive += more.positive;
    special->negative += more.negative;
    if (!special->nan && !special->positive && !special->negative) {
        pool_give(&a->specials, s->special);
        s->special = ABSENT;
    }
    return 0;
}

/* direction: +1 adds, -1 removes. bits: of the double itself. */
__attribute__((noinline, unused)) static int add_special(Accumulators* a, int64_t slot,
                                                         uint64_t bits, int64_t direction)
{
    Special more = {0, 0, 0};
    if (bits << 12)
        more.nan = direction;
    else if (bits >> 63)
        more.negative = direction;
    else
        more.positive = direction;
    return count_special(a, slot, more);
}

static IN_LOOPS int add_double(Accumulators* a, int64_t slot, double value, int64_t direction)
{
    const uint64_t bits = bits_of_double(value);
    const uint64_t fraction = bits & 0xFFFFFFFFFFFFFULL;
    const uint32_t exponent = (uint32_t)(bits >> 52) & 0x7FF;
    const uint64_t sign = 0 - ((bits ^ (uint64_t)direction) >> 63);
    if (__builtin_expect(exponent - 1 >= 0x7FE, 0)) {
        if (exponent == 0x7FF)
            return add_special(a, slot, bits, direction);
        return fraction ? add_term(a, slot, fraction, BIAS - 1074, sign) : 0;
    }
    return add_term(a, slot, fraction | 1ULL << 52, (int)exponent + BIAS - 1075, sign);
}

/* Remove a double and add another: of one magnitude, as most values are that follow each other, in one go. */
static inline int replace_double(Accumulators* a, int64_t slot, double old, double value)
{
    const uint64_t out = bits_of_double(old), in = bits_of_double(value);
    const uint32_t exponent = (uint32_t)(in >> 52) & 0x7FF;
    if (exponent != ((uint32_t)(out >> 52) & 0x7FF) || exponent - 1 >= 0x7FE)
        return add_double(a, slot, old, -1) | add_double(a, slot, value, 1);
    const int64_t left = (int64_t)((out & 0xFFFFFFFFFFFFFULL) | 1ULL << 52);
    const int64_t entered = (int64_t)((in & 0xFFFFFFFFFFFFFULL) | 1ULL << 52);
    const int64_t more = ((int64_t)in < 0 ? -entered : entered) - ((int64_t)out < 0 ? -left : left);
    const uint64_t sign = (uint64_t)(more >> 63);
    return add_term(a, slot, ((uint64_t)more ^ sign) - sign, (int)exponent + BIAS - 1075, sign);
}

static inline int add_integer_at(Accumulators* a, int64_t slot, int64_t value, int position)
{
    const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    return add_term(a, slot, magnitude, position, (uint64_t)(value >> 63));
}

enum {
    PIECES = 64,              /* one for each of so many neighbouring exponents */
    PIECES_ADDS_MAX = 1 << 10 /* so many terms of 53 bits fit in a piece of 64 */
};

/* Add many values to one slot, those that are chosen if it is not NULL: mantissas of one exponent are
 * added as they are, as in Neal's large superaccumulator; here of exponents near that of the first. */
__attribute__((unused)) static int add_doubles(Accumulators* a, int64_t slot, const double* values,
                                               const uint8_t* chosen, int64_t n, int64_t direction)
{
    int failed = 0;
    for (int64_t first = 0; first < n; first += PIECES_ADDS_MAX) {
        int64_t pieces[PIECES] = {0};
        const int64_t end = n - first > PIECES_ADDS_MAX ? first + PIECES_ADDS_MAX : n;
        int lowest = (int)(bits_of_double(values[first]) >> 52 & 0x7FF) - PIECES / 2;
        lowest = lowest < 1 ? 1 : lowest > 0x7FF - PIECES ? 0x7FF - PIECES : lowest;
        for (int64_t i = first; i < end; i++) {
            if (chosen && !chosen[i])
                continue;
            const uint64_t bits = bits_of_double(values[i]);
            const uint32_t at = (uint32_t)(bits >> 52 & 0x7FF) - (uint32_t)lowest;
            if (__builtin_expect(at >= PIECES, 0)) { /* far away, subnormal, or no number */
                failed |= add_double(a, slot, values[i], direction);
                continue;
            }
            const int64_t mantissa = (int64_t)((bits & 0xFFFFFFFFFFFFFULL) | 1ULL << 52);
            const int64_t sign = (int64_t)(bits ^ (uint64_t)direction) >> 63;
            pieces[at] += (mantissa ^ sign) - sign;
        }
        for (int i = 0; i < PIECES; i++)
            if (pieces[i])
                failed |= add_integer_at(a, slot, pieces[i], lowest + i + BIAS - 1075);
    }
    return failed;
}

static inline int add_square(Accumulators* a, int64_t slot, double value, int64_t direction)
{
    const uint64_t bits = bits_of_double(value);
    const uint32_t exponent = (uint32_t)(bits >> 52) & 0x7FF;
    uint64_t mantissa = bits & 0xFFFFFFFFFFFFFULL;
    if (exponent == 0x7FF) /* the square of an infinity is positive */
        return add_special(a, slot, bits & 0x7FFFFFFFFFFFFFFFULL, direction);
    if (exponent)
        mantissa |= 1ULL << 52;
    if (!mantissa)
        return 0;
    return add_long_term(a, slot, (u128)mantissa * mantissa,
                         2 * ((int)(exponent ? exponent : 1) - 1075) + BIAS,
                         (uint64_t)(direction >> 63));
}

static inline int add_integer(Accumulators* a, int64_t slot, int64_t value, int64_t direction)
{
    const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    return add_term(a, slot, magnitude, BIAS, (uint64_t)((value ^ direction) >> 63));
}

static inline int add_integer_square(Accumulators* a, int64_t slot, int64_t value,
                                     int64_t direction)
{
    const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    return add_long_term(a, slot, (u128)magnitude * magnitude, BIAS,
                         (uint64_t)(direction >> 63));
}

/* value * weight, not rounded; value finite. */
static inline int add_weighted_double(Accumulators* a, int64_t slot, double value,
                                      uint64_t weight)
{
    const uint64_t bits = bits_of_double(value);
    const uint32_t exponent = (uint32_t)(bits >> 52) & 0x7FF;
    const uint64_t fraction = bits & 0xFFFFFFFFFFFFFULL;
    const u128 term = (u128)(exponent ? fraction | 1ULL << 52 : fraction) * weight;
    return add_long_term(a, slot, term, (int)(exponent ? exponent : 1) - 1075 + BIAS,
                         0 - (bits >> 63));
}

static inline int add_weighted_integer(Accumulators* a, int64_t slot, int64_t value,
                                       uint64_t weight)
{
    const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    return add_long_term(a, slot, (u128)magnitude * weight, BIAS, (uint64_t)(value >> 63));
}

/* -- merging ----------------------------------------------------------------------------- */

/* Move everything in `source` to `into`; the slots differ. */
static inline int merge_slots(Accumulators* a, int64_t into, int64_t source)
{
    int low, high;
    Slot* x = slot_at(a, into);
    Slot* y = slot_at(a, source);
    const Special more = slot_special(a, source);
    if (y->special != ABSENT && count_special(a, into, more))
        return -1;
    if (value_span(a, source, &low, &high)) {
        if (make_room(a, into, low, high))
            return -1;
        const Value to = value_of(a, into), from = value_of(a, source);
        uint64_t carry = 0;
        for (int j = 0; j < to.count; j++) {
            const uint64_t part = limbs_at(from.limb, from.count, to.base + 64 * j - from.base);
            const u128 sum = (u128)to.limb[j] + part + carry;
            to.limb[j] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
        if (x->base != SPILLED ? window_is_full(x) && settle(a, into) : 0)
            return -1;
    }
    clear_slot(a, source);
    return 0;
}

/* -- reading ----------------------------------------------------------------------------- */

/* 1 and the double when the value is not finite; 0 when it is. */
static inline int special_value(const Accumulators* a, int64_t slot, double* out)
{
    if (__builtin_expect(slot_at(a, slot)->special == ABSENT, 1))
        return 0;
    const Special special = slot_special(a, slot);
    if (special.nan > 0 || (special.positive > 0 && special.negative > 0))
        *out = double_of_bits(0x7FF8000000000000ULL);
    else if (special.positive > 0)
        *out = double_of_bits(0x7FF0000000000000ULL);
    else if (special.negative > 0)
        *out = double_of_bits(0xFFF0000000000000ULL);
    else
        return 0;
    return 1;
}

/* The double nearest to the slot's value divided by the divisor, how it nearly always is: a window
 * with a positive value, and a quotient that is neither subnormal nor infinite. 0 for all else. */
static IN_LOOPS int slot_divided(const Accumulators* a, int64_t slot, uint64_t divisor, double* out)
{
    const Slot* s = slot_at(a, slot);
    const uint64_t* limb = s->limb;
    /* The highest limb with a bit is the third or the second: a window has as much room above as below. */
    const int at = limb[2] ? 2 : 1;
    const uint64_t first = limb[at];
    if (limb[3] || !first || !divisor || s->base == SPILLED || s->special != ABSENT)
        return 0;
    const uint64_t second = limb[at - 1], third = at == 2 ? limb[0] : 0;
    const int shift = __builtin_clzll(first), divisor_shift = __builtin_clzll(divisor);
    const uint64_t high = first << shift | (second >> 1) >> (63 - shift);
    const uint64_t low = second << shift | (third >> 1) >> (63 - shift);
    divisor <<= divisor_shift;
    /* Halved if the quotient would not fit: no branch, for it is as likely as not. */
    const uint64_t halved = high >= divisor;
    uint64_t rest;
    const uint64_t quotient =
        divide_128(high >> halved, low >> halved | (high & halved) << 63, divisor, &rest);
    /* Both have their highest bit, and so has the quotient: 53 of its bits are the result's. */
    const int more = (rest | (low & halved) | third << shift) != 0;
    const int lowest = s->base - BIAS + 64 * at - shift - 64 + divisor_shift + (int)halved + 11;
    if (lowest < -1074 || lowest >= 971)
        return 0;
    uint64_t mantissa = quotient >> 11;
    mantissa += ((quotient & 2047) + 1023 + ((mantissa | (uint64_t)more) & 1)) >> 11;
    *out = double_of_bits(((uint64_t)(lowest + 1074) << 52) + mantissa);
    return 1;
}

static inline double slot_quotient(const Accumulators* a, int64_t slot, int64_t divisor)
{
    double value;
    if (divisor > 0 && slot_divided(a, slot, (uint64_t)divisor, &value))
        return value;
    if (special_value(a, slot, &value))
        return divisor < 0 ? -value : value;
    return real_round(real_divide_signed(value_real(a, slot), divisor));
}

static inline double slot_sum(const Accumulators* a, int64_t slot)
{
    double value;
    return special_value(a, slot, &value) ? value : real_round(value_real(a, slot));
}

/* Where a quantile lies among `size` ordered values: below rank, and how far to the next. */
static inline int64_t quantile_rank(int64_t size, uint64_t numerator, uint64_t denominator,
                                    int64_t* remainder)
{
    const u128 place = (u128)(size - 1) * numerator;
    *remainder = (int64_t)(place % denominator);
    return (int64_t)(place / denominator);
}

/* The nearest-rank rule: the smallest rank at or above numerator / denominator of size. */
static inline int64_t nearest_rank(int64_t size, uint64_t numerator, uint64_t denominator)
{
    const u128 place = (u128)size * numerator;
    const int64_t above = (int64_t)((place + denominator - 1) / denominator);
    return above ? above - 1 : 0;
}

/* -- whole columns ----------------------------------------------------------------------- */

/* The value without its trailing zeros as count signed little-endian bytes; low from span. */
static inline void value_bytes(const Accumulators* a, int64_t slot, int low, int count,
                               unsigned char* out)
{
    const Value v = value_of(a, slot);
    for (int j = 0; j < count; j++)
        out[j] = (unsigned char)limbs_at(v.limb, v.count, low - v.base + 8 * j);
}

/* The inverse, for an empty slot; 1 when the value is beyond every sum of doubles. */
static inline int load_bytes(Accumulators* a, int64_t slot, int low, int count,
                             const unsigned char* data)
{
    uint64_t limb[WIDE_LIMBS];
    int high;
    memset(limb, data[count - 1] >> 7 ? 0xFF : 0, sizeof limb);
    for (int j = 0; j < count; j++) {
        const int shift = 8 * (j % 8);
        limb[j / 8] &= ~(0xFFULL << shift);
        limb[j / 8] |= (uint64_t)data[j] << shift;
    }
    const int base = low;
    if (!limbs_span(limb, WIDE_LIMBS, &low, &high))
        return 0;
    if (high + base >= 64 * WIDE_LIMBS)
        return 1;
    return value_assign(a, slot, limb, WIDE_LIMBS, base, low + base, high + base);
}

static inline void open_slot(Accumulators* a, int64_t slot)
{
    Slot* s = slot_at(a, slot);
    memset(s, 0, sizeof *s);
    s->base = EMPTY;
    s->special = ABSENT;
}

static inline void accumulators_open(Accumulators* a)
{
    memset(a, 0, sizeof *a);
    a->wides.item_bytes = sizeof(Wide);
    a->specials.item_bytes = sizeof(Special);
    a->wides.free = a->specials.free = ABSENT;
}

static inline void accumulators_close(Accumulators* a)
{
    free(a->wides.items);
    free(a->specials.items);
}

static inline int64_t accumulators_nbytes(const Accumulators* a)
{
    return a->wides.capacity * (int64_t)sizeof(Wide) +
           a->specials.capacity * (int64_t)sizeof(Special);
}

#endif
