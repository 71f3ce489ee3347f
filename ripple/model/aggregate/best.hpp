// The best rows of each slot, of a stream that only grows: at most `limit`, in order, each with a
// copy of what is shown of it.
//
// Texts of rows that are shown as fields are kept as columns hold them, so that a column shows them
// without a copy. The includer brings ripple/core/kept.pxd.
//
// The rows of a batch are compared where they are. Only those that are still among the best at its
// end are copied, so that an event which is overtaken in its batch costs no memory.
#ifndef RIPPLE_BEST_HPP
#define RIPPLE_BEST_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <new>
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

constexpr size_t CELL_BYTES = 9; // a byte for whether there is a value, then its bits or address

inline std::string_view word_of(const Kept* kept)
{
    const char* begin = kept_letters(kept);
    return {begin, static_cast<size_t>(kept_bytes(kept) + kept->size - begin)};
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
    bool keeps_texts = false; // whether a copy has cells, with the addresses of texts
    std::string kinds; // of the fields
    std::deque<std::vector<Entry>> slots;

    Best() = default;
    Best(const Best&) = delete;
    Best& operator=(const Best&) = delete;
    ~Best()
    {
        for (std::vector<Entry>& held : slots)
            for (Entry& entry : held)
                drop(entry.copy);
    }

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
            put(held, Entry(entry));
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
                better(entry, slots[into].back())) {
                put(slots[into], std::move(entry));
                entry.copy.clear();
            }
        clear(source);
    }

    void clear(int64_t slot)
    {
        for (Entry& entry : slots[slot])
            drop(entry.copy);
        std::vector<Entry>().swap(slots[slot]);
    }

    // Write the entries of a slot, the best first, behind those that were written before.
    void encode(
        int64_t slot, std::vector<int64_t>& numbers, Encoded& by, std::vector<Encoded>& fields
    ) const
    {
        std::vector<Seen> row;
        for (const Entry& entry : slots[slot]) {
            numbers.push_back(entry.time_ns);
            numbers.push_back(entry.offset);
            if (by_kind == 's')
                by.append(std::string_view(entry.word), true);
            else
                by.append(bits_of_key(largest ? ~entry.key : entry.key, by_kind), true);
            see(entry, row);
            for (size_t f = 0; f < row.size(); f++)
                if (kinds[f] == 's')
                    fields[f].append(row[f].word, row[f].valid);
                else
                    fields[f].append(row[f].bits, row[f].valid);
        }
    }

    // Write a field of the best row of each slot: the bits of numbers, the addresses of texts that
    // it keeps; and whether there is a value.
    void show(const int64_t* slot, int64_t n, size_t field, int64_t* bits, uint8_t* valid) const
    {
        for (int64_t i = 0; i < n; i++) {
            const std::vector<Entry>& held = slots[slot[i]];
            const char* cell = held.empty() ? nullptr : held[0].copy.data() + field * CELL_BYTES;
            valid[i] = cell && *cell;
            bits[i] = valid[i] ? bits_in(cell) : 0;
        }
    }

    int64_t nbytes() const
    {
        size_t total = slots.size() * sizeof(slots[0]);
        for (const auto& held : slots) {
            total += held.capacity() * sizeof(Entry);
            for (const Entry& entry : held) {
                total += heap_of(entry.word) + heap_of(entry.copy);
                if (keeps_texts)
                    for (size_t f = 0; f < kinds.size(); f++)
                        if (const Kept* kept = kept_in(entry.copy, f))
                            total += sizeof(Kept) + kept->size;
            }
        }
        return static_cast<int64_t>(total);
    }

  private:
    // A field of a row: whether there is a value, and it.
    struct Seen {
        bool valid;
        int64_t bits;
        std::string_view word;
    };

    const Strip* batch_by = nullptr;
    const std::vector<Strip>* batch_fields = nullptr;
    std::vector<int64_t> changed;

    static size_t heap_of(const std::string& text) { return text.capacity() > 15 ? text.capacity() : 0; }

    static int64_t bits_in(const char* cell)
    {
        int64_t bits;
        std::memcpy(&bits, cell + 1, 8);
        return bits;
    }

    // Returns the text in a field of a copy with cells, or null.
    Kept* kept_in(const std::string& copy, size_t field) const
    {
        const char* cell = copy.data() + field * CELL_BYTES;
        if (copy.empty() || kinds[field] != 's' || !*cell)
            return nullptr;
        return reinterpret_cast<Kept*>(bits_in(cell));
    }

    uint64_t key_at(int64_t i) const
    {
        if (by_kind == 0)
            return 0;
        const uint64_t key = by_kind == 's' ? prefix_of(batch_by->word(i))
                                            : key_of_bits(batch_by->numbers[i], by_kind);
        return largest ? ~key : key;
    }

    std::string_view deciding(const Entry& entry) const
    {
        return entry.row >= 0 ? batch_by->word(entry.row) : std::string_view(entry.word);
    }

    // By the value, then by the place; equal places are told apart by the fields.
    bool better(const Entry& one, const Entry& other) const
    {
        if (one.key != other.key)
            return one.key < other.key;
        if (by_kind == 's')
            if (const int by = deciding(one).compare(deciding(other)))
                return (by < 0) != largest;
        if (one.time_ns != other.time_ns)
            return (one.time_ns < other.time_ns) != latest;
        if (one.offset != other.offset)
            return (one.offset < other.offset) != latest;
        const int by = compare(one, other);
        return by != 0 && (by < 0) != latest;
    }

    void put(std::vector<Entry>& held, Entry&& entry) const
    {
        const auto place = std::upper_bound(
            held.begin(), held.end(), entry,
            [this](const Entry& one, const Entry& other) { return better(one, other); }
        );
        held.insert(place, std::move(entry));
        if (static_cast<int64_t>(held.size()) > limit) {
            drop(held.back().copy);
            held.pop_back();
        }
    }

    void keep(Entry& entry) const
    {
        if (keeps_texts)
            keep_cells(entry);
        else
            entry.copy = row_copied(*batch_fields, entry.row);
        if (by_kind == 's')
            entry.word = batch_by->word(entry.row);
        entry.row = -1;
    }

    // Copy a row into cells; a text that stays the same is not copied again.
    void keep_cells(Entry& entry) const
    {
        std::string& copy = entry.copy;
        if (copy.empty())
            copy.assign(kinds.size() * CELL_BYTES, 0);
        for (size_t f = 0; f < kinds.size(); f++) {
            const Strip& column = (*batch_fields)[f];
            const bool valid = column.has(entry.row);
            char* cell = copy.data() + f * CELL_BYTES;
            int64_t bits = 0;
            if (kinds[f] != 's') {
                bits = valid ? column.numbers[entry.row] : 0;
            } else {
                Kept* old = kept_in(copy, f);
                if (valid) {
                    const std::string_view word = column.word(entry.row);
                    if (old && word_of(old) == word)
                        continue;
                    Kept* kept = kept_text(word.data(), word.size());
                    if (!kept)
                        throw std::bad_alloc();
                    bits = reinterpret_cast<int64_t>(kept);
                }
                if (old)
                    kept_drop(old);
            }
            *cell = valid;
            std::memcpy(cell + 1, &bits, 8);
        }
    }

    // Forget a copy.
    void drop(std::string& copy) const
    {
        if (keeps_texts)
            for (size_t f = 0; f < kinds.size(); f++)
                if (Kept* kept = kept_in(copy, f))
                    kept_drop(kept);
        copy.clear();
    }

    // Read a row where it is.
    void see(const Entry& entry, std::vector<Seen>& row) const
    {
        row.assign(kinds.size(), Seen{false, 0, {}});
        const char* at = entry.copy.data();
        for (size_t f = 0; f < kinds.size(); f++) {
            Seen& one = row[f];
            if (entry.row >= 0) {
                const Strip& column = (*batch_fields)[f];
                one.valid = column.has(entry.row);
                if (one.valid && kinds[f] == 's')
                    one.word = column.word(entry.row);
                else if (one.valid)
                    one.bits = column.numbers[entry.row];
                continue;
            }
            one.valid = *at;
            if (keeps_texts) {
                one.bits = bits_in(at);
                if (const Kept* kept = kept_in(entry.copy, f))
                    one.word = word_of(kept);
                at += CELL_BYTES;
                continue;
            }
            at++;
            if (one.valid && kinds[f] == 's')
                one.word = word_at(at);
            else if (one.valid)
                std::memcpy(&one.bits, at, 8);
            at += one.valid ? 8 + one.word.size() : 0;
        }
    }

    int compare(const Entry& one, const Entry& other) const
    {
        std::vector<Seen> a, b;
        see(one, a);
        see(other, b);
        for (size_t f = 0; f < kinds.size(); f++) {
            if (a[f].valid != b[f].valid)
                return a[f].valid ? 1 : -1;
            if (!a[f].valid)
                continue;
            if (kinds[f] == 's') {
                if (const int by = a[f].word.compare(b[f].word))
                    return by;
                continue;
            }
            const uint64_t first = key_of_bits(a[f].bits, kinds[f]);
            const uint64_t second = key_of_bits(b[f].bits, kinds[f]);
            if (first != second)
                return first < second ? -1 : 1;
        }
        return 0;
    }
};

} // namespace ripple

#endif
