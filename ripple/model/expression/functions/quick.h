/* Logarithms, exponentials and powers of columns, with as few operations as decide nearly all rows.

   A loop without branches computes a block of rows, so that a compiler can compute several at once.
   Each row gets a result, the lower of two numbers around the exact one, and a gap: the distance to
   the upper one. It is 0 where all numbers between are rounded alike, and not 0 otherwise, as for
   operands out of range. ``rounded.h`` computes the rows with a gap.

   The errors, of products and sums that are fused or not. A float errs by 2^-53 of itself at most.

   - *Logarithm*: x = 2^k (1 + z) / i, z exact and |z| <= 2^-9. The head, k log 2 + log(1 / i) in
     units of 2^-42 below 2^10, is exact, and 0 or at least 1.9 times z: so is its sum with z. What
     errs is w = z^2 (z / 3 - 1 / 2 - ...), below z^2 / 1.99, by units of 2^-54 z^2: z^2, the series
     and their product by 1 each, three sums with w and the one with the margin by 4, of which one
     is exact; z^8 / 8 and on, left out, by 1/8. That is less than 2^-51 z^2. The tails err by 2^-84
     of a result. To another base, z and 1 / log(base) are each cut into two, so that the first
     product is exact; the others, below 2^-24 z, err with their sums by 2^-74 of a result; w by 3
     units more, in all less than 12.5 < 2^-50 z^2 / 2^-54 z^2. Of log1p, the rest of 1 + x makes z
     a pair, whose tail adds 1 unit for a sum, and 2 since it is not in w.
   - *Exponential*: x = (k + j / 512) log 2 + r with |r| < 2^-10.5. In units of 2^-63 of the begin of
     a step, t = 2^(j / 512) < 2: r and e^r - 1 err by 1/2 each, times t by 2 together; the tail of t
     times e^r - 1, left out, by 0.71; its product with the head, and the sum, by 1 each; the sum
     with the margin by 1; r^6 / 720 and on by less than 0.01. That is less than 6 < 2^-60 / 2^-63.
     For exp2, log 2 as a float and a sum err by 1/2 each, instead of r: less than 7.
   - *expm1*: with -2^-k in the first sum, t r as an exact pair, and the tail of r. What errs is w =
     r^2 (1 / 2 + r / 6 + ...), by units of 2^-54 r^2: r^2, the series, their product and a sum by 1
     each, times t; the product with t by 4, four sums by 2 each. That is 20 < 2^-49 r^2 / 2^-54 r^2;
     r^7 / 5040 and on is less than 2^-10. The others err by 2^-86 of a result. Where n is 0, r is x.
   - *Power*: twice the error of the logarithm times |y|, and that of the exponential. */

#define CELLS 512                       /* of a table for logarithms: their |z| < 2^-9 */
#define STEPS 512                       /* of log 2, for exponentials: their |r| < 2^-10.5 */
#define BLOCK 128
#define ROUNDER 0x1.8p52                /* added to |x| < 2^51, it leaves a whole number */

/* Of c log(x), with c = 1 / log(base). The head of k heads and another is exact. */
typedef struct { double c, high, low, k_head, k_tail, heads[CELLS], tails[CELLS]; } Base;

static double inverses[CELLS];
static Base of_e, of_2, of_10;
static double step_heads[STEPS], step_tails[STEPS];
static double per_step, step_high, step_low;

/* ---- tables, made of those of rounded.h ---- */

static void part(Pair value, double* head, double* tail) { /* the head in units of 2^-42 */
    *head = (value.head + 0x1.8p10) - 0x1.8p10;
    *tail = (value.head - *head) + value.tail;
}

static void make_base(Base* base, Pair c) {
    base->c = c.head;
    base->high = of_bits(bits_of(c.head) & ~0x7FFFFFFull); /* 26 bits */
    base->low = (c.head - base->high) + c.tail;
    part(multiply(log_of_2, c, 0), &base->k_head, &base->k_tail);
    for (int i = 0; i < CELLS; i++) {
        Pair log = multiply(log_of(reduced(inverses[i], 0), 0), c, 0);
        part(pair(-log.head, -log.tail), base->heads + i, base->tails + i);
    }
}

