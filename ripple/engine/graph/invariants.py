"""The graph's invariants as code; the list is at the top of ``node.pyx``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripple.engine.graph.node import Graph, Node


def check(graph: Graph) -> None:
    """Raise AssertionError at the first invariant that does not hold, naming the node.

    Holds between any two calls of the graph's methods, also after a failed call.
    """
    live = [node for node in graph.nodes if node is not None]
    assert len(live) == graph.node_count, f"{graph.node_count} nodes counted, {len(live)} found"
    for place, node in enumerate(graph.nodes):
        if node is not None:
            assert node.id == place, f"{node!r} is in the place of id {place}"
            assert node.graph is graph, f"{node!r} is not of this graph"
            _check_heights(node)
    _check_edges(live)
    _check_scopes(live)
    _check_heap(graph, live)
    for node in live:
        if not node.dirty:
            node.check()


def _check_heights(node: Node) -> None:
    for parent in node.parents:
        assert node.height > parent.height, f"{node!r} is not above its parent {parent!r}"
    if node.scope is not None:
        assert node.height > node.scope.owner.height, f"{node!r} is not above what made it"


def _check_edges(live: list[Node]) -> None:
    up = {(parent, node) for node in live for parent in node.parents}
    down = {(node, dependent) for node in live for dependent in node.dependents}
    assert up == down, f"edges known to one side only: {up ^ down}"
    assert len(down) == sum(len(node.dependents) for node in live), "a dependent is listed twice"
    known = set(live)
    for parent, node in up:
        assert parent in known, f"{node!r} has the removed parent {parent!r}"
        assert node in known, f"{parent!r} has the removed dependent {node!r}"


def _check_scopes(live: list[Node]) -> None:
    made = {member: owner for owner in live for member in owner.inside()}
    for node in live:
        owner = None if node.scope is None else node.scope.owner
        assert made.get(node) is owner, f"{node!r} is not known to what made it, {owner!r}"


def _check_heap(graph: Graph, live: list[Node]) -> None:
    graph.heap.check()
    waiting = graph.heap.members()
    assert len(waiting) == len(set(waiting)), "a node is in the heap twice"
    dirty = {node for node in live if node.dirty}
    assert set(waiting) == dirty, f"dirty or in the heap, but not both: {dirty ^ set(waiting)}"
    assert set(graph.observers) <= set(live), "an observed node was removed"
