from libc.stdint cimport int64_t

from ripple.engine.graph.heap cimport Heap, Ranked


cdef class Scope:
    cdef readonly Node owner  # what made the members: they live until it runs again
    cdef readonly Scope outer  # the owner's own scope
    cdef readonly dict members
    cdef readonly Py_ssize_t depth  # 1, and 1 more than the outer's


cdef class Node(Ranked):
    cdef public bint is_output
    cdef bint may_go_straight  # worth asking: `straight` is more than False
    cdef readonly str name
    cdef readonly Graph graph  # None once removed
    cdef readonly Scope scope  # None unless made by a bind's function
    cdef readonly list parents
    cdef readonly list dependents
    cdef readonly Py_ssize_t recompute_count  # times it took a new value
    cdef readonly Py_ssize_t cutoff_count  # times it was recomputed to the value it had

    cdef Node next_changed

    cdef inline void count_change(self) noexcept:
        self.recompute_count += 1
        self.graph.last_recompute_count += 1

    cdef inline void count_cutoff(self) noexcept:
        self.cutoff_count += 1
        self.graph.last_cutoff_count += 1

    # What a kind of node defines; the docstrings in node.pyx are the contract.
    cdef bint recompute(self) except -1
    cdef int parent_changed(self, Node parent) except -1
    cdef bint straight(self) except -1
    cdef bint row_changed(self, int64_t slot, int64_t was, int64_t now) except -1
    cdef void settled(self) noexcept
    cdef int removed(self) except -1
    cdef object value_before(self)
    cdef object value_now(self)
    cpdef str kind(self)
    cpdef object value_sexp(self)
    cpdef object check(self)
    cpdef object inside(self)


cdef class PyNode(Node):
    pass


cdef class Change:
    cdef readonly Node node
    cdef readonly object old
    cdef readonly object new


cdef enum Phase:
    IDLE
    COMPUTING  # the first value of a new node
    STABILIZING  # or computing a new bind, with all that it makes
    OBSERVING


cdef class Graph:
    cdef readonly object now
    cdef readonly list nodes  # by id; None where an id is free
    cdef readonly Py_ssize_t node_count
    cdef readonly Py_ssize_t last_recompute_count
    cdef readonly Py_ssize_t last_cutoff_count
    cdef readonly int64_t last_stabilization_ns
    cdef readonly Heap heap
    cdef readonly dict observers  # node -> list of callbacks
    cdef Phase phase
    cdef Scope scope  # of the bind that is running its function
    cdef bint discarding  # what a scope made is being removed, all of it by one loop
    cdef list free_ids  # a heapq: the lowest id is used first
    cdef Node first_changed  # in the running stabilize; the others follow by next_changed
    cdef dict unreported  # changed output -> its value when last reported

    # For node implementations.
    cdef int attach(self, Node node, list parents) except -1
    cdef int detach(self, Node node) except -1

    cdef inline int mark_dirty(self, Node node) except -1:
        """Put ``node`` on the heap, once."""
        if node.position < 0:
            self.heap.push(node)
        return 0

    cdef int link(self, Node node, Node parent, bint across_scopes=*) except -1
    cdef int unlink(self, Node node, Node parent) except -1
    cdef Scope enter(self, Node owner)
    cdef int compute_apart(self, list made) except -1
    cdef int discard(self, Scope scope) except -1

    cdef inline bint busy(self) noexcept:
        """Whether a node's function is running."""
        return self.phase == STABILIZING or self.phase == COMPUTING

    cdef int refuse_while_busy(self, str what) except -1

    cdef int go_straight(self, Node node) except -1
    cdef int propagate(self) except -1
    cdef void settle(self) noexcept
    cdef Node mark_changed(self, Node node)
    cdef tuple report(self)
    cdef int notify(self, list changes) except -1
    cdef int lift(self, Node node, Node parent) except -1
    cdef int refuse_parent(self, Scope scope, Node parent) except -1
    cdef int give_id(self, Node node) except -1
    cdef int take_id(self, Node node) except -1
