# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""The fields of many keys at once: their values, their hashes, and the order they come in."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np

from ripple.model.keys.checked cimport check_length, check_range
from ripple.model.keys.index cimport KeyIndex
from ripple.core.hashing cimport mix

from ripple.model.keys.space import HASH_SEED, PairKeys, TextKeys
from ripple.model.pipeline.nodes import WINDOW_FIELD_NAMES
from ripple.model.schema.types import Int64

cdef extern from *:
    """
    #include <algorithm>
    #include <cstdint>
    #include <cstring>
    #include <vector>

    namespace {
    struct Ranked { uint64_t hash; int64_t at; };

    /* One field of all keys: numbers, or texts. */
    struct KeyField {
        const int64_t* ids;
        std::vector<const uint8_t*> texts;      /* empty for numbers */
        std::vector<uint32_t> lengths;
    };

    struct ByHash {
        const std::vector<KeyField>* fields;
        bool operator()(const Ranked& a, const Ranked& b) const {
            if (a.hash != b.hash)
                return a.hash < b.hash;
            for (const KeyField& field : *fields) {
                if (field.texts.empty()) {
                    if (field.ids[a.at] != field.ids[b.at])
                        return field.ids[a.at] < field.ids[b.at];
                    continue;
                }
                const uint32_t m = field.lengths[a.at], n = field.lengths[b.at];
                const int c = std::memcmp(field.texts[a.at], field.texts[b.at], std::min(m, n));
                if (c || m != n)
                    return c ? c < 0 : m < n;
            }
            return a.at < b.at;
        }
    };

    /* Hashes are spread evenly, so that their first bits put nearly every one in its place. */
    void order_by_hash(std::vector<Ranked>& rows, std::vector<Ranked>& room,
                       const std::vector<KeyField>& fields) {
        const size_t n = rows.size();
        const ByHash before{&fields};
        if (n < 48) {
            std::sort(rows.begin(), rows.end(), before);
            return;
        }
        int bits = 1;
        while (((size_t)1 << bits) < n && bits < 20)
            bits++;
        std::vector<uint32_t> ends(((size_t)1 << bits) + 1);
        for (const Ranked& row : rows)
            ends[(row.hash >> (64 - bits)) + 1]++;
        for (size_t i = 1; i < ends.size(); i++)
            ends[i] += ends[i - 1];
        room.resize(n);
        for (const Ranked& row : rows)
            room[ends[row.hash >> (64 - bits)]++] = row;
        rows.swap(room);
        /* Each is near its place now, so that few are moved, unless most hashes begin alike. */
        size_t moves = 8 * n;
        for (size_t i = 1; i < n; i++) {
            if (rows[i - 1].hash < rows[i].hash)
                continue;
            const Ranked row = rows[i];
            size_t at = i;
            for (; at > 0 && before(row, rows[at - 1]); at--) {
                if (--moves == 0) {
                    rows[at] = row;
                    std::sort(rows.begin(), rows.end(), before);
                    return;
                }
                rows[at] = rows[at - 1];
            }
            rows[at] = row;
        }
    }

    void order_by_start(std::vector<Ranked>& rows, const int64_t* starts) {
        const auto before = [starts](const Ranked& a, const Ranked& b) {
            return starts[a.at] < starts[b.at];
        };
        if (!std::is_sorted(rows.begin(), rows.end(), before))
            std::stable_sort(rows.begin(), rows.end(), before);
    }
    }
    """
    cppclass Ranked:
        uint64_t hash
        int64_t at
    cppclass KeyField_ "KeyField":
        const int64_t* ids
        vector[const uint8_t*] texts
        vector[unsigned int] lengths
    void order_by_hash(
        vector[Ranked]& rows, vector[Ranked]& room, const vector[KeyField_]& fields
    ) except +
    void order_by_start(vector[Ranked]& rows, const int64_t* starts) except +


cdef int gather(
    list texts, const int64_t* ids, Py_ssize_t n, vector[KeyField_]& fields
) except -1:
    """Find the keys themselves: two of them have one hash, which is rare."""
    cdef KeyIndex index
    cdef Py_ssize_t i
    cdef size_t k
    fields.resize(len(texts))
    for k in range(fields.size()):
        fields[k].ids = ids + k * n
        index = texts[k]
        if index is not None:
            fields[k].texts.resize(n)
            fields[k].lengths.resize(n)
            for i in range(n):
                fields[k].texts[i] = index.bytes_of(fields[k].ids[i])
                fields[k].lengths[i] = index._keys[fields[k].ids[i]].length
    return 0


