# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Keys to slots: the hash index of every column.

A slot is a small integer that stands for a key as long as the key lives; freed slots are handed
out again. Keys are bytes (UTF-8 text), 64-bit integers, or pairs of them; each index holds keys
of one kind. Up to 16 bytes are kept in place, longer keys on the heap.

The table is open addressing with linear probing and backward-shift deletion. Nothing ever
iterates in table order, so the hash function cannot influence a result.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from ripple.model.keys.checked cimport check_slots
from ripple.model.keys.slots cimport next_room
from ripple.core.hashing cimport xxh64
from ripple.model.schema.exported cimport ArrowArray, Lent, values_of

cdef extern from *:
    """
    #define INLINE_MAX 16u
    #define MIX_1 0x9E3779B97F4A7C15ULL
    #define MIX_2 0xD6E8FEB86659FD93ULL
    #define prefetch(address) __builtin_prefetch(address)
    static const uint64_t FIRST_BYTES[] = { /* of eight: 0 of them, 1, and so on */
        0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF,
        0xFFFFFFFFFFFFFFFF};
    static inline uint64_t halves(__uint128_t p) { return (uint64_t)p ^ (uint64_t)(p >> 64); }
    static inline uint64_t ripple_fold(uint64_t a, uint64_t b) { return halves((__uint128_t)a * b); }
    #define PRODUCT(length) ((__uint128_t)MIX_2 * ((length) ^ MIX_1))
    #define SEED(length) ((uint64_t)PRODUCT(length) ^ (uint64_t)(PRODUCT(length) >> 64) ^ MIX_2)
    static const uint64_t WORD_SEEDS[] = { /* the common part of keys of 0 to 8 bytes */
        SEED(0), SEED(1), SEED(2), SEED(3), SEED(4), SEED(5), SEED(6), SEED(7), SEED(8)};
    """
    const uint32_t INLINE_MAX
    const uint64_t MIX_1, MIX_2
    const uint64_t[9] FIRST_BYTES, WORD_SEEDS
    uint64_t ripple_fold(uint64_t a, uint64_t b) noexcept nogil
    void prefetch(const void* address) noexcept nogil
    bint likely(bint condition) noexcept nogil

cdef enum:
    BLOCK = 32  # keys that are looked up together
    AHEAD = 8   # keys with table entries prefetched before their lookup
    CACHED_ENTRIES = 8192  # so many are in a cache of this core anyway, with their keys
    SPARSE_ENTRIES = 4096  # 32 KiB: smaller tables are sparse

cdef int64_t SLOTS_MAX = 4294967294  # an entry keeps slot + 1 in 32 bits


cdef int open_table(Table* table, int bits) noexcept nogil:
    """Make an empty table of two to the power of ``bits`` entries; not 0 without memory."""
    table.mask = (<uint64_t>1 << bits) - 1
    table.shift = 32 - bits
    table.entries = <uint64_t*>calloc(table.mask + 1, sizeof(uint64_t))
    return not table.entries


cdef inline uint64_t room_in(uint64_t entries) noexcept nogil:
    """Return eight times the key limit of a table of so many entries.

    In a sparse table most probes end where they start, which branch prediction learns.
    """
    return entries if entries < SPARSE_ENTRIES else entries * 5


cdef inline int64_t slot_in(uint64_t entry) noexcept nogil:
    """Return the slot that a table entry names; -1 for an empty one."""
    return <int64_t><uint32_t>entry - 1


cdef inline uint64_t home(const Table* table, uint64_t entry) noexcept nogil:
    """Return where probing for this entry's key starts."""
    return entry >> 32 >> table.shift


cdef inline uint64_t load_padded(const uint8_t* p, uint32_t n) noexcept nogil:
    """Load n <= 8 bytes, zero padded, without reading past them."""
    cdef uint64_t whole
    cdef uint32_t first, last
    if n >= 8:
        memcpy(&whole, p, 8)
        return whole
    if n >= 4:
        memcpy(&first, p, 4)
        memcpy(&last, p + n - 4, 4)
        return <uint64_t>first | (<uint64_t>last << (8 * (n - 4)))
    if n > 0:
        return (
            <uint64_t>p[0]
            | (<uint64_t>p[n >> 1] << (8 * (n >> 1)))
            | (<uint64_t>p[n - 1] << (8 * (n - 1)))
        )
    return 0


