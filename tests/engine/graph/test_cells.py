"""Cells: recomputation, cutoffs and errors."""

from __future__ import annotations

import math
import operator

import pytest

from ripple.core.errors import GraphError
from ripple.engine.graph.cell import Cell, same_bits
from ripple.engine.graph.cutoff import Cutoff
from ripple.notebook.graph import Graph


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *args):
        self.calls += 1
        return self.function(*args)


def test_price_changes_recomputes_three_nodes():
    g = Graph()
    price = g.leaf(100.0)
    volume = g.leaf(1000)
    doubled = g.map(price, lambda p: p * 2.0)
    notional = g.map2(price, volume, lambda p, v: p * v)
    g.stabilize()
    assert (doubled.value, notional.value) == (200.0, 100_000.0)
    price.set(150.0)
    g.stabilize()
    assert (doubled.value, notional.value) == (300.0, 150_000.0)
    assert g.last_recompute_count == 3


def test_stabilize_without_changes_recomputes_nothing(g):
    double = Counted(lambda v: 2 * v)
    leaf = g.leaf(1)
    g.map(leaf, double)
    leaf.set(2)
    Graph.stabilize(g)
    calls = double.calls
    assert Graph.stabilize(g) == ()
    assert (g.last_recompute_count, double.calls) == (0, calls)


def test_set_twice_before_stabilize_keeps_the_last(g):
    leaf = g.output(g.leaf(1))
    leaf.set(2)
    leaf.set(3)
    assert leaf.value == 1, "a value is that of the last stabilize"
    (change,) = g.stabilize()
    assert (change.node, change.old, change.new) == (leaf, 1, 3)


def test_diamond_runs_once_after_both_sides(g):
    leaf = g.leaf(1)
    pair = Counted(lambda a, b: (a, b))
    top = g.map2(g.map(leaf, lambda v: v + 1), g.map(g.map(leaf, lambda v: v), lambda v: -v), pair)
    leaf.set(5)
    pair.calls = 0
    Graph.stabilize(g)
    assert (top.value, pair.calls) == ((6, -5), 1)


def test_one_cell_as_both_parents_is_one_edge(g):
    leaf = g.leaf(3)
    square = g.map2(leaf, leaf, operator.mul)
    leaf.set(4)
    g.stabilize()
    assert (square.value, leaf.dependents) == (16, [square])


def test_map_n_takes_one_argument_a_parent_and_parents_change(g):
    a, b, c = (g.leaf(v) for v in (1, 2, 3))
    joined = g.map_n([a, b], lambda *values: values)
    joined.add_parent(c)
    assert joined.value == (1, 2)
    g.stabilize()
    assert joined.value == (1, 2, 3)
    joined.remove_parent(a)
    g.stabilize()
    assert joined.value == (2, 3)
    assert g.map_n([], lambda *values: len(values)).value == 0


def test_fold_of_two_thousand_folds_all_at_each_change(g):
    leaves = [g.leaf(float(i)) for i in range(200)]
    add = Counted(operator.add)
    total = g.fold(leaves, 0.0, add)
    leaves[7].set(100.0)
    add.calls = 0
    Graph.stabilize(g)
    assert (total.value, add.calls) == (math.fsum(range(200)) + 93.0, 200)


def test_incr_fold_touches_changed_parents_only(g):
    leaves = [g.leaf(float(i)) for i in range(200)]
    add, remove = Counted(operator.add), Counted(operator.sub)
    total = g.incr_fold(leaves, 0.0, add, remove)
    leaves[7].set(100.0)
    leaves[8].set(100.0)
    add.calls = 0
    Graph.stabilize(g)
    assert total.value == math.fsum(range(200)) + 93.0 + 92.0
    assert (add.calls, remove.calls) == (2, 2)


def test_incr_fold_parents_come_and_go(g):
    a, b, c = (g.leaf(v) for v in (1, 10, 100))
    total = g.incr_fold([a, b], 0, operator.add, operator.sub)
    total.add_parent(c)
    c.set(200)
    b.set(20)
    total.remove_parent(b)
    g.stabilize()
    assert total.value == 201
    total.remove_parent(a)
    total.add_parent(a)
    a.set(5)
    g.stabilize()
    assert total.value == 205
    c.set(1)
    g.stabilize()
    total.remove_parent(c)
    g.remove(c)
    g.stabilize()
    assert total.value == 5


