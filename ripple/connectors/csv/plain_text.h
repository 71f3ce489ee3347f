/* Bytes of lines looked at many at a time: where fields end, and what digits stand for. */

#ifndef RIPPLE_PLAIN_TEXT_H
#define RIPPLE_PLAIN_TEXT_H

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ripple {

/* Eight bytes as a number of which the first is the lowest, wherever we are. */
inline uint64_t load_8(const uint8_t* p) {
    uint64_t word;
    std::memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

constexpr uint64_t each_byte(uint8_t byte) { return byte * 0x0101010101010101U; }

/* The highest bit of each byte that is 0; above the lowest of them there may be others. */
inline uint64_t zero_bytes(uint64_t word) {
    return (word - each_byte(1)) & ~word & each_byte(0x80);
}

/* One bit for each of 64 bytes that is a mark: a comma, a quote, or no printable ASCII.

   The lowest bit is the first byte's. */
inline uint64_t marks_64_portable(const uint8_t* p) {
    uint64_t marks = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t word = load_8(p + 8 * i);
        /* Bytes below 0x80 that are to be found become 0 in one of these, and carry nothing. */
        uint64_t low = word & each_byte(0x7F);
        uint64_t printable = low + each_byte(0x60);
        uint64_t other_than_comma = (low ^ each_byte(',')) + each_byte(0x7F);
        uint64_t other_than_quote = (low ^ each_byte('"')) + each_byte(0x7F);
        uint64_t found = ~(printable & other_than_comma & other_than_quote) | word;
        found = (found >> 7) & each_byte(1);
        /* The bits of the bytes come together in the highest. */
        marks |= ((found * 0x0102040810204080U) >> 56) << (8 * i);
    }
    return marks;
}

#ifdef __SSE2__
inline uint64_t marks_64(const uint8_t* p) {
    const __m128i space = _mm_set1_epi8(' ');
    const __m128i comma = _mm_set1_epi8(',');
    const __m128i quote = _mm_set1_epi8('"');
    uint64_t marks = 0;
    for (int i = 0; i < 4; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i*)(p + 16 * i));
        /* As signed numbers, bytes that are no ASCII are below a space as well. */
        __m128i found = _mm_or_si128(
            _mm_cmplt_epi8(bytes, space),
            _mm_or_si128(_mm_cmpeq_epi8(bytes, comma), _mm_cmpeq_epi8(bytes, quote)));
        marks |= (uint64_t)(uint32_t)_mm_movemask_epi8(found) << (16 * i);
    }
    return marks;
}
#else
inline uint64_t marks_64(const uint8_t* p) { return marks_64_portable(p); }
#endif

enum {
    SLACK_BYTES = 16 /* what may be read behind a mark that was found, and written behind a string */
};

/* What is known of marks: those among the 64 bytes at `at` that were not taken yet. */
struct Marks {
    const uint8_t* at;
    uint64_t left; /* the lowest bit is the first byte */
};

/* The bytes that may be read: from `begin` on where 16 at once are, which is nowhere if `portable`. */
struct Lines {
    const uint8_t* begin;
    const uint8_t* end;
    int portable;
};

inline Marks look(const Lines& lines, const uint8_t* p) {
    uint64_t left = 0;
    if (lines.end - p >= 64 + SLACK_BYTES)
        left = lines.portable ? marks_64_portable(p) : marks_64(p);
    return Marks{p, left};
}

/* Look at the next bytes until there is a mark; none is left where that cannot be told. Apart from the
   loop over fields, which needs its registers. */
__attribute__((noinline, unused)) static Marks look_further(const Lines& lines, const uint8_t* at) {
    while (lines.end - at >= 128 + SLACK_BYTES) {
        at += 64;
        const Marks marks = look(lines, at);
        if (marks.left)
            return marks;
    }
    return Marks{at, 0};
}

/* Find the next mark; 0 where that cannot be told. */
inline int next_mark(Marks& marks, const Lines& lines, const uint8_t** found) {
    if (__builtin_expect(!marks.left, 0)) {
        marks = look_further(lines, marks.at);
        if (!marks.left)
            return 0;
    }
    *found = marks.at + (unsigned)__builtin_ctzll(marks.left);
    marks.left &= marks.left - 1;
    return 1;
}

