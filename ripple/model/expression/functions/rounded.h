/* Logarithms, exponentials and powers of one float as sums of two floats, head and tail, with a
   bound of their error; ``maths`` has the proof of the bounds.

   Each function tries with floats where they do, and again with pairs throughout. It answers
   whether all numbers within the bound are rounded alike; if not, the result is left to another.
   Nothing is fused but exact products, so that each processor computes the same. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LOGS 256
#define POWERS 128
/* Bounds of errors, relative to a logarithm, and to the begin of a step of an exponential. */
#define QUICK 0x1p-65
#define SLOW 0x1p-95

typedef struct { double head, tail; } Pair;
typedef struct { double inverse, head, tail; } Logarithm; /* of 1 / inverse */

/* Made by rounded.pyx, from decimals. */
static Logarithm logarithms[LOGS];
static Pair powers[POWERS];             /* 2^(j / 128) */
static double log2_parts[3];            /* of 42, 42 and 53 bits */
static double step_parts[3];            /* of log 2 / 128, of 34, 34 and 53 bits */
static Pair log_of_2, per_log2, per_log10;
static Pair reciprocals[8], factorials[6]; /* 1/n, 1/n! */

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

HERE Pair quick_log(Reduced r, int fused) {
    double z = r.z.head;
    Pair square = product(z, z, fused);
    double rest = z * square.head
        * (1.0 / 3 - z * (1.0 / 4 - z * (1.0 / 5 - z * (1.0 / 6 - z * (1.0 / 7 - z * (1.0 / 8 - z / 9))))));
    Pair whole = sum(r.k * log2_parts[0], r.known->head);
    Pair more = sum(whole.head, z), most = sum(more.head, -0.5 * square.head);
    rest += r.z.tail - z * r.z.tail - 0.5 * square.tail;
    rest += r.known->tail + r.k * log2_parts[1];
    return ordered(most.head, most.tail + more.tail + whole.tail + rest);
}

HERE Pair slow_log(Reduced r, int fused) {
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

/* (e^r - 1 - r - r^2 / 2) / r^3 of a float. */
HERE double end_of_exp(double r) {
    return 1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720 + r / 5040)));
}

/* whole + e^(p) / 2^k: whole is 0, or -2^-k. */
HERE Pair quick_exp(Parted p, double whole, int fused) {
    double r = p.r.head, t = p.known->head;
    Pair first = product(t, r, fused), begin = sum(whole, t), most = sum(begin.head, first.head);
    double rest = t * (p.r.tail + r * r * (0.5 + r * end_of_exp(r))) + (p.known->tail + p.known->tail * r);
    return ordered(most.head, most.tail + begin.tail + first.tail + rest);
}

HERE Pair slow_less_one(Pair r, int fused) {
    double x = r.head;
    double end = 1.0 / 720 + x * (1.0 / 5040 + x * (1.0 / 40320 + x * (1.0 / 362880 + x / 3628800)));
    Pair value = pair(end, 0);
    for (int n = 5; n > 0; n--) value = add(factorials[n], multiply(value, r, fused));
    return multiply(value, r, fused);
}

HERE Pair slow_exp(Parted p, double whole, int fused) {
    Pair part = multiply(*p.known, slow_less_one(p.r, fused), fused);
    return add(add(pair(whole, 0), *p.known), part);
}

/* ---- functions: whether the result is sure, and the result ---- */

