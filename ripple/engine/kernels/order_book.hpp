// The order books of keys: messages change levels and orders, and what is shown of them is noted.
#ifndef RIPPLE_ORDER_BOOK_HPP
#define RIPPLE_ORDER_BOOK_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "book_checksum.hpp"

namespace ripple {

// Numbers of the tables in ripple/model/running/order_book.py.
enum Action : int64_t { ADD, MODIFY, TAKE, SET, CLEAR, BEGIN, FINISH, NOTHING, ACTIONS };
enum Status : int64_t { NEW, OPEN, LOADING, GAP, LOCKED, CROSSED };
enum Rule : int64_t { NONE, DENSE, LINKED, RANGE, CHANNEL };
enum Fault : int64_t {
    FINE,
    BAD_ACTION,
    BAD_SIDE,
    BAD_PRICE,
    BAD_SIZE,
    NO_ORDER,
    NO_SEQUENCE,
    NO_PREVIOUS,
    KNOWN_ORDER,
    UNKNOWN_ORDER,
    TOO_LARGE,
    NOT_BEGUN,
    GAPPED,
    TOO_OLD,
    TOO_MANY_ROWS,
    BAD_CHECKSUM
};

constexpr int64_t ALL = INT64_MAX; // the size of a message that takes an order off whole

// A message: ``side`` is 0 for bids and 1 for asks; ``last``, whether it ends an event.
struct Message {
    int64_t action, side, price, size, order, sequence, previous, last;
    int64_t has_checksum = 0, checksum = 0;
};

// Returns the rank of a price: that of a bid itself, of an ask its complement, so that the best is the
// greatest. Of a rank, its price.
inline int64_t ranked(int64_t side, int64_t price) { return side ? ~price : price; }

struct Level {
    int64_t rank, size, count;
    bool operator==(const Level& other) const
    {
        return rank == other.rank && size == other.size && count == other.count;
    }
};

// size: 0 where there is none.
struct Order {
    int64_t number, side, price, size;
};

// The orders of a book by their numbers, in a table with room for twice as many: an order is at its
// place, or behind it without a free one between.
class Orders {
public:
    void prefetch(int64_t number) const
    {
        if (!table_.empty())
            __builtin_prefetch(&table_[place(number)]);
    }

    // Returns null for none. Another order that comes or goes may move the found one.
    Order* find(int64_t number)
    {
        if (table_.empty())
            return nullptr;
        for (size_t at = place(number);; at = (at + 1) & mask())
            if (!table_[at].size || table_[at].number == number)
                return table_[at].size ? &table_[at] : nullptr;
    }

    // Of an order that is not there.
    void add(const Order& order)
    {
        if (2 * (count_ + 1) > table_.size()) {
            std::vector<Order> old(std::max<size_t>(16, 2 * table_.size()));
            old.swap(table_);
            for (const Order& one : old)
                if (one.size)
                    put(one);
        }
        put(order);
        ++count_;
    }

    void remove(Order* order)
    {
        size_t free = order - table_.data();
        for (size_t at = (free + 1) & mask(); table_[at].size; at = (at + 1) & mask()) {
            size_t wanted = place(table_[at].number);
            if (((at - wanted) & mask()) >= ((at - free) & mask())) {
                table_[free] = table_[at];
                free = at;
            }
        }
        table_[free].size = 0;
        --count_;
    }

    void clear()
    {
        table_.clear();
        count_ = 0;
    }

    std::vector<Order> sorted() const
    {
        std::vector<Order> found;
        for (const Order& one : table_)
            if (one.size)
                found.push_back(one);
        std::sort(found.begin(), found.end(),
            [](const Order& one, const Order& other) { return one.number < other.number; });
        return found;
    }

    int64_t nbytes() const { return table_.capacity() * sizeof(Order); }

private:
    std::vector<Order> table_; // as many as a power of two
    size_t count_ = 0;

    size_t mask() const { return table_.size() - 1; }

    size_t place(int64_t number) const
    {
        uint64_t mixed = (uint64_t)number * 0x9E3779B97F4A7C15u;
        return (mixed ^ (mixed >> 32)) & mask();
    }

