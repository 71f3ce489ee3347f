from libc.stdint cimport int64_t, uint8_t, uint32_t
from libcpp.vector cimport vector

from ripple.model.schema.exported cimport ArrowArray, Made

cdef extern from "stored.hpp" namespace "ripple" nogil:
    cppclass StoredColumn:
        int kind
        vector[int64_t] words
        vector[char] bytes
        vector[uint8_t] valid
        int64_t begin(int64_t)
        int has(int64_t)
        void add(const ArrowArray&) except +
        void add_words(const int64_t*, int64_t) except +
        void add_some(const StoredColumn&, const int64_t*, int64_t) except +
        void add_from(const StoredColumn&, int64_t, int64_t) except +
        void keep(const int64_t*, int64_t)
        int64_t nbytes()

    cppclass Picked:
        const int64_t* places
        vector[uint8_t] present
        void pick(const int64_t*, int64_t) except +

    cppclass PickedTexts:
        vector[const uint8_t*] texts
        vector[uint32_t] lengths
        int64_t point(const StoredColumn&, const Picked&, int64_t, const uint8_t*) except +

    void clear_room[T](vector[T]&)

    cppclass Less "ripple::Order::Less":
        const int64_t* time
        const int64_t* place

    cppclass Order:
        int64_t count
        void add_below(int64_t, Less) except +
        void take_below(int64_t, Less, vector[int64_t]&) except +
        void all(Less, vector[int64_t]&) except +
        vector[int64_t] add_to(const int64_t*, int64_t, int64_t, vector[int64_t]&) except +
        void renumber(const vector[int64_t]&, int64_t)
        int64_t nbytes()

    cppclass OrderCut:
        int64_t count
        OrderCut() except +
        OrderCut(const Order&) except +
        void next(int64_t, Less, vector[int64_t]&) except +


cdef class Stored:
    cdef vector[StoredColumn] columns
    cdef dict places, others
    cdef list types
    cdef vector[char] letters       # of the types, as those of lent columns; 0 for others
    cdef vector[char] are_ints      # whether a column takes int64[n]
    cdef object make
    cdef readonly object schema
    cdef readonly int64_t count
    cdef readonly int64_t added     # with the rows that were not kept
    cdef bint is_torn

    cdef int put(
        self, const vector[const ArrowArray*]& arrays, const vector[const int64_t*]& words,
        list columns, int64_t count,
    ) except -1
    cdef int keep_at(self, const int64_t* numbers, int64_t n) except -1
    cdef int check_whole(self) except -1
    cdef Py_ssize_t place(self, str name) except -1
    cdef int check(self, const int64_t[::1] numbers, int64_t least) except -1
    cdef int add_last(self, Stored of, int64_t n) except -1
    cdef words_from(self, size_t at, int64_t first)


cdef class Waiting:
    cdef Stored rows
    cdef size_t time, place
    cdef Order order

    cdef Less less(self)
    cdef vector[int64_t] keep_some(
        self, const int64_t* numbers, int64_t n, vector[int64_t]& kept
    ) except *


cdef class Beside:
    cdef object schema
    cdef list parts
    cdef vector[size_t] of, at
    cdef vector[Picked] picked          # room for each part of a batch
    cdef vector[PickedTexts] texts      # for each column

    cdef Made made(self, const vector[const int64_t*]& numbers, int64_t count)


cpdef Made gathered(schema, int64_t count, list parts)
