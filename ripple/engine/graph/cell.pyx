# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Cells: nodes that hold one value. Users make them with the methods of ``Graph``.

A cell's value is the one of the last stabilize, a leaf's too: between ``set`` and ``stabilize``
the whole graph still shows one consistent state. Functions of cells must be pure and must not
change the values they are given.
"""

from cpython.float cimport PyFloat_AS_DOUBLE
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from ripple.engine.graph.node cimport COMPUTING, STABILIZING, Phase

from types import GenericAlias

from ripple.core.errors import GraphError, NodeError
from ripple.engine.graph.cutoff import Cutoff, Rule
from ripple.core.arguments import shown

UNSET = object()


cpdef bint same_bits(object old, object new) except -1:
    """Return whether the two are one object, or scalars of one type with the same bits."""
    cdef double a, b
    cdef uint64_t a_bits, b_bits
    if old is new:
        return True
    kind = type(old)
    if kind is not type(new):
        return False
    if kind is float:
        a, b = PyFloat_AS_DOUBLE(old), PyFloat_AS_DOUBLE(new)
        memcpy(&a_bits, &a, 8)
        memcpy(&b_bits, &b, 8)
        return a_bits == b_bits
    if kind is int or kind is str:
        return old == new
    return False


cdef class Cell(Node):
    """A node with one value, readable as ``value``.

    It has a value when its constructor returns, unless the graph was stabilizing: then the cell
    is dirty, belongs to a bind, and only what the same bind made can see that it has none.
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __cinit__(self):
        self.current = UNSET
        self.previous = UNSET

    cdef int configure(self, object cutoff, object name, object serializer) except -1:
        cutoff = cutoff or Cutoff.PHYSICAL
        self.rule = cutoff.rule
        self.equals = cutoff.equals
        self.name = name
        self.serializer = serializer
        return 0

    cdef int enter(self, Graph graph, list parents) except -1:
        graph.attach(self, parents)
        return self.start()

    cdef int start(self) except -1:
        """Compute the first value, or have the running stabilize do it in the node's turn.

        Raises NodeError, with the node out of the graph again, when the function fails.
        """
        cdef Graph graph = self.graph
        cdef Phase phase = graph.phase
        if phase == STABILIZING:
            return graph.mark_dirty(self)
        graph.phase = COMPUTING
        try:
            self.recompute()
        except BaseException as error:
            text = f"the function of the new {self!r} raised {type(error).__name__}: {error}"
            graph.detach(self)
            if not isinstance(error, Exception):
                raise
            raise NodeError(text) from error
        finally:
            graph.phase = phase
        self.settled()
        return 0

    cdef bint publish(self, object new) except -1:
        """Take ``new`` as the value unless it is cut off; return whether it was taken."""
        if self.current is not UNSET:
            if self.rule == PHYSICAL:
                if same_bits(self.current, new):
                    return False
            elif self.rule == EQUAL:
                if self.equals(self.current, new):
                    return False
            elif self.rule == NEVER:
                return False
        self.previous = self.current
        self.current = new
        return True

    cdef void settled(self) noexcept:
        self.previous = UNSET

    cdef object value_before(self):
        return None if self.previous is UNSET else self.previous

    cdef object value_now(self):
        return self.current

    @property
    def value(self):
        """The value as of the last stabilize."""
        if self.current is UNSET:
            raise GraphError(f"{self!r} has no value before the stabilize that made it has ended")
        return self.current

    @property
    def cutoff(self):
        """The rule by which a recomputed value counts as unchanged."""
        return Cutoff(rule=Rule(self.rule), equals=self.equals)

    cpdef object value_sexp(self):
        value = self.current
        if value is UNSET:
            return None
        if self.serializer is not None:
            return self.serializer(value)
        if value is None:
            return []
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (int, float)):
            return repr(value)
        return value if isinstance(value, str) else None

    cdef int agree(self, object again) except -1:
        """Assert that ``again``, computed afresh, is the value; for floats, to the bit.

        A cell that always or never propagates is not compared: its function need not be pure.
        """
        if self.rule == PHYSICAL:
            agrees = same_bits(self.current, again)
            if not agrees and type(again) is not float:
                agrees = type(again) is type(self.current) and again == self.current
        elif self.rule == EQUAL:
            agrees = self.equals(self.current, again)
        else:
            agrees = True
        assert agrees, f"{self!r} holds {self.current!r}, but its parents now give {again!r}"
        return 0


