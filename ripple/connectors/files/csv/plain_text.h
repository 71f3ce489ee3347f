/* Bytes of lines looked at many at a time: where fields end, and what digits stand for. */

#ifndef RIPPLE_PLAIN_TEXT_H
#define RIPPLE_PLAIN_TEXT_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ripple {

enum {
    SLACK_BYTES = 16 /* what may be read behind a mark that was found, and written behind a string */
};

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

inline bool unlikely(bool is) { return __builtin_expect(is, 0); }

const double DIVISORS[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                           1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

constexpr uint64_t TEN_TO_8 = 100000000, TEN_TO_16 = TEN_TO_8 * TEN_TO_8;

/* A column's fields in lines that follow each other. */
struct Fields {
    const uint8_t* data;
    const uint32_t* before; /* the mark before the first line's field; the one behind it is the next */
    ptrdiff_t stride;       /* how many marks a line has */
    ptrdiff_t lines;
    uint8_t end; /* what the mark behind must be */
    ptrdiff_t row;
};

/* What each of the ways below can do. Counts are 1 to 16, of bytes that end before `stop`; bits of `other`
   are set where a byte is no digit. */

/* Words of eight bytes, wherever we are. Reads up to 16 bytes from where a number begins. */
struct Words {
    /* One bit for each of 64 bytes that is a mark: the delimiter, a quote, or no printable ASCII. The
       lowest bit is the first byte's. */
    static uint64_t marks_64(const uint8_t* p, uint8_t delimiter) {
        uint64_t marks = 0;
        for (int i = 0; i < 8; i++) {
            uint64_t word = load_8(p + 8 * i);
            /* Bytes below 0x80 that are to be found become 0 in one of these, and carry nothing. */
            uint64_t low = word & each_byte(0x7F);
            uint64_t printable = low + each_byte(0x60);
            uint64_t other_than_delimiter = (low ^ each_byte(delimiter)) + each_byte(0x7F);
            uint64_t other_than_quote = (low ^ each_byte('"')) + each_byte(0x7F);
            uint64_t found = ~(printable & other_than_delimiter & other_than_quote) | word;
            found = (found >> 7) & each_byte(1);
            /* The bits of the bytes come together in the highest. */
            marks |= ((found * 0x0102040810204080U) >> 56) << (8 * i);
        }
        return marks;
    }

    /* The value of the 1 to 8 digits that a word begins with. Pairs of digits, and pairs of these, are put
       together side by side (D. Lemire, "Quickly parsing eight digits"). */
    static uint64_t digits_of(uint64_t word, int count, uint64_t* other) {
        word = (word ^ each_byte('0')) << (64 - 8 * count);
        *other |= ((word + each_byte(0x76)) | word) & each_byte(0x80);
        word = word * 10 + (word >> 8);
        return (((word & 0x000000FF000000FFU) * 0x000F424000000064U)
                + (((word >> 16) & 0x000000FF000000FFU) * 0x0000271000000001U)) >> 32;
    }

    static uint64_t digits_8(const uint8_t* p, int count, uint64_t* other) {
        return digits_of(load_8(p), count, other);
    }

    static uint64_t digits(const uint8_t* stop, int count, uint64_t* other) {
        if (count <= 8)
            return digits_8(stop - count, count, other);
        return digits_8(stop - count, count - 8, other) * TEN_TO_8 + digits_8(stop - 8, 8, other);
    }

    /* The digits of a decimal without its point, and how many of them there are and are behind it. One
       with nothing before or behind its point is left to others. */
    static uint64_t decimal(const uint8_t* stop, int count, int* all, int* behind, uint64_t* other) {
        static const uint64_t POWERS[] = {
            1,        10,           100,           1000,           10000,
            100000,   1000000,      10000000,      TEN_TO_8,       10 * TEN_TO_8,
            100 * TEN_TO_8, 1000 * TEN_TO_8, 10000 * TEN_TO_8, 100000 * TEN_TO_8, 1000000 * TEN_TO_8};
        const uint8_t* p = stop - count;
        const int whole = point(p);
        if (whole >= count) {
            *all = count;
            *behind = 0;
            return digits(stop, count, other);
        }
        *all = count - 1;
        *behind = *all - whole;
        if (whole == 0 || *behind == 0) {
            *other = 1;
            return 0;
        }
        if (count <= 8) {
            const uint64_t word = load_8(p), before = ((uint64_t)1 << (8 * whole)) - 1;
            return digits_of((word & before) | ((word >> 8) & ~before), *all, other);
        }
        return digits(p + whole, whole, other) * POWERS[*behind] + digits(stop, *behind, other);
    }

    /* Where in the next 16 bytes the first point is, or 16. */
    static int point(const uint8_t* p) {
        uint64_t found = zero_bytes(load_8(p) ^ each_byte('.'));
        if (found)
            return __builtin_ctzll(found) >> 3;
        found = zero_bytes(load_8(p + 8) ^ each_byte('.'));
        return found ? 8 + (__builtin_ctzll(found) >> 3) : 16;
    }

    /* Nothing is read by many at once. */
    static ptrdiff_t integers(const Fields&, ptrdiff_t line, int64_t, int64_t, int64_t*) { return line; }
    static ptrdiff_t floats(const Fields&, ptrdiff_t line, double, double, double*) { return line; }
};

#ifdef __SSE2__
/* Sixteen bytes at once. Reads the 16 bytes before `stop`. */
struct Vectors : Words {
    static uint64_t marks_64(const uint8_t* p, uint8_t delimiter) {
        const __m128i space = _mm_set1_epi8(' ');
        const __m128i comma = _mm_set1_epi8((char)delimiter);
        const __m128i quote = _mm_set1_epi8('"');
        uint64_t marks = 0;
        for (int i = 0; i < 4; i++) {
            __m128i bytes = load(p + 16 * i);
            /* As signed numbers, bytes that are no ASCII are below a space as well. */
            __m128i found = _mm_or_si128(
                _mm_cmplt_epi8(bytes, space),
                _mm_or_si128(_mm_cmpeq_epi8(bytes, comma), _mm_cmpeq_epi8(bytes, quote)));
            marks |= (uint64_t)(uint32_t)_mm_movemask_epi8(found) << (16 * i);
        }
        return marks;
    }

    static uint64_t digits(const uint8_t* stop, int count, uint64_t* other) {
        return value(load(stop - 16), count, other);
    }

    static uint64_t decimal(const uint8_t* stop, int count, int* all, int* behind, uint64_t* other) {
        const __m128i text = load(stop - 16);
        const unsigned points = _mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8('.')));
        /* How many bytes are behind the last point, 16 where there is none. What is before it moves up. */
        const int kept = __builtin_clz((points >> (16 - count) << (17 - count)) | 1) - 15;
        const __m128i in_place = last(kept);
        *all = count - 1 + (kept >> 4);
        *behind = kept & 15;
        return value(
            _mm_or_si128(
                _mm_and_si128(in_place, text), _mm_andnot_si128(in_place, _mm_slli_si128(text, 1))),
            *all, other);
    }

    static __m128i load(const uint8_t* p) { return _mm_loadu_si128((const __m128i*)p); }

    /* A mask of the last bytes. */
    static __m128i last(int count) {
        static const uint8_t KEPT[32] = {0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
                                         0,   0,   0,   0,   0,   255, 255, 255, 255, 255, 255,
                                         255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
        return load(KEPT + count);
    }

    static uint64_t value(__m128i text, int count, uint64_t* other) {
        __m128i digits = _mm_and_si128(_mm_xor_si128(text, _mm_set1_epi8('0')), last(count));
        /* Of a field: what is not printable is a mark. So these are positive as signed numbers, too. */
        *other |= (unsigned)_mm_movemask_epi8(_mm_cmpgt_epi8(digits, _mm_set1_epi8(9)));
        /* Pairs, pairs of these, and so on, up to two halves of eight. Of a pair, 10 times the first comes
           to the second, and the first itself below. */
        digits = _mm_srli_epi16(_mm_mullo_epi16(digits, _mm_set1_epi16(10 << 8 | 1)), 8);
        digits = _mm_madd_epi16(digits, _mm_set1_epi32(100 | 1 << 16));
        digits = _mm_packs_epi32(digits, digits);
        digits = _mm_madd_epi16(digits, _mm_set1_epi32(10000 | 1 << 16));
        const uint64_t halves = (uint64_t)_mm_cvtsi128_si64(digits);
        return (halves & 0xFFFFFFFF) * TEN_TO_8 + (halves >> 32);
    }
};
#else
typedef Words Vectors;
#endif

}  // namespace ripple

#endif
