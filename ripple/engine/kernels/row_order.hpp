// Rows in one order, in pieces: a row that comes moves the rows of one piece.
#ifndef RIPPLE_ROW_ORDER_HPP
#define RIPPLE_ROW_ORDER_HPP

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace ripple {

struct OrderKey {
    int64_t slot, time, place;

    bool operator<(const OrderKey& other) const
    {
        if (slot != other.slot)
            return slot < other.slot;
        if (time != other.time)
            return time < other.time;
        return place < other.place;
    }
};

struct OrderRow {
    OrderKey key;
    int64_t number;
};

// Which rows of one key match: those before a time, after it, or the nearer ones of both.
struct Nearness {
    bool before, after, is_strict;
    int64_t tolerance; // below 0: any

    bool reaches(int64_t from, int64_t to) const
    {
        const uint64_t span = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
        return tolerance < 0 || span <= static_cast<uint64_t>(tolerance);
    }
};

// Invariants: rows rise from piece to piece, and in each; no piece is empty, none has more than
// PIECE_ROWS rows; `lasts` has the key of each piece's last row, `starts` the number of rows before
// each piece unless it is stale.
class RowOrder {
public:
    static constexpr size_t PIECE_ROWS = 512;
    static constexpr int64_t NONE = -1;

    int64_t count = 0;

    // Adds rows, each before all of an equal key.
    void add(std::vector<OrderRow>& more)
    {
        const auto less = [](const OrderRow& a, const OrderRow& b) { return a.key < b.key; };
        if (!std::is_sorted(more.begin(), more.end(), less))
            std::stable_sort(more.begin(), more.end(), less);
        if (more.empty())
            return;
        if (pieces.empty()) {
            pieces.emplace_back();
            lasts.push_back(more.front().key);
        }
        bool is_full = false;
        size_t piece = 0;
        for (size_t begin = 0, end; begin < more.size(); begin = end) {
            piece = std::lower_bound(lasts.begin() + piece, lasts.end(), more[begin].key)
                - lasts.begin();
            if (piece >= lasts.size() - 1) {
                piece = lasts.size() - 1;
                end = more.size();
            } else {
                end = begin + 1;
                while (end < more.size() && !(lasts[piece] < more[end].key))
                    end++;
            }
            merge(pieces[piece], more.data() + begin, end - begin);
            lasts[piece] = pieces[piece].back().key;
            is_full = is_full || pieces[piece].size() > PIECE_ROWS;
        }
        count += more.size();
        if (is_full)
            split();
        is_stale = true;
    }

    // Returns how many rows stand before a key.
    int64_t below(const OrderKey& key)
    {
        freshen();
        const Spot spot = find(key);
        return spot.piece == pieces.size() ? count : starts[spot.piece] + spot.at;
    }

    // Returns the last row of a slot up to a time; null for none, or one too far away.
    const OrderRow* before(int64_t slot, int64_t time, const Nearness& near) const
    {
        const OrderRow* row = previous(find({slot, time, near.is_strict ? INT64_MIN : INT64_MAX}));
        return row && row->key.slot == slot && near.reaches(row->key.time, time) ? row : nullptr;
    }

    // Returns the first row of a slot from a time on; null for none, or one too far away.
    const OrderRow* after(int64_t slot, int64_t time, const Nearness& near) const
    {
        const OrderRow* row = next(find({slot, time, near.is_strict ? INT64_MAX : INT64_MIN}));
        return row && row->key.slot == slot && near.reaches(time, row->key.time) ? row : nullptr;
    }

    // Returns the number of the row that matches at a time, or NONE.
    int64_t match(int64_t slot, int64_t time, const Nearness& near) const
    {
        const OrderRow* first = near.before ? before(slot, time, near) : nullptr;
        const OrderRow* second = near.after ? after(slot, time, near) : nullptr;
        if (first && second) {
            const uint64_t back = static_cast<uint64_t>(time) - static_cast<uint64_t>(first->key.time);
            const uint64_t ahead = static_cast<uint64_t>(second->key.time) - static_cast<uint64_t>(time);
            if (back <= ahead)
                second = nullptr;
        }
        const OrderRow* found = second ? second : first;
        return found ? found->number : NONE;
    }

    // Appends the numbers of the rows of `waiting` that may match a row of this order. These are
    // the ones up to its neighbours here, since a match stands next to its row.
    void touched(const OrderKey& key, const Nearness& near, const RowOrder& waiting,
        std::vector<int64_t>& numbers) const
    {
        const int64_t from = near.is_strict ? INT64_MAX : INT64_MIN; // places around its own time
        const Spot spot = find(key);
        if (near.before) {
            const OrderRow* row = next(after(spot));
            OrderKey end{key.slot, INT64_MAX, INT64_MAX};
            if (row && row->key.slot == key.slot)
                end = {key.slot, row->key.time, from};
            if (near.tolerance >= 0)
                end = std::min(end, OrderKey{key.slot, moved(key.time, near.tolerance), INT64_MAX});
            waiting.between({key.slot, key.time, from}, end, numbers);
        }
        if (near.after) {
            const int64_t to = near.is_strict ? INT64_MIN : INT64_MAX;
            const OrderRow* row = previous(spot);
            OrderKey begin{key.slot, INT64_MIN, INT64_MIN};
            if (row && row->key.slot == key.slot)
                begin = {key.slot, row->key.time, to};
            if (near.tolerance >= 0)
                begin = std::max(
                    begin, OrderKey{key.slot, moved(key.time, -near.tolerance), INT64_MIN});
            waiting.between(begin, {key.slot, key.time, to}, numbers);
        }
    }

    // Appends the numbers of the rows from one key on and before another.
    void between(const OrderKey& begin, const OrderKey& end, std::vector<int64_t>& numbers) const
    {
        for (Spot spot = find(begin); const OrderRow* row = next(spot); spot = after(spot)) {
            if (!(row->key < end))
                return;
            numbers.push_back(row->number);
        }
    }

    // Appends the numbers of the rows in a range, counted in this order.
    void numbers_in(int64_t begin, int64_t end, std::vector<int64_t>& numbers)
    {
        if (begin >= end)
            return;
        freshen();
        Spot spot = at(begin);
        for (int64_t i = begin; i < end; i++, spot = after(spot))
            numbers.push_back(next(spot)->number);
    }

    // Appends the numbers of the rows in any of some ranges, and in how many of these each is.
    void covered(const int64_t* begins, const int64_t* ends, int64_t n,
        std::vector<int64_t>& numbers, std::vector<int64_t>& ranges)
    {
        std::vector<std::pair<int64_t, int64_t>> steps;
        for (int64_t i = 0; i < n; i++)
            if (begins[i] < ends[i]) {
                steps.emplace_back(begins[i], 1);
                steps.emplace_back(ends[i], -1);
            }
        std::sort(steps.begin(), steps.end());
        int64_t open = 0;
        for (size_t i = 0; i < steps.size(); i++) {
            open += steps[i].second;
            if (!open)
                continue;
            numbers_in(steps[i].first, steps[i + 1].first, numbers);
            ranges.resize(numbers.size(), open);
        }
    }

    // Takes the rows of slot 0 before a time away, and appends their numbers.
    void take_below(int64_t time, std::vector<int64_t>& numbers)
    {
        const OrderKey end{0, time, INT64_MIN};
        const size_t before = numbers.size();
        between({0, INT64_MIN, INT64_MIN}, end, numbers);
        const Spot spot = find(end);
        if (spot.piece < pieces.size() && spot.at)
            pieces[spot.piece].erase(pieces[spot.piece].begin(), pieces[spot.piece].begin() + spot.at);
        pieces.erase(pieces.begin(), pieces.begin() + spot.piece);
        lasts.erase(lasts.begin(), lasts.begin() + spot.piece);
        count -= numbers.size() - before;
        is_stale = true;
    }

    // Returns the rows whose new numbers are not below 0, under these.
    RowOrder renumbered(const int64_t* numbers) const
    {
        RowOrder found;
        for (const std::vector<OrderRow>& piece : pieces)
            for (const OrderRow& row : piece)
                if (numbers[row.number] >= 0)
                    found.append({row.key, numbers[row.number]});
        return found;
    }

    void dump(int64_t* slots, int64_t* times, int64_t* numbers) const
    {
        for (const std::vector<OrderRow>& piece : pieces)
            for (const OrderRow& row : piece) {
                *slots++ = row.key.slot;
                *times++ = row.key.time;
                *numbers++ = row.number;
            }
    }

    int64_t nbytes() const
    {
        size_t held = lasts.capacity() * sizeof(OrderKey) + starts.capacity() * sizeof(int64_t)
            + pieces.capacity() * sizeof(std::vector<OrderRow>);
        for (const std::vector<OrderRow>& piece : pieces)
            held += piece.capacity() * sizeof(OrderRow);
        return static_cast<int64_t>(held);
    }

private:
    // A place before a row of a piece, or after the last piece.
    struct Spot {
        size_t piece, at;
    };

    std::vector<std::vector<OrderRow>> pieces;
    std::vector<OrderKey> lasts;
    std::vector<int64_t> starts;
    bool is_stale = false;

    static int64_t moved(int64_t time, int64_t by)
    {
        int64_t sum;
        if (__builtin_add_overflow(time, by, &sum))
            return by < 0 ? INT64_MIN : INT64_MAX;
        return sum;
    }

    Spot find(const OrderKey& key) const
    {
        const size_t piece = std::lower_bound(lasts.begin(), lasts.end(), key) - lasts.begin();
        if (piece == pieces.size())
            return {piece, 0};
        const std::vector<OrderRow>& rows = pieces[piece];
        const auto row = std::lower_bound(rows.begin(), rows.end(), key,
            [](const OrderRow& one, const OrderKey& bound) { return one.key < bound; });
        return {piece, static_cast<size_t>(row - rows.begin())};
    }

    Spot at(int64_t number) const
    {
        const size_t piece
            = std::upper_bound(starts.begin(), starts.end(), number) - starts.begin() - 1;
        return {piece, static_cast<size_t>(number - starts[piece])};
    }

    const OrderRow* next(const Spot& spot) const
    {
        return spot.piece == pieces.size() ? nullptr : &pieces[spot.piece][spot.at];
    }

    const OrderRow* previous(const Spot& spot) const
    {
        if (spot.at)
            return &pieces[spot.piece][spot.at - 1];
        return spot.piece ? &pieces[spot.piece - 1].back() : nullptr;
    }

    Spot after(const Spot& spot) const
    {
        if (spot.at + 1 < pieces[spot.piece].size())
            return {spot.piece, spot.at + 1};
        return {spot.piece + 1, 0};
    }

    void append(const OrderRow& row)
    {
        if (pieces.empty() || pieces.back().size() == PIECE_ROWS / 2) {
            pieces.emplace_back();
            lasts.push_back(row.key);
        }
        pieces.back().push_back(row);
        lasts.back() = row.key;
        count++;
        is_stale = true;
    }

    static void merge(std::vector<OrderRow>& rows, const OrderRow* more, size_t n)
    {
        size_t old = rows.size(), to = old + n;
        rows.resize(to);
        while (n) {
            const auto begin = rows.begin();
            const size_t at = std::lower_bound(begin, begin + old, more[n - 1],
                                  [](const OrderRow& a, const OrderRow& b) { return a.key < b.key; })
                - begin;
            std::move_backward(begin + at, begin + old, begin + to);
            to -= old - at;
            old = at;
            rows[--to] = more[--n];
        }
    }

    // Cuts pieces that are too long; the others are not looked at.
    void split()
    {
        std::vector<std::vector<OrderRow>> found;
        std::vector<OrderKey> ends;
        found.reserve(pieces.size() + 1);
        ends.reserve(pieces.size() + 1);
        for (size_t piece = 0; piece < pieces.size(); piece++) {
            std::vector<OrderRow>& rows = pieces[piece];
            if (rows.size() <= PIECE_ROWS) {
                found.push_back(std::move(rows));
                ends.push_back(lasts[piece]);
                continue;
            }
            const size_t parts = (rows.size() - 1) / (PIECE_ROWS / 4 * 3) + 1;
            for (size_t i = 0; i < parts; i++) {
                found.emplace_back(rows.begin() + rows.size() * i / parts,
                    rows.begin() + rows.size() * (i + 1) / parts);
                ends.push_back(found.back().back().key);
            }
        }
        pieces.swap(found);
        lasts.swap(ends);
    }

    void freshen()
    {
        if (!is_stale)
            return;
        starts.clear();
        int64_t before = 0;
        for (const std::vector<OrderRow>& piece : pieces) {
            starts.push_back(before);
            before += piece.size();
        }
        is_stale = false;
    }
};

} // namespace ripple

#endif