cdef class Leaf(Cell):
    """A value set from outside."""

    cdef object pending  # set, but not stabilized yet

    def __init__(self, Graph graph not None, value, cutoff=None, name=None, serializer=None):
        self.pending = value
        self.configure(cutoff, name, serializer)
        self.enter(graph, [])

    def set(self, value):
        """Give the value that the next stabilize propagates."""
        cdef Graph graph = self.graph
        if graph is None or graph.busy():
            self.refuse_set()
        self.pending = value
        graph.mark_dirty(self)

    cdef int refuse_set(self) except -1:
        if self.graph is None:
            raise GraphError(f"{self!r} cannot be set any more")
        return self.graph.refuse_while_busy(f"set {self!r}")

    cdef bint recompute(self) except -1:
        cdef bint changed = self.publish(self.pending)
        self.pending = UNSET
        return changed

    cdef int removed(self) except -1:
        self.pending = UNSET
        return 0

    cpdef str kind(self):
        return "leaf"


cdef class Map(Cell):
    """``function`` of one parent's value."""

    cdef object function

    def __init__(self, Graph graph not None, Cell parent not None, function, cutoff=None, name=None, serializer=None):
        self.function = function
        self.configure(cutoff, name, serializer)
        self.enter(graph, [parent])

    cdef bint recompute(self) except -1:
        return self.publish(self.function((<Cell>self.parents[0]).current))

    cdef int removed(self) except -1:
        self.function = None
        return 0

    cpdef str kind(self):
        return "map"

    cpdef object check(self):
        self.agree(self.function((<Cell>self.parents[0]).current))


cdef class Map2(Cell):
    """``function`` of two parents' values."""

    cdef object function

    def __init__(
        self, Graph graph not None, Cell first not None, Cell second not None, function,
        cutoff=None, name=None, serializer=None,
    ):
        self.function = function
        self.configure(cutoff, name, serializer)
        self.enter(graph, [first, second])

    cdef object compute(self):
        return self.function((<Cell>self.parents[0]).current, (<Cell>self.parents[1]).current)

    cdef bint recompute(self) except -1:
        return self.publish(self.compute())

    cdef int removed(self) except -1:
        self.function = None
        return 0

    cpdef str kind(self):
        return "map2"

    cpdef object check(self):
        self.agree(self.compute())


cdef class Variadic(Cell):
    """A cell of any number of parents, which may come and go between stabilizations."""

    def add_parent(self, parent):
        """Let ``parent``, as the last one, take part from the next stabilize on.

        Raises GraphError if that would close a cycle.
        """
        self.refuse_change("add a parent to")
        need_cell(parent)
        self.graph.link(self, parent)
        self.gained(parent)
        self.graph.mark_dirty(self)

    def remove_parent(self, parent):
        """Let ``parent`` take no part from the next stabilize on; it stays in the graph."""
        self.refuse_change("remove a parent from")
        need_cell(parent)
        if self not in parent.dependents:
            raise GraphError(f"{parent!r} is not a parent of {self!r}")
        self.graph.unlink(self, parent)
        self.lost(parent)
        self.graph.mark_dirty(self)

    cdef int refuse_change(self, str what) except -1:
        if self.graph is None:
            raise GraphError(f"{self!r} has no parents any more")
        return self.graph.refuse_while_busy(f"{what} {self!r}")

    cdef int gained(self, Cell parent) except -1:
        return 0

    cdef int lost(self, Cell parent) except -1:
        return 0

    cdef object compute(self):
        raise NotImplementedError

    cdef bint recompute(self) except -1:
        return self.publish(self.compute())

    cdef int removed(self) except -1:
        self.function = None
        return 0

    cpdef object check(self):
        self.agree(self.compute())