    void put(const Order& order)
    {
        size_t at = place(order.number);
        while (table_[at].size)
            at = (at + 1) & mask();
        table_[at] = order;
    }
};

// The levels of a side, the best one last, where nearly all changes are.
struct Side {
    std::vector<Level> levels;

    // The first level that is not below ``rank``.
    size_t find(int64_t rank) const
    {
        size_t at = levels.size(), near = at < 8 ? 0 : at - 8;
        while (at > near && levels[at - 1].rank >= rank)
            --at;
        if (at > near || !at || levels[at - 1].rank < rank)
            return at;
        return std::lower_bound(levels.begin(), levels.begin() + at, rank,
                   [](const Level& level, int64_t bound) { return level.rank < bound; })
            - levels.begin();
    }

    bool has(size_t at, int64_t rank) const { return at < levels.size() && levels[at].rank == rank; }

    void set(int64_t rank, int64_t size)
    {
        size_t at = find(rank);
        if (has(at, rank)) {
            if (size)
                levels[at].size = size;
            else
                levels.erase(levels.begin() + at);
        } else if (size) {
            levels.insert(levels.begin() + at, Level { rank, size, 1 });
        }
    }

    // Adds an order; returns false, without a change, if the sizes of the level are above ``most``.
    bool add(int64_t rank, int64_t size, int64_t most)
    {
        size_t at = find(rank);
        if (!has(at, rank)) {
            levels.insert(levels.begin() + at, Level { rank, size, 1 });
            return true;
        }
        int64_t sum;
        if (__builtin_add_overflow(levels[at].size, size, &sum) || sum > most)
            return false;
        levels[at].size = sum;
        ++levels[at].count;
        return true;
    }

    // Takes ``size`` off a level that has as much, and with it ``count`` orders.
    void take(int64_t rank, int64_t size, int64_t count)
    {
        size_t at = find(rank);
        levels[at].size -= size;
        levels[at].count -= count;
        if (!levels[at].count)
            levels.erase(levels.begin() + at);
    }
};

// Messages that wait for a snapshot: those from ``first`` on; the others are dropped, and go once they
// are half of all.
struct Kept {
    std::vector<Message> messages;
    size_t first = 0;

    int64_t size() const { return messages.size() - first; }

    void drop_first()
    {
        if (2 * ++first > messages.size()) {
            messages.erase(messages.begin(), messages.begin() + first);
            first = 0;
        }
    }
};

// A book. Invariants: it has levels only while its status is OPEN or LOADING; in a book by order a
// level is the sum of its orders; ``kept`` is empty while the status is OPEN.
struct Book {
    int64_t status = NEW, has_sequence = 0, sequence = 0;
    int64_t fresh = 0; // no message was applied since the snapshot
    int64_t in_event = 0; // the message before was applied, and did not end its event
    int64_t gaps = 0, has_lost = 0, lost_to = 0; // the greatest number of a message not kept
    Side sides[2];
    Orders orders;
    Kept kept; // since the book became unknown, for the next snapshot
    std::vector<int64_t> shown; // the last row of tops
    std::vector<Level> shown_levels[2]; // or the levels that were shown
};

struct Settings {
    int64_t depth, rule, by_order, begins_empty, strict, kept_max, shows_levels, size_most, rows_most;
    int64_t checks, price_scale, size_scale;
    int64_t venue_depth; // 0: all levels stay
};

// Rows to show, each with its words, and messages that were not applied, each with its reason.
struct Found {
    std::vector<int64_t> rows, words, failed, faults;
};

class Books {
public:
    std::vector<Book> books;
    Settings settings {};
    Found found;

    // Begins a batch, whose records are others.
    void start()
    {
        found.rows.clear(), found.words.clear(), found.failed.clear(), found.faults.clear();
        record_ = -1;
    }

    // Applies a message of a record; one with a fault only counts in its sequence. has_previous:
    // whether ``previous`` is known, where the rule reads it.
    void take(int64_t slot, Message& message, int64_t fault, bool has_previous, int64_t row, int64_t record)
    {
        Book& book = books[slot];
        if (record != record_) {
            record_ = record;
            record_rows_ = 0;
        }
        if (!has_previous) {
            message.previous = INT64_MAX; // of no number
            if (fault != NO_SEQUENCE && reads_previous(book, message))
                fault = NO_PREVIOUS;
        }
        if (fault != FINE) {
            message.action = NOTHING;
            report(book, fault, row);
        }
        if (fault != NO_SEQUENCE && fault != NO_PREVIOUS)
            process(book, message, row);
        if (message.last || book.status != OPEN)
            show(book, row);
    }

