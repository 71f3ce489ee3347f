// Values in canonical form: bytes that are equal exactly for equal values.
//
//   n                null
//   t, f             a truth value
//   i17;             an integer
//   d3ff8000000000000  a float, in hexadecimal; every NaN is the same one
//   s2:ab            a text, after its length in bytes
//   l2:...           a list, after its length
//   m2:...           a record: names, as texts and in their order, each before its value
//
// Here they are written from Arrow's columns, and read into such ones.
#ifndef RIPPLE_CANONICAL_HPP
#define RIPPLE_CANONICAL_HPP

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
struct ArrowArray { /* https://arrow.apache.org/docs/format/CDataInterface.html */
    int64_t length, null_count, offset, n_buffers, n_children;
    const void** buffers;
    struct ArrowArray** children;
    struct ArrowArray* dictionary;
    void (*release)(struct ArrowArray*);
    void* private_data;
};
#endif

namespace ripple {

constexpr int64_t NAN_BITS = 0x7FF8000000000000LL;

// Returns how many bytes it writes: 24 at most.
inline size_t number_into(char* text, char kind, int64_t number, char end)
{
    *text = kind;
    const auto done = std::to_chars(text + 1, text + 23, number);
    *done.ptr = end;
    return static_cast<size_t>(done.ptr + 1 - text);
}

inline void write_number(std::string& out, char kind, int64_t number, char end)
{
    char text[24];
    out.append(text, number_into(text, kind, number, end));
}

inline void write_text(std::string& out, const char* text, size_t size)
{
    write_number(out, 's', static_cast<int64_t>(size), ':');
    out.append(text, size);
}

inline void write_float(std::string& out, double value)
{
    int64_t bits = NAN_BITS;
    if (!std::isnan(value))
        std::memcpy(&bits, &value, 8);
    char text[17] = {'d'};
    for (int digit = 0; digit < 16; digit++)
        text[1 + digit] = "0123456789abcdef"[(bits >> (60 - 4 * digit)) & 15];
    out.append(text, sizeof text);
}

// A type of Arrow's: 'd', 'i', 'b', 's' (text), 'l' (list), 'r' (record). wide: offsets have 64 bits.
struct Shape {
    char kind = 'i';
    bool wide = false;
    std::vector<Shape> parts;       // of a list, its values; of a record, its members
    std::vector<size_t> order;      // of the members, by their names
    std::vector<std::string> heads; // their names in canonical form, in that order
};

inline bool bit_at(const void* bits, int64_t at)
{
    return (static_cast<const uint8_t*>(bits)[at >> 3] >> (at & 7)) & 1;
}

inline int64_t offset_at(const Shape& shape, const ArrowArray* array, int64_t at)
{
    return shape.wide ? static_cast<const int64_t*>(array->buffers[1])[at]
                      : static_cast<const int32_t*>(array->buffers[1])[at];
}

inline bool is_there(const ArrowArray* array, int64_t row)
{
    return array->null_count == 0 || !array->buffers[0] ||
           bit_at(array->buffers[0], array->offset + row);
}

inline void write(std::string& out, const Shape& shape, const ArrowArray* array, int64_t row)
{
    if (!is_there(array, row)) {
        out.push_back('n');
        return;
    }
    const int64_t at = array->offset + row;
    switch (shape.kind) {
    case 'd':
        write_float(out, static_cast<const double*>(array->buffers[1])[at]);
        return;
    case 'i':
        write_number(out, 'i', static_cast<const int64_t*>(array->buffers[1])[at], ';');
        return;
    case 'b':
        out.push_back(bit_at(array->buffers[1], at) ? 't' : 'f');
        return;
    case 's': {
        const int64_t begin = offset_at(shape, array, at), end = offset_at(shape, array, at + 1);
        const char* text = static_cast<const char*>(array->buffers[2]);
        write_text(out, text + begin, static_cast<size_t>(end - begin));
        return;
    }
    case 'l': {
        const int64_t begin = offset_at(shape, array, at), end = offset_at(shape, array, at + 1);
        write_number(out, 'l', end - begin, ':');
        for (int64_t item = begin; item < end; item++)
            write(out, shape.parts[0], array->children[0], item);
        return;
    }
    default:
        write_number(out, 'm', static_cast<int64_t>(shape.order.size()), ':');
        for (size_t k = 0; k < shape.order.size(); k++) {
            out += shape.heads[k];
            write(out, shape.parts[shape.order[k]], array->children[shape.order[k]], at);
        }
    }
}

// A column that grows by values in canonical form, and is handed out as Arrow's at last.
struct Growing {
    const Shape* shape;
    int64_t rows = 0, nulls = 0;
    std::vector<int64_t> numbers;
    std::vector<int32_t> ends{0};
    std::string text;
    std::vector<uint8_t> truths, valid; // bitmaps; valid: empty while no value is null
    std::vector<Growing> parts;

    explicit Growing(const Shape* of) : shape(of)
    {
        for (const Shape& part : of->parts)
            parts.emplace_back(&part);
    }

    // Make room for so many values, of texts with so many bytes in all.
    void reserve(size_t values, size_t bytes)
    {
        switch (shape->kind) {
        case 'd':
        case 'i':
            numbers.reserve(values);
            break;
        case 's':
            ends.reserve(values + 1);
            text.reserve(bytes);
            break;
        default:
            break;
        }
    }

    void append_null()
    {
        if (nulls++ == 0)
            for (int64_t row = 0; row < rows; row++)
                append_bit(valid, row, true);
        grow(false);
        fill();
    }

