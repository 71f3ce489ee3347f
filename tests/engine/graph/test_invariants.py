"""The invariant check finds violations: a check that cannot fail proves nothing."""

from __future__ import annotations

import pytest

from ripple.engine.graph.cutoff import Cutoff
from ripple.notebook.graph import Graph


@pytest.fixture
def small():
    g = Graph()
    leaf = g.leaf(1)
    return g, leaf, g.map(leaf, lambda v: v + 1)


def test_a_missing_edge_is_found(small):
    g, leaf, _ = small
    leaf.dependents.clear()
    with pytest.raises(AssertionError, match="edges known to one side only"):
        g.check_invariants()


def test_a_repeated_dependent_is_found(small):
    g, leaf, top = small
    leaf.dependents.append(top)
    with pytest.raises(AssertionError, match="listed twice"):
        g.check_invariants()


def test_a_removed_node_that_is_still_referred_to_is_found(small):
    g, leaf, top = small
    g.remove(top)
    leaf.dependents.append(top)
    with pytest.raises(AssertionError, match="edges known"):
        g.check_invariants()


def test_a_parent_that_is_not_lower_is_found(small):
    g, leaf, top = small
    leaf.parents.append(top)
    top.dependents.append(leaf)
    with pytest.raises(AssertionError, match="is not above its parent"):
        g.check_invariants()


def test_a_node_in_another_place_is_found(small):
    g, _, _ = small
    g.nodes.reverse()
    with pytest.raises(AssertionError, match="in the place of id"):
        g.check_invariants()


def test_an_impure_function_is_found_unless_it_always_propagates():
    g = Graph()
    leaf, calls = g.leaf(1.0), []
    top = g.map(leaf, lambda v: calls.append(v) or v + len(calls))
    with pytest.raises(AssertionError, match=r"holds 2\.0, but its parents now give 3\.0"):
        g.check_invariants()
    g.remove(top)
    g.map(leaf, lambda v: calls.append(v) or v + len(calls), cutoff=Cutoff.ALWAYS)
    g.check_invariants()


def test_a_value_changed_in_place_is_found():
    g = Graph()
    leaf = g.leaf([1])
    g.map(leaf, sum)
    leaf.value.append(2)
    with pytest.raises(AssertionError, match="holds 1, but its parents now give 3"):
        g.check_invariants()
