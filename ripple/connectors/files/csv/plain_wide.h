/* Four fields at once, for processors with AVX-512: whether this is one is asked when the program runs. */

#ifndef RIPPLE_PLAIN_WIDE_H
#define RIPPLE_PLAIN_WIDE_H

#include "plain_text.h"

#if defined(__x86_64__) && defined(__GNUC__)
/* Its own intrinsics make GCC warn of what is left undefined on purpose. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#define RIPPLE_WIDE \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,popcnt")))

namespace ripple {

/* The fields of four lines side by side, each right-aligned in 16 bytes. */
struct Four {
    __m512i text;
    __m512i count; /* of its bytes without a sign, in each byte of a field */
    __m128i counts;
    __mmask64 in; /* the bytes that these are */
    __mmask8 negative;

    /* Take the fields from `line` on; false where there are fewer than four, one does not end as it
       should, is empty, a mere sign, or longer than `longest`. */
    RIPPLE_WIDE bool take(const Fields& fields, ptrdiff_t line, int longest) {
        if (fields.lines - line < 4)
            return false;
        const ptrdiff_t stride = fields.stride;
        const uint32_t* mark = fields.before + line * stride;
        const uint32_t stop[4] = {
            mark[1], mark[stride + 1], mark[2 * stride + 1], mark[3 * stride + 1]};
        const uint8_t end = fields.end;
        if (fields.data[stop[0]] != end || fields.data[stop[1]] != end || fields.data[stop[2]] != end
            || fields.data[stop[3]] != end)
            return false;
        const __m128i one = _mm_set1_epi32(1);
        counts = _mm_sub_epi32(
            _mm_setr_epi32(stop[0], stop[1], stop[2], stop[3]),
            _mm_setr_epi32(mark[0], mark[stride], mark[2 * stride], mark[3 * stride]));
        counts = _mm_sub_epi32(counts, one);
        const __m128i above_one = _mm_sub_epi32(counts, one);
        if (_mm_cmpge_epu32_mask(above_one, _mm_set1_epi32(longest)))
            return false;
        text = load(fields.data - 16, stop);
        count = spread(counts);
        negative = 0;
        const __mmask64 minus = _mm512_mask_cmpeq_epi8_mask(
            _mm512_cmpeq_epi8_mask(behind(), _mm512_sub_epi8(count, _mm512_set1_epi8(1))), text,
            _mm512_set1_epi8('-'));
        if (minus) {
            const __m256i any = first_halves(either_half(_mm512_movm_epi8(minus)));
            negative = _mm256_test_epi64_mask(any, any);
            counts = _mm_mask_sub_epi32(counts, negative, counts, one);
            if (_mm_testn_epi32_mask(counts, counts))
                return false;
            count = spread(counts);
        }
        in = _mm512_cmplt_epu8_mask(behind(), count);
        return true;
    }

    /* The 16 bytes at each of four places. */
    RIPPLE_WIDE static __m512i load(const uint8_t* data, const uint32_t* at) {
        __m512i bytes = _mm512_castsi128_si512(Vectors::load(data + at[0]));
        bytes = _mm512_inserti32x4(bytes, Vectors::load(data + at[1]), 1);
        bytes = _mm512_inserti32x4(bytes, Vectors::load(data + at[2]), 2);
        return _mm512_inserti32x4(bytes, Vectors::load(data + at[3]), 3);
    }

