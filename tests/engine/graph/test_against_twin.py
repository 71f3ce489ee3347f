"""Random dynamic graphs against a twin that recomputes everything from scratch.

The twin is a dictionary from cell to an expression over other cells, evaluated recursively. It
knows nothing of heights, dirtiness or cutoffs. Some functions raise: the twin then says which
cells have no value, and stabilize must raise exactly if there is one.
"""

from __future__ import annotations

import operator
from functools import reduce

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ripple.core.errors import GraphError, NodeError
from tests.engine.graph.conftest import CheckedGraph
from tests.examples import EXAMPLES, THINNED

VALUES = st.integers(-5, 5)
INDEX = st.integers(0, 10**6)


class PoisonError(Exception):
    """What a function raises for a value it does not like."""


def refuse(poison, value):
    if value == poison:
        raise PoisonError(value)
    return value


def affine(factor, offset, poison):
    return lambda v: refuse(poison, (factor * v + offset) % 11)


def mix(a, b):
    return (3 * a - b) % 11


def hash_all(*values):
    total = 7
    for value in values:
        total = (total * 5 + value) % 101
    return total


class Twin:
    """The obvious evaluation: every value from the leaves up, every time."""

    def __init__(self):
        self.leaves = {}
        self.rules = {}  # cell -> (parents, function of their values, cells a bind may choose)

    def values(self):
        """Return cell -> value, with PoisonError as the value of what cannot be computed."""
        known = dict(self.leaves)
        for cell in self.rules:
            self.evaluate(cell, known)
        return known

    def evaluate(self, cell, known):
        if cell not in known:
            parents, function, choices = self.rules[cell]
            values = [self.evaluate(parent, known) for parent in parents]
            try:
                known[cell] = PoisonError
                if PoisonError not in values:
                    value = function(*values)
                    known[cell] = value(lambda cell: self.chosen(cell, known)) if choices else value
            except PoisonError:
                pass
        return known[cell]

    def chosen(self, cell, known):
        """Return the value of a cell that a bind chose; the bind has none if that has none."""
        value = self.evaluate(cell, known)
        if value is PoisonError:
            raise PoisonError
        return value

    def dependents(self, cell):
        """Return the cells whose parents, or possible choices, include ``cell``."""
        return [
            c for c, (parents, _, choices) in self.rules.items() if cell in (*parents, *choices)
        ]


