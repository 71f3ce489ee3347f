/* Logarithms, exponentials and powers of one float as sums of two floats, head and tail, with a
   bound of their error; ``maths`` has the proof of the bounds.

   Each function answers whether all numbers within the bound are rounded alike; if not, the result
   is left to another. ``quick.h`` computes columns with fewer operations, and asks these for the
   undecided rows, and for subnormal numbers, infinities and NaN. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LOGS 256
#define POWERS 128
/* The bound of errors, relative to a logarithm, and to the begin of a step of an exponential. */
#define ERROR 0x1p-95

typedef struct { double head, tail; } Pair;
typedef struct { double inverse, head, tail; } Logarithm; /* of 1 / inverse */

/* Made by rounded.pyx, from decimals. */
static Logarithm logarithms[LOGS];
static Pair powers[POWERS];             /* 2^(j / 128) */
static double log2_parts[3];            /* of 42, 42 and 53 bits */
static double step_parts[3];            /* of log 2 / 128, of 34, 34 and 53 bits */
static Pair log_of_2, per_log2, per_log10;
static Pair reciprocals[8], factorials[6]; /* 1/n, 1/n! */
static double powers_of_log2[5];        /* (log 2)^n / n!, from 1 on */

#if defined(__GNUC__)
#define HERE static inline __attribute__((always_inline))
#else
#define HERE static inline
#endif

HERE Pair pair(double head, double tail) { Pair p = {head, tail}; return p; }

/* a + b exactly. */
HERE Pair sum(double a, double b) {
    double head = a + b, other = head - a;
    return pair(head, (a - (head - other)) + (b - other));
}

/* The same where |a| is not less than |b|, or a is 0. */
HERE Pair ordered(double a, double b) {
    double head = a + b;
    return pair(head, b - (head - a));
}

/* a * b exactly. */
HERE Pair product(double a, double b, int fused) {
    double head = a * b;
    if (fused) return pair(head, __builtin_fma(a, b, -head));
    double at = 134217729.0 * a, bt = 134217729.0 * b;
    double ah = at - (at - a), bh = bt - (bt - b), al = a - ah, bl = b - bh;
    return pair(head, ((ah * bh - head) + ah * bl + al * bh) + al * bl);
}

HERE Pair add(Pair a, Pair b) {
    Pair heads = sum(a.head, b.head), tails = sum(a.tail, b.tail);
    heads = ordered(heads.head, heads.tail + tails.head);
    return ordered(heads.head, heads.tail + tails.tail);
}

HERE Pair multiply(Pair a, Pair b, int fused) {
    Pair heads = product(a.head, b.head, fused);
    return ordered(heads.head, heads.tail + (a.head * b.tail + a.tail * b.head));
}

