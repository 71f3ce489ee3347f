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
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "strips.hpp"

namespace ripple {

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
    std::deque<std::vector<Entry>> slots;

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
            }
        clear(source);
    }

    void clear(int64_t slot) { std::vector<Entry>().swap(slots[slot]); }

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

    int64_t nbytes() const
    {
        size_t total = slots.size() * sizeof(slots[0]);
        for (const auto& held : slots) {
            total += held.capacity() * sizeof(Entry);
            for (const Entry& entry : held)
                total += heap_of(entry.word) + heap_of(entry.copy);
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
        if (static_cast<int64_t>(held.size()) > limit)
            held.pop_back();
    }

    void keep(Entry& entry) const
    {
        entry.copy = row_copied(*batch_fields, entry.row);
        if (by_kind == 's')
            entry.word = batch_by->word(entry.row);
        entry.row = -1;
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
            one.valid = *at++;
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