/* Where in the next 16 bytes the first point is, or 16. */
inline int point_16(const uint8_t* p) {
    uint64_t found = zero_bytes(load_8(p) ^ each_byte('.'));
    if (found)
        return __builtin_ctzll(found) >> 3;
    found = zero_bytes(load_8(p + 8) ^ each_byte('.'));
    return found ? 8 + (__builtin_ctzll(found) >> 3) : 16;
}

/* The value of the 1 to 8 digits that a word begins with; sets bits of `other` if a byte is none. Pairs
   of digits, and pairs of these, are put together side by side (D. Lemire, "Quickly parsing eight
   digits"). */
inline uint64_t digits_of(uint64_t word, int count, uint64_t* other) {
    word = (word ^ each_byte('0')) << (64 - 8 * count);
    *other |= ((word + each_byte(0x76)) | word) & each_byte(0x80);
    word = word * 10 + (word >> 8);
    return (((word & 0x000000FF000000FFU) * 0x000F424000000064U)
            + (((word >> 16) & 0x000000FF000000FFU) * 0x0000271000000001U)) >> 32;
}

/* The same of those at p. Reads 8 bytes. */
inline uint64_t digits_8(const uint8_t* p, int count, uint64_t* other) {
    return digits_of(load_8(p), count, other);
}

const uint64_t TEN_TO_8 = 100000000, TEN_TO_16 = TEN_TO_8 * TEN_TO_8;

#ifdef __SSE2__
/* The value of the 1 to 16 digits that end at `end`; sets bits of `other` as above. Reads the 16 bytes
   before `end`. */
inline uint64_t digits_16(const uint8_t* end, int count, uint64_t* other) {
    static const uint8_t KEPT[32] = {0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
                                     0,   0,   0,   0,   0,   255, 255, 255, 255, 255, 255,
                                     255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    const __m128i nine = _mm_set1_epi8(9);
    __m128i digits = _mm_xor_si128(_mm_loadu_si128((const __m128i*)(end - 16)), _mm_set1_epi8('0'));
    digits = _mm_and_si128(digits, _mm_loadu_si128((const __m128i*)(KEPT + count)));
    *other |= 0xFFFF ^ _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(digits, nine), nine));
    /* Pairs, pairs of these, and so on, up to two halves of eight. */
    __m128i even = _mm_and_si128(digits, _mm_set1_epi16(0xFF));
    digits = _mm_add_epi16(_mm_mullo_epi16(even, _mm_set1_epi16(10)), _mm_srli_epi16(digits, 8));
    digits = _mm_madd_epi16(digits, _mm_set1_epi32(100 | 1 << 16));
    digits = _mm_packs_epi32(digits, digits);
    digits = _mm_madd_epi16(digits, _mm_set1_epi32(10000 | 1 << 16));
    const uint64_t halves = (uint64_t)_mm_cvtsi128_si64(digits);
    return (halves & 0xFFFFFFFF) * TEN_TO_8 + (halves >> 32);
}
#endif

/* The value of 1 to 19 digits; sets bits of `other` as above. */
inline uint64_t digits_19(const Lines& lines, const uint8_t* p, int count, uint64_t* other) {
    if (count <= 8)
        return digits_8(p, count, other);
    const int above = count <= 16 ? 0 : count - 16;
    const uint64_t high = above ? digits_8(p, above, other) * TEN_TO_16 : 0;
#ifdef __SSE2__
    if (p + count - lines.begin >= 16)
        return high + digits_16(p + count, count - above, other);
#endif
    return high + digits_8(p + above, count - above - 8, other) * TEN_TO_8
           + digits_8(p + count - 8, 8, other);
}

/* The digits of a decimal of up to 8 bytes, without its point, and how many come behind that: 0 if there
   is none, or nothing before it. Sets bits of `other` as above. Reads 8 bytes. */
inline uint64_t decimal_8(const uint8_t* p, int count, int* fraction, uint64_t* other) {
    const uint64_t word = load_8(p);
    uint64_t point = zero_bytes(word ^ each_byte('.'));
    point = (point & (0 - point)) >> 7; /* the lowest bit of the first one's byte */
    const int at = point ? __builtin_ctzll(point) >> 3 : 0;
    const uint64_t before = point - 1;
    *fraction = at && at < count ? count - 1 - at : 0;
    return digits_of((word & before) | ((word >> 8) & ~before), count - 1, other);
}

const uint64_t WHOLE_POWERS_OF_TEN[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

}  // namespace ripple

#endif