static void make_quick_tables(void) {
    for (int i = 0; i < CELLS; i++) {
        /* The middle of a cell, in units of 2^-11, and an inverse so short that z is exact. */
        double middle = i < 320 ? 2 * (704 + i) + 1 : 4 * (i + 192) + 2, unit = i < 320 ? 512 : 1024;
        inverses[i] = i == 319 || i == 320 ? 1 : nearest(unit * 2048 / middle) / unit;
    }
    make_base(&of_e, pair(1, 0));
    make_base(&of_2, per_log2);
    make_base(&of_10, per_log10);
    for (int i = 0; i < STEPS; i++) {
        Parted p = parted_of_2((double)i / STEPS, 0);
        Pair power = exp_of(p, 0, 0);
        step_heads[i] = power.head * power_of_2(p.k); /* the last two are 2 and a negative r */
        step_tails[i] = power.tail * power_of_2(p.k);
    }
    per_step = per_log2.head * STEPS;
    step_high = step_parts[0] * POWERS / STEPS;
    step_low = (step_parts[1] + step_parts[2]) * POWERS / STEPS;
}

HERE double multiplied(double a, double b, double c, int fused) {
    return fused ? __builtin_fma(a, b, c) : a * b + c;
}
#define FMA(a, b, c) multiplied(a, b, c, fused)

typedef struct { double low, gap; } Bounds;

HERE Bounds between(double head, double tail, double margin) {
    double low = head + (tail - margin), high = head + (tail + margin);
    return (Bounds){low, low - high};
}

HERE Bounds taken(int taken, Bounds found) {
    found.gap = taken ? found.gap : 1;
    return found;
}

/* ---- logarithms ---- */

typedef struct { Pair value; double square; } Log;

/* c log(x + rest) of a normal x, and z^2, of which the error is a part. */
HERE Log quick_log(double x, double rest, const Base* base, int scaled, int has_rest, int fused) {
    uint64_t bits = bits_of(x), from = bits + 0x000A000000000000u; /* 0.6875 becomes 1 */
    uint64_t cell = from >> 43 & (CELLS - 1), exponent = from & 0x7FF0000000000000u;
    double k = of_bits(exponent >> 52 | 0x4330000000000000u) - (0x1p52 + 1023);
    double m = of_bits(bits - exponent + 0x3FF0000000000000u), inverse = inverses[cell];
    double z, z_tail = 0;
    if (fused) {
        z = __builtin_fma(m, inverse, -1.0);
    } else {
        double high = of_bits(bits_of(m) & ~0x7FFFFFFull);
        z = (high * inverse - 1.0) + (m - high) * inverse;
    }
    if (has_rest) { /* by 2^-k: 0 for 2^1023, where no rest is left */
        double more = rest * of_bits(0x7FE0000000000000u - exponent) * inverse, first = z;
        z = first + more;
        z_tail = (first - z) + more;
    }
    double square = z * z;
    double w = square * FMA(z, FMA(-z, FMA(-z, FMA(-z, FMA(-z, 1.0 / 7, 1.0 / 6), 1.0 / 5), 1.0 / 4), 1.0 / 3), -0.5);
    double head = FMA(k, base->k_head, base->heads[cell]), tail = FMA(k, base->k_tail, base->tails[cell]);
    double first = z, more = w + z_tail;
    if (scaled) {
        double high = of_bits(bits_of(z) & ~0x7FFFFFFull);
        first = high * base->high;
        more = FMA(base->c, more, FMA(z, base->low, (z - high) * base->high));
    }
    Pair heads = ordered(head, first);
    return (Log){pair(heads.head, heads.tail + (tail + more)), square};
}

HERE Bounds log_bounds(Log log, double factor) {
    return between(log.value.head, log.value.tail, factor * log.square + 0x1p-72 * fabs(log.value.head));
}

HERE Bounds quick_log_scaled(double x, const Base* base, int scaled, int fused) {
    Log log = quick_log(x, 0, base, scaled, 0, fused);
    return taken((x >= 0x1p-1022) & (x < INFINITY), log_bounds(log, scaled ? 0x1p-50 : 0x1p-51));
}

