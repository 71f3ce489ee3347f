from cpython.object cimport PyObject
from libc.stdint cimport uint64_t


cdef class Ranked:
    cdef readonly Py_ssize_t id
    cdef readonly Py_ssize_t height
    cdef Py_ssize_t position  # index in the heap; -1 when not in it


cdef struct Item:
    uint64_t rank  # height << 32 | id: lexicographic order in one comparison
    PyObject* owner  # a Ranked, borrowed: the graph keeps its nodes alive


cdef class Heap:
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t capacity
    cdef Item* items

    cdef int reserve(self, Py_ssize_t capacity) except -1
    cdef void push(self, Ranked owner) noexcept
    cdef Ranked pop(self)
    cdef void remove(self, Ranked owner) noexcept
    cdef void rerank(self, Ranked owner) noexcept
    cdef void place(self, Py_ssize_t i, Item item) noexcept
    cdef void rise(self, Py_ssize_t i) noexcept
    cdef void sink(self, Py_ssize_t i) noexcept


cdef inline uint64_t rank_of(Ranked owner) noexcept:
    return <uint64_t>owner.height << 32 | <uint64_t>owner.id


cdef inline bint would_pop(Heap heap, Ranked owner) noexcept:
    """Return whether ``owner``, were it pushed, would be the next to pop."""
    return heap.size == 0 or rank_of(owner) < heap.items[0].rank
