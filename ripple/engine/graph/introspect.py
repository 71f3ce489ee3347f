"""A snapshot of a graph, and its S-expression, JSON and DOT forms."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ripple.core import sexp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.core.sexp import Sexp
    from ripple.engine.graph.node import Graph, Node


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """One node. ``value_sexp`` is None unless asked for, and for values without such a form.

    row_count: how many slots of a column have a row; None for a node that is not a column.
    """

    id: int
    height: int
    is_dirty: bool
    is_output: bool
    kind: str
    dependent_ids: tuple[int, ...]
    value_sexp: Sexp | None
    name: str | None
    recompute_count: int
    cutoff_count: int
    row_count: int | None = None

    @property
    def label(self) -> str:
        """The name, or kind and id."""
        return self.name or f"{self.kind}_{self.id}"


@dataclass(frozen=True, slots=True)
class GraphStats:
    """Totals; the last three are of the last stabilize."""

    total_nodes: int
    dirty_nodes: int
    output_nodes: int
    max_height: int
    last_recompute_count: int
    last_cutoff_count: int
    last_stabilization_ns: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A graph's nodes, by id, and its totals."""

    nodes: tuple[NodeInfo, ...]
    stats: GraphStats


def snapshot(graph: Graph, *, values: bool = False) -> Snapshot:
    """Describe ``graph``; with ``values``, also each node's value. O(nodes), changes nothing."""
    nodes = tuple(_info(node, values) for node in graph.nodes if node is not None)
    stats = GraphStats(
        total_nodes=len(nodes),
        dirty_nodes=sum(node.is_dirty for node in nodes),
        output_nodes=sum(node.is_output for node in nodes),
        max_height=max((node.height for node in nodes), default=0),
        last_recompute_count=graph.last_recompute_count,
        last_cutoff_count=graph.last_cutoff_count,
        last_stabilization_ns=graph.last_stabilization_ns,
    )
    return Snapshot(nodes, stats)


def _info(node: Node, values: bool) -> NodeInfo:
    return NodeInfo(
        id=node.id,
        height=node.height,
        is_dirty=node.dirty,
        is_output=node.is_output,
        kind=node.kind(),
        dependent_ids=tuple(sorted(dependent.id for dependent in node.dependents)),
        value_sexp=node.value_sexp() if values else None,
        name=node.name,
        recompute_count=node.recompute_count,
        cutoff_count=node.cutoff_count,
        row_count=getattr(node, "row_count", None),
    )


def to_sexp(snap: Snapshot, *, detail: bool = False) -> Sexp:
    """Return ``((nodes ((id 0)(height 0)...)...)(stats (total_nodes 3)...))``.

    Without ``detail`` it depends on the graph's shape and its dirty nodes alone, for
    tests that compare it with a text.
    """
    nodes: list[Sexp] = [_node_sexp(node, detail) for node in snap.nodes]
    fields = list(asdict(snap.stats).items())
    stats: list[Sexp] = [[key, str(value)] for key, value in fields[: None if detail else 4]]
    return [["nodes", *nodes], ["stats", *stats]]


def _node_sexp(node: NodeInfo, detail: bool) -> Sexp:
    fields: list[Sexp] = [
        ["id", str(node.id)],
        ["height", str(node.height)],
        ["is_dirty", _bool(node.is_dirty)],
    ]
    if detail:
        fields.append(["is_output", _bool(node.is_output)])
    fields += [
        ["kind", node.kind],
        ["dependent_ids", [str(dependent) for dependent in node.dependent_ids]],
    ]
    if not detail:
        return fields
    if node.value_sexp is not None:
        fields.append(["value", node.value_sexp])
    if node.name is not None:
        fields.append(["name", node.name])
    fields.append(["recompute_count", str(node.recompute_count)])
    fields.append(["cutoff_count", str(node.cutoff_count)])
    if node.row_count is not None:
        fields.append(["row_count", str(node.row_count)])
    return fields


def _bool(value: bool) -> str:
    return "true" if value else "false"


def to_json(snap: Snapshot) -> str:
    """Return everything as one JSON object; values are S-expression texts, or null."""
    nodes = [
        {
            **asdict(node),
            "value_sexp": None if node.value_sexp is None else sexp.dumps(node.value_sexp),
        }
        for node in snap.nodes
    ]
    return json.dumps({"nodes": nodes, "stats": asdict(snap.stats)}, indent=2)


def to_dot(snap: Snapshot) -> str:
    """Return a Graphviz graph: leaves are ellipses, outputs blue and bold, dirty nodes red."""
    stats = snap.stats
    return "\n".join(
        [
            "digraph ripple {",
            "  rankdir=TB;",
            '  node [fontname="monospace" fontsize=10];',
            "",
            *(f"  n{node.id} [label={_quoted(node.label)} {_look(node)}];" for node in snap.nodes),
            "",
            *(f"  n{lower} -> n{upper};" for lower, upper in _edges(snap)),
            "",
            f"  // nodes={stats.total_nodes} dirty={stats.dirty_nodes} "
            f"outputs={stats.output_nodes} max_height={stats.max_height}",
            "}",
            "",
        ]
    )


def _look(node: NodeInfo) -> str:
    shape = "shape=ellipse" if node.kind in _SOURCES else "shape=box"
    color = " color=red" if node.is_dirty else " color=blue" if node.is_output else ""
    return shape + color + (" style=bold" if node.is_output else "")


def to_dot_by_kind(snap: Snapshot) -> str:
    """Return the command line's Graphviz graph: nodes are numbered within their kind."""
    seen: Counter[str] = Counter()
    names: dict[int, str] = {}
    lines = ["digraph ripple {", "  rankdir=TB;", "  node [shape=box];"]
    for node in snap.nodes:
        names[node.id] = f"{node.kind}_{seen[node.kind]}"
        seen[node.kind] += 1
        label = node.kind if node.name is None else f"{node.kind}: {node.name}"
        shape = _SHAPES.get(node.kind, "")
        lines.append(f"  {names[node.id]} [label={_quoted(label)}{shape}];")
    lines += [f"  {names[lower]} -> {names[upper]};" for lower, upper in _edges(snap)]
    return "\n".join([*lines, "}", ""])


_SOURCES = ("leaf", "column")
_FOLDS = ("fold", "incr_fold", "column_fold")
_SHAPES = {
    **dict.fromkeys(_SOURCES, " shape=ellipse"),
    **dict.fromkeys(_FOLDS, " shape=diamond"),
}


def _edges(snap: Snapshot) -> Iterator[tuple[int, int]]:
    return ((node.id, dependent) for node in snap.nodes for dependent in node.dependent_ids)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
