// Checksums of venues over the best levels of an order book, as they define them.
#ifndef RIPPLE_BOOK_CHECKSUM_HPP
#define RIPPLE_BOOK_CHECKSUM_HPP

#include <array>
#include <cstdint>
#include <string>

namespace ripple {

// Numbers of CHECKSUMS in ripple/model/running/order_book.py.
enum Checksum : int64_t { UNCHECKED, KRAKEN, OKX, BITFINEX };

// The CRC-32 of ISO 3309, as zlib has it.
inline uint32_t crc32(const std::string& text)
{
    static const std::array<uint32_t, 256> table = [] {
        std::array<uint32_t, 256> made {};
        for (uint32_t byte = 0; byte < 256; ++byte) {
            made[byte] = byte;
            for (int bit = 0; bit < 8; ++bit)
                made[byte] = made[byte] & 1 ? 0xEDB88320u ^ (made[byte] >> 1) : made[byte] >> 1;
        }
        return made;
    }();
    uint32_t crc = 0xFFFFFFFFu;
    for (unsigned char letter : text)
        crc = table[(crc ^ letter) & 255] ^ (crc >> 8);
    return ~crc;
}

// Appends a number of units of 10 ** -scale without a point and zeros in front: nothing for zero.
inline void add_digits(std::string& text, int64_t units)
{
    if (units)
        text += std::to_string(units);
}

// Appends it as a decimal number without zeros at its end.
inline void add_decimal(std::string& text, int64_t units, int64_t scale)
{
    for (; scale && units % 10 == 0; --scale)
        units /= 10;
    if (units < 0)
        text += '-';
    std::string digits = std::to_string(units);
    if (units < 0)
        digits.erase(0, 1);
    if ((int64_t)digits.size() <= scale)
        digits.insert(0, scale + 1 - digits.size(), '0');
    text.append(digits, 0, digits.size() - scale);
    if (scale) {
        text += '.';
        text.append(digits, digits.size() - scale, scale);
    }
}

// Appends it as JavaScript writes a number: as above, but with an exponent below 0.000001.
inline void add_number(std::string& text, int64_t units, int64_t scale)
{
    for (; scale && units % 10 == 0; --scale)
        units /= 10;
    std::string digits = std::to_string(units);
    const size_t sign = units < 0;
    const int64_t exponent = (int64_t)(digits.size() - sign) - 1 - scale;
    if (!units || exponent >= -6) {
        add_decimal(text, units, scale);
        return;
    }
    if (digits.size() > sign + 1)
        digits.insert(sign + 1, 1, '.');
    text += digits + 'e' + std::to_string(exponent);
}

} // namespace ripple

#endif
