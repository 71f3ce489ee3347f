"""Nodes run lowest first, then by id, for any cause and order of their changes."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine.graph.node import PyNode
from ripple.notebook.graph import Graph
from tests.examples import EXAMPLES, THINNED


class Logged(PyNode):
    """Notes that it ran; changes always."""

    log: list[Logged] = []  # noqa: RUF012  replaced by each test

    def recompute_now(self):
        self.log.append(self)
        return True


def _random_graph(rng, count):
    g = Graph()
    nodes = []
    for _ in range(count):
        Logged(g, rng.sample(nodes, min(len(nodes), rng.randrange(3))))
        nodes = [node for node in g.nodes if node is not None]
        if rng.random() < 0.2:
            g.remove(rng.choice(nodes), cascade=True)
            nodes = [node for node in g.nodes if node is not None]
    return g, nodes


@settings(max_examples=14 * EXAMPLES // THINNED)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60))
def test_recomputation_goes_by_height_and_id(seed, count):
    rng = random.Random(seed)
    g, nodes = _random_graph(rng, count)
    g.check_invariants()
    g.stabilize()
    reached = set()
    for node in rng.sample(nodes, rng.randrange(len(nodes) + 1)):
        node.set_dirty()
        reached.add(node)
    g.check_invariants()
    assert g.dirty_nodes() == sorted(reached, key=lambda n: (n.height, n.id))
    for node in sorted(nodes, key=lambda n: n.height):
        if reached.intersection(node.parents):
            reached.add(node)
    Logged.log = []
    g.stabilize()
    assert Logged.log == sorted(reached, key=lambda n: (n.height, n.id))
    assert g.last_recompute_count == len(reached)


@settings(max_examples=7 * EXAMPLES // THINNED)
@given(seed=st.integers(0, 2**32))
def test_two_graphs_built_alike_run_alike(seed):
    logs = []
    for _ in range(2):
        Logged.log = []
        g, _ = _random_graph(random.Random(seed), 40)
        g.stabilize()
        logs.append([(node.id, node.height) for node in Logged.log])
    assert logs[0] == logs[1]
