// Rows of each slot in the order of their times.
#ifndef RIPPLE_RUNS_HPP
#define RIPPLE_RUNS_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ripple {

struct RunRow {
    int64_t time, number;
};

// Invariant: rows[first:] are in order; those before are freed, and go once they are half of all, or
// when there is no room for another row.
struct Run {
    std::vector<RunRow> rows;
    size_t first = 0;

    size_t size() const { return rows.size() - first; }

    const RunRow* from(int64_t time) const
    {
        return std::lower_bound(rows.data() + first, rows.data() + rows.size(), time,
            [](const RunRow& row, int64_t bound) { return row.time < bound; });
    }

    const RunRow* end() const { return rows.data() + rows.size(); }

    // Lets the row come to the cache with which a search begins, and the last one, before all others.
    void prefetch() const
    {
        __builtin_prefetch(rows.data() + first + size() / 2);
        prefetch_last();
    }

    // As a number: without rows there is nothing that a pointer may go back from.
    void prefetch_last() const
    {
        __builtin_prefetch(
            reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(end()) - sizeof(RunRow)));
    }

    void free_below(int64_t time)
    {
        first = from(time) - rows.data();
        if (first == rows.size())
            std::vector<RunRow>().swap(rows);
        else if (2 * first >= rows.size())
            rows.erase(rows.begin(), rows.begin() + first);
        else
            return;
        first = 0;
    }
};

inline int64_t shifted(int64_t time, int64_t by)
{
    int64_t sum;
    if (__builtin_add_overflow(time, by, &sum))
        return by < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

struct Runs {
    std::vector<Run> slots;
    int64_t rows = 0;

    bool has(int64_t slot) const { return static_cast<uint64_t>(slot) < slots.size(); }

    // Adds rows; frees those before a time where there is no room. Returns the first row whose time
    // is before the last one of its slot, or -1.
    int64_t add(const int64_t* slot, const int64_t* time, int64_t n, int64_t number, int64_t free)
    {
        for (int64_t i = 0; i < n; i++) {
            if (i + 8 < n)
                __builtin_prefetch(&slots[slot[i + 8]]);
            if (i + 4 < n)
                slots[slot[i + 4]].prefetch_last();
            Run& run = slots[slot[i]];
            if (run.size() && time[i] < run.rows.back().time)
                return i;
            if (run.rows.size() == run.rows.capacity() && run.size()) {
                rows -= run.size();
                run.free_below(free);
                rows += run.size();
            }
            run.rows.push_back({time[i], number + i});
            rows++;
        }
        return -1;
    }

    // Appends the numbers of the rows of each slot with times in [time + lo, time + hi], and sets
    // `counts` to how many they are. Of a row with which its record has more than `most` none are
    // appended, and the count is `most` + 1. A slot that is not here has none. Without `record` each row is
    // its own. Returns how many rows it looked at: once there are `room` numbers it begins no other
    // record.
    int64_t match(const int64_t* slot, const int64_t* time, const int64_t* record, int64_t n,
        int64_t lo, int64_t hi, int64_t most, int64_t room, int64_t* counts,
        std::vector<int64_t>& numbers) const
    {
        int64_t left = most;
        for (int64_t i = 0; i < n; i++) {
            if (!record || !i || record[i] != record[i - 1]) {
                if (i && static_cast<int64_t>(numbers.size()) >= room)
                    return i;
                left = most;
            }
            counts[i] = 0;
            if (i + 8 < n && has(slot[i + 8]))
                __builtin_prefetch(&slots[slot[i + 8]]);
            if (i + 4 < n && has(slot[i + 4]))
                slots[slot[i + 4]].prefetch();
            if (!has(slot[i]) || !slots[slot[i]].size())
                continue;
            const Run& run = slots[slot[i]];
            const int64_t last = shifted(time[i], hi);
            const RunRow* row = run.from(shifted(time[i], lo));
            const size_t before = numbers.size();
            for (; row != run.end() && row->time <= last && counts[i] <= left; row++, counts[i]++)
                numbers.push_back(row->number);
            if (counts[i] > left) {
                numbers.resize(before);
                counts[i] = most + 1;
                left = 0;
            } else {
                left -= counts[i];
            }
        }
        return n;
    }

    // Frees the rows before a time, and appends the slots that are left without any to `empty`.
    void free_below(const int64_t* slot, int64_t n, int64_t time, std::vector<int64_t>& empty)
    {
        for (int64_t i = 0; i < n; i++) {
            Run& run = slots[slot[i]];
            rows -= run.size();
            run.free_below(time);
            rows += run.size();
            if (!run.size())
                empty.push_back(slot[i]);
        }
    }

    int64_t nbytes() const
    {
        size_t held = slots.capacity() * sizeof(Run);
        for (const Run& run : slots)
            held += run.rows.capacity() * sizeof(RunRow);
        return static_cast<int64_t>(held);
    }
};

} // namespace ripple

#endif
