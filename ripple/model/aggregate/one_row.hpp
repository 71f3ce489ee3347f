// The best row of each slot, of a stream that only grows: one record a slot, side by side.
//
// Texts are kept as columns hold them, so that a column shows them without a copy. The includer
// brings ripple/core/kept.pxd.
//
// The rows of a batch are compared where they are. Only those that are still the best at its end
// are written, so that a row which is overtaken in its batch costs no text.
#ifndef RIPPLE_ONE_ROW_HPP
#define RIPPLE_ONE_ROW_HPP

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strips.hpp"

namespace ripple {

inline std::string_view word_of(const Kept* kept)
{
    const char* begin = kept_letters(kept);
    return {begin, static_cast<size_t>(kept_bytes(kept) + kept->size - begin)};
}

// A record: STATE, TIME, OFFSET; KEY and WORD if a value decides; the bits of the fields, or the
// addresses of their texts; then a byte a field for whether there is a value.
//
// Invariants: a record is EMPTY, and zero, or KEPT between calls; a field without a value is zero.
struct OneRow {
    enum Place { STATE, TIME, OFFSET, KEY, WORD };
    enum State { EMPTY, KEPT, IN_BATCH }; // from IN_BATCH on: the row of the batch at hand

    char by_kind = 0; // 0: only the place decides
    bool largest = false, latest = false;
    std::string kinds; // of the fields

    OneRow() = default;
    OneRow(const OneRow&) = delete;
    OneRow& operator=(const OneRow&) = delete;
    ~OneRow()
    {
        for (int64_t slot = 0; slot < slots; slot++)
            forget(at(slot));
        std::free(block);
    }

    // To be called once, before any other: what decides, and the fields.
    void lay_out()
    {
        first = by_kind ? WORD + 1 : KEY;
        flags = first + static_cast<int64_t>(kinds.size());
        width = flags + (static_cast<int64_t>(kinds.size()) + 7) / 8;
        const bool has_texts = by_kind == 's' || kinds.find('s') != std::string::npos;
        is_of_few_numbers = !has_texts && width == flags + 1;
    }

    void resize(int64_t count)
    {
        if (count <= slots)
            return;
        void* bigger = std::realloc(block, count * width * sizeof(int64_t));
        if (!bigger)
            throw std::bad_alloc();
        block = static_cast<int64_t*>(bigger);
        std::memset(at(slots), 0, (count - slots) * width * sizeof(int64_t));
        slots = count;
    }

    int64_t size() const { return slots; }

    // time_ns: of the rows, null if it decides nothing.
    void add(
        const int64_t* slot, int64_t n, const Strip& by, const int64_t* time_ns,
        const int64_t* offset, const std::vector<Strip>& fields
    )
    {
        batch_by = &by;
        batch_fields = &fields;
        changed.clear();
        for (int64_t i = 0; i < n; i++) {
            if (i + static_cast<int64_t>(AHEAD) < n)
                __builtin_prefetch(at(slot[i + AHEAD]), 1);
            int64_t* held = at(slot[i]);
            const int64_t time = time_ns ? time_ns[i] : 0;
            const uint64_t key = by_kind ? key_at(i) : 0;
            if (held[STATE] != EMPTY) {
                if (!by_kind && (time != held[TIME] || offset[i] != held[OFFSET])) {
                    if (!precedes(time, offset[i], held))
                        continue;
                } else if (!better({nullptr, i, key, time, offset[i]}, held)) {
                    continue;
                }
            }
            if (held[STATE] < IN_BATCH)
                changed.push_back(slot[i]);
            held[STATE] = IN_BATCH + i;
            held[TIME] = time;
            held[OFFSET] = offset[i];
            if (by_kind)
                held[KEY] = static_cast<int64_t>(key);
        }
        if (is_of_few_numbers) {
            write_numbers();
            return;
        }
        for (size_t i = 0; i < changed.size(); i++) {
            if (i + AHEAD < changed.size())
                __builtin_prefetch(at(changed[i + AHEAD]), 1);
            write(at(changed[i]));
        }
    }

    void merge(int64_t into, int64_t source)
    {
        int64_t *to = at(into), *from = at(source);
        if (from[STATE] != EMPTY &&
            (to[STATE] == EMPTY || better(candidate_of(from), to))) {
            forget(to);
            std::memcpy(to, from, width * sizeof(int64_t));
            std::memset(from, 0, width * sizeof(int64_t));
        }
        clear(source);
    }