    void begin(Book& book) const
    {
        book = Book();
        if (settings.begins_empty)
            book.status = OPEN;
    }

private:
    int64_t record_ = -1, record_rows_ = 0; // the record of the last message, and its rows of levels

    // Whether a message is compared with the one before it: not in a snapshot.
    bool reads_previous(const Book& book, const Message& m) const
    {
        if (m.action == BEGIN || m.action == FINISH || (m.action == CLEAR && book.status != LOADING))
            return false;
        return book.status != LOADING || m.sequence > book.sequence;
    }

    bool is_known(const Book& book) const { return book.status == OPEN || book.status == LOADING; }

    void clear(Book& book)
    {
        book.sides[0].levels.clear();
        book.sides[1].levels.clear();
        book.orders.clear();
    }

    // Makes a book unknown until a snapshot.
    void lose(Book& book)
    {
        book.status = GAP;
        ++book.gaps;
        book.in_event = 0;
        clear(book);
    }

    void report(Book& book, int64_t fault, int64_t row)
    {
        found.failed.push_back(row);
        found.faults.push_back(fault);
        if (settings.strict && is_known(book))
            lose(book);
    }

    void keep(Book& book, const Message& message)
    {
        if (settings.rule == NONE)
            return;
        if (book.kept.size() == settings.kept_max) {
            int64_t number = book.kept.messages[book.kept.first].sequence;
            book.lost_to = book.has_lost ? std::max(book.lost_to, number) : number;
            book.has_lost = 1;
            book.kept.drop_first();
        }
        book.kept.messages.push_back(message);
    }

    void process(Book& book, const Message& m, int64_t row)
    {
        bool counts = settings.rule != NONE;
        if (m.action == BEGIN || (m.action == CLEAR && book.status != LOADING)) {
            clear(book);
            book.status = m.action == BEGIN ? LOADING : OPEN;
            book.has_sequence = counts;
            book.sequence = m.sequence;
            book.fresh = 1;
            book.in_event = 0;
            if (m.action == CLEAR)
                replay(book, row);
        } else if (m.action == FINISH) {
            if (book.status != LOADING)
                return report(book, NOT_BEGUN, row);
            book.status = OPEN;
            end_event(book, m, row);
            if (book.status == OPEN)
                replay(book, row);
        } else if (book.status == LOADING) {
            if (!counts || m.sequence == book.sequence)
                apply(book, m, row);
            else if (m.sequence > book.sequence)
                keep(book, m);
        } else if (book.status != OPEN) {
            keep(book, m);
        } else if (follows(book, m)) {
            book.has_sequence = counts;
            book.sequence = m.sequence;
            book.fresh = 0;
            book.in_event = !m.last;
            apply(book, m, row);
            if (m.last)
                end_event(book, m, row);
        } else if (!is_old(book, m)) {
            found.failed.push_back(row);
            found.faults.push_back(GAPPED);
            lose(book);
            keep(book, m);
        }
    }

    // Drops the levels of which the venue tells no more, and compares its checksum.
    void end_event(Book& book, const Message& m, int64_t row)
    {
        if (book.status != OPEN)
            return;
        for (Side& side : book.sides) {
            std::vector<Level>& levels = side.levels;
            if (settings.venue_depth && (int64_t)levels.size() > settings.venue_depth)
                levels.erase(levels.begin(), levels.end() - settings.venue_depth);
        }
        if (!settings.checks || !m.has_checksum)
            return;
        bool fits = m.checksum >= INT32_MIN && m.checksum <= UINT32_MAX;
        if (!fits || (uint32_t)m.checksum != crc32(checked_text(book))) {
            found.failed.push_back(row);
            found.faults.push_back(BAD_CHECKSUM);
            lose(book);
        }
    }

