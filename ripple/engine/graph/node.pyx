# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The graph core: nodes, their edges, and stabilization in height order.

Users build graphs with :class:`ripple.notebook.graph.Graph`; kinds of nodes subclass :class:`Node`
in Cython, or :class:`PyNode` in Python. A graph belongs to one thread.

Invariants, as code in ``ripple.engine.graph.invariants`` and checked by ``Graph.check_invariants``:
    node.height > parent.height, for every parent          edges go upward, so no cycles
    node.height > node.scope.owner.height                   a bind runs before what it made
    node in owner.inside() <=> node.scope.owner is owner    and knows what to remove
    parent in node.parents <=> node in parent.dependents    the latter without repetition
    node.dirty <=> node is in the heap
    no node is dirty after stabilize returned
    a node that is not dirty holds what it would compute from its parents' present values
    graph.nodes[node.id] is node; nothing refers to a removed node
"""

from ripple.engine.graph.heap cimport would_pop

from heapq import heapify, heappop, heappush

from ripple.core.arguments import need_function, shown
from ripple.core.errors import GraphError, NodeError
from ripple.engine.graph import heights, invariants


cdef class Scope:
    """What one run of a bind's function made: removed together, when it runs again."""

    def __cinit__(self, Node owner not None, Scope outer):
        self.owner = owner
        self.outer = outer
        self.members = {}
        self.depth = 1 if outer is None else outer.depth + 1


cdef class Node(Ranked):
    """One vertex: values come in from ``parents`` and go on to ``dependents``."""

    def __cinit__(self):
        self.parents = []
        self.dependents = []

    cdef bint recompute(self) except -1:
        """Bring the value up to date from the parents' values; return whether it changed.

        On an exception nothing may have changed: the next stabilize calls again.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define recompute")

    cdef int parent_changed(self, Node parent) except -1:
        """Called once per stabilize by each parent that changed, before ``recompute``.

        The parent's change can only be read now: note the part that ``recompute`` needs, and
        keep the note until ``recompute`` succeeds, which may be in a later stabilize.
        """
        return 0

    cdef bint straight(self) except -1:
        """Recompute the only dirty node, and its dependents as far as each has one.

        Otherwise return False, with nothing done: then ``recompute`` is called.
        """
        return False

    cdef bint row_changed(self, int64_t slot, int64_t was, int64_t now) except -1:
        """Follow the only change of the only parent, a row's only value from its bits to others.

        As ``straight``: False, with nothing done, where it is not the only one.
        """
        return False

    cdef void settled(self) noexcept:
        """Called at the end of a stabilize in which this node changed: forget the old value."""

    cdef int removed(self) except -1:
        """Called once, when the node has lost its edges and its id: release its memory."""
        return 0

    cdef object value_before(self):
        """Return, between a change and ``settled``, the value before it."""
        return None

    cdef object value_now(self):
        """Return the value, for the list of changed outputs."""
        return None

    cpdef str kind(self):
        """Return one word: ``leaf``, ``map``, ``fold``..."""
        return type(self).__name__.lower()

    cpdef object value_sexp(self):
        """Return the value as an S-expression, or None if it has no such form."""
        return None

    cpdef object check(self):
        """Raise AssertionError if the value is not what it would be if computed afresh."""

    cpdef object inside(self):
        """Return the nodes that this node made and will remove: a bind's."""
        return ()

    @property
    def dirty(self):
        """Whether the next stabilize will recompute this node: it is in the heap."""
        return self.position >= 0

    def observe(self, callback):
        """Call ``callback(change)`` after each stabilize that changed the value.

        Makes the node an output. Returns a function that ends the calls; the node stays an
        output. Callbacks may set leaves but not stabilize.
        """
        if self.graph is None:
            raise GraphError(f"{self!r} was removed from its graph; it will not change any more")
        need_function("observe: callback", callback, GraphError)
        cdef dict observers = self.graph.observers
        self.is_output = True
        observers.setdefault(self, []).append(callback)

        def stop():
            callbacks = observers.get(self, ())
            if callback in callbacks:
                callbacks.remove(callback)
                if not callbacks:
                    del observers[self]

        return stop

    def __repr__(self):
        label = "" if self.name is None else f" {self.name!r}"
        return f"<{self.kind()}{label} {'removed' if self.graph is None else f'id {self.id}'}>"


