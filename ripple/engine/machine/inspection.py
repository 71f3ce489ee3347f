"""Inspection of a partition's live graph: its plan's nodes, with their counts of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ripple.model.pipeline.nodes import TableJoin, reads_of, tables_below
from ripple.model.pipeline.waiting_nodes import Ask, Finals, StreamJoin
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.engine.graph.column import Column
    from ripple.engine.machine.counters import Counters
    from ripple.engine.machine.partition import Partition
    from ripple.engine.operators.asked_rows import AskedRows
    from ripple.engine.operators.join_state import JoinState
    from ripple.engine.operators.waiting import Waiting
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.waiting_nodes import Waiting as WaitingNode

VERSION = 1


def inspected(partition: Partition) -> dict[str, Any]:
    """Return the live graph of a partition as values of JSON.

    Per node: name, kind (source, senders, finals, distinct, fold, join, output, edge), rows_in,
    rows_out, very_late, future and refused (a source's records that came too late to count, are
    ahead of the time, or do not have its schema), recomputed (results that were computed again),
    cutoffs (of these, the unchanged ones), uncomputable (rows that cannot be computed, and are
    absent), keys (of each window that is held; an output's: its rows), bytes, watermark_ns (of
    finals, distinct and join: no row below it follows); null where a kind has no such number. Rows
    are counted since the partition was restored here, events since its first. edges: pairs of
    numbers of nodes.

    An ask has waiting: the rows held until they, and those before them, have their answers; and
    answered: the rows that have passed with an answer.

    A join has sides, the left one first: reads (a node), rows (of a stream, kept for matches; of a
    table, all), watermark_ns and is_behind (it lets fewer rows follow than the other side does);
    matched and unmatched (rows of the left side with and without a partner; null of tables).
    """
    plan = partition.plan
    nodes = [_node("senders", "senders")]
    if not partition.stage:
        nodes = [_source(name, each) for name, each in partition.counters_by_source.items()]
    edges: list[tuple[int, int]] = []
    numbers: dict[str, int] = {}
    uncomputable = partition.uncomputable_counts
    roots = {source.name: number for number, source in enumerate(plan.sources)}

    def roots_of(name: str) -> list[int]:
        """Return the numbers of the nodes where rows of a stream begin; add waiting ones."""
        if partition.stage:
            return [0]
        found = plan.roots_of(name)
        for root in found:
            if root not in roots:
                node = next(one for one in plan.waiting if one.name == root)
                if isinstance(node, Finals):
                    below = [numbers[node.fold]]
                else:
                    below = [one for read in reads_of(node) for one in roots_of(read)]
                roots[root] = len(nodes)
                edges.extend((one, roots[root]) for one in dict.fromkeys(below))
                nodes.append(_waiting(node, partition.waiting[root], uncomputable))
        return [roots[root] for root in found]

    rows_of: dict[str, int] = {}
    for fold, column, length_bytes in partition.inspected_folds():
        below = [numbers[name] for name in dict.fromkeys(tables_below(fold)) if name in numbers]
        below = below or roots_of(fold.name)
        edges += ((one, len(nodes)) for one in below)
        numbers[fold.name] = len(nodes)
        rows_of[fold.name] = column.row_count
        counts = [nodes[one]["rows_out"] for one in below]
        rows_in = None if None in counts else sum(counts)
        nodes.append(
            _fold(fold, column, rows_in, length_bytes, uncomputable[fold.name])
            | {"key": fold.node_key}
        )
    here = partition.digests  # other stages show the other outputs
    for output in (one for one in plan.outputs if one.name in here):
        if output.is_stream:
            edges += ((one, len(nodes)) for one in roots_of(output.of))
            rows_in = partition.rows_shown(output.of)
            nodes.append(_node(output.name, "output", rows_in=rows_in))
        else:
            of = nodes[numbers[output.of]]
            edges.append((numbers[output.of], len(nodes)))
            nodes.append(
                _node(output.name, "output", rows_in=of["rows_out"], keys=rows_of[output.of])
            )
    _add_joins(nodes, partition.join_states)
    graph = partition.graph
    return {
        "stage": partition.stage or 0,
        "number": partition.partition,
        "cut": dict(partition.cut),
        "watermark_ns": partition.watermark_ns,
        "nodes": nodes,
        "edges": edges,
        "graph": {
            "nodes": graph.node_count,
            "dirty": len(graph.dirty_nodes()),
            "last_recomputed": graph.last_recompute_count,
            "last_cutoffs": graph.last_cutoff_count,
            "last_stabilization_ns": graph.last_stabilization_ns,
        },
    }


def _waiting(node: WaitingNode, one: Waiting, uncomputable: Mapping[str, int]) -> dict[str, Any]:
    found = _node(
        node.name,
        "join" if isinstance(node, StreamJoin) else type(node).__name__.lower(),
        rows_out=one.given,
        uncomputable=uncomputable.get(node.name),
        bytes=one.nbytes,
        watermark_ns=None if one.watermark_ns == watermark.NONE else one.watermark_ns,
    )
    if isinstance(node, Ask):
        found |= {"waiting": cast("AskedRows", one).count, "answered": one.given}
    return found


def _add_joins(nodes: Sequence[dict[str, Any]], states: Mapping[str, JoinState]) -> None:
    """Add to the nodes of joins where they are."""
    joins = (node for node in nodes if node["kind"] == "join")
    for node in joins:
        state = states[node["name"]]
        sides = [side._asdict() for side in state.sides]
        for side in sides:
            if side["watermark_ns"] == watermark.NONE:
                side["watermark_ns"] = None
        node.update(sides=sides, matched=state.matched, unmatched=state.unmatched)


def _source(name: str, counters: Counters) -> dict[str, Any]:
    return _node(
        name,
        "source",
        rows_in=counters.consumed,
        rows_out=counters.applied,
        very_late=counters.very_late,
        future=counters.future,
        refused=counters.dead_lettered,
    )


def _fold(
    fold: Fold, column: Column, rows_in: int | None, length_bytes: int, uncomputable: int
) -> dict[str, Any]:
    return _node(
        fold.name,
        "join" if isinstance(fold, TableJoin) else "fold",
        rows_in=rows_in,
        rows_out=column.rows_out,
        recomputed=column.rows_in,
        cutoffs=column.rows_in - column.rows_out,
        uncomputable=uncomputable,
        keys=len(column.keys.index),
        bytes=length_bytes,
    )


_NUMBERS = (
    *("rows_in", "rows_out", "very_late", "future", "refused"),
    *("recomputed", "cutoffs", "uncomputable", "keys", "bytes", "watermark_ns"),
)


def _node(name: str, kind: str, **numbers: int | None) -> dict[str, Any]:
    return {"name": name, "kind": kind} | {one: numbers.get(one) for one in _NUMBERS}
