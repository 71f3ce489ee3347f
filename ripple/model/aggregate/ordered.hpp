// Ordered multisets: sorted entries in chunks of bounded length, each entry with its count.
//
// Insert and erase cost a binary search and one short memmove; selecting by rank walks the
// chunks' totals. A small multiset is one small array, so millions of them stay small.
#ifndef RIPPLE_ORDERED_HPP
#define RIPPLE_ORDERED_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace ripple {

// Doubles and integers as unsigned keys of the same order. -0.0 is 0.0, and all NaNs are one
// value above every other, as in PostgreSQL and Spark.
inline uint64_t key_of(double value)
{
    uint64_t bits;
    if (std::isnan(value))
        return UINT64_MAX;
    value += 0.0; // -0.0 becomes 0.0
    std::memcpy(&bits, &value, 8);
    return bits >> 63 ? ~bits : bits | 1ULL << 63;
}

inline uint64_t key_of(int64_t value) { return static_cast<uint64_t>(value) ^ 1ULL << 63; }

inline double double_of(uint64_t key)
{
    if (key == UINT64_MAX)
        return std::numeric_limits<double>::quiet_NaN();
    const uint64_t bits = key >> 63 ? key & ~(1ULL << 63) : ~key;
    double value;
    std::memcpy(&value, &bits, 8);
    return value;
}

inline int64_t integer_of(uint64_t key) { return static_cast<int64_t>(key ^ 1ULL << 63); }

struct Counted {
    uint64_t key;
    int64_t count;
    bool operator<(const Counted& other) const { return key < other.key; }
};

// The first entry that is not less. The loop has no branch on the entries, which nothing predicts.
template <class Entry>
typename std::vector<Entry>::iterator place_of(std::vector<Entry>& entries, const Entry& entry)
{
    size_t at = 0, left = entries.size();
    if (left == 0)
        return entries.begin();
    while (left > 1) {
        const size_t half = left / 2;
        at += entries[at + half - 1] < entry ? half : 0;
        left -= half;
    }
    at += entries[at] < entry;
    return entries.begin() + static_cast<std::ptrdiff_t>(at);
}

// A value at its place in the input; the bits decide between two values at one place.
struct Event {
    int64_t time_ns, offset;
    uint64_t bits;
    int64_t count;
    bool operator<(const Event& other) const
    {
        if (time_ns != other.time_ns)
            return time_ns < other.time_ns;
        if (offset != other.offset)
            return offset < other.offset;
        return bits < other.bits;
    }
};