cdef inline uint32_t tag_of(uint64_t hashed) noexcept nogil:
    return <uint32_t>(hashed >> 32)


cdef inline uint32_t hash_short(const Key* key) noexcept nogil:
    return tag_of(
        ripple_fold(key.low ^ MIX_1, ripple_fold(key.high ^ MIX_2, key.length ^ MIX_1) ^ MIX_2)
    )


cdef inline uint32_t hash_word(const Key* key) noexcept nogil:
    """Return the hash of a text of up to eight bytes.

    Texts differ most in the last byte, which alone hardly affects the upper bits of a product.
    """
    return tag_of(ripple_fold(key.low ^ key.low >> 32 ^ MIX_1, WORD_SEEDS[key.length]))


cdef inline void describe_pair(Key* key, int64_t a, int64_t b) noexcept nogil:
    """Fill ``key`` from two numbers."""
    key.length = 16
    key.low = <uint64_t>a
    key.high = <uint64_t>b
    key.tag = hash_short(key)


cdef inline void describe(
    Key* key, const uint8_t* data, uint32_t length, const uint8_t* end
) noexcept nogil:
    """Fill ``key`` from bytes; those of a long one are not copied yet. Up to ``end`` may be read."""
    key.length = length
    if likely(length <= 8 and end - data >= 8):  # as the others, but short: nearly all symbols are
        memcpy(&key.low, data, 8)
        key.low &= FIRST_BYTES[length]
        key.high = 0
        key.tag = hash_word(key)
    elif length <= 8:
        key.low = load_padded(data, length)
        key.high = 0
        key.tag = hash_word(key)
    elif length <= INLINE_MAX:
        memcpy(&key.low, data, 8)
        memcpy(&key.high, data + length - 8, 8)     # some of which are among the first eight
        key.high >>= 8 * (INLINE_MAX - length)
        key.tag = hash_short(key)
    else:
        key.low = 0
        key.high = 0
        key.tag = tag_of(xxh64(data, length, 0))


cdef inline uint64_t locate(
    const Table* table, const Key* keys, const Key* key, const uint8_t* data
) noexcept nogil:
    """Return the position in the table that holds the key, or the empty one where it belongs."""
    cdef uint64_t at = key.tag >> table.shift
    cdef uint64_t entry
    cdef const Key* other
    while True:
        entry = table.entries[at]
        if entry == 0:
            return at
        if <uint32_t>(entry >> 32) == key.tag:
            other = keys + slot_in(entry)
            if other.length == key.length:
                if key.length > INLINE_MAX:
                    if memcmp(<void*>other.low, data, key.length) == 0:
                        return at
                elif other.low == key.low and other.high == key.high:
                    return at
        at = (at + 1) & table.mask


cdef int find_pairs(
    KeyIndex index, const int64_t* a, const int64_t* b, Py_ssize_t n, int64_t* out
) except -1 nogil:
    """Write the slots of n pairs, adding the new ones; without ``b`` their second halves are 0.

    By blocks, so that the cache misses of a block's pairs overlap.
    """
    cdef const Table* table = &index._table
    cdef Key[BLOCK] keys
    cdef bint is_cached = table.mask < CACHED_ENTRIES
    cdef Py_ssize_t i, first = 0, count
    while first < n:
        count = min(<Py_ssize_t>BLOCK, n - first)
        for i in range(count):
            describe_pair(&keys[i], a[first + i], b[first + i] if b != NULL else 0)
            if not is_cached:
                prefetch(&table.entries[keys[i].tag >> table.shift])
        if not is_cached:
            for i in range(count):
                prefetch(&index._keys[slot_in(table.entries[keys[i].tag >> table.shift])])
        for i in range(count):
            out[first + i] = index._find_or_insert(&keys[i], NULL)
        first += count
    return 0


