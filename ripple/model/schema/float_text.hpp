/* The text of a float: the fewest digits that read back as the same, laid out as Python's repr does. */

#pragma once

#include <charconv>
#include <cstring>

enum { FLOAT_LETTERS_MAX = 24 };

static inline char* text_of_float(char* out, double value) {
    char made[32], digits[20];
    const char *at = made, *end = std::to_chars(made, made + 32, value, std::chars_format::scientific).ptr;
    if (value != value) return std::strcpy(out, "nan") + 3;
    if (*at == '-') *out++ = *at++;
    if (*at == 'i') return std::strcpy(out, "inf") + 3;
    int count = 0, exponent = 0, point = 1; /* digits in front of the point */
    for (; *at != 'e'; at++)
        if (*at != '.') digits[count++] = *at;
    const bool negative = *++at == '-';
    while (++at < end) exponent = 10 * exponent + (*at - '0');
    const bool is_scientific = negative ? exponent > 4 : exponent >= 16;
    if (!is_scientific && negative) {
        *out++ = '0';
        *out++ = '.';
        for (; exponent > 1; exponent--) *out++ = '0';
        return (char*)std::memcpy(out, digits, count) + count;
    }
    if (!is_scientific) point = exponent + 1;
    for (int i = 0; i < point; i++) *out++ = i < count ? digits[i] : '0';
    if (count > point) {
        *out++ = '.';
        out = (char*)std::memcpy(out, digits + point, count - point) + (count - point);
    } else if (!is_scientific) {
        *out++ = '.';
        *out++ = '0';
    }
    if (!is_scientific) return out;
    *out++ = 'e';
    *out++ = negative ? '-' : '+';
    if (exponent >= 100) *out++ = '0' + exponent / 100;
    *out++ = '0' + exponent / 10 % 10;
    *out++ = '0' + exponent % 10;
    return out;
}