    // The text of which the venue tells the checksum.
    std::string checked_text(const Book& book) const
    {
        std::string text;
        const size_t most = settings.checks == KRAKEN ? 10 : 25;
        auto level = [&](int64_t side, size_t at) {
            const std::vector<Level>& levels = book.sides[side].levels;
            if (at >= levels.size())
                return;
            const Level& one = *(levels.end() - 1 - at);
            if (settings.checks == KRAKEN) {
                add_digits(text, ranked(side, one.rank));
                add_digits(text, one.size);
                return;
            }
            if (!text.empty())
                text += ':';
            const bool is_bitfinex = settings.checks == BITFINEX;
            const auto add = is_bitfinex ? add_number : add_decimal;
            add(text, ranked(side, one.rank), settings.price_scale);
            text += ':';
            add(text, is_bitfinex && side ? -one.size : one.size, settings.size_scale);
        };
        if (settings.checks == KRAKEN) {
            for (int64_t side : { 1, 0 })
                for (size_t at = 0; at < most; ++at)
                    level(side, at);
        } else {
            for (size_t at = 0; at < most; ++at)
                for (int64_t side : { 0, 1 })
                    level(side, at);
        }
        return text;
    }

    bool is_old(const Book& book, const Message& m) const
    {
        return settings.rule != CHANNEL && m.sequence <= book.sequence;
    }

    bool follows(const Book& book, const Message& m) const
    {
        if (settings.rule == NONE || !book.has_sequence)
            return true;
        if (book.in_event && m.sequence == book.sequence)
            return true;
        switch (settings.rule) {
        case DENSE:
            return m.sequence > book.sequence && m.sequence - 1 == book.sequence;
        case LINKED:
            if (m.previous == book.sequence)
                return true;
            return book.fresh && m.previous < book.sequence && m.sequence > book.sequence;
        case RANGE:
            if (m.sequence <= book.sequence)
                return false;
            return m.previous <= book.sequence ? book.fresh : m.previous - 1 == book.sequence;
        default:
            return m.sequence >= book.sequence;
        }
    }

    // Applies the messages above a snapshot that came before its end.
    void replay(Book& book, int64_t row)
    {
        if (settings.rule == NONE)
            return;
        int64_t number = book.sequence;
        if (book.has_lost && book.lost_to > number) {
            found.failed.push_back(row);
            found.faults.push_back(TOO_OLD);
            lose(book);
            return;
        }
        Kept kept;
        std::swap(kept, book.kept);
        book.has_lost = book.lost_to = 0;
        for (size_t at = kept.first; at < kept.messages.size(); ++at)
            if (kept.messages[at].sequence > number)
                process(book, kept.messages[at], row);
    }

    void apply(Book& book, const Message& m, int64_t row)
    {
        Side& side = book.sides[m.side];
        int64_t rank = ranked(m.side, m.price);
        switch (m.action) {
        case SET:
            side.set(rank, m.size);
            break;
        case CLEAR: // of a snapshot that is being read
            clear(book);
            break;
        case ADD:
            if (book.orders.find(m.order))
                return report(book, KNOWN_ORDER, row);
            if (!side.add(rank, m.size, settings.size_most))
                return report(book, TOO_LARGE, row);
            book.orders.add(Order { m.order, m.side, m.price, m.size });
            break;
        case MODIFY: {
            Order* order = book.orders.find(m.order);
            if (!order)
                return report(book, UNKNOWN_ORDER, row);
            Side& before = book.sides[order->side];
            int64_t rank_before = ranked(order->side, order->price);
            before.take(rank_before, order->size, 1);
            if (!side.add(rank, m.size, settings.size_most)) {
                before.add(rank_before, order->size, settings.size_most);
                return report(book, TOO_LARGE, row);
            }
            *order = Order { m.order, m.side, m.price, m.size };
            break;
        }
        case TAKE: {
            Order* order = book.orders.find(m.order);
            if (!order)
                return report(book, UNKNOWN_ORDER, row);
            Side& own = book.sides[order->side];
            int64_t rank_of = ranked(order->side, order->price);
            if (m.size < order->size) {
                order->size -= m.size;
                own.take(rank_of, m.size, 0);
            } else {
                own.take(rank_of, order->size, 1);
                book.orders.remove(order);
            }
            break;
        }
        }
    }