HERE Bounds quick_log_of_more(double x, int fused) {
    Pair more = sum(1.0, x);
    Bounds found = log_bounds(quick_log(more.head, more.tail, &of_e, 0, 1, fused), 0x1p-50);
    found.low = copysign(found.low, x);
    return taken((x > -1) & (x < INFINITY), found);
}

/* ---- exponentials ---- */

HERE double by_power_of_2(double value, uint64_t steps) { /* of the bits of ROUNDER + steps */
    return of_bits(bits_of(value) + (steps >> 9 << 52));
}

#define STEP_ERROR 0x1p-60

/* head 2^(j / 512) (1 + less), times 2^k, where steps = 512 k + j. */
HERE Bounds step(uint64_t steps, double less, double margin, int fused) {
    double head = step_heads[steps & (STEPS - 1)], tail = step_tails[steps & (STEPS - 1)];
    Bounds found = between(head, FMA(head, less, tail), margin);
    found.low = by_power_of_2(found.low, steps);
    return found;
}

/* e^(x + rest), of a rest below 2^-20, and |x| < 708. */
HERE Bounds power_of(double x, double rest, double margin, int fused) {
    double shifted = FMA(x, per_step, ROUNDER), n = shifted - ROUNDER;
    double r = FMA(-n, step_high, x) + FMA(-n, step_low, rest), square = r * r;
    double less = FMA(square, FMA(r, FMA(r, FMA(r, 1.0 / 120, 1.0 / 24), 1.0 / 6), 0.5), r);
    return step(bits_of(shifted), less, margin, fused);
}

HERE Bounds quick_exp(double x, int fused) {
    return taken((x > -708) & (x < 708), power_of(x, 0, STEP_ERROR, fused));
}

HERE Bounds quick_exp2(double x, int fused) {
    double shifted = FMA(x, (double)STEPS, ROUNDER), f = FMA(shifted - ROUNDER, -1.0 / STEPS, x);
    const double* c = powers_of_log2;
    double less = f * FMA(f, FMA(f, FMA(f, FMA(f, c[4], c[3]), c[2]), c[1]), c[0]);
    Bounds found = step(bits_of(shifted), less, STEP_ERROR, fused);
    return taken((x > -1022) & (x < 1023), found);
}

HERE Bounds quick_exp_less_one(double x, int fused) {
    double shifted = FMA(x, per_step, ROUNDER), n = shifted - ROUNDER;
    double first = FMA(-n, step_high, x), second = n * step_low, r = first - second;
    double r_tail = (first - r) - second, square = r * r;
    double w = square * FMA(r, FMA(r, FMA(r, FMA(r, 1.0 / 720, 1.0 / 120), 1.0 / 24), 1.0 / 6), 0.5);
    uint64_t steps = bits_of(shifted), j = steps & (STEPS - 1), k = steps >> 9 << 52;
    double t = step_heads[j], t_tail = step_tails[j], whole = -of_bits(0x3FF0000000000000u - k);
    Pair begin = sum(whole, t), more = product(t, r, fused), heads = ordered(begin.head, more.head);
    double rest = FMA(t, r_tail + w, FMA(t_tail, r, t_tail)) + more.tail + begin.tail;
    Bounds found = between(heads.head, heads.tail + rest, FMA(square, 0x1p-49, 0x1p-72 * fabs(heads.head)));
    found.low = copysign(found.low * of_bits(0x3FF0000000000000u + k), x);
    return taken((x > -708) & (x < 708), found);
}

HERE Bounds quick_power(double x, double y, int fused) {
    double size = fabs(x), shifted = y + ROUNDER;
    Log log = quick_log(size, 0, &of_e, 0, 0, fused);
    Pair value = ordered(log.value.head, log.value.tail), most = product(value.head, y, fused);
    double margin = fabs(y) * FMA(log.square, 0x1p-50, 0x1p-71 * fabs(value.head)) + STEP_ERROR;
    Bounds found = power_of(most.head, FMA(value.tail, y, most.tail), margin, fused);
    /* An odd power of a negative number is negative. */
    found.low = of_bits(bits_of(found.low) ^ (bits_of(x) & bits_of(shifted) << 63));
    int is_whole = (shifted - ROUNDER == y) & (fabs(y) < 0x1p51);
    int usual = (size >= 0x1p-1022) & (size < INFINITY) & ((x > 0) | is_whole);
    return taken(usual & (most.head > -708) & (most.head < 708), found);
}

