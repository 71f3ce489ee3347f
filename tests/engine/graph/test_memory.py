"""Removal frees nodes, ids, heap places and memory."""

from __future__ import annotations

import gc
import operator
import tracemalloc
import weakref

import pytest

from ripple.notebook.graph import Graph


def _static(g):
    leaf = g.leaf(0)
    return leaf, g.incr_fold([leaf], 0, operator.add, operator.sub)


def _churn_removed(g, leaf, total, count):
    made = []
    for i in range(count // 2):
        cell = g.leaf(i)
        made.append((cell, g.map(cell, lambda v: v + 1)))
        total.add_parent(made[-1][1])
    g.stabilize()
    for cell, _ in made:
        cell.set(1)
    for cell, above in made:
        total.remove_parent(above)
        g.remove(cell, cascade=True)
    g.stabilize()


def _churn_bound(g, leaf, total, count):
    which = g.leaf(0)

    def chain(length):
        top = which
        for _ in range(length):
            top = g.map(top, lambda v: v + 1)
        return top

    bound = g.bind(which, chain)
    for length in (count // 2, 3, count // 2, 0):
        which.set(length)
        g.stabilize()
    g.remove(bound)
    g.remove(which)


@pytest.mark.parametrize("churn", [_churn_removed, _churn_bound])
def test_ten_thousand_nodes_that_came_and_went_leave_nothing(churn):
    """With the cyclic collector off: removal must break its own reference cycles."""
    g = Graph()
    leaf, total = _static(g)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        churn(g, leaf, total, 10_000)  # fills the interpreter's own free lists
        before = tracemalloc.get_traced_memory()[0]
        churn(g, leaf, total, 10_000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    assert grown < 2_000, f"{grown} bytes were kept"
    assert (len(g), len(g.nodes), g.heap.size) == (2, 2, 0)
    assert g.heap.capacity <= 256, "four times the smallest"
    assert total.value == 0
    g.check_invariants()


def test_old_values_are_not_kept(g):
    class Value:
        alive = 0

        def __init__(self):
            Value.alive += 1

        def __del__(self):
            Value.alive -= 1

    leaf = g.leaf(Value())
    g.output(g.map(leaf, lambda v: v))
    for _ in range(3):
        leaf.set(Value())
        Graph.stabilize(g)
        assert Value.alive == 1


def test_a_very_deep_graph_is_built_stabilized_and_dropped():
    g = Graph()
    leaf = top = g.leaf(0)
    for _ in range(100_000):
        top = g.map(top, lambda v: v + 1)
    leaf.set(1)
    g.stabilize()
    assert (top.value, g.last_recompute_count) == (100_001, 100_001)
    g.remove(leaf, cascade=True)
    assert len(g) == 0


def test_a_deep_graph_that_is_forgotten_is_collected():
    def first(value):
        return value + 1

    held = weakref.ref(first)
    g = Graph()
    top = g.map(g.leaf(0), first)
    for _ in range(100_000):
        top = g.map(top, lambda v: v + 1)
    del first, g, top
    gc.collect()
    assert held() is None
