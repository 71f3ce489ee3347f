// Rows in columns that grow at the end, and the order in which some of them leave.
#ifndef RIPPLE_STORED_HPP
#define RIPPLE_STORED_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "arrow_batch.h"

namespace ripple {

inline bool flag_at(const void* bits, int64_t at)
{
    return static_cast<const uint8_t*>(bits)[at >> 3] >> (at & 7) & 1;
}

template <typename T> void shrink(std::vector<T>& held)
{
    if (held.capacity() > 4 * held.size() + 1024)
        held.shrink_to_fit();
}

// Gives room back that no row had before some were dropped: as many will come again.
template <typename T> void shrink(std::vector<T>& held, size_t before)
{
    shrink(held);
    if (held.capacity() <= before + before / 16 + 1024)
        return;
    std::vector<T> less;
    less.reserve(before + before / 32);
    less.assign(held.begin(), held.end());
    held.swap(less);
}

// Lets go of room for one batch, unless the next one may have use for it.
template <typename T> void clear_room(std::vector<T>& held)
{
    static constexpr size_t ROWS_MAX = 1 << 11;
    held.clear();
    if (held.capacity() > ROWS_MAX)
        held.shrink_to_fit();
}

// Makes room by a quarter more: much of it stays unused until the next rows are dropped.
template <typename T> void reserve(std::vector<T>& held, size_t size)
{
    if (size > held.capacity())
        held.reserve(std::max(size, held.capacity() + held.capacity() / 4));
}

// Values of one column: numbers and flags as words; of texts the words are where each ends.
// Invariants: `valid` is empty while none is null. `bytes` has BATCH_SHORT more than the texts.
struct StoredColumn {
    int kind;
    std::vector<int64_t> words;
    std::vector<char> bytes;
    std::vector<uint8_t> valid;

    int64_t begin(int64_t row) const { return row ? words[row - 1] : 0; }

    int has(int64_t row) const { return row >= 0 && (valid.empty() || valid[row]); }

    void add(const ArrowArray& a)
    {
        const size_t held = words.size(), n = static_cast<size_t>(a.length);
        if (a.null_count && a.buffers[0]) {
            valid.resize(held, 1);
            for (size_t i = 0; i < n; i++)
                valid.push_back(flag_at(a.buffers[0], a.offset + i));
        } else if (!valid.empty()) {
            valid.resize(held + n, 1);
        }
        reserve(words, held + n);
        if (kind == BATCH_NUMBER) {
            if (n) {
                const int64_t* more = static_cast<const int64_t*>(a.buffers[1]) + a.offset;
                words.insert(words.end(), more, more + n);
            }
            return;
        }
        words.resize(held + n);
        if (kind == BATCH_TEXT)
            return add_texts(a, held);
        for (size_t i = 0; i < n; i++)
            words[held + i] = flag_at(a.buffers[1], a.offset + i);
    }

    void add_some(const StoredColumn& of, const int64_t* numbers, int64_t n)
    {
        const size_t held = words.size();
        if (!of.valid.empty()) {
            valid.resize(held, 1);
            for (int64_t i = 0; i < n; i++)
                valid.push_back(of.valid[numbers[i]]);
        } else if (!valid.empty()) {
            valid.resize(held + n, 1);
        }
        reserve(words, held + n);
        words.resize(held + n);
        if (kind != BATCH_TEXT) {
            for (int64_t i = 0; i < n; i++)
                words[held + i] = of.words[numbers[i]];
            return;
        }
        int64_t end = begin(held), more = 0;
        for (int64_t i = 0; i < n; i++)
            more += of.words[numbers[i]] - of.begin(numbers[i]);
        reserve(bytes, end + more + BATCH_SHORT);
        bytes.resize(end + more + BATCH_SHORT);
        for (int64_t i = 0; i < n; i++) {
            const int64_t from = of.begin(numbers[i]), size = of.words[numbers[i]] - from;
            if (size)
                memcpy(&bytes[end], &of.bytes[from], size <= BATCH_SHORT ? BATCH_SHORT : size);
            words[held + i] = end += size;
        }
    }

    void add_words(const int64_t* more, int64_t n)
    {
        reserve(words, words.size() + n);
        words.insert(words.end(), more, more + n);
        if (!valid.empty())
            valid.resize(words.size(), 1);
    }