cdef object slots_of_words(KeyIndex index, const int64_t[:, ::1] words, bint adds):
    """Return the slot of each row of numbers; one that is not there is added, or -1."""
    # By blocks, so that the cache misses of a block's keys overlap.
    cdef Py_ssize_t i, first = 0, count, n = words.shape[0]
    cdef uint32_t length = <uint32_t>(words.shape[1] * sizeof(int64_t))
    cdef const uint8_t* data
    cdef Key[BLOCK] keys
    cdef uint64_t found
    slots = np.empty(n, np.int64)
    cdef int64_t[::1] out = slots
    assert length > INLINE_MAX, "two numbers are a pair"
    while first < n:
        count = min(<Py_ssize_t>BLOCK, n - first)
        for i in range(count):
            data = <const uint8_t*>&words[first + i, 0]
            describe(&keys[i], data, length, data + length)
            prefetch(&index._table.entries[keys[i].tag >> index._table.shift])
        for i in range(count):
            prefetch(&index._keys[slot_in(index._table.entries[keys[i].tag >> index._table.shift])])
        for i in range(count):
            data = <const uint8_t*>&words[first + i, 0]
            found = index._table.entries[locate(&index._table, index._keys, &keys[i], data)]
            if found or not adds:
                out[first + i] = slot_in(found)
            else:
                out[first + i] = index._insert(&keys[i], data)
        first += count
    return slots