cdef class PyNode(Node):
    """A node written in Python: subclass it and define ``recompute_now(self) -> bool``."""

    def __init__(self, Graph graph not None, parents=(), name=None):
        self.name = name
        graph.attach(self, list(parents))
        graph.mark_dirty(self)

    cdef bint recompute(self) except -1:
        return self.recompute_now()

    def recompute_now(self):
        """Bring the value up to date; return whether it changed."""
        raise NotImplementedError(f"{type(self).__name__} does not define recompute_now")

    def set_dirty(self):
        """Have the next stabilize recompute this node, for nodes fed from outside."""
        if self.graph is None:
            raise GraphError(f"{self!r} was removed from its graph")
        self.graph.refuse_while_busy(f"make {self!r} dirty")
        self.graph.mark_dirty(self)


cdef class Change:
    """An output's value before (None the first time) and after a stabilize."""

    def __repr__(self):
        return f"Change({self.node!r}, old={self.old!r}, new={self.new!r})"


cdef class Graph:
    """Nodes, the heap of dirty ones, and :meth:`stabilize`.

    ``now`` returns nanoseconds as an int; it times stabilizations and is never seen by nodes.
    ``last_recompute_count`` is the number of nodes that took a new value in the last stabilize,
    ``last_cutoff_count`` of those that were recomputed to the value they had,
    ``last_stabilization_ns`` its duration; 0 without a clock.
    """

    def __init__(self, now=None):
        if now is not None:
            need_function("Graph: now", now, GraphError)
        self.now = now
        self.nodes = []
        self.free_ids = []
        self.heap = Heap()
        self.observers = {}
        self.unreported = {}

    def stabilize(self):
        """Recompute the nodes that changes since the last call reach; return the changed outputs.

        Returns one :class:`Change` for each output with another value, in (height, id) order.
        Raises NodeError when a node's function raised: values before stay readable, the node
        stays dirty and the next call retries it; changes found so far are returned then.
        """
        if self.phase != IDLE:
            raise GraphError("stabilize was called by a node's function or by an observer")
        self.last_recompute_count = self.last_cutoff_count = 0
        if self.heap.size == 0 and not self.unreported:
            self.last_stabilization_ns = 0
            return ()
        cdef int64_t started_ns = 0 if self.now is None else self.now()
        self.phase = STABILIZING
        try:
            if self.heap.size == 1 and (<Node>self.heap.items[0].owner).may_go_straight:
                self.go_straight(<Node>self.heap.items[0].owner)
            if self.heap.size:
                self.propagate()
        finally:
            if self.first_changed is not None:
                self.settle()
            self.phase = IDLE
            self.last_stabilization_ns = 0 if self.now is None else self.now() - started_ns
        return self.report() if self.unreported else ()

    cdef int go_straight(self, Node node) except -1:
        """Recompute the only dirty node and its line of dependents, or leave it dirty."""
        cdef bint gone = False
        self.heap.size, node.position = 0, -1
        try:
            gone = node.straight()
        finally:
            if not gone:
                self.mark_dirty(node)
        return 0

    cdef int propagate(self) except -1:
        """Recompute dirty nodes, lowest first, until there are none."""
        cdef Node node = None
        try:
            while self.heap.size:
                node = <Node>self.heap.pop()
                while node is not None:
                    if node.recompute():
                        node = self.mark_changed(node)
                    else:
                        node.count_cutoff()
                        node = None
        except BaseException as error:
            self.mark_dirty(node)
            if not isinstance(error, Exception):
                raise
            raise NodeError(
                f"the function of {node!r} raised {type(error).__name__}: {error}"
            ) from error
        return 0

    cdef Node mark_changed(self, Node node):
        """Note that ``node`` changed, and make its dependents dirty.

        Returns the dependent to recompute next, which needs no place in the heap then, or None.
        """
        cdef Node dependent
        cdef list dependents = node.dependents
        node.count_change()
        node.next_changed = self.first_changed
        self.first_changed = node
        if node.is_output and node not in self.unreported:
            self.unreported[node] = node.value_before()
        if len(dependents) == 1:
            dependent = <Node>dependents[0]
            dependent.parent_changed(node)
            if dependent.position >= 0:
                return None
            if would_pop(self.heap, dependent):
                return dependent
            self.heap.push(dependent)
            return None
        for dependent in dependents:
            dependent.parent_changed(node)
            self.mark_dirty(dependent)
        return None

    cdef int compute_apart(self, list made) except -1:
        """Compute new nodes, the last of which depends on all, and the nodes that their functions make.

        Dirty nodes stay so. Raises NodeError, with the new nodes out of the graph again, when a
        function fails.
        """
        cdef Heap waiting = self.heap
        cdef Phase phase = self.phase
        cdef Node node = None, dependent
        cdef list computed = []
        self.heap = Heap()
        self.heap.reserve(self.node_count)
        self.phase = STABILIZING
        try:
            for node in made:
                self.mark_dirty(node)
            while self.heap.size:
                node = <Node>self.heap.pop()
                if node.recompute():
                    computed.append(node)
                    for dependent in node.dependents:
                        dependent.parent_changed(node)
                        self.mark_dirty(dependent)
        except BaseException as error:
            text = f"the function of the new {node!r} raised {type(error).__name__}: {error}"
            self.detach(made[len(made) - 1])
            if not isinstance(error, Exception):
                raise
            raise NodeError(text) from error
        finally:
            self.heap = waiting
            self.heap.reserve(self.node_count)
            self.phase = phase
        for node in computed:
            node.settled()
        return 0

    cdef void settle(self) noexcept:
        """Tell the nodes that changed that it is over."""
        cdef Node node = self.first_changed
        while node is not None:
            node.settled()
            self.first_changed = node.next_changed
            node.next_changed = None
            node = self.first_changed

    cdef tuple report(self):
        """Return the changes of outputs since the last report, after telling observers."""
        cdef Change change
        cdef list changes = []
        for node, old in self.unreported.items():
            change = Change.__new__(Change)
            change.node = node
            change.old = old
            change.new = change.node.value_now()
            changes.append(change)
        self.unreported.clear()
        if self.observers:
            self.notify(changes)
        return tuple(changes)

    cdef int notify(self, list changes) except -1:
        """Call all observers; then raise for the first one that failed."""
        failed = None
        self.phase = OBSERVING
        for change in changes:
            for callback in tuple(self.observers.get(change.node, ())):
                try:
                    callback(change)
                except Exception as error:
                    failed = failed or (change.node, error)
                except BaseException:
                    self.phase = IDLE
                    raise
        self.phase = IDLE
        if failed is not None:
            node, error = failed
            raise NodeError(
                f"an observer of {node!r} raised {type(error).__name__}: {error}; "
                "the graph is up to date and the other observers were told"
            ) from error
        return 0

    # Nodes and edges

    cdef int attach(self, Node node, list parents) except -1:
        """Give ``node`` an id, edges from ``parents``, and a height above them."""
        cdef Node parent
        if node.graph is not None:
            raise GraphError(f"{node!r} is already in a graph")
        if self.busy() and self.scope is None:
            raise GraphError("a node's function made a node; only a bind's function may do that")
        for parent in parents:
            self.refuse_parent(self.scope, parent)
        self.give_id(node)
        node.graph = self
        node.scope = self.scope
        node.height = 0
        if self.scope is not None:
            self.scope.members[node] = None
            node.height = self.scope.owner.height + 1
        for parent in parents:
            node.height = max(node.height, parent.height + 1)
        for parent in parents:
            self.link(node, parent)
        return 0

    cdef int detach(self, Node node) except -1:
        """Take ``node``, which has no dependents, out of the graph. Again: nothing."""
        if node.graph is None:
            return 0
        assert not node.dependents, f"{node!r} still has dependents"
        if node.position >= 0:
            self.heap.remove(node)
        while node.parents:
            self.unlink(node, node.parents[len(node.parents) - 1])
        if node.scope is not None:
            del node.scope.members[node]
            node.scope = None
        self.observers.pop(node, None)
        self.unreported.pop(node, None)
        self.take_id(node)
        node.removed()
        node.graph = None
        return 0

    def remove(self, node, cascade=False):
        """Remove ``node``; its id is used again and its memory freed.

        Raises GraphError when other nodes depend on it, unless ``cascade``: then they go too.
        """
        self.refuse_while_busy(f"remove {shown(node)}")
        if not isinstance(node, Node) or (<Node>node).graph is not self:
            raise GraphError(f"{shown(node)} is not in this graph")
        if node.dependents and not cascade:
            raise GraphError(
                f"{node!r} cannot be removed: {named(node.dependents)} depend on it; "
                "remove them first, or pass cascade=True"
            )
        for upper in heights.downstream(node):
            self.detach(upper)
        self.detach(node)

    cdef int link(self, Node node, Node parent, bint across_scopes=False) except -1:
        """Make ``node`` depend on ``parent``, raising heights; refuses cycles."""
        if not across_scopes:
            self.refuse_parent(node.scope, parent)
        if node.height <= parent.height:
            self.lift(node, parent)
        if not linked(node, parent):
            parent.dependents.append(node)
        node.parents.append(parent)
        return 0

    cdef int unlink(self, Node node, Node parent) except -1:
        """Undo one ``link``. Heights stay: they need only be high enough."""
        del node.parents[last_index(node.parents, parent)]
        if not (node.parents and last_index(node.parents, parent) >= 0):
            del parent.dependents[last_index(parent.dependents, node)]
        return 0

    cdef int lift(self, Node node, Node parent) except -1:
        cdef Node upper
        if node is parent:
            raise GraphError(f"{node!r} cannot depend on itself")
        for upper, height in heights.raised(node, parent).items():
            upper.height = height
            if upper.position >= 0:
                self.heap.rerank(upper)
        return 0

    # Scopes: what a bind's function makes belongs to that run of it

    cdef Scope enter(self, Node owner):
        """Begin a scope within that of ``owner``: nodes attached from now on are its members."""
        self.scope = Scope(owner, owner.scope)
        return self.scope

    cdef int discard(self, Scope scope) except -1:
        """Remove the members of ``scope``, and what these made, dependents first."""
        cdef Node node
        cdef list found = list(scope.members)
        if self.discarding:
            return 0
        for node in found:  # which grows: scopes within scopes are no calls within calls
            found.extend(node.inside())
        self.discarding = True
        try:
            for node in sorted(found, key=lambda member: member.height, reverse=True):
                self.detach(node)
        finally:
            self.discarding = False
        return 0

    cdef int refuse_parent(self, Scope scope, Node parent) except -1:
        """Refuse an edge to a node of another graph, or out of a scope that will be discarded."""
        if parent is None or parent.graph is not self:
            raise GraphError(f"{parent!r} cannot be a parent: it is not in this graph")
        while scope is not None and scope is not parent.scope:
            scope = scope.outer
        if scope is not parent.scope:
            raise GraphError(
                f"{parent!r} was made by the function of {parent.scope.owner!r} and goes when that "
                "runs again: only nodes made in the same run, and the bind itself, may depend on it"
            )
        return 0

    cdef int refuse_while_busy(self, str what) except -1:
        if self.busy():
            raise GraphError(
                f"a node's function tried to {what}: functions only compute, from their arguments"
            )
        return 0

    # Ids: the lowest free one is used, so that a graph of the same shape takes the same space

    cdef int give_id(self, Node node) except -1:
        node.id = heappop(self.free_ids) if self.free_ids else len(self.nodes)
        if node.id >= len(self.nodes):
            node.id = len(self.nodes)
            self.nodes.append(None)
        self.nodes[node.id] = node
        self.node_count += 1
        self.heap.reserve(self.node_count)
        return 0

    cdef int take_id(self, Node node) except -1:
        self.nodes[node.id] = None
        self.node_count -= 1
        heappush(self.free_ids, node.id)
        while self.nodes and self.nodes[len(self.nodes) - 1] is None:
            self.nodes.pop()
        if len(self.free_ids) > 2 * (len(self.nodes) - self.node_count) + 8:
            self.free_ids = [i for i in self.free_ids if i < len(self.nodes)]
            heapify(self.free_ids)
        self.heap.reserve(self.node_count)
        return 0

    # Looking at the graph

    def output(self, node):
        """Make ``node`` an output: :meth:`stabilize` returns its changes. Returns the node."""
        if not isinstance(node, Node) or (<Node>node).graph is not self:
            raise GraphError(f"{shown(node)} is not in this graph")
        node.is_output = True
        return node

    def dirty_nodes(self):
        """Return the nodes that the next stabilize begins with, in (height, id) order."""
        return sorted(self.heap.members(), key=lambda node: (node.height, node.id))

    def check_invariants(self):
        """Raise AssertionError naming the invariant and the node, if one does not hold.

        Calls the functions of all nodes, so it costs a full recomputation.
        """
        self.refuse_while_busy("check the invariants")
        cdef Phase phase = self.phase
        self.phase = COMPUTING
        try:
            invariants.check(self)
        finally:
            self.phase = phase

    def __len__(self):
        return self.node_count

    def __repr__(self):
        return f"<graph of {self.node_count} nodes, {self.heap.size} dirty>"


cdef Py_ssize_t last_index(list nodes, Node node) noexcept:
    """Return the last place of ``node`` by identity, or -1; recent edges go first."""
    cdef Py_ssize_t i = len(nodes) - 1
    while i >= 0 and <Node>nodes[i] is not node:
        i -= 1
    return i


cdef bint linked(Node node, Node parent) noexcept:
    """Return whether the edge exists, looking along the shorter of its two lists."""
    if len(node.parents) < len(parent.dependents):
        return last_index(node.parents, parent) >= 0
    return last_index(parent.dependents, node) >= 0


cdef str named(list nodes):
    text = ", ".join(repr(node) for node in nodes[:5])
    return text if len(nodes) <= 5 else f"{text} and {len(nodes) - 5} more"
