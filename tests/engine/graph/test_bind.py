"""Bind: a graph that re-wires itself on a value."""

from __future__ import annotations

import math

import pytest

from ripple.core.errors import GraphError, NodeError
from ripple.engine.graph.bind import BIND_DEPTH_MAX
from ripple.notebook.graph import Graph


def test_bind_switches_between_existing_cells(g):
    which, a, b = g.leaf("a"), g.leaf(1), g.leaf(2)
    shown = g.output(g.bind(which, lambda name: {"a": a, "b": b}[name]))
    assert shown.value == 1
    b.set(20)
    assert g.stabilize() == ()
    which.set("b")
    (change,) = g.stabilize()
    assert (change.old, change.new, shown.value) == (1, 20, 20)
    a.set(5)
    g.stabilize()
    assert g.last_recompute_count == 1, "only the leaf: nothing depends on it now"


def test_bind_drops_what_it_made_when_it_runs_again(g):
    size, x = g.leaf(3), g.leaf(1)

    def chain(length):
        top = x
        for _ in range(length):
            top = g.map(top, lambda v: v + 1)
        return top

    shown = g.bind(size, chain)
    assert (shown.value, len(g)) == (4, 7)
    for length in (10, 0, 1000, 1):
        size.set(length)
        x.set(length)
        g.stabilize()
        assert (shown.value, len(g)) == (2 * length, 4 + length)
    g.remove(shown)
    assert len(g) == 2


def test_bind_may_choose_a_cell_higher_than_itself(g):
    x, deep = g.leaf(1), g.leaf(False)
    high = x
    for _ in range(20):
        high = g.map(high, lambda v: v + 1)
    shown = g.bind(deep, lambda yes: high if yes else x)
    above = g.map(shown, lambda v: -v)
    deep.set(True)
    x.set(100)
    g.stabilize()
    assert (shown.value, above.value) == (120, -120)
    assert above.height > shown.height > high.height


def test_nodes_made_by_a_bind_never_run_on_another_value(g):
    """The square root is made for positive values only, and is gone before a negative one."""
    x = g.leaf(4.0)
    positive = g.map(x, lambda v: v >= 0)
    root = g.bind(positive, lambda yes: g.map(x, math.sqrt) if yes else g.map(x, lambda v: -1.0))
    x.set(-4.0)
    Graph.stabilize(g)
    assert root.value == -1.0
    x.set(9.0)
    g.stabilize()
    assert root.value == 3.0


def test_cells_made_while_stabilizing_wait_for_their_turn(g):
    """``far`` is high and stale when the bind runs: what is made on it must not see that value."""
    x, on = g.leaf(1.0), g.leaf(False)
    far = x
    for _ in range(5):
        far = g.map(far, lambda v: v)
    seen = []
    shown = g.bind(on, lambda yes: g.map(far, lambda v: seen.append(v) or v) if yes else x)
    on.set(True)
    x.set(2.0)
    Graph.stabilize(g)
    assert (seen, shown.value) == ([2.0], 2.0)


def test_binds_nest(g):
    outer, inner, x = g.leaf(1), g.leaf(1), g.leaf(1)

    def make(a):
        return g.bind(inner, lambda b: g.map(x, lambda v: v * 100 + a * 10 + b))

    shown = g.bind(outer, make)
    assert (shown.value, len(g)) == (111, 8)
    for cell, value, expected in ((inner, 2, 112), (outer, 3, 132), (x, 4, 432), (inner, 5, 435)):
        cell.set(value)
        g.stabilize()
        assert (shown.value, len(g)) == (expected, 8)
    g.remove(inner, cascade=True)
    assert len(g) == 2


def test_a_function_that_raises_keeps_what_was_chosen(g):
    x, which = g.leaf(1), g.leaf(1)

    def make(value):
        made = g.map(x, lambda v: v + value)
        if value == 0:
            raise ValueError("no such cell")
        return made

    shown = g.bind(which, make, name="shown")
    nodes = len(g)
    which.set(0)
    with pytest.raises(NodeError, match="<bind_input 'shown' id 2> raised ValueError: no such"):
        g.stabilize()
    assert (shown.value, len(g)) == (2, nodes)
    which.set(2)
    x.set(5)
    g.stabilize()
    assert (shown.value, len(g)) == (7, nodes)


def test_a_function_that_returns_no_cell_keeps_what_was_chosen(g):
    x, which = g.leaf(1), g.leaf(1)
    shown = g.bind(which, lambda value: g.map(x, abs) and value and g.map(x, lambda v: v + value))
    nodes = len(g)
    which.set(0)
    with pytest.raises(NodeError, match="must return a cell, not int"):
        g.stabilize()
    assert (shown.value, len(g)) == (2, nodes)
    which.set(2)
    g.stabilize()
    assert (shown.value, len(g)) == (3, nodes)


