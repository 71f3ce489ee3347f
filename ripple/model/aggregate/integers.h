/* 128-bit sums of 64-bit integers: fewer than 2^63 terms cannot wrap them. */
#ifndef RIPPLE_INTEGERS_H
#define RIPPLE_INTEGERS_H

#include "rounding.h"

static inline void integer_add(i128* sum, int64_t value, int64_t direction)
{
    *sum += direction < 0 ? -(i128)value : (i128)value;
}

static inline void integer_move(i128* into, i128* source)
{
    *into += *source;
    *source = 0;
}

/* 0 and the value when it is an int64, else -1. */
static inline int integer_read(const i128* sum, int64_t* out)
{
    *out = (int64_t)*sum;
    return *sum == (i128)*out ? 0 : -1;
}

#endif