// Invariants: entries strictly ascend within and across chunks; every count is positive; no
// chunk is empty or longer than CHUNK_MAX; a chunk's total is the sum of its counts. `ends` has the
// last entry of each chunk, with any count: side by side, as a search among chunks reads them.
template <class Entry> class Multiset {
  public:
    int64_t size = 0;     // with multiplicity
    int64_t distinct = 0; // entries

    void insert(const Entry& entry)
    {
        if (chunks.empty()) {
            chunks.emplace_back();
            ends.push_back(entry);
        }
        const size_t at = chunk_of(entry);
        Chunk& chunk = chunks[at];
        const auto place = place_of(chunk.entries, entry);
        if (place != chunk.entries.end() && !(entry < *place)) {
            place->count += entry.count;
        } else {
            if (place == chunk.entries.end())
                ends[at] = entry;
            chunk.entries.insert(place, entry);
            distinct++;
        }
        chunk.total += entry.count;
        size += entry.count;
        if (chunk.entries.size() > room())
            split(at);
    }

    bool erase(const Entry& entry) // false, and nothing changed, when there are fewer
    {
        if (chunks.empty())
            return false;
        const size_t at = chunk_of(entry);
        Chunk& chunk = chunks[at];
        const auto place = place_of(chunk.entries, entry);
        if (place == chunk.entries.end() || entry < *place || place->count < entry.count)
            return false;
        chunk.total -= entry.count;
        size -= entry.count;
        place->count -= entry.count;
        if (place->count == 0) {
            chunk.entries.erase(place);
            distinct--;
            if (!chunk.entries.empty())
                ends[at] = chunk.entries.back();
            if (chunk.entries.size() < room() / 4)
                join(at);
        }
        return true;
    }

    const Entry& first() const { return chunks.front().entries.front(); }
    const Entry& last() const { return chunks.back().entries.back(); }

    const Entry& select(int64_t rank) const // 0 <= rank < size
    {
        size_t at = 0;
        while (rank >= chunks[at].total)
            rank -= chunks[at++].total;
        size_t place = 0;
        while (rank >= chunks[at].entries[place].count)
            rank -= chunks[at].entries[place++].count;
        return chunks[at].entries[place];
    }

    void take(Multiset& other) // everything of other, which becomes empty
    {
        if (size < other.size)
            std::swap(*this, other);
        for (const Chunk& chunk : other.chunks)
            for (const Entry& entry : chunk.entries)
                insert(entry);
        other.clear();
    }

    void clear() { *this = Multiset(); }

    void copy(Entry* out) const // `distinct` entries, ascending
    {
        for (const Chunk& chunk : chunks)
            out = std::copy(chunk.entries.begin(), chunk.entries.end(), out);
    }

    int64_t largest(int64_t limit, Entry* out) const // at most limit entries, descending
    {
        int64_t written = 0;
        for (auto chunk = chunks.rbegin(); chunk != chunks.rend(); ++chunk)
            for (auto entry = chunk->entries.rbegin(); entry != chunk->entries.rend(); ++entry) {
                if (written == limit)
                    return written;
                out[written++] = *entry;
            }
        return written;
    }

    int64_t nbytes() const
    {
        size_t bytes = sizeof(Multiset) + chunks.capacity() * sizeof(Chunk);
        bytes += ends.capacity() * sizeof(Entry);
        for (const Chunk& chunk : chunks)
            bytes += chunk.entries.capacity() * sizeof(Entry);
        return static_cast<int64_t>(bytes);
    }

    bool check() const // the invariants
    {
        int64_t total = 0, entries = 0;
        const Entry* before = nullptr;
        if (ends.size() != chunks.size())
            return false;
        for (const Chunk& chunk : chunks) {
            int64_t own = 0;
            if (chunk.entries.empty() || chunk.entries.size() > CHUNK_MAX)
                return false;
            for (const Entry& entry : chunk.entries) {
                if (entry.count <= 0 || (before && !(*before < entry)))
                    return false;
                before = &entry;
                own += entry.count;
                entries++;
            }
            const Entry& end = ends[static_cast<size_t>(&chunk - chunks.data())];
            if (own != chunk.total || end < *before || *before < end)
                return false;
            total += own;
        }
        return total == size && entries == distinct;
    }

  private:
    static const size_t CHUNK_MAX = 512;
    static const size_t CHUNK_OF_FEW = 128, FEW = 1024; // chunks
    struct Chunk {
        std::vector<Entry> entries;
        int64_t total = 0;
    };
    std::vector<Chunk> chunks;
    std::vector<Entry> ends;

    // How many entries a chunk may have: an insertion moves those behind it, a split the chunks.
    size_t room() const { return chunks.size() < FEW ? CHUNK_OF_FEW : CHUNK_MAX; }

    // The chunk that holds the entry or would: the first that does not end before it.
    size_t chunk_of(const Entry& entry)
    {
        const size_t at = static_cast<size_t>(place_of(ends, entry) - ends.begin());
        return at < chunks.size() ? at : at - 1;
    }

    void split(size_t at)
    {
        chunks.insert(chunks.begin() + static_cast<std::ptrdiff_t>(at) + 1, Chunk());
        std::vector<Entry>& left = chunks[at].entries;
        Chunk& right = chunks[at + 1];
        // Values often arrive in order; then a full left chunk stays full.
        const size_t keep = at + 2 == chunks.size() ? left.size() * 7 / 8 : left.size() / 2;
        right.entries.assign(left.begin() + static_cast<std::ptrdiff_t>(keep), left.end());
        ends.insert(ends.begin() + static_cast<std::ptrdiff_t>(at), left[keep - 1]);
        left.resize(keep);
        for (const Entry& entry : right.entries)
            right.total += entry.count;
        chunks[at].total -= right.total;
    }

    void join(size_t at) // drop the chunk if it is empty, or let it grow into its neighbour
    {
        const auto place = chunks.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = ends.begin() + static_cast<std::ptrdiff_t>(at);
        if (place->entries.empty()) {
            chunks.erase(place);
            ends.erase(end);
        } else if (at + 1 < chunks.size() &&
                   place->entries.size() + place[1].entries.size() <= room() / 2) {
            place->entries.insert(place->entries.end(), place[1].entries.begin(),
                                  place[1].entries.end());
            place->total += place[1].total;
            chunks.erase(place + 1);
            ends.erase(end);
        }
    }
};

} // namespace ripple

#endif
