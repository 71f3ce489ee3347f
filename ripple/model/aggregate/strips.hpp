// Columns of a batch on their way into rows of slots, and those of rows on their way out.
#ifndef RIPPLE_STRIPS_HPP
#define RIPPLE_STRIPS_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ordered.hpp"

namespace ripple {

// A column of a batch: 64 bits a value, or texts from starts[i] to starts[i + 1]. valid: a byte a
// value, zero for null; null if none is.
struct Strip {
    char kind = 'i'; // 'd', 'i' or 's'
    const int64_t* numbers = nullptr;
    const int64_t* starts = nullptr;
    const char* text = nullptr;
    const uint8_t* valid = nullptr;

    bool has(int64_t i) const { return valid == nullptr || valid[i]; }
    std::string_view word(int64_t i) const
    {
        return {text + starts[i], static_cast<size_t>(starts[i + 1] - starts[i])};
    }
};

// The bits of values, or texts one behind the other and their ends; and which there are.
struct Encoded {
    std::vector<int64_t> numbers, ends;
    std::string text;
    std::vector<uint8_t> valid;

    void append(int64_t bits, bool is_value)
    {
        numbers.push_back(bits);
        valid.push_back(is_value);
    }
    void append(std::string_view word, bool is_value)
    {
        text += word;
        ends.push_back(static_cast<int64_t>(text.size()));
        valid.push_back(is_value);
    }
    void reserve(size_t rows, char kind)
    {
        (kind == 's' ? ends : numbers).reserve(rows);
        valid.reserve(rows);
    }
};

inline int64_t bits_of_key(uint64_t key, char kind)
{
    if (kind != 'd')
        return integer_of(key);
    const double value = double_of(key);
    int64_t bits;
    std::memcpy(&bits, &value, 8);
    return bits;
}

inline uint64_t key_of_bits(int64_t bits, char kind)
{
    if (kind != 'd')
        return key_of(bits);
    double value;
    std::memcpy(&value, &bits, 8);
    return key_of(value);
}

// The first eight bytes of a text as a number of the same order.
inline uint64_t prefix_of(std::string_view word)
{
    uint64_t key = 0;
    for (size_t i = 0; i < std::min<size_t>(8, word.size()); i++)
        key |= static_cast<uint64_t>(static_cast<unsigned char>(word[i])) << (56 - 8 * i);
    return key;
}

// A row of columns: for each a byte for whether there is a value, then its bits, or the length of a
// text and the text.
inline std::string row_copied(const std::vector<Strip>& columns, int64_t row)
{
    std::string copy;
    size_t size = 0;
    for (const Strip& column : columns)
        size += !column.has(row) ? 1 : column.kind == 's' ? 9 + column.word(row).size() : 9;
    copy.reserve(size);
    for (const Strip& column : columns) {
        const bool valid = column.has(row);
        copy.push_back(valid);
        if (!valid)
            continue;
        if (column.kind != 's') {
            copy.append(reinterpret_cast<const char*>(&column.numbers[row]), 8);
            continue;
        }
        const std::string_view word = column.word(row);
        const uint64_t size = word.size();
        copy.append(reinterpret_cast<const char*>(&size), 8);
        copy.append(word);
    }
    return copy;
}

inline std::string_view word_at(const char* at)
{
    uint64_t size;
    std::memcpy(&size, at, 8);
    return {at + 8, static_cast<size_t>(size)};
}

// Write a row's values behind those that were written before.
inline void append_row(const char* at, const std::string& kinds, std::vector<Encoded>& columns)
{
    for (size_t f = 0; f < columns.size(); f++) {
        const bool valid = *at++;
        if (kinds[f] == 's') {
            const std::string_view word = valid ? word_at(at) : std::string_view();
            columns[f].append(word, valid);
            at += valid ? 8 + word.size() : 0;
        } else {
            int64_t bits = 0;
            if (valid)
                std::memcpy(&bits, at, 8);
            columns[f].append(bits, valid);
            at += valid ? 8 : 0;
        }
    }
}

} // namespace ripple

#endif
