"""Every graph of these tests checks its invariants around every stabilize."""

from __future__ import annotations

import pytest

from ripple.notebook.graph import Graph


class CheckedGraph(Graph):
    """A graph that cannot be wrong unnoticed."""

    def stabilize(self):
        self.check_invariants()
        try:
            changes = super().stabilize()
        finally:
            self.check_invariants()
        assert self.dirty_nodes() == [], "a node is dirty after stabilize"
        return changes


@pytest.fixture
def g():
    graph = CheckedGraph()
    yield graph
    graph.check_invariants()