class GraphMachine(RuleBasedStateMachine):
    @initialize(values=st.lists(VALUES, min_size=2, max_size=4))
    def start(self, values):
        self.g = CheckedGraph()
        self.twin = Twin()
        self.cells = []
        self.settled = True
        for value in values:
            self.make_leaf(value)

    def pick(self, index):
        return self.cells[index % len(self.cells)]

    def add(self, make, parents, function, choices=()):
        """Make a cell in both; refused exactly when its first value cannot be computed."""
        try:
            cell = make()
        except NodeError:
            return
        self.cells.append(cell)
        self.twin.rules[cell] = (parents, function, choices)

    @rule(value=VALUES)
    def make_leaf(self, value):
        leaf = self.g.leaf(value)
        self.cells.append(leaf)
        self.twin.leaves[leaf] = value

    @rule(i=INDEX, factor=VALUES, offset=VALUES, poison=st.integers(-40, 10))
    def make_map(self, i, factor, offset, poison):
        parent, function = self.pick(i), affine(factor, offset, poison)
        self.add(lambda: self.g.map(parent, function), [parent], function)

    @rule(i=INDEX, j=INDEX)
    def make_map2(self, i, j):
        a, b = self.pick(i), self.pick(j)
        self.add(lambda: self.g.map2(a, b, mix), [a, b], mix)

    @rule(indices=st.lists(INDEX, max_size=4))
    def make_map_n(self, indices):
        parents = [self.pick(i) for i in indices]
        self.add(lambda: self.g.map_n(parents, hash_all), parents, hash_all)

    @rule(indices=st.lists(INDEX, max_size=4))
    def make_fold(self, indices):
        parents = [self.pick(i) for i in indices]
        self.add(
            lambda: self.g.fold(parents, 7, hash_all),
            parents,
            lambda *values: reduce(hash_all, values, 7),
        )

    @rule(indices=st.lists(INDEX, max_size=5))
    def make_incr_fold(self, indices):
        parents = list(dict.fromkeys(self.pick(i) for i in indices))
        self.add(
            lambda: self.g.incr_fold(parents, 0, operator.add, operator.sub),
            parents,
            lambda *values: sum(values),
        )

    @rule(w=INDEX, i=INDEX, j=INDEX, depth=st.integers(1, 4), poison=st.integers(-40, 10))
    def make_bind(self, w, i, j, depth, poison):
        """Odd: an existing cell. Even: a chain made by the bind, over another cell and ``w``."""
        which, odd, even = self.pick(w), self.pick(i), self.pick(j)

        def choose(value):
            if refuse(poison, value) % 2:
                return odd
            top = even
            for _ in range(depth):
                top = self.g.map2(top, which, mix)
            return self.g.bind(which, lambda _: self.g.map(top, lambda v: v + 1))

        def twin_choose(value):
            if refuse(poison, value) % 2:
                return lambda value_of: value_of(odd)

            def chain(value_of):
                top = value_of(even)
                for _ in range(depth):
                    top = mix(top, value)
                return top + 1

            return chain

        self.add(lambda: self.g.bind(which, choose), [which], twin_choose, (odd, even))

    @rule(i=INDEX, value=VALUES)
    def set_leaf(self, i, value):
        leaves = list(self.twin.leaves)
        leaf = leaves[i % len(leaves)]
        leaf.set(value)
        self.twin.leaves[leaf] = value
        self.settled = False

    @precondition(lambda self: any(hasattr(cell, "add_parent") for cell in self.cells))
    @rule(i=INDEX, j=INDEX)
    def add_parent(self, i, j):
        variadic = [cell for cell in self.cells if hasattr(cell, "add_parent")]
        cell, parent = variadic[i % len(variadic)], self.pick(j)
        parents, function, choices = self.twin.rules[cell]
        may_close_a_cycle = self.reaches(cell, parent)
        try:
            cell.add_parent(parent)
        except GraphError:
            if not may_close_a_cycle and (parent not in parents or cell.kind() != "incr_fold"):
                raise
            return
        if may_close_a_cycle:  # through what a bind does not choose now, but might
            cell.remove_parent(parent)
            return
        self.twin.rules[cell] = ([*parents, parent], function, choices)
        self.settled = False

    def reaches(self, cell, parent):
        return cell is parent or any(self.reaches(up, parent) for up in self.twin.dependents(cell))

    @precondition(lambda self: any(hasattr(cell, "add_parent") for cell in self.cells))
    @rule(i=INDEX, j=INDEX)
    def remove_parent(self, i, j):
        variadic = [cell for cell in self.cells if hasattr(cell, "add_parent")]
        cell = variadic[i % len(variadic)]
        parents, function, choices = self.twin.rules[cell]
        if not parents:
            return
        parent = parents[j % len(parents)]
        cell.remove_parent(parent)
        last = len(parents) - 1 - parents[::-1].index(parent)
        self.twin.rules[cell] = (parents[:last] + parents[last + 1 :], function, choices)
        self.settled = False

    @precondition(lambda self: len(self.twin.leaves) > 1)
    @rule(i=INDEX)
    def remove(self, i):
        """Only what nothing can come to depend on: a bind's choices stay."""
        cell = self.pick(i)
        if self.twin.dependents(cell):
            if cell.dependents:
                with pytest.raises(GraphError, match="depend on it"):
                    self.g.remove(cell)
            return
        if cell in self.twin.leaves and len(self.twin.leaves) == 1:
            return
        self.g.remove(cell)
        self.cells.remove(cell)
        self.twin.leaves.pop(cell, None)
        self.twin.rules.pop(cell, None)

    @rule()
    def stabilize(self):
        expected = self.twin.values()
        try:
            self.g.stabilize()
        except NodeError:
            if PoisonError not in expected.values():
                raise
            self.settled = False
            return
        self.settled = True

    @invariant()
    def values_agree_once_settled(self):
        if getattr(self, "settled", False):
            expected = self.twin.values()
            assert [(c, c.value) for c in self.cells] == [(c, expected[c]) for c in self.cells]
        if hasattr(self, "g"):
            self.g.check_invariants()


GraphMachine.TestCase.settings = settings(
    max_examples=21 * EXAMPLES // THINNED, stateful_step_count=40
)
test_random_dynamic_graphs_agree_with_the_twin = GraphMachine.TestCase