    // How many levels of a side are shown: none of a book that is not open.
    size_t shown_count(const Book& book, int64_t side) const
    {
        if (book.status != OPEN)
            return 0;
        return std::min<size_t>(settings.depth, book.sides[side].levels.size());
    }

    int64_t shown_status(const Book& book) const
    {
        const std::vector<Level>&bids = book.sides[0].levels, &asks = book.sides[1].levels;
        if (book.status != OPEN || bids.empty() || asks.empty())
            return book.status;
        int64_t bid = bids.back().rank, ask = ~asks.back().rank;
        return bid > ask ? CROSSED : bid == ask ? LOCKED : OPEN;
    }

    bool is_shown(const Book& book, int64_t status) const
    {
        if (book.shown.empty())
            return book.status == NEW;
        const int64_t* words = book.shown.data();
        if (words[0] != status || words[1] != book.gaps)
            return false;
        words += 4;
        for (int64_t side = 0; side < 2; ++side, words += 2 * settings.depth) {
            size_t count = shown_count(book, side);
            if (book.shown[2 + side] != (int64_t)count)
                return false;
            const Level* best = book.sides[side].levels.data() + book.sides[side].levels.size();
            for (size_t at = 0; at < count; ++at) {
                --best;
                if (words[2 * at + 1] != best->size || words[2 * at] != ranked(side, best->rank))
                    return false;
            }
        }
        return true;
    }

    void show(Book& book, int64_t row)
    {
        if (settings.shows_levels)
            return show_levels(book, row);
        int64_t status = shown_status(book);
        if (is_shown(book, status))
            return;
        book.shown.assign(4 + 4 * settings.depth, 0);
        book.shown[0] = status;
        book.shown[1] = book.gaps;
        int64_t* words = book.shown.data() + 4;
        for (int64_t side = 0; side < 2; ++side, words += 2 * settings.depth) {
            size_t count = book.shown[2 + side] = shown_count(book, side);
            const std::vector<Level>& levels = book.sides[side].levels;
            for (size_t at = 0; at < count; ++at) {
                const Level& level = *(levels.end() - 1 - at);
                words[2 * at] = ranked(side, level.rank);
                words[2 * at + 1] = level.size;
            }
        }
        found.rows.push_back(row);
        found.words.insert(found.words.end(), book.shown.begin(), book.shown.end());
    }

    void put(int64_t row, int64_t side, int64_t rank, int64_t size, int64_t count)
    {
        found.rows.push_back(row);
        int64_t words[4] = { side, ranked(side, rank), size, count };
        found.words.insert(found.words.end(), words, words + 4);
    }

    // Notes the best levels that differ from the shown ones, the best of each side last. If these are
    // more rows than its record may have, none is shown before the next message of the key.
    void show_levels(Book& book, int64_t row)
    {
        const size_t first = found.rows.size();
        bool changed[2] = { false, false };
        for (int64_t side = 0; side < 2; ++side) {
            const std::vector<Level>& levels = book.sides[side].levels;
            size_t count = shown_count(book, side);
            auto now = levels.end() - count;
            const std::vector<Level>& before = book.shown_levels[side];
            if (before.size() == count && std::equal(before.begin(), before.end(), now))
                continue;
            changed[side] = true;
            auto old = before.begin();
            while (now != levels.end() || old != before.end()) {
                if (now == levels.end() || (old != before.end() && old->rank < now->rank)) {
                    put(row, side, old->rank, 0, 0);
                    ++old;
                    continue;
                }
                bool is_same = old != before.end() && old->rank == now->rank;
                if (!is_same || !(*old == *now))
                    put(row, side, now->rank, now->size, now->count);
                old += is_same;
                ++now;
            }
        }
        const int64_t made = found.rows.size() - first;
        if (record_rows_ + made > settings.rows_most) {
            found.rows.resize(first);
            found.words.resize(4 * first);
            found.failed.push_back(row);
            found.faults.push_back(TOO_MANY_ROWS);
            return;
        }
        record_rows_ += made;
        for (int64_t side = 0; side < 2; ++side) {
            const std::vector<Level>& levels = book.sides[side].levels;
            if (changed[side])
                book.shown_levels[side].assign(levels.end() - shown_count(book, side), levels.end());
        }
    }

public:
    // --- snapshots: a book as words ---