    // Append an empty value within a null record: no null, since a field may be declared without
    // any.
    void append_empty()
    {
        grow(true);
        fill();
    }

    // Append the value at `at`, return its end.
    const char* append(const char* at, const char* end)
    {
        if (at < end && *at == 'n') {
            append_null();
            return at + 1;
        }
        grow(true);
        int64_t count = 0;
        switch (shape->kind) {
        case 'd':
            if (at < end && *at == 'i') { // an integer where a float is meant
                at = number(at, end, 'i', &count);
                const double value = static_cast<double>(count);
                std::memcpy(&count, &value, 8);
                numbers.push_back(count);
                return at;
            }
            if (end - at < 17 || *at != 'd')
                fail();
            for (int digit = 1; digit <= 16; digit++)
                count = static_cast<int64_t>(static_cast<uint64_t>(count) << 4 |
                                             static_cast<uint64_t>(digit_of(at[digit])));
            numbers.push_back(count);
            return at + 17;
        case 'i':
            at = number(at, end, 'i', &count);
            numbers.push_back(count);
            return at;
        case 'b':
            if (at >= end || (*at != 't' && *at != 'f'))
                fail();
            append_bit(truths, rows - 1, *at == 't');
            return at + 1;
        case 's':
            at = number(at, end, 's', &count);
            if (count < 0 || count > end - at)
                fail();
            text.append(at, static_cast<size_t>(count));
            close(text.size());
            return at + count;
        case 'l':
            at = number(at, end, 'l', &count);
            for (int64_t item = 0; item < count; item++)
                at = parts[0].append(at, end);
            close(static_cast<size_t>(parts[0].rows));
            return at;
        default:
            at = number(at, end, 'm', &count);
            if (count != static_cast<int64_t>(shape->order.size()))
                fail();
            for (size_t k = 0; k < shape->order.size(); k++) {
                const std::string& head = shape->heads[k];
                if (end - at < static_cast<std::ptrdiff_t>(head.size()) ||
                    std::memcmp(at, head.data(), head.size()))
                    fail();
                at = parts[shape->order[k]].append(at + head.size(), end);
            }
            return at;
        }
    }

    // Append a text, of which only the letters are given, to a column of texts.
    void append_text(const char* at, const char* end)
    {
        grow(true);
        text.append(at, static_cast<size_t>(end - at));
        close(text.size());
    }

    // Hand the column out; it is empty then.
    void release_to(ArrowArray* out);

  private:
    [[noreturn]] static void fail() { throw std::invalid_argument("a value of another type"); }

    static int digit_of(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

    static void append_bit(std::vector<uint8_t>& bits, int64_t at, bool value)
    {
        if ((at & 7) == 0)
            bits.push_back(0);
        bits.back() = static_cast<uint8_t>(bits.back() | value << (at & 7));
    }

    static const char* number(const char* at, const char* end, char kind, int64_t* into)
    {
        if (at >= end || *at != kind)
            fail();
        const auto done = std::from_chars(at + 1, end, *into);
        if (done.ec != std::errc() || done.ptr >= end)
            fail();
        return done.ptr + 1;
    }

    void grow(bool is_value)
    {
        if (nulls)
            append_bit(valid, rows, is_value);
        rows++;
    }

    // Give the last row a placeholder.
    void fill()
    {
        switch (shape->kind) {
        case 'd':
        case 'i':
            numbers.push_back(0);
            break;
        case 'b':
            append_bit(truths, rows - 1, false);
            break;
        case 'r':
            for (Growing& part : parts)
                part.append_empty();
            break;
        default:
            ends.push_back(ends.back());
        }
    }

    void close(size_t end)
    {
        if (end > INT32_MAX)
            throw std::overflow_error("the values of one batch exceed 2 GiB");
        ends.push_back(static_cast<int32_t>(end));
    }
};

// What an array of Arrow's that was handed out owns.
struct Owned {
    Growing column;
    const void* buffers[3];
    std::vector<ArrowArray> children;
    std::vector<ArrowArray*> listed;
};

inline void release_owned(ArrowArray* array)
{
    Owned* owned = static_cast<Owned*>(array->private_data);
    for (ArrowArray* child : owned->listed)
        if (child->release)
            child->release(child);
    array->release = nullptr;
    delete owned;
}

inline void Growing::release_to(ArrowArray* out)
{
    static const int64_t nothing = 0;
    Owned* owned = new Owned{std::move(*this), {}, {}, {}};
    Growing& column = owned->column;
    const char kind = column.shape->kind;
    const void* values = kind == 'b'                   ? static_cast<const void*>(column.truths.data())
                         : kind == 's' || kind == 'l' ? static_cast<const void*>(column.ends.data())
                                                      : static_cast<const void*>(column.numbers.data());
    owned->buffers[0] = column.nulls ? column.valid.data() : nullptr;
    owned->buffers[1] = values ? values : &nothing;
    owned->buffers[2] = column.text.data();
    owned->children.resize(column.parts.size());
    for (size_t k = 0; k < column.parts.size(); k++) {
        column.parts[k].release_to(&owned->children[k]);
        owned->listed.push_back(&owned->children[k]);
    }
    std::memset(out, 0, sizeof *out);
    out->length = column.rows;
    out->null_count = column.nulls;
    out->n_buffers = kind == 's' ? 3 : kind == 'r' ? 1 : 2;
    out->buffers = owned->buffers;
    out->n_children = static_cast<int64_t>(owned->listed.size());
    out->children = owned->listed.data();
    out->private_data = owned;
    out->release = release_owned;
}

} // namespace ripple

#endif
