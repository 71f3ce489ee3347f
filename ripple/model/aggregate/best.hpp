// The best rows of each slot, of a stream that only grows: at most `limit`, in order, each with a
// copy of what is shown of it.
//
// The rows of a batch are compared where they are. Only those that are still among the best at its
// end are copied, so that an event which is overtaken in its batch costs no memory.
#ifndef RIPPLE_BEST_HPP
#define RIPPLE_BEST_HPP

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

struct Best {
    // row: where it is in the batch at hand, or -1, and then `word` and `copy` have it.
    struct Entry {
        uint64_t key;
        int64_t time_ns, offset, row;
        std::string word, copy;
    };

    int64_t limit = 1;
    char by_kind = 0; // 0: only the place decides
    bool largest = false, latest = false;
    std::string kinds; // of the fields
    std::vector<std::vector<Entry>> slots;

    // Invariant between calls: no entry is of a batch.
    void add(
        const int64_t* slot, int64_t n, const Strip& by, const int64_t* time_ns,
        const int64_t* offset, const std::vector<Strip>& fields
    )
    {
        batch_by = &by;
        batch_fields = &fields;
        changed.clear();
        Entry entry{};
        for (int64_t i = 0; i < n; i++) {
            std::vector<Entry>& held = slots[slot[i]];
            entry.key = key_at(i);
            entry.time_ns = time_ns[i];
            entry.offset = offset[i];
            entry.row = i;
            const bool is_full = static_cast<int64_t>(held.size()) == limit;
            if (is_full && !better(entry, held.back()))
                continue;
            if (is_full && limit == 1) {
                Entry& old = held.back();
                if (old.row < 0)
                    changed.push_back(slot[i]);
                old.key = entry.key;
                old.time_ns = entry.time_ns;
                old.offset = entry.offset;
                old.row = i;
                continue;
            }
            put(held, entry);
            changed.push_back(slot[i]);
        }
        for (const int64_t at : changed)
            for (Entry& held : slots[at])
                if (held.row >= 0)
                    keep(held);
    }

    void merge(int64_t into, int64_t source)
    {
        for (Entry& entry : slots[source])
            if (static_cast<int64_t>(slots[into].size()) < limit ||
                better(entry, slots[into].back()))
                put(slots[into], entry);
        clear(source);
    }

    void clear(int64_t slot) { std::vector<Entry>().swap(slots[slot]); }

    // Write the entries of a slot, the best first, behind those that were written before.
    void encode(
        int64_t slot, std::vector<int64_t>& numbers, Encoded& by, std::vector<Encoded>& fields
    ) const
    {
        for (const Entry& entry : slots[slot]) {
            numbers.push_back(entry.time_ns);
            numbers.push_back(entry.offset);
            if (by_kind == 's')
                by.append(std::string_view(entry.word), true);
            else
                by.append(bits_of_key(largest ? ~entry.key : entry.key, by_kind), true);
            append_row(entry.copy.data(), kinds, fields);
        }
    }

    int64_t nbytes() const
    {
        size_t total = slots.capacity() * sizeof(slots[0]);
        for (const auto& held : slots) {
            total += held.capacity() * sizeof(Entry);
            for (const Entry& entry : held)
                total += heap_of(entry.word) + heap_of(entry.copy);
        }
        return static_cast<int64_t>(total);
    }

  private:
    const Strip* batch_by = nullptr;
    const std::vector<Strip>* batch_fields = nullptr;
    std::vector<int64_t> changed;

    static size_t heap_of(const std::string& text) { return text.capacity() > 15 ? text.capacity() : 0; }

    uint64_t key_at(int64_t i) const
    {
        if (by_kind == 0)
            return 0;
        const uint64_t key = by_kind == 's' ? prefix_of(batch_by->word(i))
                                            : key_of_bits(batch_by->numbers[i], by_kind);
        return largest ? ~key : key;
    }

    std::string_view word_of(const Entry& entry) const
    {
        return entry.row >= 0 ? batch_by->word(entry.row) : std::string_view(entry.word);
    }

    // By the value, then by the place; equal places are told apart by the fields.
    bool better(const Entry& one, const Entry& other) const
    {
        if (one.key != other.key)
            return one.key < other.key;
        if (by_kind == 's')
            if (const int by = word_of(one).compare(word_of(other)))
                return (by < 0) != largest;
        if (one.time_ns != other.time_ns)
            return (one.time_ns < other.time_ns) != latest;
        if (one.offset != other.offset)
            return (one.offset < other.offset) != latest;
        if (kinds.empty())
            return false;
        const int by = compare(copied(one), copied(other));
        return by != 0 && (by < 0) != latest;
    }

    void put(std::vector<Entry>& held, const Entry& entry) const
    {
        const auto place = std::upper_bound(
            held.begin(), held.end(), entry,
            [this](const Entry& one, const Entry& other) { return better(one, other); }
        );
        held.insert(place, entry);
        if (static_cast<int64_t>(held.size()) > limit)
            held.pop_back();
    }

    void keep(Entry& entry) const
    {
        entry.copy = copied(entry);
        if (by_kind == 's')
            entry.word = batch_by->word(entry.row);
        entry.row = -1;
    }

    std::string copied(const Entry& entry) const
    {
        return entry.row < 0 ? entry.copy : row_copied(*batch_fields, entry.row);
    }

    int compare(const std::string& one, const std::string& other) const
    {
        const char *a = one.data(), *b = other.data();
        for (const char kind : kinds) {
            const bool in_a = *a++, in_b = *b++;
            if (in_a != in_b)
                return in_a ? 1 : -1;
            if (!in_a)
                continue;
            if (kind == 's') {
                const std::string_view first = word_at(a), second = word_at(b);
                if (const int by = first.compare(second))
                    return by;
                a += 8 + first.size();
                b += 8 + second.size();
                continue;
            }
            int64_t bits[2];
            std::memcpy(&bits[0], a, 8);
            std::memcpy(&bits[1], b, 8);
            const uint64_t first = key_of_bits(bits[0], kind), second = key_of_bits(bits[1], kind);
            if (first != second)
                return first < second ? -1 : 1;
            a += 8;
            b += 8;
        }
        return 0;
    }
};

} // namespace ripple

#endif
