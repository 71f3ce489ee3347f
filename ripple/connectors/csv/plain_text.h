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
    const uint8_t* end; /* of what may be read */
    uint64_t left;      /* the lowest bit is the first byte */
    int portable;
};

inline void look(Marks& marks, const uint8_t* p) {
    marks.at = p;
    marks.left = 0;
    if (marks.end - p >= 64 + SLACK_BYTES)
        marks.left = marks.portable ? marks_64_portable(p) : marks_64(p);
}

/* Look at the next bytes until there is a mark; 0 where that cannot be told. Apart from the loop over
   fields, which needs its registers. */
__attribute__((noinline, unused)) static int look_further(Marks& marks) {
    while (!marks.left) {
        if (marks.end - marks.at < 128 + SLACK_BYTES)
            return 0;
        look(marks, marks.at + 64);
    }
    return 1;
}

/* The next mark, or null where that cannot be told. */
inline const uint8_t* next_mark(Marks& marks) {
    if (__builtin_expect(!marks.left, 0) && !look_further(marks))
        return nullptr;
    const uint8_t* found = marks.at + __builtin_ctzll(marks.left);
    marks.left &= marks.left - 1;
    return found;
}

/* Where in the next 16 bytes the first point is, or 16. */
inline int point_16(const uint8_t* p) {
    uint64_t found = zero_bytes(load_8(p) ^ each_byte('.'));
    if (found)
        return __builtin_ctzll(found) >> 3;
    found = zero_bytes(load_8(p + 8) ^ each_byte('.'));
    return found ? 8 + (__builtin_ctzll(found) >> 3) : 16;
}

/* The value of 1 to 8 digits; sets bits of `other` if a byte is no digit. Reads 8 bytes. */
inline uint64_t digits_8(const uint8_t* p, int count, uint64_t* other) {
    uint64_t word = (load_8(p) ^ each_byte('0')) << (64 - 8 * count);
    *other |= ((word + each_byte(0x76)) | word) & each_byte(0x80);
    word = word * 10 + (word >> 8);
    return (((word & 0x000000FF000000FFU) * 0x000F424000000064U)
            + (((word >> 16) & 0x000000FF000000FFU) * 0x0000271000000001U)) >> 32;
}

/* The same of 1 to 19. */
inline uint64_t digits_19(const uint8_t* p, int count, uint64_t* other) {
    if (count <= 8)
        return digits_8(p, count, other);
    uint64_t last = digits_8(p + count - 8, 8, other);
    if (count <= 16)
        return digits_8(p, count - 8, other) * 100000000U + last;
    return (digits_8(p, count - 16, other) * 100000000U
            + digits_8(p + count - 16, 8, other)) * 100000000U + last;
}

const uint64_t WHOLE_POWERS_OF_TEN[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

}  // namespace ripple

#endif