def test_incr_fold_refuses_a_parent_twice(g):
    a = g.leaf(1)
    with pytest.raises(GraphError, match="each parent once"):
        g.incr_fold([a, a], 0, operator.add, operator.sub)
    total = g.incr_fold([a], 0, operator.add, operator.sub)
    with pytest.raises(GraphError, match="already a parent"):
        total.add_parent(a)
    with pytest.raises(GraphError, match="not a parent"):
        total.remove_parent(g.leaf(2))


def test_incr_fold_total_advances_behind_a_cutoff(g):
    """A cutoff holds the value back, never the total: small steps must not be lost."""
    leaf = g.leaf(0)
    total = g.incr_fold([leaf], 0, operator.add, operator.sub, equal=lambda a, b: abs(a - b) < 10)
    for value in (4, 8, 12):
        leaf.set(value)
        g.stabilize()
    assert total.value == 12


def test_incr_fold_whose_remove_does_not_undo_add_is_found(g):
    leaf = g.leaf(1e17)
    total = g.incr_fold([leaf, g.leaf(1.0)], 0.0, operator.add, operator.sub)
    leaf.set(0.0)
    with pytest.raises(AssertionError, match="incr_fold"):
        g.stabilize()
    g.remove(total)
    total = g.incr_fold([leaf], 0.0, operator.add, operator.sub, approximate=True)
    leaf.set(1.0)
    g.stabilize()


# Cutoffs


def test_clamp_cuts_off_and_format_is_not_recomputed(g):
    show = Counted("{:.2f}".format)
    raw = g.leaf(200.0)
    clamp = g.map(raw, lambda x: min(x, 100.0))
    text = g.map(clamp, show)
    show.calls = 0
    raw.set(250.0)
    Graph.stabilize(g)
    assert (clamp.value, text.value, show.calls) == (100.0, "100.00", 0)
    assert (g.last_recompute_count, g.last_cutoff_count) == (1, 1)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (0.3, float("0.3"), True),
        (math.nan, float("nan"), True),
        (0.0, -0.0, False),
        (1, 1.0, False),
        (True, 1, False),
        (10**30, 10**30 + 0, True),
        ("ab", "".join(["a", "b"]), True),
        ((1.5, []), (1.5, []), False),
        ([1], [1], False),
        (None, None, True),
    ],
)
def test_same_bits_compares_scalars_by_type_and_bits_and_the_rest_by_identity(old, new, same):
    assert same_bits(old, new) is same


def test_equal_keeps_the_old_value(g):
    leaf = g.leaf([1], equal=operator.eq)
    first = leaf.value
    leaf.set([1])
    g.stabilize()
    assert leaf.value is first
    assert g.last_recompute_count == 0


def test_always_propagates_an_equal_value(g):
    leaf = g.leaf(1, cutoff=Cutoff.ALWAYS)
    top = g.map(leaf, lambda v: v, cutoff=Cutoff.ALWAYS)
    leaf.set(1)
    g.stabilize()
    assert (g.last_recompute_count, top.recompute_count) == (2, 1)


def test_never_stays_at_its_first_value(g):
    leaf = g.leaf(1)
    constant = g.map(leaf, lambda v: v, cutoff=Cutoff.NEVER)
    top = g.map(constant, lambda v: v)
    leaf.set(2)
    g.stabilize()
    assert (constant.value, top.value, top.recompute_count) == (1, 1, 0)
    assert constant.cutoff == Cutoff.NEVER


def test_equal_and_cutoff_together_are_refused(g):
    with pytest.raises(GraphError, match="not both"):
        g.leaf(1, equal=operator.eq, cutoff=Cutoff.ALWAYS)


# Outputs and observers


def test_outputs_are_returned_with_old_and_new_in_height_order(g):
    leaf = g.leaf(1)
    top = g.output(g.map(g.map(leaf, lambda v: v + 1), lambda v: v * 10))
    low = g.output(g.map(leaf, lambda v: -v))
    leaf.set(2)
    changes = g.stabilize()
    assert [(c.node, c.old, c.new) for c in changes] == [(low, -1, -2), (top, 20, 30)]
    assert "old=-1" in repr(changes[0])


def test_observer_is_told_until_it_stops_and_may_set_a_leaf(g):
    leaf, echo = g.leaf(1), g.leaf(0)
    seen = []

    def copy(change):
        seen.append(change.new)
        echo.set(change.new)

    stop = leaf.observe(copy)
    leaf.set(2)
    Graph.stabilize(g)
    assert echo.dirty
    g.stabilize()
    assert (seen, echo.value) == ([2], 2)
    stop()
    stop()
    leaf.set(3)
    assert len(g.stabilize()) == 1, "the cell stays an output"
    assert seen == [2]


