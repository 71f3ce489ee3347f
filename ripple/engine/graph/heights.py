"""Heights in a graph with changing edges: the nodes to lift when a node gains a parent."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from ripple.core.errors import GraphError

if TYPE_CHECKING:
    from ripple.engine.graph.node import Node


def raised(node: Node, parent: Node) -> dict[Node, int]:
    """Return the new heights of ``node`` and of everything above it, once it has ``parent``.

    Nodes are visited by their old height, so each is final when visited: all nodes that could lift
    it were lower. Nodes made by a bind stay above that bind, as if they depended on it. Raises
    GraphError when ``parent`` is reached: it already depends on ``node``.
    """
    heights = {node: max(node.height, parent.height + 1)}
    queue = [(node.height, node.id, node)]
    while queue:
        _, _, lower = heappop(queue)
        for upper in (*lower.dependents, *lower.inside()):
            if upper is parent:
                raise GraphError(f"{node!r} cannot depend on {parent!r}: that would close a cycle")
            if upper.height <= heights[lower]:
                if upper not in heights:
                    heappush(queue, (upper.height, upper.id, upper))
                heights[upper] = max(heights.get(upper, 0), heights[lower] + 1)
    return heights


def downstream(node: Node) -> list[Node]:
    """Return every node that depends on ``node``, directly or not, highest first."""
    found: dict[Node, None] = {}
    stack = list(node.dependents)
    while stack:
        upper = stack.pop()
        if upper not in found:
            found[upper] = None
            stack += upper.dependents
    return sorted(found, key=lambda upper: (upper.height, upper.id), reverse=True)
