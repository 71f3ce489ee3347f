"""Functions that raise: the node is named, the graph stays usable, nothing is lost."""

from __future__ import annotations

import operator

import pytest

from ripple.core.errors import NodeError
from ripple.engine.graph.node import PyNode
from ripple.notebook.graph import Graph


def _inverse(value):
    return 1 / value


def test_a_raising_function_is_named_and_retried(g):
    leaf = g.leaf(2)
    low = g.map(leaf, lambda v: v + 1)
    top = g.map(leaf, _inverse, name="inverse")
    leaf.set(0)
    message = r"the function of <map 'inverse' id 2> raised ZeroDivisionError: division by zero"
    for _ in range(2):
        with pytest.raises(NodeError, match=message) as failure:
            g.stabilize()
        assert isinstance(failure.value.__cause__, ZeroDivisionError)
        assert (top.value, top.dirty) == (0.5, True)
    assert low.value == 1
    leaf.set(4)
    g.stabilize()
    assert (top.value, low.value) == (0.25, 5)


def test_a_failed_construction_leaves_no_trace(g):
    leaf = g.leaf(0)
    with pytest.raises(NodeError, match="the function of the new <map 'inverse' id 1>"):
        g.map(leaf, _inverse, name="inverse")
    assert (len(g), leaf.dependents) == (1, [])


def test_changes_found_before_a_failure_are_returned_later(g):
    leaf = g.leaf(2)
    low = g.output(g.map(leaf, lambda v: v + 1))
    g.map(leaf, _inverse)
    leaf.set(0)
    with pytest.raises(NodeError):
        g.stabilize()
    leaf.set(5)
    (change,) = g.stabilize()
    assert (change.node, change.old, change.new) == (low, 3, 6)


def test_an_output_removed_after_a_failure_is_not_returned(g):
    leaf = g.leaf(2)
    low = g.output(g.map(leaf, lambda v: v + 1))
    g.map(leaf, _inverse)
    leaf.set(0)
    with pytest.raises(NodeError):
        g.stabilize()
    g.remove(low)
    leaf.set(5)
    assert g.stabilize() == ()


def test_incr_fold_that_failed_half_way_applies_each_change_once(g):
    broken = True

    def add(total, value):
        if broken and value == 30:
            raise ValueError(value)
        return total + value

    leaves = [g.leaf(v) for v in (1, 2, 4)]
    total = g.incr_fold(leaves, 0, add, operator.sub)
    for leaf, value in zip(leaves, (10, 20, 30), strict=True):
        leaf.set(value)
    with pytest.raises(NodeError, match="incr_fold"):
        g.stabilize()
    leaves[0].set(11)
    total.remove_parent(leaves[1])
    with pytest.raises(NodeError, match="incr_fold"):
        g.stabilize()
    assert total.value == 7
    broken = False
    g.stabilize()
    assert total.value == 41


def test_a_raising_cutoff_is_retried(g):
    def equal(old, new):
        if new == 13:
            raise ValueError(new)
        return old == new

    leaf = g.leaf(1)
    total = g.incr_fold([leaf], 0, operator.add, operator.sub, equal=equal)
    leaf.set(13)
    with pytest.raises(NodeError, match="ValueError: 13"):
        g.stabilize()
    leaf.set(5)
    g.stabilize()
    assert total.value == 5


def test_an_interrupt_passes_through_and_the_node_is_retried(g):
    interrupt = False

    def function(value):
        if interrupt:
            raise KeyboardInterrupt
        return value

    leaf = g.leaf(1)
    top = g.map(leaf, function)
    leaf.set(2)
    interrupt = True
    with pytest.raises(KeyboardInterrupt):
        Graph.stabilize(g)
    interrupt = False
    g.stabilize()
    assert top.value == 2


def test_all_observers_are_told_although_one_raises(g):
    seen = []
    leaf = g.leaf(1)
    leaf.observe(lambda change: [][change.new])
    leaf.observe(lambda change: seen.append(change.new))
    leaf.set(2)
    with pytest.raises(NodeError, match="an observer of <leaf id 0> raised IndexError"):
        g.stabilize()
    assert seen == [2]
    leaf.set(3)
    with pytest.raises(NodeError):
        g.stabilize()
    assert seen == [2, 3]


class Queue(PyNode):
    """A node written in Python: takes what it was offered since the last stabilize."""

    def __init__(self, graph, name=None):
        self.offered, self.taken = [], []
        super().__init__(graph, name=name)

    def offer(self, item):
        self.offered.append(item)
        self.set_dirty()

    def recompute_now(self):
        self.taken = [1 // item for item in self.offered]
        return bool(self.taken)


def test_a_node_written_in_python_takes_part(g):
    queue = Queue(g, name="q")
    above = type("Above", (PyNode,), {"recompute_now": lambda self: True})(g, [queue])
    g.stabilize()
    queue.offer(1)
    g.stabilize()
    assert (queue.taken, above.recompute_count) == ([1], 2)
    queue.offer(0)
    with pytest.raises(NodeError, match="<queue 'q' id 0> raised ZeroDivisionError"):
        g.stabilize()
    queue.offered.clear()
    g.stabilize()
