"""The best row of each slot, of a stream that only grows."""

from libc.stdint cimport int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from ripple.core.kept cimport Kept
from ripple.model.aggregate.part cimport KeptRows
from ripple.model.aggregate.strips cimport Encoded, Strip

cdef extern from "one_row.hpp" namespace "ripple" nogil:
    cppclass OneRow:
        char by_kind
        cbool largest
        cbool latest
        string kinds
        void lay_out()
        void resize(int64_t count) except +
        int64_t size()
        void add(
            const int64_t* slot, int64_t n, const Strip& by, const int64_t* time_ns,
            const int64_t* offset, const vector[Strip]& fields,
        ) except +
        void merge(int64_t into, int64_t source)
        void clear(int64_t slot)
        cbool has(int64_t slot)
        void encode(
            int64_t slot, vector[int64_t]& numbers, Encoded& by, vector[Encoded]& fields
        ) except +
        void show(
            const int64_t* slot, int64_t n, size_t field, int64_t* bits, uint8_t* valid
        )
        int64_t nbytes()


cdef struct Scratch:                # of a column that comes from Arrow: as a Strip has it
    vector[int64_t] numbers
    vector[uint8_t] valid


cdef class OneRowOf(KeptRows):
    cdef OneRow rows
    cdef vector[Scratch] scratch    # of the batch at hand: kept, so that room is found once