    void clear(int64_t slot)
    {
        forget(at(slot));
        std::memset(at(slot), 0, width * sizeof(int64_t));
    }

    bool has(int64_t slot) const { return at(slot)[STATE] != EMPTY; }

    // Write the row of a slot behind those that were written before.
    void encode(
        int64_t slot, std::vector<int64_t>& numbers, Encoded& by, std::vector<Encoded>& fields
    ) const
    {
        const int64_t* held = at(slot);
        if (held[STATE] == EMPTY)
            return;
        numbers.push_back(held[TIME]);
        numbers.push_back(held[OFFSET]);
        if (by_kind == 's')
            by.append(text_at(held, WORD), true);
        else
            by.append(by_kind ? bits_of_key(largest ? ~key_in(held) : key_in(held), by_kind) : 0, true);
        for (size_t f = 0; f < kinds.size(); f++)
            if (kinds[f] == 's')
                fields[f].append(text_at(held, first + f), is_valid(held, f));
            else
                fields[f].append(held[first + f], is_valid(held, f));
    }

    // Write a field of each slot: the bits of numbers, the addresses of texts that it keeps, which
    // are there until the state changes; and whether there is a value.
    void show(const int64_t* slot, int64_t n, size_t field, int64_t* bits, uint8_t* valid) const
    {
        for (int64_t i = 0; i < n; i++) {
            const int64_t* held = at(slot[i]);
            bits[i] = held[first + field];
            valid[i] = is_valid(held, field);
        }
    }

    int64_t nbytes() const
    {
        int64_t total = slots * width * static_cast<int64_t>(sizeof(int64_t));
        for (int64_t slot = 0; slot < slots; slot++)
            each_text(at(slot), [&total](Kept* one) {
                total += static_cast<int64_t>(sizeof(Kept) + one->size);
            });
        return total;
    }

  private:
    // A row of the batch at hand, or where `record` is not null one that is kept.
    struct Candidate {
        const int64_t* record;
        int64_t row;
        uint64_t key;
        int64_t time_ns, offset;
    };

    static constexpr size_t FEW = 8; // fields, of which one word says whether they have values
    static constexpr size_t AHEAD = 8; // records that are fetched from memory before they are read

    bool is_of_few_numbers = false;
    int64_t* block = nullptr;
    int64_t slots = 0, first = 0, flags = 0, width = 0;
    const Strip* batch_by = nullptr;
    const std::vector<Strip>* batch_fields = nullptr;
    std::vector<int64_t> changed; // the slots that have a row of the batch, each once

    int64_t* at(int64_t slot) const { return block + slot * width; }
    uint64_t key_in(const int64_t* held) const { return static_cast<uint64_t>(held[KEY]); }
    bool is_valid(const int64_t* held, size_t f) const
    {
        return reinterpret_cast<const uint8_t*>(held + flags)[f];
    }
    static Kept* kept_at(const int64_t* held, size_t place)
    {
        return reinterpret_cast<Kept*>(held[place]);
    }
    static std::string_view text_at(const int64_t* held, size_t place)
    {
        const Kept* one = kept_at(held, place);
        return one ? word_of(one) : std::string_view();
    }

    template <class Each>
    void each_text(const int64_t* held, Each each) const
    {
        if (by_kind == 's' && held[WORD])
            each(kept_at(held, WORD));
        for (size_t f = 0; f < kinds.size(); f++)
            if (kinds[f] == 's' && held[first + f])
                each(kept_at(held, first + f));
    }

    void forget(const int64_t* held) const { each_text(held, kept_drop); }

    static Kept* kept(std::string_view word)
    {
        Kept* one = kept_text(word.data(), word.size());
        if (!one)
            throw std::bad_alloc();
        return one;
    }

    static void exchange(int64_t& place, Kept* one)
    {
        kept_drop(reinterpret_cast<Kept*>(place));
        place = reinterpret_cast<int64_t>(one);
    }