def test_a_made_cell_that_raises_is_retried_and_then_dropped(g):
    x, which = g.leaf(0), g.leaf("identity")
    functions = {"identity": lambda v: v, "inverse": lambda v: 1 / v}
    shown = g.bind(which, lambda name: g.map(x, functions[name]))
    above = g.map(shown, lambda v: v)
    which.set("inverse")
    with pytest.raises(NodeError, match="ZeroDivisionError"):
        g.stabilize()
    late = g.map(shown, lambda v: v + 1)
    assert (shown.value, above.value, late.value) == (0, 0, 1)
    which.set("identity")
    g.stabilize()
    assert (shown.value, above.value) == (0, 0)
    which.set("inverse")
    x.set(4)
    g.stabilize()
    assert (above.value, late.value) == (0.25, 1.25)


def test_a_failed_construction_leaves_no_trace(g):
    x = g.leaf(0)
    for function in (lambda v: g.map(x, lambda v: 1 / v), lambda v: g.map(x, abs) and 7):
        with pytest.raises(NodeError):
            g.bind(x, function)
        assert len(g) == 1


def test_cells_made_in_a_bind_are_refused_outside(g):
    x, which = g.leaf(1), g.leaf(1)
    kept = []
    shown = g.bind(which, lambda v: kept.append(g.map(x, abs)) or kept[0])
    with pytest.raises(GraphError, match=r"was made by the function of <bind_input id 2>"):
        g.map(kept[0], abs)
    total = g.map_n([x], lambda *values: max(values))
    with pytest.raises(GraphError, match="was made by the function"):
        total.add_parent(kept[0])
    which.set(2)
    with pytest.raises(NodeError, match="was made by the function"):
        g.stabilize()
    assert shown.value == 1
    kept.clear()
    g.stabilize()


def test_a_bind_that_would_depend_on_itself_is_refused(g):
    which, x = g.leaf(False), g.leaf(1)
    shown = g.bind(which, lambda yes: above if yes else x)
    above = g.map(shown, lambda v: v + 1)
    which.set(True)
    with pytest.raises(NodeError, match="would close a cycle"):
        g.stabilize()
    which.set(False)
    g.stabilize()
    assert above.value == 2


def test_a_bound_output_that_is_dropped_is_not_reported(g):
    which, x = g.leaf(1), g.leaf(1)
    g.bind(which, lambda v: g.output(g.map(x, lambda value: value * v)))
    which.set(2)
    x.set(2)
    (change,) = g.stabilize()
    assert (change.old, change.new) == (None, 4), "the new cell's first value"


@pytest.mark.parametrize("at_once", [True, False])
def test_binds_nest_a_thousand_deep(g, at_once):
    """Made at once or by a later stabilize; and all of it goes again."""
    on, x = g.leaf(at_once), g.leaf(1)

    def nest(levels):
        return x if levels == 0 else g.bind(x, lambda _: nest(levels - 1))

    shown = g.bind(on, lambda yes: nest(BIND_DEPTH_MAX - 1) if yes else x)
    on.set(True)
    Graph.stabilize(g)
    assert len(g) == 2 + 2 * BIND_DEPTH_MAX
    x.set(2)
    Graph.stabilize(g)
    assert shown.value == 2
    on.set(False)
    Graph.stabilize(g)
    assert (shown.value, len(g)) == (2, 4)


def test_binds_without_end_are_one_error_that_names_the_limit(g):
    on, x = g.leaf(False), g.leaf(1)

    def forever(_):
        return g.bind(x, forever)

    with pytest.raises(NodeError, match="BIND_DEPTH_MAX") as caught:
        forever(None)
    assert len(str(caught.value)) < 300
    assert len(g) == 2
    shown = g.bind(on, lambda yes: g.bind(x, forever) if yes else x)
    on.set(True)
    with pytest.raises(NodeError, match="BIND_DEPTH_MAX"):
        Graph.stabilize(g)
    on.set(False)
    g.stabilize()
    assert (shown.value, len(g)) == (1, 4)


def test_nodes_made_by_a_bind_wait_for_their_turn_from_the_first_run_on(g):
    x = g.leaf(1)

    def made(_):
        inner = g.map(x, lambda v: v + 1)
        with pytest.raises(GraphError, match="has no value before"):
            _ = inner.value
        return inner

    assert g.bind(x, made).value == 2


def test_a_new_bind_leaves_to_the_stabilize_what_waits_for_it(g):
    x, total = g.leaf(1), []
    doubled = g.map(x, lambda v: total.append(v) or 2 * v)
    x.set(5)
    shown = g.output(g.bind(x, lambda v: g.map(doubled, lambda d: d + v)))
    assert (shown.value, total) == (3, [1])
    (change,) = Graph.stabilize(g)
    assert (change.old, change.new, total) == (3, 15, [1, 5])
    g.check_invariants()


def test_a_bind_made_by_a_bind_uses_what_was_made_beside_it(g):
    """The inner function runs later, in height order, but still belongs to the outer's run."""
    which, x = g.leaf(0), g.leaf(3)

    def make(offset):
        beside = g.map(x, lambda v: v + offset)
        return g.bind(which, lambda _: g.map(beside, lambda v: 2 * v))

    shown = g.bind(which, make)
    which.set(1)
    g.stabilize()
    assert shown.value == 8