HERE uint64_t bits_of(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
HERE double of_bits(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
HERE double power_of_2(int64_t k) { return of_bits((uint64_t)(k + 1023) << 52); } /* of normal ones */

/* Whether value +- margin is one float, and which. */
HERE int is_sure(Pair value, double margin, double* result) {
    double low = value.head + (value.tail - margin), high = value.head + (value.tail + margin);
    *result = low;
    return low == high;
}

/* ---- logarithms: x + rest = 2^k (1 + z) / inverse, of x > 0 and finite ---- */

typedef struct { double k; Pair z; const Logarithm* known; } Reduced;

HERE Reduced reduced(double x, double rest) {
    int64_t below = 0;
    if (x < 0x1p-1022) { x *= 0x1p54; below = 54; } /* no such x has a rest */
    uint64_t bits = bits_of(x), from = bits - 0x3FE6000000000000u; /* of 0.6875 */
    int64_t k = (int64_t)from >> 52;
    double m = of_bits(bits - ((uint64_t)k << 52));
    Reduced r = {(double)(k - below), {0, 0}, &logarithms[from >> 44 & (LOGS - 1)]};
    /* An inverse has 10 bits, so these products are exact. */
    double high = of_bits(bits_of(m) & ~0x7FFFFFFull), inverse = r.known->inverse;
    r.z = sum(high * inverse - 1.0, (m - high) * inverse);
    if (rest != 0) r.z = add(r.z, pair(rest * (k > 1022 ? 0x1p-1022 : power_of_2(-k)) * inverse, 0));
    return r;
}

HERE Pair log_of(Reduced r, int fused) {
    double z = r.z.head;
    double end = 1.0 / 8 - z * (1.0 / 9 - z * (1.0 / 10 - z * (1.0 / 11 - z * (1.0 / 12 - z / 13))));
    Pair value = pair(-end, 0);
    for (int n = 7; n > 0; n--) {
        Pair c = reciprocals[n];
        value = add(n % 2 ? c : pair(-c.head, -c.tail), multiply(value, r.z, fused));
    }
    value = multiply(value, r.z, fused);
    Pair multiple = add(
        sum(r.k * log2_parts[0], r.k * log2_parts[1]), pair(r.k * log2_parts[2], 0));
    return add(add(multiple, pair(r.known->head, r.known->tail)), value);
}

/* ---- exponentials: of x + rest = (k + j / 128) log 2 + r they are 2^k powers[j] e^r ---- */

typedef struct { int64_t k; const Pair* known; Pair r; } Parted;

HERE double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; } /* of |x| < 2^51 */

HERE Parted of_steps(double steps, Pair r) {
    int64_t n = (int64_t)steps;
    Parted p = {n >> 7, &powers[n & (POWERS - 1)], r};
    return p;
}

HERE Parted parted(Pair x) {
    double n = nearest(x.head * (per_log2.head * POWERS));
    Pair first = sum(x.head, -n * step_parts[0]);
    Pair r = add(add(first, pair(-n * step_parts[1], 0)), pair(-n * step_parts[2], 0));
    return of_steps(n, x.tail == 0 ? r : add(r, pair(x.tail, 0)));
}

HERE Parted parted_of_2(double x, int fused) {
    double n = nearest(x * POWERS), f = x - n / POWERS;
    return of_steps(n, multiply(pair(f, 0), log_of_2, fused));
}

HERE Pair less_one(Pair r, int fused) {
    double x = r.head;
    double end = 1.0 / 720 + x * (1.0 / 5040 + x * (1.0 / 40320 + x * (1.0 / 362880 + x / 3628800)));
    Pair value = pair(end, 0);
    for (int n = 5; n > 0; n--) value = add(factorials[n], multiply(value, r, fused));
    return multiply(value, r, fused);
}

HERE Pair exp_of(Parted p, double whole, int fused) {
    Pair part = multiply(*p.known, less_one(p.r, fused), fused);
    return add(add(pair(whole, 0), *p.known), part);
}

/* ---- functions: whether the result is sure, and the result ---- */

HERE int logarithm(double x, double rest, const Pair* scale, int fused, double* out) {
    Pair value = log_of(reduced(x, rest), fused);
    if (scale) value = multiply(value, *scale, fused);
    return is_sure(value, ERROR * fabs(value.head), out);
}

HERE int log_scaled(double x, const Pair* scale, int fused, double* out) {
    if (x > 0 && x < INFINITY) return logarithm(x, 0, scale, fused, out);
    *out = x == 0 ? -INFINITY : x > 0 ? INFINITY : NAN;
    return 1;
}

HERE int log_of_more(double x, int fused, double* out) {
    if (fabs(x) < 0x1p-54) { *out = x; return 1; }
    Pair more = sum(1.0, x);
    if (more.head > 0 && x < INFINITY) return logarithm(more.head, more.tail, 0, fused, out);
    return log_scaled(more.head, 0, fused, out);
}

/* 2^k of a value from 0.99 to 2, where that is no less than 2^-1080. */
HERE int is_sure_scaled(Pair value, double margin, int64_t k, double* out) {
    if (k > -1022 || (k == -1022 && value.head >= 1)) {
        int sure = is_sure(value, margin, out);
        *out = *out * power_of_2(k >> 1) * power_of_2(k - (k >> 1));
        return sure;
    }
    /* Subnormal: the last place is that of a larger number, to which it is added. What is rounded
       off may be half a place but for the tail's tail; that close to it, nothing is sure. */
    double larger = power_of_2(-1022 - k);
    Pair heads = sum(larger, value.head), tails = sum(heads.tail, value.tail);
    heads = ordered(heads.head, tails.head);
    double rest = heads.tail + tails.tail;
    int sure = is_sure(pair(heads.head, rest), margin + fabs(rest) * 0x1p-50, out);
    *out = (*out - larger) * power_of_2(k + 60) * 0x1p-60;
    return sure;
}

HERE int exponential(Parted p, double margin, int fused, double* out) {
    return is_sure_scaled(exp_of(p, 0, fused), margin, p.k, out);
}

/* The limit at an x out of range, which is always sure; NaN of NaN. */
HERE int beyond(double x, double lowest, double* out) {
    *out = x > 0 ? INFINITY : x < 0 ? lowest : NAN;
    return 1;
}

HERE int power_of_e(double x, int fused, double* out) {
    if (x > -746 && x < 710) return exponential(parted(pair(x, 0)), ERROR, fused, out);
    return beyond(x, 0, out);
}

HERE int power_of_two(double x, int fused, double* out) {
    if (x > -1076 && x < 1024) return exponential(parted_of_2(x, fused), ERROR, fused, out);
    return beyond(x, 0, out);
}

HERE int exp_less_one(double x, int fused, double* out) {
    if (fabs(x) < 0x1p-54) { *out = x; return 1; }
    if (!(x > -50 && x < 710)) return beyond(x, -1, out);
    Parted p = parted(pair(x, 0));
    if (p.k == 0 && p.known == powers) { /* then r is x */
        Pair value = less_one(p.r, fused);
        return is_sure(value, ERROR * fabs(value.head), out);
    }
    Pair value = exp_of(p, p.k > 200 ? 0 : -power_of_2(-p.k), fused);
    int sure = is_sure(value, ERROR, out);
    *out = *out * power_of_2(p.k >> 1) * power_of_2(p.k - (p.k >> 1));
    return sure;
}

/* As IEEE 754 has it: also 1 for y = 0 or x = 1 and a NaN. */
HERE int raised(double x, double y, int fused, double* out) {
    double size = fabs(x), sign = x < 0 || signbit(x) ? -1 : 1;
    *out = 1;
    if (y == 0 || x == 1) return 1;
    *out = NAN;
    if (x != x || y != y) return 1;
    int is_even = fabs(fmod(y, 2)) != 1;
    if (is_even) sign = 1;
    double end = (size > 1) == (y > 0) ? INFINITY : 0;
    *out = size == 1 ? sign : sign * end;
    if (fabs(y) == INFINITY) { *out = size == 1 ? 1 : end; return 1; }
    if (size == 0 || size == INFINITY) return 1;
    if (x < 0 && y != floor(y)) { *out = NAN; return 1; }
    if (size == 1) return 1;
    /* The usual powers with results halfway between two floats are rounded once by themselves. */
    if (y == 2 || y == 0.5 || y == -1) { *out = y == 2 ? x * x : y == 0.5 ? sqrt(x) : 1 / x; return 1; }
    Pair log = log_of(reduced(size, 0), fused);
    double about = y * log.head;
    if (!(about > -747 && about < 711)) return 1;
    log = multiply(log, pair(y, 0), fused);
    if (!(log.head > -746 && log.head < 710)) return 1;
    int sure = exponential(parted(log), 4 * ERROR * (1 + fabs(log.head)), fused, out);
    *out *= sign;
    return sure;
}