cdef class MapN(Variadic):
    """``function(*values)`` of the parents' values, in order."""

    def __init__(self, Graph graph not None, parents, function, cutoff=None, name=None, serializer=None):
        self.function = function
        self.configure(cutoff, name, serializer)
        self.enter(graph, cells(parents))

    cdef object compute(self):
        cdef Cell parent
        return self.function(*[parent.current for parent in self.parents])

    cpdef str kind(self):
        return "map_n"


cdef class Fold(Variadic):
    """``function(... function(init, v0) ..., vn)`` over all parents at every change: O(parents)."""

    cdef object init

    def __init__(
        self, Graph graph not None, parents, init, function, cutoff=None, name=None, serializer=None
    ):
        self.init = init
        self.function = function
        self.configure(cutoff, name, serializer)
        self.enter(graph, cells(parents))

    cdef object compute(self):
        cdef Cell parent
        total = self.init
        for parent in self.parents:
            total = self.function(total, parent.current)
        return total

    cpdef str kind(self):
        return "fold"


cdef class IncrFold(Variadic):
    """A fold that applies ``remove(total, old)``, ``add(total, new)`` for changed parents only.

    ``total`` is kept apart from the value, which a cutoff may hold back. ``pending`` has, for
    each parent that changed since ``total`` was brought up to date, the value that is still
    in ``total`` (UNSET: none), so no copy of all parents' values is needed.
    """

    cdef object init, remove, total
    cdef dict pending
    cdef list lost_values
    cdef bint approximate

    def __init__(
        self, Graph graph not None, parents, init, add, remove, approximate=False,
        cutoff=None, name=None, serializer=None,
    ):
        cdef Cell parent
        parents = cells(parents)
        self.init = self.total = init
        self.function = add
        self.remove = remove
        self.approximate = approximate
        self.lost_values = []
        self.pending = dict.fromkeys(parents, UNSET)
        if len(self.pending) != len(parents):
            raise GraphError("incr_fold takes each parent once; for twice, map it to a second cell")
        self.configure(cutoff, name, serializer)
        self.enter(graph, parents)

    cdef int parent_changed(self, Node parent) except -1:
        if parent not in self.pending:
            self.pending[parent] = (<Cell>parent).previous
        return 0

    cdef int gained(self, Cell parent) except -1:
        self.pending[parent] = UNSET
        return 0

    cdef int lost(self, Cell parent) except -1:
        old = self.pending.pop(parent, parent.current)
        if old is not UNSET:
            self.lost_values.append(old)
        return 0

    cdef bint recompute(self) except -1:
        total = self.total
        for old in self.lost_values:
            total = self.remove(total, old)
        for parent, old in self.pending.items():
            if old is not UNSET:
                total = self.remove(total, old)
            total = self.function(total, (<Cell>parent).current)
        self.total = total
        self.pending.clear()
        if self.lost_values:
            self.lost_values = []
        return self.publish(total)

    cdef int removed(self) except -1:
        self.function = self.remove = None
        self.lost_values.clear()
        self.pending.clear()
        return 0

    def add_parent(self, parent):
        """Let ``parent`` take part from the next stabilize on; raises GraphError if it does."""
        need_cell(parent)
        if self in parent.dependents:
            raise GraphError(f"{parent!r} is already a parent of {self!r}")
        Variadic.add_parent(self, parent)

    cpdef str kind(self):
        return "incr_fold"

    cpdef object check(self):
        """Compare with a fold from the start; not if ``approximate``: remove need not be exact."""
        cdef Cell parent
        if self.approximate:
            return
        total = self.init
        for parent in self.parents:
            total = self.function(total, parent.current)
        self.agree(total)


cdef list cells(parents):
    cdef list found = list(parents)
    for parent in found:
        need_cell(parent)
    return found


cdef int need_cell(object parent) except -1:
    if not isinstance(parent, Cell):
        raise GraphError(f"a parent must be a cell, not {shown(parent)}")
    return 0