    void dump(const Book& book, std::vector<int64_t>& meta, std::vector<int64_t>& resting,
        std::vector<int64_t>& kept, std::vector<int64_t>& shown) const
    {
        const int64_t own[] = { book.status, book.has_sequence, book.sequence, book.fresh, book.in_event,
            book.gaps, book.has_lost, book.lost_to };
        meta.insert(meta.end(), own, own + 8);
        if (settings.by_order) {
            for (const Order& order : book.orders.sorted()) {
                const int64_t words[] = { order.number, order.side, order.price, order.size };
                resting.insert(resting.end(), words, words + 4);
            }
        } else {
            for (int64_t side = 0; side < 2; ++side)
                for (const Level& level : book.sides[side].levels) {
                    const int64_t words[] = { 0, side, ranked(side, level.rank), level.size };
                    resting.insert(resting.end(), words, words + 4);
                }
        }
        for (size_t at = book.kept.first; at < book.kept.messages.size(); ++at) {
            const Message& m = book.kept.messages[at];
            const int64_t words[]
                = { m.action, m.side, m.price, m.size, m.order, m.sequence, m.previous, m.last };
            kept.insert(kept.end(), words, words + 8);
            if (settings.checks) {
                kept.push_back(m.has_checksum);
                kept.push_back(m.checksum);
            }
        }
        shown.insert(shown.end(), book.shown.begin(), book.shown.end());
        for (int64_t side = 0; side < 2; ++side)
            for (const Level& level : book.shown_levels[side]) {
                const int64_t words[] = { side, level.rank, level.size, level.count };
                shown.insert(shown.end(), words, words + 4);
            }
    }

    void load(int64_t slot, const int64_t* meta, const int64_t* resting, int64_t resting_count,
        const int64_t* kept, int64_t kept_count, const int64_t* shown, int64_t shown_count)
    {
        Book& book = books[slot];
        book = Book();
        book.status = meta[0], book.has_sequence = meta[1], book.sequence = meta[2];
        book.fresh = meta[3], book.in_event = meta[4];
        book.gaps = meta[5], book.has_lost = meta[6], book.lost_to = meta[7];
        for (int64_t at = 0; at + 4 <= resting_count; at += 4) {
            const int64_t* words = resting + at;
            Side& side = book.sides[words[1] & 1];
            int64_t rank = ranked(words[1] & 1, words[2]);
            if (settings.by_order) {
                if (words[3] > 0 && side.add(rank, words[3], settings.size_most))
                    book.orders.add(Order { words[0], words[1] & 1, words[2], words[3] });
            } else {
                side.set(rank, words[3]);
            }
        }
        const int64_t width = settings.checks ? 10 : 8;
        for (int64_t at = 0; at + width <= kept_count; at += width) {
            const int64_t* w = kept + at;
            Message m { w[0], w[1] & 1, w[2], w[3], w[4], w[5], w[6], w[7] };
            if (settings.checks)
                m.has_checksum = w[8], m.checksum = w[9];
            book.kept.messages.push_back(m);
        }
        if (!settings.shows_levels) {
            book.shown.assign(shown, shown + shown_count);
            return;
        }
        for (int64_t at = 0; at + 4 <= shown_count; at += 4)
            book.shown_levels[shown[at] & 1].push_back(
                Level { shown[at + 1], shown[at + 2], shown[at + 3] });
    }

    int64_t nbytes() const
    {
        int64_t bytes = books.capacity() * sizeof(Book);
        for (const Book& book : books) {
            bytes += (book.sides[0].levels.capacity() + book.sides[1].levels.capacity()) * sizeof(Level);
            bytes += book.orders.nbytes() + book.kept.messages.capacity() * sizeof(Message);
            bytes += book.shown.capacity() * 8;
            bytes += (book.shown_levels[0].capacity() + book.shown_levels[1].capacity()) * sizeof(Level);
        }
        return bytes;
    }
};

} // namespace ripple

#endif
