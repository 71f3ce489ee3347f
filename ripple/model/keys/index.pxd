from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from ripple.model.schema.exported cimport ArrowArray, Lent


cdef struct Key:
    uint32_t length
    uint32_t tag        # the upper half of the hash; 0 length and 0 tag for a free slot
    uint64_t low        # the first 8 bytes, zero padded; of a long key, the pointer to its bytes;
                        # of a free slot, the one that is free after it
    uint64_t high       # the next 8 bytes, zero padded; of a long key, 0


cdef struct Table:
    uint64_t* entries
    uint64_t mask       # of positions
    int shift           # of tags: their first bits are where probing starts


cdef class KeyIndex:
    cdef Key* _keys
    cdef int64_t* _uses                 # by slot: twice the uses, plus 1 once adopted
    cdef uint64_t* _hashes              # by slot: XXH64 of the key, 0 before it is asked for; or NULL
    cdef int64_t _first_free            # the one that was freed last
    cdef Table _table
    cdef readonly int64_t capacity      # slots allocated: every slot handed out is below it
    cdef int64_t _top                   # slots ever handed out
    cdef int64_t _free_count
    cdef int64_t _long_bytes

    cdef inline bint has_pair(self, int64_t slot, int64_t a, int64_t b) noexcept nogil:
        """Whether the slot, which may be any number, is that of a pair."""
        cdef const Key* key = self._keys + slot
        return (
            0 <= slot < self._top and key.length == 16
            and key.low == <uint64_t>a and key.high == <uint64_t>b
        )

    cdef inline uint64_t hash_of(self, int64_t slot) noexcept nogil:
        """Return the XXH64 of a slot's key, after ``keep_hashes``."""
        return self._hashes[slot] or self._hashed(slot)

    cdef int keep_hashes(self) except -1
    cdef uint64_t _hashed(self, int64_t slot) noexcept nogil
    cdef int64_t find(self, const uint8_t* data, uint32_t length) noexcept nogil
    cdef int64_t find_pair(self, int64_t a, int64_t b) noexcept nogil
    cdef int64_t find_or_add(self, const uint8_t* data, uint32_t length) except -1 nogil
    cdef int64_t find_or_add_pair(self, int64_t a, int64_t b) except -1 nogil
    cdef int free_slot(self, int64_t slot) except -1 nogil
    cdef const uint8_t* bytes_of(self, int64_t slot) noexcept nogil
    cdef int64_t _find_or_insert(self, Key* key, const uint8_t* data) except -1 nogil
    cdef int64_t _insert(self, Key* key, const uint8_t* data) except -1 nogil
    cdef int find_texts(
        self, const ArrowArray* texts, const int64_t* rows, Py_ssize_t n, int64_t* out
    ) except -1 nogil
    cpdef slots_of_texts(self, Lent texts, const int64_t[::1] rows=*)
    cdef int _open(self) except -1
    cdef int _grow_slots(self) except -1 nogil
    cdef int _grow_table(self) except -1 nogil
