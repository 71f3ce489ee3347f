# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The min-heap of dirty nodes, ordered by (height, id). Internal: users see ``Node.dirty``.

Invariants (``Heap.check``):
    items[(i - 1) // 2].rank <= items[i].rank          heap order
    items[i].owner.position == i, for every i < size   each owner knows its place
    owner.position == -1 <=> the owner is not in the heap
    size <= capacity; the graph reserves a place for every node, so a push never allocates
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc

CAPACITY_MIN = 64


cdef class Ranked:
    """Something with a height and an id that can be in the heap, at most once."""

    def __cinit__(self):
        self.id = -1
        self.position = -1


cdef class Heap:
    """A binary heap that also removes and re-ranks in O(log size)."""

    def __cinit__(self):
        self.reserve(0)

    def __dealloc__(self):
        PyMem_Free(self.items)

    cdef int reserve(self, Py_ssize_t capacity) except -1:
        """Make room for ``capacity`` items; give memory back when four times too large."""
        capacity = max(capacity, self.size, CAPACITY_MIN)
        if self.capacity // 4 <= capacity <= self.capacity:
            return 0
        if capacity > self.capacity:
            capacity = max(capacity, 2 * self.capacity)
        cdef Item* items = <Item*>PyMem_Realloc(self.items, capacity * sizeof(Item))
        if items is NULL:
            raise MemoryError
        self.items = items
        self.capacity = capacity
        return 0

    cdef void push(self, Ranked owner) noexcept:
        cdef Item item
        item.rank = rank_of(owner)
        item.owner = <PyObject*>owner
        self.size += 1
        self.place(self.size - 1, item)
        if self.size > 1:
            self.rise(self.size - 1)

    cdef Ranked pop(self):
        cdef Ranked owner = <Ranked>self.items[0].owner
        self.remove(owner)
        return owner

    cdef void remove(self, Ranked owner) noexcept:
        cdef Py_ssize_t i = owner.position
        self.size -= 1
        owner.position = -1
        if i < self.size:
            self.place(i, self.items[self.size])
            self.rise(i)
            self.sink(i)

    cdef void rerank(self, Ranked owner) noexcept:
        """Restore the order after the height of ``owner``, which is in the heap, changed."""
        self.items[owner.position].rank = rank_of(owner)
        self.rise(owner.position)
        self.sink(owner.position)

    cdef inline void place(self, Py_ssize_t i, Item item) noexcept:
        self.items[i] = item
        (<Ranked>item.owner).position = i

    cdef void rise(self, Py_ssize_t i) noexcept:
        cdef Item item = self.items[i]
        cdef Py_ssize_t above
        while i > 0:
            above = (i - 1) // 2
            if self.items[above].rank <= item.rank:
                break
            self.place(i, self.items[above])
            i = above
        self.place(i, item)

    cdef void sink(self, Py_ssize_t i) noexcept:
        cdef Item item = self.items[i]
        cdef Py_ssize_t below
        while 2 * i + 1 < self.size:
            below = 2 * i + 1
            if below + 1 < self.size and self.items[below + 1].rank < self.items[below].rank:
                below += 1
            if item.rank <= self.items[below].rank:
                break
            self.place(i, self.items[below])
            i = below
        self.place(i, item)

    def members(self):
        """Return the owners, in no particular order."""
        return [<object>self.items[i].owner for i in range(self.size)]

    def check(self):
        """Raise AssertionError where an invariant of this module does not hold."""
        cdef Py_ssize_t i
        cdef Ranked owner
        assert self.size <= self.capacity
        for i in range(self.size):
            owner = <Ranked>self.items[i].owner
            assert owner.position == i, f"{owner!r} does not know its place in the heap"
            assert self.items[i].rank == rank_of(owner), f"{owner!r} has a stale rank in the heap"
            assert i == 0 or self.items[(i - 1) // 2].rank <= self.items[i].rank, "heap order"