    /* How many bytes of its field are behind each byte. */
    RIPPLE_WIDE static __m512i behind() {
        return _mm512_broadcast_i32x4(
            _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
    }

    /* The value of the digits in `kept`; sets bits of `other` where a byte is none. */
    RIPPLE_WIDE static __m256i value(__m512i bytes, __mmask64 kept, __mmask64* other) {
        __m512i digits = _mm512_maskz_sub_epi8(kept, bytes, _mm512_set1_epi8('0'));
        *other |= _mm512_cmpgt_epu8_mask(digits, _mm512_set1_epi8(9));
        digits = _mm512_maddubs_epi16(digits, _mm512_set1_epi16(10 | 1 << 8));
        digits = _mm512_madd_epi16(digits, _mm512_set1_epi32(100 | 1 << 16));
        digits = _mm512_packus_epi32(digits, digits);
        digits = _mm512_madd_epi16(digits, _mm512_set1_epi32(10000 | 1 << 16));
        const __m512i high = _mm512_mul_epu32(digits, _mm512_set1_epi64(TEN_TO_8));
        return first_halves(_mm512_add_epi64(high, _mm512_srli_epi64(digits, 32)));
    }

    /* Numbers, one for each field, in all its bytes. */
    RIPPLE_WIDE static __m512i spread(__m128i numbers) {
        const __m512i lowest_bytes = _mm512_set_epi32(
            0x0C0C0C0C, 0x0C0C0C0C, 0x0C0C0C0C, 0x0C0C0C0C, 0x08080808, 0x08080808, 0x08080808,
            0x08080808, 0x04040404, 0x04040404, 0x04040404, 0x04040404, 0, 0, 0, 0);
        return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(numbers), lowest_bytes);
    }

    RIPPLE_WIDE static __m512i either_half(__m512i of) {
        return _mm512_or_si512(of, _mm512_shuffle_epi32(of, (_MM_PERM_ENUM)0x4E));
    }

    RIPPLE_WIDE static __m256i first_halves(__m512i of) {
        return _mm512_castsi512_si256(
            _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6), of));
    }
};

struct Wide : Vectors {
    static bool is_there() {
        return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
               && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2")
               && __builtin_cpu_supports("popcnt");
    }