# What is refused


def test_a_function_may_only_compute(g):
    leaf = g.leaf(0)
    acts = {
        "set": lambda: leaf.set(3),
        "stabilize": g.stabilize,
        "remove": lambda: g.remove(leaf),
        "leaf": lambda: g.leaf(1),
    }
    for name, act in acts.items():
        with pytest.raises(Exception, match="the function of the new <map id 1> raised GraphError"):
            g.map(leaf, lambda v, act=act: act())
        top = g.map(leaf, lambda v, act=act: act() if v else None, name=name)
        leaf.set(1)
        with pytest.raises(Exception, match=f"the function of <map '{name}' id 1> raised GraphErr"):
            g.stabilize()
        leaf.set(0)
        g.stabilize()
        g.remove(top)


def test_an_observer_may_not_stabilize(g):
    leaf = g.leaf(0)
    leaf.observe(lambda change: g.stabilize())
    leaf.set(1)
    with pytest.raises(Exception, match="observer of <leaf id 0> raised GraphError"):
        g.stabilize()
    assert leaf.value == 1


def test_a_parent_of_another_graph_is_refused(g):
    other = Graph().leaf(1)
    with pytest.raises(GraphError, match="not in this graph"):
        g.map(other, lambda v: v)
    with pytest.raises(GraphError, match="parent must be a column or a cell, not 3"):
        g.map(3, lambda v: v)
    with pytest.raises(GraphError, match=r"parents\[0\] must be a cell, not 3"):
        g.fold([3], 0, operator.add)
    assert len(g) == 0


def test_a_cycle_is_refused_and_changes_nothing(g):
    leaf = g.leaf(1)
    low = g.map_n([leaf], lambda *values: sum(values))
    top = g.map(g.map(low, lambda v: v + 1), lambda v: v + 1)
    with pytest.raises(GraphError, match="would close a cycle"):
        low.add_parent(top)
    with pytest.raises(GraphError, match="cannot depend on itself"):
        low.add_parent(low)
    leaf.set(5)
    g.stabilize()
    assert top.value == 7


def test_a_late_parent_lifts_everything_above(g):
    leaf = g.leaf(1)
    low = g.map_n([leaf], lambda *values: sum(values))
    above = g.map(low, lambda v: v)
    high = leaf
    for _ in range(10):
        high = g.map(high, lambda v: v + 1)
    low.add_parent(high)
    assert (low.height, above.height) == (11, 12)
    leaf.set(2)
    g.stabilize()
    assert above.value == 2 + 12


def test_remove_of_a_used_node_names_its_users(g):
    leaf = g.leaf(1)
    g.map(g.map(leaf, lambda v: v, name="user"), lambda v: v)
    with pytest.raises(GraphError, match=r"<map 'user' id 1> depend on it.*cascade=True"):
        g.remove(leaf)
    leaf.set(2)
    g.remove(leaf, cascade=True)
    assert len(g) == 0
    with pytest.raises(GraphError, match="cannot be set any more"):
        leaf.set(3)
    with pytest.raises(GraphError, match="not in this graph"):
        g.remove(leaf)
    with pytest.raises(GraphError, match="will not change"):
        leaf.observe(print)


def test_ids_are_used_again_lowest_first(g):
    leaves = [g.leaf(i) for i in range(5)]
    for i in (1, 3, 4):
        g.remove(leaves[i])
    assert [g.leaf(0).id for _ in range(3)] == [1, 3, 4]


def test_clock_times_only_stabilizations_that_work():
    ticks = iter(range(0, 1000, 7))
    g = Graph(now=lambda: next(ticks))
    leaf = g.leaf(1)
    g.stabilize()
    assert g.last_stabilization_ns == 0
    leaf.set(2)
    g.stabilize()
    assert g.last_stabilization_ns == 7


def test_cells_are_generic_at_run_time():
    assert Cell[float].__origin__ is Cell


def test_nodes_count_how_often_they_were_recomputed_and_cut_off(g):
    price, size = g.leaf(2.5), g.leaf(4)
    product = g.map2(price, size, lambda p, s: p * s)
    for value in (3.0, 3.0, -3.0):
        price.set(value)
        g.stabilize()
    price.set(9.0)
    counts = [(n.recompute_count, n.cutoff_count, n.dirty) for n in (price, size, product)]
    assert counts == [(2, 1, True), (0, 0, False), (2, 0, False)]