    // Adds rows of another column of its kind.
    void add_from(const StoredColumn& other, int64_t first, int64_t n)
    {
        const size_t held = words.size();
        if (!other.valid.empty()) {
            valid.resize(held, 1);
            valid.insert(valid.end(), other.valid.begin() + first, other.valid.begin() + first + n);
        } else if (!valid.empty()) {
            valid.resize(held + n, 1);
        }
        reserve(words, held + n);
        words.insert(words.end(), other.words.begin() + first, other.words.begin() + first + n);
        if (kind != BATCH_TEXT || !n)
            return;
        const int64_t end = begin(held), from = other.begin(first);
        const int64_t more = other.words[first + n - 1] - from;
        reserve(bytes, end + more + BATCH_SHORT);
        bytes.resize(end + more + BATCH_SHORT);
        memcpy(&bytes[end], &other.bytes[from], more);
        for (int64_t i = 0; i < n; i++)
            words[held + i] += end - from;
    }

    void add_texts(const ArrowArray& a, size_t held)
    {
        const int64_t n = a.length, end = begin(held);
        if (!n)
            return;
        const int32_t* offsets = static_cast<const int32_t*>(a.buffers[1]) + a.offset;
        const int64_t more = offsets[n] - offsets[0];
        reserve(bytes, end + more + BATCH_SHORT);
        bytes.resize(end + more + BATCH_SHORT);
        if (more)
            memcpy(&bytes[end], static_cast<const char*>(a.buffers[2]) + offsets[0], more);
        for (int64_t i = 0; i < n; i++)
            words[held + i] = end + offsets[i + 1] - offsets[0];
    }

    // Returns how many of rising numbers follow each other, from the one at i on; 0 if fewer than LONG.
    static constexpr int64_t LONG = 16;
    static int64_t long_run(const int64_t* numbers, int64_t i, int64_t n)
    {
        int64_t rows = 0;
        while (i + rows + LONG <= n && numbers[i + rows + LONG - 1] == numbers[i] + rows + LONG - 1)
            rows += LONG;
        return rows;
    }

    // Keeps the rows with these rising numbers alone. In place: what is written is never ahead of
    // what is read.
    void keep(const int64_t* numbers, int64_t n)
    {
        int64_t end = 0;
        const size_t rows_before = words.size(), bytes_before = bytes.size();
        if (kind != BATCH_TEXT && valid.empty()) {
            // Word by word where what stays is scattered: there is little in a row to be moved.
            for (int64_t i = 0; i < n;) {
                if (const int64_t rows = long_run(numbers, i, n)) {
                    memmove(&words[i], &words[numbers[i]], 8 * rows);
                    i += rows;
                    continue;
                }
                for (const int64_t next = std::min(i + LONG, n); i < next; i++)
                    words[i] = words[numbers[i]];
            }
            words.resize(n);
            return shrink(words, rows_before);
        }
        for (int64_t i = 0, next; i < n; i = next) {
            const int64_t first = numbers[i];
            next = i + std::max<int64_t>(1, long_run(numbers, i, n));
            while (next < n && numbers[next] == first + next - i)
                next++;
            const int64_t rows = next - i;
            if (kind == BATCH_TEXT) {
                const int64_t from = begin(first), size = words[first + rows - 1] - from;
                memmove(&bytes[end], &bytes[from], size);
                for (int64_t row = 0; row < rows; row++)
                    words[i + row] = words[first + row] - from + end;
                end += size;
            } else {
                memmove(&words[i], &words[first], 8 * rows);
            }
            if (!valid.empty())
                memmove(&valid[i], &valid[first], rows);
        }
        words.resize(n);
        if (!valid.empty())
            valid.resize(n);
        if (kind == BATCH_TEXT && !bytes.empty())
            bytes.resize(end + BATCH_SHORT);
        shrink(words, rows_before);
        shrink(bytes, bytes_before);
        shrink(valid, rows_before);
    }

    int64_t nbytes() const { return 8 * words.capacity() + bytes.capacity() + valid.capacity(); }
};

// Numbers of stored rows, -1 for a missing one: nulls. Used again, so that it has room.
struct Picked {
    const int64_t* places;
    std::vector<int64_t> at; // where they are if one is missing, else empty
    std::vector<uint8_t> present;

    void pick(const int64_t* numbers, int64_t n)
    {
        places = numbers;
        clear_room(at);
        clear_room(present);
        if (std::none_of(numbers, numbers + n, [](int64_t number) { return number < 0; }))
            return;
        at.resize(n);
        present.resize(n);
        for (int64_t i = 0; i < n; i++) {
            present[i] = numbers[i] >= 0;
            at[i] = numbers[i] >= 0 ? numbers[i] : 0;
        }
        places = at.data();
    }
};

// Where the texts of picked rows are, and their lengths. Used again, too.
struct PickedTexts {
    std::vector<const uint8_t*> texts;
    std::vector<uint32_t> lengths;

