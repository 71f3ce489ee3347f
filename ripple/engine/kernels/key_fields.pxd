from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef class KeyFields:
    cdef readonly tuple fields
    cdef readonly int count             # of the fields
    cdef readonly int start_at          # which of them is the window's start; -1: none
    # Per field: the index that its values are found in, and whether they are text there.
    cdef list pairs                     # of a whole key and the fields before it; none of the first,
                                        # which are several where they are numbers alone
    cdef list texts                     # the index of the texts; None for numbers
    cdef list numbers                   # of the first fields: the index of their numbers

    # ids: int64[count * n]: per field, n numbers, or slots of texts in the field's index.
    cdef int read(self, const int64_t* slots, Py_ssize_t n, int64_t* ids) except -1
    cdef int hash_into(self, const int64_t* ids, Py_ssize_t n, uint64_t* hashes) except -1
    cdef int order(
        self, const int64_t* ids, const uint64_t* hashes, Py_ssize_t n, int64_t* order
    ) except -1
