# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Bind: a cell with a parent that a function of another cell's value chooses.

Two nodes: the input runs the function when the value it depends on changes; the bind itself
shows the value of the cell that the function returned. Cells made by the function stand above
the input, so that they never run on a value for which they were not made, and go when it runs
again. The idea and the two nodes are Jane Street Incremental's.
"""

from ripple.engine.graph.cell cimport Cell
from ripple.engine.graph.node cimport STABILIZING, Graph, Node, Scope

from ripple.core.errors import GraphError, LimitError

BIND_DEPTH_MAX = 1_000  # each level costs a pass over those above it


cdef class BindInput(Node):
    """Runs the function; owns the nodes that the last run of it made."""

    cdef object function
    cdef Bind bind
    cdef Scope made

    cdef bint recompute(self) except -1:
        """Choose anew. If anything fails, the former choice stays."""
        cdef Graph graph = self.graph
        cdef Scope calling = graph.scope
        cdef Scope before = self.made
        cdef Scope fresh = graph.enter(self)
        try:
            chosen = self.function((<Cell>self.parents[0]).current)
            self.made = fresh
            self.bind.choose(chosen, fresh)
        except BaseException:
            self.made = before
            graph.discard(fresh)
            raise
        finally:
            graph.scope = calling
        if before is not None:
            graph.discard(before)
        return True

    cdef int removed(self) except -1:
        if self.made is not None:
            self.graph.discard(self.made)
        self.made = None
        self.bind = None
        self.function = None
        return 0

    cpdef str kind(self):
        return "bind_input"

    cpdef object inside(self):
        return () if self.made is None else tuple(self.made.members)


cdef class Bind(Cell):
    """The value of the cell that ``function(parent.value)`` returned."""

    cdef BindInput input
    cdef Cell chosen

    def __init__(
        self, Graph graph not None, Cell parent not None, function,
        cutoff=None, name=None, serializer=None,
    ):
        if graph.scope is not None and graph.scope.depth >= BIND_DEPTH_MAX:
            raise LimitError(
                f"binds are nested more than {BIND_DEPTH_MAX} deep (BIND_DEPTH_MAX): does the "
                "function of a bind always make a further bind?"
            )
        self.configure(cutoff, name, serializer)
        self.input = BindInput.__new__(BindInput)
        self.input.name = name
        self.input.function = function
        self.input.bind = self
        graph.attach(self.input, [parent])
        graph.attach(self, [self.input])
        self.start()

    cdef int start(self) except -1:
        """Compute the first value and all that the function makes, or leave it to the stabilize.

        The function runs as it will always run, in a stabilize: what it makes waits for its turn,
        so that binds within binds are no calls within calls.
        """
        cdef Graph graph = self.graph
        if graph.phase == STABILIZING:
            graph.mark_dirty(self.input)
            return graph.mark_dirty(self)
        graph.compute_apart([self.input, self])
        return 0

    cdef bint recompute(self) except -1:
        return self.publish(self.chosen.current)  # the input, being lower, has run

    cdef int choose(self, chosen, Scope fresh) except -1:
        """Depend on ``chosen`` instead of the cell chosen before."""
        if not isinstance(chosen, Cell):
            raise GraphError(f"it must return a cell, not {type(chosen).__name__}")
        if (<Cell>chosen).scope is not fresh:
            self.graph.refuse_parent(self.scope, chosen)
        if chosen is not self.chosen:
            self.graph.link(self, chosen, across_scopes=True)
            if self.chosen is not None:
                self.graph.unlink(self, self.chosen)
            self.chosen = chosen
        return 0

    cdef int removed(self) except -1:
        self.graph.detach(self.input)
        self.input = None
        self.chosen = None
        return 0

    cpdef str kind(self):
        return "bind"

    cpdef object check(self):
        self.agree(self.chosen.current)