    RIPPLE_WIDE static const uint8_t* find(
        const uint8_t* data, const uint8_t* p, const uint8_t* end, uint8_t delimiter,
        uint32_t** found, const uint32_t* enough) {
        static const uint8_t PLACES[64] = {
            0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
            22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
            44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
        uint32_t* out = *found;
        for (; end - p >= 64 + SLACK_BYTES && out <= enough; p += 64) {
            const __m512i text = _mm512_loadu_si512(p);
            const __mmask64 marks = _mm512_cmplt_epi8_mask(text, _mm512_set1_epi8(' '))
                                    | _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8((char)delimiter))
                                    | _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('"'));
            const __m512i places = _mm512_maskz_compress_epi8(marks, _mm512_loadu_si512(PLACES));
            const __m512i first = _mm512_set1_epi32((int)(p - data));
            const int count = (int)_mm_popcnt_u64(marks);
            store(out, first, _mm512_castsi512_si128(places));
            if (unlikely(count > 16)) {
                store(out + 16, first, _mm512_extracti32x4_epi32(places, 1));
                store(out + 32, first, _mm512_extracti32x4_epi32(places, 2));
                store(out + 48, first, _mm512_extracti32x4_epi32(places, 3));
            }
            out += count;
        }
        *found = out;
        return p;
    }

    RIPPLE_WIDE static ptrdiff_t integers(
        const Fields& fields, ptrdiff_t line, int64_t low, int64_t high, int64_t* values) {
        const __m256i lowest = _mm256_set1_epi64x(low), highest = _mm256_set1_epi64x(high);
        const __m256i zero = _mm256_setzero_si256();
        for (Four four; four.take(fields, line, 19); line += 4) {
            __mmask64 other = 0;
            __m256i value = Four::value(four.text, four.in, &other);
            if (_mm_cmpgt_epu32_mask(four.counts, _mm_set1_epi32(16))) {
                const uint32_t* mark = fields.before + line * fields.stride + 1;
                const uint32_t stop[4] = {
                    mark[0], mark[fields.stride], mark[2 * fields.stride], mark[3 * fields.stride]};
                const __m512i rest = _mm512_subs_epu8(four.count, _mm512_set1_epi8(16));
                const __m256i high_part = Four::value(
                    Four::load(fields.data - 32, stop), _mm512_cmplt_epu8_mask(Four::behind(), rest),
                    &other);
                value = _mm256_add_epi64(
                    value, _mm256_mullo_epi64(high_part, _mm256_set1_epi64x(TEN_TO_16)));
                other |= _mm256_cmplt_epi64_mask(value, zero);
            }
            value = _mm256_mask_sub_epi64(value, four.negative, zero, value);
            other |= _mm256_cmplt_epi64_mask(value, lowest);
            other |= _mm256_cmpgt_epi64_mask(value, highest);
            if (other)
                break;
            _mm256_storeu_si256((__m256i*)(values + line), value);
        }
        return line;
    }

    RIPPLE_WIDE static ptrdiff_t floats(
        const Fields& fields, ptrdiff_t line, double low, double high, double* values) {
        const __m256d lowest = _mm256_set1_pd(low), highest = _mm256_set1_pd(high);
        const __m512i from_one = _mm512_sub_epi8(_mm512_set1_epi8(16), Four::behind());
        for (Four four; four.take(fields, line, 16); line += 4) {
            /* Where the field's point is, counted from 1, or 0; of several points, behind the last. */
            const __m512i point = Four::either_half(_mm512_sad_epu8(
                _mm512_maskz_mov_epi8(
                    _mm512_mask_cmpeq_epi8_mask(four.in, four.text, _mm512_set1_epi8('.')), from_one),
                _mm512_setzero_si512()));
            const __m512i points = _mm512_shuffle_epi8(point, _mm512_setzero_si512());
            const __m256i point_4 = Four::first_halves(point);
            /* What is before it moves up, and with it all points but the last. */
            const __m512i text = _mm512_mask_mov_epi8(
                four.text, _mm512_cmple_epu8_mask(from_one, points),
                _mm512_bslli_epi128(four.text, 1));
            const __m512i count = _mm512_mask_sub_epi8(
                four.count, _mm512_test_epi8_mask(points, points), four.count, _mm512_set1_epi8(1));
            const __m128i digits = _mm_mask_sub_epi32(
                four.counts, _mm256_test_epi64_mask(point_4, point_4), four.counts,
                _mm_set1_epi32(1));
            __mmask64 other =
                _mm_cmpge_epu32_mask(_mm_sub_epi32(digits, _mm_set1_epi32(1)), _mm_set1_epi32(15));
            const __m256d mantissa = _mm256_cvtepi64_pd(
                Four::value(text, _mm512_cmplt_epu8_mask(Four::behind(), count), &other));
            const __m512i digits_behind =
                _mm512_sub_epi64(_mm512_setzero_si512(), _mm512_castsi256_si512(point_4));
            __m256d value = _mm256_div_pd(
                mantissa, _mm512_castpd512_pd256(_mm512_permutex2var_pd(
                              _mm512_loadu_pd(DIVISORS), digits_behind,
                              _mm512_loadu_pd(DIVISORS + 8))));
            value = _mm256_mask_xor_pd(value, four.negative, value, _mm256_set1_pd(-0.0));
            other |= _mm256_cmp_pd_mask(value, lowest, _CMP_LT_OQ);
            other |= _mm256_cmp_pd_mask(value, highest, _CMP_GT_OQ);
            if (other)
                break;
            _mm256_storeu_pd(values + line, value);
        }
        return line;
    }

   private:
    RIPPLE_WIDE static void store(uint32_t* out, __m512i first, __m128i places) {
        _mm512_storeu_si512(out, _mm512_add_epi32(first, _mm512_cvtepu8_epi32(places)));
    }
};

}  // namespace ripple

#pragma GCC diagnostic pop
#else
namespace ripple {

struct Wide : Vectors {
    static bool is_there() { return false; }
    static const uint8_t* find(
        const uint8_t*, const uint8_t* p, const uint8_t*, uint8_t, uint32_t**, const uint32_t*) {
        return p;
    }
};

}  // namespace ripple
#endif

#endif
