"""A plan as a graph to draw: steps by stage, and the edges between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.model.pipeline.description import (
    constant_join_text,
    fields_text,
    join_text,
    stream_join_text,
    window_text,
)
from ripple.model.pipeline.keeping import keeping
from ripple.model.pipeline.nodes import (
    ConstantJoin,
    Derive,
    Explode,
    Filter,
    Fold,
    LastTable,
    Map,
    Output,
    RowTable,
    SourceSpec,
    TableJoin,
    Union,
    Versions,
)
from ripple.model.pipeline.plan import inputs_first
from ripple.model.pipeline.topology import stages_of
from ripple.model.pipeline.waiting_nodes import Ask, Distinct, Finals, Scan, StreamJoin

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import EventNode, FoldAggregate
    from ripple.model.pipeline.plan import Plan

# More than this is unreadable, and its layout takes too long.
NODES_MAX = 300


def drawing(plan: Plan) -> dict[str, Any]:
    """Return nodes and edges, in the order of the plan; ids are names.

    Names of steps and folds are unique in a plan; those of outputs have a prefix.
    """
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    stages = stages_of(plan)
    stage_of = {name: stage.number for stage in stages for name in stage.folds}
    into = {stage.edge.to: stage.edge for stage in stages if stage.edge is not None}
    kept = {one.name: one.text for one in keeping(plan)}
    last: dict[str, str] = {}  # of the source, each step and each fold, the node with its rows

    def add(node: dict[str, Any], above: str | None, **edge: Any) -> str:
        nodes.append(node | {"keeps": kept.get(node["id"])})
        if above is not None:
            edges.append({"from": above, "to": node["id"], "kind": "rows", "why": ""} | edge)
        return str(node["id"])

    on_results = {step.name: stage_of[fold.name] for fold in plan.folds for step in fold.steps}
    for node, inputs in (*inputs_first(plan), *plan.shown):
        above = [last[name] for name in inputs]
        if isinstance(node, SourceSpec):
            last[node.name] = add(_source(node), None)
        elif isinstance(node, Fold):
            edge = into.get(node.name)
            about = {"of": node.input} if edge is None else edge.as_values()
            last[node.name] = add(_fold(node, stage_of[node.name]), above[0], **about)
            if isinstance(node, TableJoin):
                other = {"from": above[1], "to": node.name, "kind": "rows", "why": ""}
                edges.append(other | {"of": node.right})
        elif isinstance(node, Output):
            add(_output(node, stage_of.get(node.of, 0)), above[0])
        else:
            last[node.name] = add(_step(node, on_results.get(node.name, 0)), above[0])
            more: list[dict[str, Any]] = [{"from": one, "to": node.name} for one in above[1:]]
            edges += [edge | {"kind": "rows", "why": ""} for edge in more]
    joins = {node["id"] for node in nodes if node["kind"] == "join"}
    met: set[str] = set()
    for line in (line for line in edges if line["to"] in joins):  # that of the left comes first
        line["side"] = "right" if line["to"] in met else "left"
        met.add(line["to"])
    return {
        "name": plan.name,
        "topology": plan.topology_hash,
        "nodes": nodes[:NODES_MAX],
        "edges": edges,
        "cut_at": NODES_MAX if len(nodes) > NODES_MAX else None,
        "stages": [
            {
                "number": stage.number,
                "name": stage.folds[0] if stage.folds else plan.sources[0].name,
                "key": list(stage.key),
                "folds": list(stage.folds),
            }
            for stage in stages
        ],
    }


def _source(source: SourceSpec) -> dict[str, Any]:
    return {
        "id": f"source {source.name}",
        "name": source.name,
        "kind": "source",
        "stage": 0,
        "fields": fields_text(source.fields),
        "about": source.topic or "",
        "node_key": source.node_key,
    }


def _step(step: EventNode, stage: int) -> dict[str, Any]:
    if isinstance(step, Union):
        kind, about = "union", ", ".join(step.reads)
    elif isinstance(step, Finals):
        kind, about = "finals", f"of {step.fold}"
    elif isinstance(step, Distinct | Scan):
        kind = "distinct" if isinstance(step, Distinct) else "scan"
        about = ", ".join(field.name for field in step.key)
    elif isinstance(step, Versions):
        kind, about = "versions", f"of {step.reads}"
    elif isinstance(step, StreamJoin):
        kind, about = "join", stream_join_text(step)
    elif isinstance(step, Derive):
        kind, about = "derive", ", ".join(f"{name} = {bound.expr!r}" for name, bound in step.exprs)
    elif isinstance(step, Filter):
        kind, about = "filter", repr(step.condition.expr)
    elif isinstance(step, Explode):
        kind, about = "flat_map", f"items of {step.column}"
    elif isinstance(step, ConstantJoin):
        kind, about = "constant", constant_join_text(step)
    else:
        kind = {Map: "map", Ask: "ask"}.get(type(step), "flat_map")
        about = getattr(step.function, "__qualname__", type(step.function).__name__)
    return {
        "id": step.name,
        "name": step.name,
        "kind": kind,
        "stage": stage,
        "fields": fields_text(step.fields_out),
        "about": about,
        "node_key": step.node_key,
    }


def _fold(fold: Fold, stage: int) -> dict[str, Any]:
    kind, about = "fold", ", ".join(one.name for one in fold.aggregates)
    if isinstance(fold, TableJoin):
        kind, about = "join", join_text(fold)
    elif isinstance(fold, RowTable):
        kind, about = "row-table", f"of {fold.reads}, at once and corrected until they are final"
        if isinstance(fold, LastTable):
            about = f"the last of each key of {fold.reads}, at once and corrected"
    return {
        "id": fold.name,
        "name": fold.name,
        "kind": kind,
        "stage": stage,
        "fields": fields_text(fold.row),
        "about": about,
        "key": [member.name for member in fold.key],
        "window": None if fold.window is None else window_text(fold.window),
        "aggregates": [
            f"{one.name} = {one.aggregate.name}({_inputs(one)})" for one in fold.aggregates
        ],
        "node_key": fold.node_key,
    }


def _output(output: Output, stage: int) -> dict[str, Any]:
    return {
        "id": f"output {output.name}",
        "name": output.name,
        "kind": "output",
        "stage": stage,
        "fields": fields_text(output.fields),
        "about": output.topic or "",
        "node_key": output.node_key,
    }


def _inputs(one: FoldAggregate) -> str:
    return ", ".join(repr(each.expr) for each in one.inputs)
