from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef struct Key:
    uint32_t length
    uint32_t tag        # the upper half of the hash; 0 length and 0 tag for a free slot
    uint64_t low        # the first 8 bytes, zero padded; of a long key, the pointer to its bytes
    uint64_t high       # the next 8 bytes, zero padded; of a long key, 0


cdef class KeyIndex:
    cdef Key* _keys
    cdef int64_t* _uses                 # by slot: twice the uses, plus 1 once adopted
    cdef int64_t* _free
    cdef uint64_t* _table
    cdef readonly int64_t capacity      # slots allocated: every slot handed out is below it
    cdef int64_t _top                   # slots ever handed out
    cdef int64_t _free_count
    cdef uint64_t _mask
    cdef int64_t _long_bytes

    cdef int64_t find(self, const uint8_t* data, uint32_t length) noexcept nogil
    cdef int64_t find_pair(self, int64_t a, int64_t b) noexcept nogil
    cdef int64_t find_or_add(self, const uint8_t* data, uint32_t length) except -1 nogil
    cdef int64_t find_or_add_pair(self, int64_t a, int64_t b) except -1 nogil
    cdef int free_slot(self, int64_t slot) except -1 nogil
    cdef const uint8_t* bytes_of(self, int64_t slot) noexcept nogil
    cdef int64_t _insert(self, Key* key, const uint8_t* data, uint64_t hashed) except -1 nogil
    cdef uint64_t _home(self, uint64_t entry) noexcept nogil
    cdef int _open(self) except -1
    cdef int _grow_slots(self) except -1 nogil
    cdef int _grow_table(self) except -1 nogil