cdef class KeyIndex:
    # Invariants (check_invariants):
    #   every live key is found at its slot; live slots + free slots = slots ever handed out;
    #   a table entry is 0 (empty) or tag << 32 | slot + 1, and belongs where the first bits of the
    #   tag say, so that no key is read to move it; the table is at most 5/8 full.

    def __cinit__(self):
        self._open()

    cdef int _open(self) except -1:
        self.capacity = 64
        self._keys = <Key*>calloc(self.capacity, sizeof(Key))
        self._uses = <int64_t*>calloc(self.capacity, sizeof(int64_t))
        if open_table(&self._table, 7) or not (self._keys and self._uses):
            raise MemoryError
        return 0

    def trim(self):
        """Give the memory back if there are no keys."""
        if len(self) == 0 and self.capacity > 64:
            free(self._keys)
            free(self._uses)
            free(self._table.entries)
            self._top = self._free_count = 0
            self._open()
            if self._hashes:
                free(self._hashes)
                self._hashes = NULL
                self.keep_hashes()

    def __dealloc__(self):
        cdef int64_t slot
        if self._keys:
            for slot in range(self._top):
                if self._keys[slot].length > INLINE_MAX:
                    free(<void*>self._keys[slot].low)
        free(self._keys)
        free(self._uses)
        free(self._hashes)
        free(self._table.entries)

    def __len__(self):
        return self._top - self._free_count

    @property
    def nbytes(self):
        """Bytes held, table and long keys included."""
        return (
            self.capacity * <int64_t>(sizeof(Key) + (16 if self._hashes else 8))
            + <int64_t>(self._table.mask + 1) * 8
            + self._long_bytes
        )

    cdef int keep_hashes(self) except -1:
        """From now on compute the XXH64 of each key, where it is asked for, only once."""
        if not self._hashes:
            self._hashes = <uint64_t*>calloc(self.capacity, sizeof(uint64_t))
            if not self._hashes:
                raise MemoryError
        return 0

    cdef uint64_t _hashed(self, int64_t slot) noexcept nogil:
        self._hashes[slot] = xxh64(self.bytes_of(slot), self._keys[slot].length, 0)
        return self._hashes[slot]

    # --- one key ---

    cdef int64_t find(self, const uint8_t* data, uint32_t length) noexcept nogil:
        """Return the slot of a key, or -1."""
        cdef Key key
        describe(&key, data, length, data + length)
        return slot_in(self._table.entries[locate(&self._table, self._keys, &key, data)])

    cdef int64_t find_pair(self, int64_t a, int64_t b) noexcept nogil:
        """Return the slot of a pair, or -1."""
        cdef Key key
        describe_pair(&key, a, b)
        return slot_in(self._table.entries[locate(&self._table, self._keys, &key, NULL)])

    cdef int64_t find_or_add(self, const uint8_t* data, uint32_t length) except -1 nogil:
        cdef Key key
        describe(&key, data, length, data + length)
        return self._find_or_insert(&key, data)

    cdef int64_t find_or_add_pair(self, int64_t a, int64_t b) except -1 nogil:
        cdef Key key
        describe_pair(&key, a, b)
        return self._find_or_insert(&key, NULL)

    cdef int64_t _find_or_insert(self, Key* key, const uint8_t* data) except -1 nogil:
        cdef uint64_t found = self._table.entries[locate(&self._table, self._keys, key, data)]
        return slot_in(found) if found else self._insert(key, data)

    cdef int64_t _insert(self, Key* key, const uint8_t* data) except -1 nogil:
        cdef int64_t slot
        cdef uint8_t* copied
        if <uint64_t>(self._top - self._free_count + 1) * 8 > room_in(self._table.mask + 1):
            self._grow_table()
        if self._free_count == 0 and self._top == self.capacity:
            self._grow_slots()
        if key.length > INLINE_MAX:
            copied = <uint8_t*>malloc(key.length)
            if not copied:
                with gil:
                    raise MemoryError
            memcpy(copied, data, key.length)
            key.low = <uint64_t>copied
            self._long_bytes += key.length
        if self._free_count:
            self._free_count -= 1
            slot = self._first_free
            self._first_free = <int64_t>self._keys[slot].low
        else:
            slot = self._top
            self._top += 1
        self._keys[slot] = key[0]
        self._uses[slot] = 0
        if self._hashes:
            self._hashes[slot] = 0
        self._table.entries[locate(&self._table, self._keys, key, data)] = (
            (<uint64_t>key.tag << 32) | <uint64_t>(slot + 1)
        )
        return slot

    cdef int _grow_slots(self) except -1 nogil:
        # By an eighth: all that is kept by slot has as much room, and most of it is moved uncopied.
        cdef int64_t capacity = next_room(self.capacity, self.capacity + 1)
        cdef void* keys
        cdef void* uses
        cdef void* hashes = self._keys      # anything, if there are none
        if capacity > SLOTS_MAX:
            with gil:
                raise MemoryError(f"more than {SLOTS_MAX} keys in one index")
        keys = realloc(self._keys, capacity * sizeof(Key))
        if keys:
            self._keys = <Key*>keys
        uses = realloc(self._uses, capacity * sizeof(int64_t))
        if uses:
            self._uses = <int64_t*>uses
        if self._hashes:
            hashes = realloc(self._hashes, capacity * sizeof(uint64_t))
            if hashes:
                self._hashes = <uint64_t*>hashes
        if not (keys and uses and hashes):
            with gil:
                raise MemoryError
        self.capacity = capacity
        return 0

    cdef int _grow_table(self) except -1 nogil:
        cdef Table old = self._table
        cdef uint64_t at, i
        if old.shift == 0:
            with gil:
                raise MemoryError(f"more than {len(self)} keys in one index")
        if open_table(&self._table, 33 - old.shift):
            self._table = old
            with gil:
                raise MemoryError
        for i in range(old.mask + 1):
            if old.entries[i]:
                at = home(&self._table, old.entries[i])
                while self._table.entries[at]:
                    at = (at + 1) & self._table.mask
                self._table.entries[at] = old.entries[i]
        free(old.entries)
        return 0

    cdef int free_slot(self, int64_t slot) except -1 nogil:
        """Forget the slot's key. The caller knows that the slot is live."""
        cdef Key* key = &self._keys[slot]
        cdef uint64_t hole, at, start
        cdef uint64_t* entries = self._table.entries
        cdef uint64_t mask = self._table.mask
        hole = key.tag >> self._table.shift
        while slot_in(entries[hole]) != slot:
            hole = (hole + 1) & mask
        at = hole
        while True:
            at = (at + 1) & mask
            if entries[at] == 0:
                break
            start = home(&self._table, entries[at])
            # Move the entry back unless that would put it before its home.
            if ((at - start) & mask) >= ((at - hole) & mask):
                entries[hole] = entries[at]
                hole = at
        entries[hole] = 0
        if key.length > INLINE_MAX:
            self._long_bytes -= key.length
            free(<void*>key.low)
        memset(key, 0, sizeof(Key))
        key.low = <uint64_t>self._first_free
        self._first_free = slot
        self._free_count += 1
        return 0

    cdef const uint8_t* bytes_of(self, int64_t slot) noexcept nogil:
        cdef Key* key = &self._keys[slot]
        if key.length > INLINE_MAX:
            return <const uint8_t*>key.low
        return <const uint8_t*>&key.low  # low and high are neighbours: 16 bytes in order

    # --- batches ---

    cpdef slots_of_texts(self, Lent texts, const int64_t[::1] rows=None):
        """Return the slot of each text, none of which is null, adding the new ones: int64[n].

        With ``rows``, int64[m], the slots of the texts at these positions.
        """
        cdef Py_ssize_t i, n = texts.array.length
        cdef const int64_t* chosen = NULL
        if rows is not None:
            check_slots(rows, n)
            n = rows.shape[0]
            if n:
                chosen = &rows[0]
        slots = np.empty(n, np.int64)
        cdef int64_t[::1] out = slots
        if n:
            with nogil:
                self.find_texts(texts.array, chosen, n, &out[0])
        return slots

    def slots_of_same(self, KeyIndex other not None, const int64_t[::1] slots not None):
        """Return the slot of each key that another index has at ``slots``, adding the new ones: int64[n].

        It must have keys of the same kind.
        """
        cdef Py_ssize_t i, n = slots.shape[0], last = n - 1
        cdef const Key* theirs = other._keys
        cdef Key key
        if other is self:
            raise ValueError("keys of another index are looked up")
        check_slots(slots, other._top)
        found = np.empty(n, np.int64)
        cdef int64_t[::1] out = found
        for i in range(n):
            prefetch(&self._table.entries[theirs[slots[min(i + AHEAD, last)]].tag >> self._table.shift])
            key = theirs[slots[i]]
            if key.length == 0 and key.tag == 0:
                raise IndexError(f"slot {slots[i]} has no key")
            out[i] = self._find_or_insert(&key, <const uint8_t*>key.low)  # bytes of a long one
        return found

    def slots_of_known_texts(self, Lent texts, const int64_t[::1] rows=None):
        """Return the slot of each text, -1 for one that is not there: int64[n].

        With ``rows``, int64[m], the slots of the texts at these positions.
        """
        cdef Py_ssize_t i, row, n = texts.array.length
        cdef const int32_t* ends
        cdef const uint8_t* base
        cdef const uint8_t* stop
        cdef Key key
        if rows is not None:
            check_slots(rows, n)
            n = rows.shape[0]
        slots = np.empty(n, np.int64)
        cdef int64_t[::1] out = slots
        if not n:
            return slots
        ends = <const int32_t*>values_of(texts.array, 4)
        base = <const uint8_t*>texts.array.buffers[2]
        stop = base + ends[texts.array.length]
        for i in range(n):
            row = rows[i] if rows is not None else i
            describe(&key, base + ends[row], <uint32_t>(ends[row + 1] - ends[row]), stop)
            out[i] = slot_in(
                self._table.entries[locate(&self._table, self._keys, &key, base + ends[row])]
            )
        return slots

    cdef int find_texts(
        self, const ArrowArray* texts, const int64_t* rows, Py_ssize_t n, int64_t* out
    ) except -1 nogil:
        """Write the slots of n texts, those at ``rows`` if it is not NULL."""
        cdef const int32_t* ends = <const int32_t*>values_of(texts, 4)
        cdef const uint8_t* base = <const uint8_t*>texts.buffers[2]
        cdef const uint8_t* stop = base + ends[texts.length]
        cdef const uint8_t* data
        cdef Table table
        cdef const Key* known
        cdef Key[BLOCK] keys
        cdef Key key, new
        cdef uint64_t found
        cdef Py_ssize_t i, row, count
        if self._table.mask < CACHED_ENTRIES:
            table, known = self._table, self._keys
            for i in range(n):
                row = rows[i] if rows else i
                data = base + ends[row]
                describe(&key, data, <uint32_t>(ends[row + 1] - ends[row]), stop)
                found = table.entries[locate(&table, known, &key, data)]
                if found:
                    out[i] = slot_in(found)
                else:
                    new = key  # in registers as long as no address of it is taken
                    out[i] = self._insert(&new, data)
                    table, known = self._table, self._keys
            return 0
        # By blocks, so that the cache misses of a block's keys overlap.
        while n:
            count = min(<Py_ssize_t>BLOCK, n)
            table, known = self._table, self._keys
            for i in range(count):
                row = rows[i] if rows else i
                describe(&keys[i], base + ends[row], <uint32_t>(ends[row + 1] - ends[row]), stop)
                prefetch(&table.entries[keys[i].tag >> table.shift])
            for i in range(count):
                prefetch(&known[slot_in(table.entries[keys[i].tag >> table.shift])])
            for i in range(count):
                data = NULL
                if keys[i].length > INLINE_MAX:
                    data = base + ends[rows[i] if rows else i]
                key = keys[i]
                found = table.entries[locate(&table, known, &key, data)]
                if found:
                    out[i] = slot_in(found)
                else:
                    out[i] = self._insert(&keys[i], data)
                    table, known = self._table, self._keys
            n -= count
            out += count
            if rows:
                rows += count
            else:
                ends += count
        return 0

    def slots_of_pairs(self, const int64_t[::1] a not None, const int64_t[::1] b not None):
        """Return the slot of each pair (a[i], b[i]), adding the new ones."""
        cdef Py_ssize_t n = a.shape[0]
        assert b.shape[0] == n
        slots = np.empty(n, np.int64)
        cdef int64_t[::1] out = slots
        if n:
            with nogil:
                find_pairs(self, &a[0], &b[0], n, &out[0])
        return slots

    def slots_of_known_pairs(
        self, const int64_t[::1] a not None, const int64_t[::1] b not None
    ):
        """Return the slot of each pair (a[i], b[i]), -1 for one that is not there."""
        cdef Py_ssize_t i, n = a.shape[0]
        assert b.shape[0] == n
        slots = np.empty(n, np.int64)
        cdef int64_t[::1] out = slots
        for i in range(n):
            out[i] = self.find_pair(a[i], b[i])
        return slots

    def slots_of_words(self, const int64_t[:, ::1] words not None):
        """Return the slot of each row of three or more numbers, adding the new ones."""
        return slots_of_words(self, words, True)

    def slots_of_known_words(self, const int64_t[:, ::1] words not None):
        """Return the slot of each row of three or more numbers, -1 for one that is not there."""
        return slots_of_words(self, words, False)

    def slots_of_ints(self, const int64_t[::1] values not None):
        """Return the slot of each integer key, adding the new ones."""
        cdef Py_ssize_t n = values.shape[0]
        slots = np.empty(n, np.int64)
        cdef int64_t[::1] out = slots
        if n:
            with nogil:
                find_pairs(self, &values[0], NULL, n, &out[0])
        return slots

    def slot_of(self, bytes key not None):
        """Return the slot of one key, or -1."""
        return self.find(<const uint8_t*><const char*>key, len(key))

    def add(self, bytes key not None):
        """Return the slot of one key, adding it when it is new."""
        return self.find_or_add(<const uint8_t*><const char*>key, len(key))

    def adopt(self, const int64_t[::1] slots not None):
        """Mark slots as seen; return those that were not marked before, distinct, in order."""
        check_slots(slots, self._top)
        cdef Py_ssize_t i, found = 0
        new = np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] out = new
        for i in range(slots.shape[0]):
            if not self._uses[slots[i]] & 1:
                self._uses[slots[i]] |= 1
                out[found] = slots[i]
                found += 1
        return new[:found]

    def hashes_at(self, const int64_t[::1] slots not None):
        """Return the XXH64 of each slot's key bytes: uint64[n]."""
        check_slots(slots, self._top)
        cdef Py_ssize_t i
        hashes = np.empty(slots.shape[0], np.uint64)
        cdef uint64_t[::1] out = hashes
        with nogil:
            for i in range(slots.shape[0]):
                out[i] = xxh64(self.bytes_of(slots[i]), self._keys[slots[i]].length, 0)
        return hashes

    def retain(self, const int64_t[::1] slots not None):
        """Count one more use of each slot, duplicates included."""
        check_slots(slots, self._top)
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            self._uses[slots[i]] += 2

    def drop_uses(self, const int64_t[::1] slots not None):
        """Count one use less of each slot; return the distinct slots that have none left."""
        check_slots(slots, self._top)
        cdef Py_ssize_t i, found = 0
        gone = np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] out = gone
        for i in range(slots.shape[0]):
            assert self._uses[slots[i]] >= 2, slots[i]
            self._uses[slots[i]] -= 2
            if self._uses[slots[i]] < 2:
                out[found] = slots[i]
                found += 1
        return gone[:found]

    def free(self, const int64_t[::1] slots not None):
        """Forget the keys of these live, distinct slots; the slots will be handed out again."""
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            assert 0 <= slots[i] < self._top and self._keys[slots[i]].tag | self._keys[slots[i]].length, (
                f"slot {slots[i]} is not live"
            )
            self.free_slot(slots[i])

    def bytes_at(self, const int64_t[::1] slots not None):
        """Return the keys of ``slots`` as Arrow string buffers: int32[n + 1] offsets, uint8 data."""
        check_slots(slots, self._top)
        cdef Py_ssize_t i, n = slots.shape[0]
        offsets = np.empty(n + 1, np.int32)
        cdef int32_t[::1] ends = offsets
        cdef int64_t total = 0
        for i in range(n):
            ends[i] = <int32_t>total
            total += self._keys[slots[i]].length
            if total > 0x7FFFFFFF:
                raise OverflowError("the keys of one batch exceed 2 GiB")
        ends[n] = <int32_t>total
        data = np.empty(total, np.uint8)
        cdef uint8_t[::1] out = data
        cdef uint8_t* base = &out[0] if total else NULL
        with nogil:
            for i in range(n if total else 0):
                memcpy(base + ends[i], self.bytes_of(slots[i]), ends[i + 1] - ends[i])
        return offsets, data

    def pairs_at(self, const int64_t[::1] slots not None):
        """Return the two halves of the pair keys of ``slots``: int64[n], int64[n]."""
        check_slots(slots, self._top)
        cdef Py_ssize_t i, n = slots.shape[0]
        first = np.empty(n, np.int64)
        second = np.empty(n, np.int64)
        cdef int64_t[::1] a = first
        cdef int64_t[::1] b = second
        for i in range(n):
            a[i] = <int64_t>self._keys[slots[i]].low
            b[i] = <int64_t>self._keys[slots[i]].high
        return first, second

    def words_at(self, const int64_t[::1] slots not None, int width):
        """Return the numbers of ``slots``: per place among ``width`` an int64[n]."""
        cdef Py_ssize_t i, n = slots.shape[0]
        check_slots(slots, self._top)
        words = np.empty((width, n), np.int64)
        cdef int64_t[:, ::1] out = words
        cdef const int64_t* found
        cdef int k
        for i in range(n):
            if self._keys[slots[i]].length != width * sizeof(int64_t):
                raise IndexError(f"slot {slots[i]} has no {width} numbers")
            found = <const int64_t*>self.bytes_of(slots[i])
            for k in range(width):
                out[k, i] = found[k]
        return words

    def live_slots(self):
        """Return every live slot in ascending order: int64[n]."""
        cdef int64_t slot = self._first_free, i, n = 0
        slots = np.empty(self._top - self._free_count, np.int64)
        cdef int64_t[::1] out = slots
        freed = np.zeros(self._top, np.uint8)
        cdef uint8_t[::1] is_free = freed
        for i in range(self._free_count):
            is_free[slot] = 1
            slot = <int64_t>self._keys[slot].low
        for slot in range(self._top):
            if not is_free[slot]:
                out[n] = slot
                n += 1
        return slots

    def check_invariants(self):
        """Raise AssertionError when the index contradicts itself."""
        cdef int64_t slot, entries = 0
        cdef uint64_t i
        cdef Key* key
        live = self.live_slots()
        assert len(live) == len(self)
        for i in range(self._table.mask + 1):
            entries += self._table.entries[i] != 0
        assert entries == len(self), (entries, len(self))
        assert entries * 8 <= <int64_t>(self._table.mask + 1) * 5
        for slot in live:
            key = &self._keys[slot]
            assert self.find(self.bytes_of(slot), key.length) == slot, slot