/* ---- decimals ---- */

/* The exact product with a power of 10, as a whole number, whose quotient is rounded once. */
HERE Bounds quick_round(double x, double power, int fused) {
    Pair units = product(x, power, fused);
    double whole = nearest(units.head), off = fabs(units.head - whole);
    /* The head may be halfway where the product is not. */
    whole = (off == 0.5) & (units.tail != 0) ? units.head + copysign(0.5, units.tail) : whole;
    return taken(fabs(units.head) < 0x1p51, (Bounds){copysign(whole / power, x), 0});
}

HERE int round_large(double x, double* out) {
    *out = x == x ? x : NAN;
    return !(fabs(x) < 0x1p52);
}

/* ---- columns ---- */

/* y is the exponents of POW, and the one power of 10 of ROUND. */
typedef enum { LOG, LOG2, LOG10, LOG1P, EXP, EXP2, EXPM1, POW, ROUND } Which;

HERE int slow(Which which, double x, double y, int fused, double* out) {
    switch (which) {
        case LOG: return log_scaled(x, 0, fused, out);
        case LOG2: return log_scaled(x, &per_log2, fused, out);
        case LOG10: return log_scaled(x, &per_log10, fused, out);
        case LOG1P: return log_of_more(x, fused, out);
        case EXP: return power_of_e(x, fused, out);
        case EXP2: return power_of_two(x, fused, out);
        case EXPM1: return exp_less_one(x, fused, out);
        case ROUND: return round_large(x, out);
        default: return raised(x, y, fused, out);
    }
}

/* Mark in doubt the rows without a sure result, and return how many. */
HERE int64_t each(
    Which which, const double* restrict x, const double* restrict y, double* restrict out,
    uint8_t* restrict doubt, int64_t n, int fused
) {
    int64_t doubts = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        double gaps[BLOCK];
        int open[BLOCK], length = n - begin < BLOCK ? (int)(n - begin) : BLOCK, count = 0;
#define EACH(call) \
    for (int i = 0; i < length; i++) { Bounds b = call; out[i] = b.low; gaps[i] = b.gap; } break
        switch (which) {
            case LOG: EACH(quick_log_scaled(x[i], &of_e, 0, fused));
            case LOG2: EACH(quick_log_scaled(x[i], &of_2, 1, fused));
            case LOG10: EACH(quick_log_scaled(x[i], &of_10, 1, fused));
            case LOG1P: EACH(quick_log_of_more(x[i], fused));
            case EXP: EACH(quick_exp(x[i], fused));
            case EXP2: EACH(quick_exp2(x[i], fused));
            case EXPM1: EACH(quick_exp_less_one(x[i], fused));
            case POW: EACH(quick_power(x[i], y[i], fused));
            case ROUND: EACH(quick_round(x[i], *y, fused));
        }
        for (int i = 0; i < length; i++) { open[count] = i; count += gaps[i] != 0; }
        for (int j = 0; j < count; j++) {
            int i = open[j];
            doubt[i] = !slow(which, x[i], which == POW ? y[i] : 0, fused, out + i);
            doubts += doubt[i];
        }
        x += length, out += length, doubt += length;
        if (which == POW) y += length;
    }
    return doubts;
}

static int64_t each_alone(
    Which which, const double* x, const double* y, double* out, uint8_t* doubt, int64_t n
) { return each(which, x, y, out, doubt, n, 0); }

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) static int64_t each_fused(
    Which which, const double* x, const double* y, double* out, uint8_t* doubt, int64_t n
) { return each(which, x, y, out, doubt, n, 1); }
static int can_fuse(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#elif defined(__aarch64__)
static int64_t each_fused(
    Which which, const double* x, const double* y, double* out, uint8_t* doubt, int64_t n
) { return each(which, x, y, out, doubt, n, 1); }
static int can_fuse(void) { return 1; }
#else
#define each_fused each_alone
static int can_fuse(void) { return 0; }
#endif