    // Returns how many bytes they have; nothing: what is read of a text that is none.
    int64_t point(const StoredColumn& column, const Picked& picked, int64_t n, const uint8_t* nothing)
    {
        int64_t bytes = 0;
        clear_room(texts);
        clear_room(lengths);
        texts.reserve(n);
        lengths.reserve(n);
        for (int64_t i = 0; i < n; i++) {
            int64_t begin = 0, size = 0;
            if (picked.present.empty() || picked.present[i]) {
                begin = column.begin(picked.places[i]);
                size = column.words[picked.places[i]] - begin;
            }
            texts.push_back(size ? reinterpret_cast<const uint8_t*>(&column.bytes[begin]) : nothing);
            lengths.push_back(static_cast<uint32_t>(size));
            bytes += size;
        }
        return bytes;
    }
};

// The numbers of rows that wait, taken out by (time, place, number).
// Invariants: each of `runs` is in this order from its `first` on. What would fit behind none of them
// is in `heap`, the least at its front.
struct Order {
    static constexpr size_t RUNS_MAX = 4;
    struct Run {
        // Shared with cuts, for which what is there stays as it is until rows are renumbered.
        std::shared_ptr<std::vector<int64_t>> numbers = std::make_shared<std::vector<int64_t>>();
        size_t first = 0;
    };
    std::vector<Run> runs;
    std::vector<int64_t> heap;
    int64_t seen = 0; // numbers below were added
    int64_t count = 0;

    struct Less {
        const int64_t *time, *place;
        bool operator()(int64_t a, int64_t b) const
        {
            if (time[a] != time[b])
                return time[a] < time[b];
            return place[a] != place[b] ? place[a] < place[b] : a < b;
        }
    };
    static auto greater(Less less)
    {
        return [less](int64_t a, int64_t b) { return less(b, a); };
    }

    void add_below(int64_t end, Less less)
    {
        count += end - seen;
        while (seen < end) {
            auto fits = [&](const Run& run) { return less(run.numbers->back(), seen); };
            auto run = std::find_if(runs.begin(), runs.end(), fits);
            if (run == runs.end() && runs.size() < RUNS_MAX)
                run = runs.emplace(run);
            if (run == runs.end()) {
                heap.push_back(seen++);
                std::push_heap(heap.begin(), heap.end(), greater(less));
                continue;
            }
            // What follows fits behind it, too, as long as it rises; and it may fit an earlier run.
            const int64_t next = run == runs.begin() ? rising(end, less) : seen + 1;
            std::vector<int64_t>& numbers = *run->numbers;
            numbers.resize(numbers.size() + next - seen);
            std::iota(numbers.end() - (next - seen), numbers.end(), seen);
            seen = next;
        }
    }

    // Returns the end of the rising numbers from `seen` on, at most `end`. By blocks, without a
    // branch on equal times, which would be unpredictable.
    int64_t rising(int64_t end, Less less) const
    {
        static constexpr int64_t BLOCK = 32;
        int64_t next = seen + 1;
        for (; next + BLOCK <= end; next += BLOCK) {
            bool falls = false;
            for (int64_t i = next; i < next + BLOCK; i++)
                falls |= (less.time[i] < less.time[i - 1])
                    | ((less.time[i] == less.time[i - 1]) & (less.place[i] < less.place[i - 1]));
            if (falls)
                break;
        }
        while (next < end && less(next - 1, next))
            next++;
        return next;
    }

    // Takes those out whose time is below a mark.
    void take_below(int64_t mark, Less less, std::vector<int64_t>& taken)
    {
        for (Run& run : runs) {
            const size_t before = taken.size();
            const std::vector<int64_t>& numbers = *run.numbers;
            auto is_below = [&](int64_t number) { return less.time[number] < mark; };
            const auto first = numbers.begin() + run.first;
            const auto end = std::partition_point(first, numbers.end(), is_below);
            taken.insert(taken.end(), first, end);
            run.first += end - first;
            merge(taken, before, less);
            if (2 * run.first >= numbers.size())
                drop_taken(run);
        }
        auto over = [](const Run& run) { return run.numbers->empty(); };
        runs.erase(std::remove_if(runs.begin(), runs.end(), over), runs.end());
        const size_t before = taken.size();
        while (!heap.empty() && less.time[heap.front()] < mark) {
            std::pop_heap(heap.begin(), heap.end(), greater(less));
            taken.push_back(heap.back());
            heap.pop_back();
        }
        merge(taken, before, less);
        shrink(heap);
        count -= taken.size();
    }