cdef int copy_words(KeyIndex index, int64_t* slots, Py_ssize_t n, int width) except -1:
    """Write the numbers of slots over these, n of each place after those of the one before."""
    cdef const int64_t* words
    cdef Py_ssize_t i
    cdef int k
    for i in range(n):
        if index._keys[slots[i]].length != width * sizeof(int64_t):
            raise IndexError(f"slot {slots[i]} has no {width} numbers")
    for i in range(n):
        words = <const int64_t*>index.bytes_of(slots[i])
        for k in range(width - 1, -1, -1):
            slots[k * n + i] = words[k]
    return 0


cdef class KeyFields:
    """Reads the keys of one key space, of any kind."""

    def __init__(self, space):
        self.fields = space.fields
        self.count = len(self.fields)
        names = [field.name if isinstance(field.type, Int64) else "" for field in self.fields]
        start = WINDOW_FIELD_NAMES[0]
        self.start_at = names.index(start) if start in names else -1
        self.pairs, self.texts = [], []
        while isinstance(space, PairKeys):
            self.pairs.insert(0, space.index)
            self.texts.insert(0, space.right.index if space.right else None)
            space = space.left
        for _ in range(len(space.fields)):  # several only of NumberKeys
            self.pairs.insert(0, None)
            self.texts.insert(0, space.index if isinstance(space, TextKeys) else None)
        self.numbers = [space.index]
        for index in self.texts:
            if index is not None:
                (<KeyIndex>index).keep_hashes()

    cdef int read(self, const int64_t* slots, Py_ssize_t n, int64_t* ids) except -1:
        """Write the keys of ``slots``; raises IndexError for a slot that was never handed out."""
        cdef KeyIndex index
        cdef Py_ssize_t i
        cdef int k
        cdef int64_t* left = ids
        cdef int64_t* own
        cdef int width = self.pairs.count(None)
        if n == 0 or self.count == 0:
            return 0
        memcpy(left, slots, n * sizeof(int64_t))
        for k in range(self.count - 1, width - 1, -1):
            index = self.pairs[k]
            check_range(left, n, index._top)
            own = ids + k * n
            for i in range(n):
                own[i] = <int64_t>index._keys[left[i]].high
                left[i] = <int64_t>index._keys[left[i]].low
        if self.texts[0] is None:
            index = self.numbers[0]
            check_range(left, n, index._top)
            if width > 1:
                copy_words(index, left, n, width)
            else:
                for i in range(n):
                    left[i] = <int64_t>index._keys[left[i]].low
        for k in range(self.count):
            if self.texts[k] is not None:
                check_range(ids + k * n, n, (<KeyIndex>self.texts[k])._top)
        return 0

    cdef int hash_into(self, const int64_t* ids, Py_ssize_t n, uint64_t* hashes) except -1:
        """Write a hash of each key that depends on the key alone."""
        cdef KeyIndex index
        cdef Py_ssize_t i
        cdef uint64_t seed = HASH_SEED
        cdef const int64_t* id
        cdef int k
        for i in range(n):
            hashes[i] = seed
        for k in range(self.count):
            index = self.texts[k]
            id = ids + k * n
            for i in range(n):
                if index is None:
                    hashes[i] = mix(hashes[i], <uint64_t>id[i])
                elif k:
                    hashes[i] = mix(hashes[i], index.hash_of(id[i]))
                else:
                    hashes[i] = index.hash_of(id[i])
        return 0

    cdef int order(
        self, const int64_t* ids, const uint64_t* hashes, Py_ssize_t n, int64_t* order
    ) except -1:
        """Write the positions of keys in order.

        By window start, if the key has one, then by the hash of the key, then by the key itself: a
        function of the keys alone. Slots are numbered anew by every restore, and the order in which
        rows were touched depends on batches. A hash, because sorting numbers is many times cheaper
        than sorting text.
        """
        cdef vector[Ranked] rows, room
        cdef vector[KeyField_] fields
        cdef Py_ssize_t i
        cdef bint ties = False
        rows.resize(n)
        for i in range(n):
            rows[i].hash = hashes[i]
            rows[i].at = i
        order_by_hash(rows, room, fields)
        for i in range(1, n):
            ties |= rows[i].hash == rows[i - 1].hash
        if ties:
            gather(self.texts, ids, n, fields)
            order_by_hash(rows, room, fields)
        if self.start_at >= 0:
            order_by_start(rows, ids + self.start_at * n)
        for i in range(n):
            order[i] = rows[i].at
        return 0

    def positions(self, const int64_t[::1] slots not None, const uint64_t[::1] hashes not None):
        """Return the positions of ``slots`` in order; hashes: of their keys. int64[n]."""
        cdef Py_ssize_t n = slots.shape[0]
        check_length(n, hashes.shape[0])
        ids = np.empty(max(1, n * self.count), np.int64)
        ordered = np.empty(n, np.int64)
        cdef int64_t[::1] own = ids
        cdef int64_t[::1] out = ordered
        if n:
            self.read(&slots[0], n, &own[0])
            self.order(&own[0], &hashes[0], n, &out[0])
        return ordered
