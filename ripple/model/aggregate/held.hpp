// All rows of each slot, in order, where rows may be taken out again.
//
// A row is one text: bytes of the order of (value, place, fields), then a copy of all its columns.
#ifndef RIPPLE_HELD_HPP
#define RIPPLE_HELD_HPP

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "best.hpp"

namespace ripple {

struct HeldRow {
    std::string text;
    size_t cut; // where the copy begins

    std::string_view order() const { return std::string_view(text).substr(0, cut); }
    const char* copy() const { return text.data() + cut; }
    int64_t nbytes() const
    {
        return static_cast<int64_t>(sizeof(HeldRow) + 32 + (text.capacity() > 15 ? text.capacity() : 0));
    }
    bool operator<(const HeldRow& other) const { return order() < other.order(); }
};

struct Held {
    int64_t limit = 1;  // of the rows that are shown
    bool last = false;  // whether the end of the order is the better one
    size_t values = 0;  // first columns: the value that decides, if there is one
    size_t fields = 0;  // the columns behind; then come those of the place
    std::string kinds;  // of all columns
    int64_t bytes = 0;  // of the rows
    std::vector<std::multiset<HeldRow>> slots;

    void add(const int64_t* slot, int64_t n, const std::vector<Strip>& columns)
    {
        for (int64_t i = 0; i < n; i++) {
            HeldRow row = row_of(columns, i);
            row.text += row_copied(columns, i);
            bytes += row.nbytes();
            slots[slot[i]].insert(std::move(row));
        }
    }

    // Returns the first row that is not there, or -1.
    int64_t remove(const int64_t* slot, int64_t n, const std::vector<Strip>& columns)
    {
        int64_t absent = -1;
        for (int64_t i = 0; i < n; i++) {
            std::multiset<HeldRow>& held = slots[slot[i]];
            const HeldRow row = row_of(columns, i);
            const auto found = held.lower_bound(row);
            if (found != held.end() && found->order() == row.order()) {
                bytes -= found->nbytes();
                held.erase(found);
            } else if (absent < 0) {
                absent = i;
            }
        }
        return absent;
    }

    void merge(int64_t into, int64_t source) { slots[into].merge(slots[source]); }

    void clear(int64_t slot)
    {
        for (const HeldRow& row : slots[slot])
            bytes -= row.nbytes();
        slots[slot].clear();
    }

    // Write all rows of a slot in their order, or those that are shown, the best first; return how
    // many these are.
    int64_t encode(int64_t slot, bool all, std::vector<Encoded>& columns) const
    {
        const std::multiset<HeldRow>& held = slots[slot];
        if (all)
            return write(held.begin(), held.end(), static_cast<int64_t>(held.size()), columns);
        if (!last)
            return write(held.begin(), held.end(), limit, columns);
        int64_t written = 0;
        for (auto end = held.end(); end != held.begin() && written < limit;) {
            auto begin = std::prev(end);
            if (values) { // equal values are shown in their order
                std::string value(begin->order().substr(0, value_size(begin->order())));
                const size_t cut = value.size();
                begin = held.lower_bound(HeldRow{std::move(value), cut});
            }
            written += write(begin, end, limit - written, columns);
            end = begin;
        }
        return written;
    }

  private:
    using Place = std::multiset<HeldRow>::const_iterator;

    int64_t write(Place at, Place end, int64_t most, std::vector<Encoded>& columns) const
    {
        int64_t written = 0;
        for (; at != end && written < most; ++at, written++)
            append_row(at->copy(), kinds, columns);
        return written;
    }

    HeldRow row_of(const std::vector<Strip>& columns, int64_t i) const
    {
        HeldRow row{{}, 0};
        for (size_t c = 0; c < values; c++)
            append_ordered(row.text, columns[c], i);
        for (size_t c = values + fields; c < columns.size(); c++)
            append_ordered(row.text, columns[c], i);
        for (size_t c = values; c < values + fields; c++)
            append_ordered(row.text, columns[c], i);
        row.cut = row.text.size();
        return row;
    }

    // Bytes of the same order as the values: null below all, a text up to two zeros.
    static void append_ordered(std::string& out, const Strip& column, int64_t i)
    {
        const bool valid = column.has(i);
        out.push_back(valid);
        if (!valid)
            return;
        if (column.kind != 's') {
            const uint64_t key = key_of_bits(column.numbers[i], column.kind);
            for (int shift = 56; shift >= 0; shift -= 8)
                out.push_back(static_cast<char>(key >> shift));
            return;
        }
        for (const char byte : column.word(i)) {
            out.push_back(byte);
            if (byte == 0)
                out.push_back(static_cast<char>(0xFF));
        }
        out.append(2, 0);
    }

    size_t value_size(std::string_view order) const
    {
        if (kinds[0] != 's')
            return 9;
        size_t at = 1;
        while (order[at] || order[at + 1])
            at += order[at] ? 1 : 2;
        return at + 2;
    }
};

} // namespace ripple

#endif