    // As ``write`` does with each changed slot, where all fields are in a few words.
    void write_numbers() const
    {
        const int64_t* numbers[FEW];
        const uint8_t* valid[FEW];
        const size_t count = kinds.size();
        for (size_t f = 0; f < count; f++) {
            numbers[f] = (*batch_fields)[f].numbers;
            valid[f] = (*batch_fields)[f].valid;
        }
        for (const int64_t slot : changed) {
            int64_t* held = at(slot);
            const int64_t row = held[STATE] - IN_BATCH;
            uint64_t there = 0;
            for (size_t f = 0; f < count; f++) {
                const bool is_value = valid[f] == nullptr || valid[f][row];
                held[first + f] = is_value ? numbers[f][row] : 0;
                reinterpret_cast<uint8_t*>(&there)[f] = is_value;
            }
            std::memcpy(held + flags, &there, sizeof there);
            held[STATE] = KEPT;
        }
    }

    // Copy the row of the batch into its record; a text that stays the same is not copied again.
    void write(int64_t* held) const
    {
        const int64_t row = held[STATE] - IN_BATCH;
        uint8_t* there = reinterpret_cast<uint8_t*>(held + flags);
        for (size_t f = 0; f < kinds.size(); f++) {
            const Strip& column = (*batch_fields)[f];
            const bool valid = column.has(row);
            int64_t& place = held[first + f];
            if (kinds[f] != 's')
                place = valid ? column.numbers[row] : 0;
            else if (!valid)
                exchange(place, nullptr);
            else if (!there[f] || text_at(held, first + f) != column.word(row))
                exchange(place, kept(column.word(row)));
            there[f] = valid;
        }
        if (by_kind == 's')
            exchange(held[WORD], kept(batch_by->word(row)));
        held[STATE] = KEPT;
    }

    uint64_t key_at(int64_t i) const
    {
        const uint64_t key = by_kind == 's' ? prefix_of(batch_by->word(i))
                                            : key_of_bits(batch_by->numbers[i], by_kind);
        return largest ? ~key : key;
    }

    Candidate candidate_of(const int64_t* held) const
    {
        return {held, 0, by_kind ? key_in(held) : 0, held[TIME], held[OFFSET]};
    }

    bool precedes(int64_t time, int64_t offset, const int64_t* held) const
    {
        const bool earlier = time != held[TIME] ? time < held[TIME] : offset < held[OFFSET];
        return earlier != latest;
    }

    // By the value, then by the place; equal places are told apart by the fields.
    bool better(const Candidate& one, const int64_t* held) const
    {
        if (by_kind) {
            if (one.key != key_in(held))
                return one.key < key_in(held);
            if (by_kind == 's')
                if (const int by = deciding(one).compare(deciding(candidate_in(held))))
                    return (by < 0) != largest;
        }
        if (one.time_ns != held[TIME] || one.offset != held[OFFSET])
            return precedes(one.time_ns, one.offset, held);
        const int by = compare(one, candidate_in(held));
        return by != 0 && (by < 0) != latest;
    }

    // A record as a candidate, of which the values may still be in the batch.
    Candidate candidate_in(const int64_t* held) const
    {
        if (held[STATE] >= IN_BATCH)
            return {nullptr, held[STATE] - IN_BATCH, 0, held[TIME], held[OFFSET]};
        return candidate_of(held);
    }

    std::string_view deciding(const Candidate& one) const
    {
        return one.record ? text_at(one.record, WORD) : batch_by->word(one.row);
    }

    int compare(const Candidate& one, const Candidate& other) const
    {
        for (size_t f = 0; f < kinds.size(); f++) {
            const bool valid = has_field(one, f);
            if (valid != has_field(other, f))
                return valid ? 1 : -1;
            if (!valid)
                continue;
            if (kinds[f] == 's') {
                if (const int by = word_in(one, f).compare(word_in(other, f)))
                    return by;
                continue;
            }
            const uint64_t mine = key_of_bits(bits_in(one, f), kinds[f]);
            const uint64_t theirs = key_of_bits(bits_in(other, f), kinds[f]);
            if (mine != theirs)
                return mine < theirs ? -1 : 1;
        }
        return 0;
    }

    bool has_field(const Candidate& one, size_t f) const
    {
        return one.record ? is_valid(one.record, f) : (*batch_fields)[f].has(one.row);
    }
    std::string_view word_in(const Candidate& one, size_t f) const
    {
        return one.record ? text_at(one.record, first + f) : (*batch_fields)[f].word(one.row);
    }
    int64_t bits_in(const Candidate& one, size_t f) const
    {
        return one.record ? one.record[first + f] : (*batch_fields)[f].numbers[one.row];
    }
};

} // namespace ripple

#endif
