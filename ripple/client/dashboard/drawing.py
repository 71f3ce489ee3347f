"""A plan as a graph to draw: steps by stage, and the edges between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.model.pipeline.description import fields_text, window_text
from ripple.model.pipeline.plan import Derive, Filter, Map, Union, reads_of
from ripple.model.pipeline.topology import stages_of

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import EventNode, Fold, FoldAggregate, Plan, SourceSpec

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
    last: dict[str, str] = {}  # of the source, each step and each fold, the node with its rows

    def add(node: dict[str, Any], above: str | None, **edge: Any) -> str:
        nodes.append(node)
        if above is not None:
            edges.append({"from": above, "to": node["id"], "kind": "rows", "why": ""} | edge)
        return str(node["id"])

    for source in plan.sources:
        last[source.name] = add(_source(source), None)
    for step in plan.steps:
        first, *more = (last[name] for name in reads_of(step))
        last[step.name] = add(_step(step, 0), first)
        edges += ({"from": above, "to": step.name, "kind": "rows", "why": ""} for above in more)
    for fold in plan.folds:
        stage, edge = stage_of[fold.name], into.get(fold.name)
        about = {"of": fold.input} if edge is None else edge.as_values()
        above = add(_fold(fold, stage), last[fold.reads], **about)
        for step in fold.steps:
            above = last[step.name] = add(_step(step, stage), above)
        last[fold.name] = above
    for output in plan.outputs:
        add(
            {
                "id": f"output {output.name}",
                "name": output.name,
                "kind": "output",
                "stage": stage_of.get(output.of, 0),
                "fields": fields_text(output.fields),
                "about": output.topic or "",
                "node_key": output.node_key,
            },
            last[output.of],
        )
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
    elif isinstance(step, Derive):
        kind, about = "derive", ", ".join(f"{name} = {bound.expr!r}" for name, bound in step.exprs)
    elif isinstance(step, Filter):
        kind, about = "filter", repr(step.condition.expr)
    else:
        kind = "map" if isinstance(step, Map) else "flat_map"
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
    return {
        "id": fold.name,
        "name": fold.name,
        "kind": "fold",
        "stage": stage,
        "fields": fields_text(fold.row),
        "about": ", ".join(one.name for one in fold.aggregates),
        "key": [member.name for member in fold.key],
        "window": None if fold.window is None else window_text(fold.window),
        "aggregates": [
            f"{one.name} = {one.aggregate.name}({_inputs(one)})" for one in fold.aggregates
        ],
        "node_key": fold.node_key,
    }


def _inputs(one: FoldAggregate) -> str:
    return ", ".join(repr(each.expr) for each in one.inputs)