    static void drop_taken(Run& run)
    {
        std::vector<int64_t>& numbers = *run.numbers;
        const auto left = numbers.begin() + run.first;
        if (run.numbers.use_count() > 1) {
            run.numbers = std::make_shared<std::vector<int64_t>>(left, numbers.end());
        } else {
            numbers.erase(numbers.begin(), left);
            shrink(numbers);
        }
        run.first = 0;
    }

    // Returns all, in the order.
    void all(Less less, std::vector<int64_t>& found) const
    {
        for (const Run& run : runs) {
            const size_t before = found.size();
            found.insert(found.end(), run.numbers->begin() + run.first, run.numbers->end());
            merge(found, before, less);
        }
        const size_t before = found.size();
        found.insert(found.end(), heap.begin(), heap.end());
        std::sort(found.begin() + before, found.end(), less);
        merge(found, before, less);
    }

    static void merge(std::vector<int64_t>& taken, size_t before, Less less)
    {
        if (before && before < taken.size())
            std::inplace_merge(taken.begin(), taken.begin() + before, taken.end(), less);
    }

    // Finds these of `rows` rows and the waiting ones, rising. Returns each row's index among them,
    // -1 for other rows.
    std::vector<int64_t> add_to(
        const int64_t* numbers, int64_t n, int64_t rows, std::vector<int64_t>& kept) const
    {
        std::vector<int64_t> anew(rows); // 1 for a row that is kept, at first
        auto keep = [&](int64_t number) { anew[number] = 1; };
        std::for_each(numbers, numbers + n, keep);
        for (const Run& run : runs)
            std::for_each(run.numbers->begin() + run.first, run.numbers->end(), keep);
        std::for_each(heap.begin(), heap.end(), keep);
        kept.resize(rows + 1);
        int64_t end = 0;
        for (int64_t number = 0; number < rows; number++) {
            const int64_t is_kept = anew[number];
            kept[end] = number; // without a branch, which would be unpredictable
            anew[number] = is_kept * (end + 1) - 1;
            end += is_kept;
        }
        kept.resize(end);
        return anew;
    }

    // Renumbers rows to the `n` kept ones, by the indexes of `add_to`.
    void renumber(const std::vector<int64_t>& numbers, int64_t n)
    {
        auto anew = [&](int64_t& number) { number = numbers[number]; };
        for (Run& run : runs)
            std::for_each(run.numbers->begin() + run.first, run.numbers->end(), anew);
        std::for_each(heap.begin(), heap.end(), anew);
        seen = n;
    }

    int64_t nbytes() const
    {
        size_t held = heap.capacity();
        for (const Run& run : runs)
            held += run.numbers->capacity();
        return static_cast<int64_t>(held * sizeof(int64_t));
    }
};

// The numbers that wait at one moment, in the order, while others come and these leave. None may be
// renumbered before the last one was asked for.
struct OrderCut {
    struct Part {
        std::shared_ptr<std::vector<int64_t>> numbers;
        size_t first, end;
    };
    std::vector<Part> parts;
    int64_t count = 0;
    bool is_sorted = false;

    OrderCut() = default;
    explicit OrderCut(const Order& order) : count(order.count)
    {
        for (const Order::Run& run : order.runs)
            parts.push_back({run.numbers, run.first, run.numbers->size()});
        auto heap = std::make_shared<std::vector<int64_t>>(order.heap);
        parts.push_back({heap, 0, heap->size()});
    }

    void next(int64_t most, Order::Less less, std::vector<int64_t>& found)
    {
        if (!is_sorted) {
            std::sort(parts.back().numbers->begin(), parts.back().numbers->end(), less);
            is_sorted = true;
        }
        for (; most > 0 && count > 0; most--, count--) {
            Part* least = nullptr;
            for (Part& part : parts)
                if (part.first < part.end && (!least || less(head(part), head(*least))))
                    least = &part;
            found.push_back(head(*least));
            least->first++;
        }
    }

    static int64_t head(const Part& part) { return (*part.numbers)[part.first]; }
};

} // namespace ripple

#endif