HERE int logarithm(double x, double rest, const Pair* scale, int fused, double* out) {
    Reduced r = reduced(x, rest);
    Pair value = quick_log(r, fused);
    if (scale) value = multiply(value, *scale, fused);
    if (is_sure(value, QUICK * fabs(value.head), out)) return 1;
    value = slow_log(r, fused);
    if (scale) value = multiply(value, *scale, fused);
    return is_sure(value, SLOW * fabs(value.head), out);
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

HERE int exponential(Parted p, int fused, double* out) {
    double value;
    int sure = is_sure(quick_exp(p, 0, fused), QUICK, &value)
        || is_sure(slow_exp(p, 0, fused), SLOW, &value);
    *out = value * power_of_2(p.k);
    return sure;
}

/* Of an x beyond most and least, or of what is no number. */
HERE int beyond(double x, double most, double least, double lowest, double* out) {
    *out = x >= most ? INFINITY : x <= least ? lowest : NAN;
    return x >= most || x <= least || x != x;
}

HERE int exp_of(double x, int fused, double* out) {
    if (x > -708 && x < 709) return exponential(parted(pair(x, 0)), fused, out);
    return beyond(x, 710, -746, 0, out);
}

HERE int exp2_of(double x, int fused, double* out) {
    if (x > -1022 && x < 1023) return exponential(parted_of_2(x, fused), fused, out);
    return beyond(x, 1024, -1076, 0, out);
}

HERE int exp_less_one(double x, int fused, double* out) {
    if (fabs(x) < 0x1p-54) { *out = x; return 1; }
    if (!(x > -50 && x < 709)) return beyond(x, 710, -50, -1, out);
    Parted p = parted(pair(x, 0));
    if (p.k == 0 && p.known == powers) { /* then r is x */
        Pair square = product(x, x, fused);
        double rest = x * square.head * end_of_exp(x);
        Pair value = sum(x, 0.5 * square.head);
        value = ordered(value.head, value.tail + (0.5 * square.tail + rest));
        if (is_sure(value, QUICK * fabs(value.head), out)) return 1;
        value = slow_less_one(p.r, fused);
        return is_sure(value, SLOW * fabs(value.head), out);
    }
    double whole = -power_of_2(-p.k), scale = power_of_2(p.k), value;
    Pair quick = quick_exp(p, whole, fused);
    int sure = is_sure(quick, QUICK, &value) || is_sure(slow_exp(p, whole, fused), SLOW, &value);
    *out = value * scale;
    return sure;
}

HERE int raised(double x, double y, int fused, double* out) {
    double sign = 1, size = fabs(x);
    if (!(size > 0 && size < INFINITY && fabs(y) < 0x1p51)) return 0;
    if (x < 0) {
        if (y != nearest(y)) return 0;
        if ((int64_t)y & 1) sign = -1;
    }
    Reduced r = reduced(size, 0);
    Pair log = multiply(quick_log(r, fused), pair(y, 0), fused);
    if (!(log.head > -708 && log.head < 709)) return 0;
    double factor = 1 + fabs(log.head), value;
    Parted p = parted(log);
    if (!is_sure(quick_exp(p, 0, fused), 4 * QUICK * factor, &value)) {
        log = multiply(slow_log(r, fused), pair(y, 0), fused);
        p = parted(log);
        if (!is_sure(slow_exp(p, 0, fused), 4 * SLOW * factor, &value)) return 0;
    }
    *out = sign * value * power_of_2(p.k);
    return 1;
}

typedef enum { LOG, LOG2, LOG10, LOG1P, EXP, EXP2, EXPM1, POW } Which;

HERE void each(
    Which which, const double* x, const double* y, double* out, uint8_t* doubt, int64_t n, int fused
) {
#define EACH(call) for (int64_t i = 0; i < n; i++) doubt[i] = !(call); break
    switch (which) {
        case LOG: EACH(log_scaled(x[i], 0, fused, out + i));
        case LOG2: EACH(log_scaled(x[i], &per_log2, fused, out + i));
        case LOG10: EACH(log_scaled(x[i], &per_log10, fused, out + i));
        case LOG1P: EACH(log_of_more(x[i], fused, out + i));
        case EXP: EACH(exp_of(x[i], fused, out + i));
        case EXP2: EACH(exp2_of(x[i], fused, out + i));
        case EXPM1: EACH(exp_less_one(x[i], fused, out + i));
        case POW: EACH(raised(x[i], y[i], fused, out + i));
    }
}

static void each_alone(
    Which which, const double* x, const double* y, double* out, uint8_t* doubt, int64_t n
) { each(which, x, y, out, doubt, n, 0); }

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("fma"))) static void each_fused(
    Which which, const double* x, const double* y, double* out, uint8_t* doubt, int64_t n
) { each(which, x, y, out, doubt, n, 1); }
static int can_fuse(void) { return __builtin_cpu_supports("fma"); }
#elif defined(__aarch64__)
static void each_fused(
    Which which, const double* x, const double* y, double* out, uint8_t* doubt, int64_t n
) { each(which, x, y, out, doubt, n, 1); }
static int can_fuse(void) { return 1; }
#else
#define each_fused each_alone
static int can_fuse(void) { return 0; }
#endif
