"""How the records of a plan's sources must be divided, and steps that partitions cannot take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import PlanError
from ripple.model.pipeline.copartition import unlike_why
from ripple.model.pipeline.stages import (
    PARTITIONS_DEFAULT,
    Transport,
    first_folds,
    key_of,
    shared_fields,
    staying_why,
    tree_of,
)
from ripple.model.window.spec import OnEveryElement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Holding


def divided_into(plan: Plan) -> int:
    """Return the number of partitions of the first stage of a repartitioned source."""
    return plan.folds[0].partitions or PARTITIONS_DEFAULT


def divided_why(plan: Plan, keyed_by: tuple[str, ...] | None = None) -> str | None:
    """Return why the source must be repartitioned; None if it need not be.

    keyed_by: the dividing fields of the present input, () for none, None if unknown; the pipeline's
    ``keyed_by`` takes precedence.
    """
    if not plan.is_chain:
        return None  # its records are divided as they must be, or it is refused
    first, source = plan.folds[0], plan.source
    key = ", ".join(key_of(first))
    if first.via_log:
        return "asked for by via='log'"
    known = source.key or keyed_by
    if known is None or (known and set(known) <= set(key_of(first))):
        return None
    by = f"by {', '.join(known)}" if known else "by nothing"
    return f"records of {source.name} are divided {by}, and {first.name} needs all of one {key}"


def undivided_why(
    plan: Plan, keyed_by: Mapping[str, tuple[str, ...] | None] | None = None
) -> str | None:
    """Return why the partitions of the sources do not fit all branches, None where they do.

    keyed_by: of each source, by its name, as for ``divided_why``, which says the same of a chain;
    None before the inputs are known.
    """
    if plan.is_chain:
        return None
    apart = _apart_why(plan)
    if apart is not None or len(plan.sources) > 1:
        keyed = _keyed(plan)
        if keyed_by is not None and unlike_why(plan, keyed) is not None:
            keyed = plan.keyed  # stages are cut without the inputs: there is one
        return apart or unlike_why(plan, keyed, keyed_by) or _event_edge_why(plan)
    alone, keyed = _event_edge_why(plan), _keyed(plan)
    if alone is not None or not keyed:
        return alone
    source, by = plan.source, {node.name: key_of(node) for node in keyed}
    staying = staying_why(plan)
    stay = "" if staying is None else f", while {staying}"
    known = source.key or (keyed_by or {}).get(source.name)
    if known is not None:
        for name, key in by.items():
            if not known or not set(known) <= set(key):
                why = (
                    f"records of {source.name} are divided by {', '.join(known) or 'nothing'}, and "
                    f"{name} needs all of one {', '.join(key) or 'total'}{stay}"
                )
                if known and staying is None and plan.fold(name) not in plan.event_folds:
                    why += f", for which .source(..., key={list(known)!r}) makes a stage"
                return why
    if not shared_fields(by.values()):
        keys = ", ".join(f"{name} is by {', '.join(key) or '()'}" for name, key in by.items())
        nodes = "folds and distinct rows" if plan.distincts else "folds"
        nodes = "folds and scans" if plan.scans else nodes
        nodes = "folds and joins" if plan.stream_joins else nodes
        return f"its {nodes} have no field of their keys in common: {keys}{stay}"
    return None


def _keyed(plan: Plan) -> Sequence[Fold | Holding]:
    """Return the nodes of the first stage that need all records of a key."""
    return first_folds(plan) if plan.folds and staying_why(plan) is None else plan.keyed


def waiting_why(plan: Plan, *, is_open: bool = False) -> str | None:
    """Return why the rows of one process and of partitions differ, None if they do not.

    is_open: whether inputs may continue. After the end of all inputs, no row waits for the
    watermark in either.
    """
    at_once = {table.input for table in plan.row_tables}
    for node in (one for one in plan.waiting if is_open and one.name not in at_once):
        return f"the rows of {node.name} follow by the watermark of all inputs"
    for fold in plan.event_folds if is_open else ():
        if fold.window is not None and not isinstance(fold.window.trigger, OnEveryElement):
            return f"the windows of {fold.name} end by the watermark of all inputs"
    ending = [fold.name for fold in plan.folds if fold.expiry is not None]
    return f"the keys of {ending[0]} end by ttl= in one process" if ending else None


def _apart_why(plan: Plan) -> str | None:
    """Return which join looks for rows in all partitions, None where none does."""
    for node in plan.stream_joins:
        if not node.key:
            return (
                f"the sides of {node.name} have other names for their keys: .derive a field of one "
                "name on both, which divides their sources, for on="
            )
    for join in plan.table_joins:
        if not key_of(join):
            return (
                f"rows of {join.right}, which {join.name} looks for, may be in any of them: let "
                "one field divide both sides, be in the key of both, and be named by the join"
            )
    return None


def _event_edge_why(plan: Plan) -> str | None:
    """Return which fold of a plan with branches needs an event edge, None where none does."""
    through = [fold.name for fold in plan.folds if fold.via_log]
    if through:
        return f"{through[0]} asks for via='log', and there is no log between branches"
    stages = tree_of(plan) if staying_why(plan) is None else ()
    for edge in (stage.edge for stage in stages):
        if edge is not None and edge.kind.transport is Transport.LOG:
            own = f": fold the rows of {edge.of} in a pipeline of its own, from their sink"
            return (
                f"{edge.to} needs an event edge from {edge.of} ({edge.why}), and there is no log "
                f"between branches{own if len(plan.sources) > 1 else ''}"
            )
    return None


def need_one_division(
    plan: Plan,
    where: str,
    keyed_by: Mapping[str, tuple[str, ...] | None] | None = None,
    *,
    is_one: bool = False,
) -> None:
    """Raise PlanError for branches that ``where`` cannot compute in partitions of the sources.

    keyed_by: as for ``undivided_why``. is_one: whether one partition has all records.
    """
    _need_idle_undivided(plan, where, keyed_by or {})
    why = undivided_why(plan, keyed_by)
    if why is not None and is_one:
        mixed = _mixed_table_why(plan, keyed_by or {})
        if mixed is None:
            return
        raise PlanError(f"pipeline {plan.name!r}: {mixed}, or run it in one process")
    if why is not None and len(plan.sources) > 1:
        raise PlanError(
            f"pipeline {plan.name!r} has the sources {plan.source_names}, which {where} reads in "
            f"partitions divided alike, and {why}; or run it in one process, with ripple run or "
            "rp.run, or in one partition (--partitions 1)"
        )
    if why is not None:
        parts, own = "branches", "make a pipeline of each branch"
        if plan.asks:
            parts, own = "an .ask", _folded_first(plan, keyed_by or {}) or own
        if staying_why(plan) is not None:
            parts = "tables that are joined" if plan.table_joins else "rows by the watermark"
            own = "divide it by a field of all these keys"
        raise PlanError(
            f"pipeline {plan.name!r} has {parts}, which {where} computes in the partitions of its "
            f"source, and {why}: run it in one process, with ripple run or rp.run, or in one "
            f"partition (--partitions 1), or {own}"
        )
    table = next((one.name for one in plan.sources if one.table is not None), None)
    divided = None if table is None else divided_why(plan, (keyed_by or {}).get(table))
    if divided is not None:
        raise PlanError(
            f"pipeline {plan.name!r}: {where} leaves the records of the table {table!r} in the "
            f"partitions of their topic, where offsets tell the newest of a key, and {divided}: "
            "let the topic be written by that key, or run it in one process"
        )


def _folded_first(plan: Plan, keyed_by: Mapping[str, tuple[str, ...] | None]) -> str:
    """Return the remedy for a fold of rows with answers, which no log divides; "" without one."""
    known = plan.source.key or keyed_by.get(plan.source.name) or ()
    for fold in plan.event_folds:
        key = key_of(fold)
        if known and not set(known) <= set(key):
            by = ", ".join(dict.fromkeys((*known, *key)))
            return f"fold by {by} first, and the rows of that fold by {', '.join(key) or '()'}"
    return ""


def _need_idle_undivided(
    plan: Plan, where: str, keyed_by: Mapping[str, tuple[str, ...] | None]
) -> None:
    """Raise PlanError for idle inputs of a repartitioned source: markers would be elsewhere."""
    if not plan.is_idle:
        return
    why = divided_why(plan, keyed_by.get(plan.sources[0].name))
    if why is not None:
        raise PlanError(
            f"source {plan.source.name!r} has idle=, which {where} records where the partitions of "
            f"the source are computed, and its records are repartitioned ({why}): let the topic be "
            "written by that key, run it in one process, or leave idle= out"
        )


def needs_one(plan: Plan, keyed_by: Mapping[str, tuple[str, ...] | None] | None = None) -> bool:
    """Return whether a plan needs one partition of the first stage that has all records.

    keyed_by: as for ``undivided_why``.
    """
    return undivided_why(plan, keyed_by) is not None


def _mixed_table_why(plan: Plan, keyed_by: Mapping[str, tuple[str, ...] | None]) -> str | None:
    """Return which table's topic may have one key in several partitions, with a remedy."""
    for source in plan.sources:
        if source.table is not None and source.name in keyed_by:
            key, known = source.table.key, keyed_by[source.name]
            if not known or not set(known) <= set(key):
                return (
                    f"offsets tell the newest record of a key of the table {source.name!r}, and "
                    "nothing tells that its topic has all of one key in one partition: let it be "
                    f"written by {', '.join(key)}, and say ?key={','.join(key)} in its URI"
                )
    return None


def need_no_table(plan: Plan, where: str) -> None:
    """Raise PlanError for tables from topics: ``where`` reads events alone."""
    for source in plan.sources:
        if source.table is not None:
            raise PlanError(
                f"pipeline {plan.name!r} reads the table {source.name!r}, and {where} takes "
                "pipelines over events alone: run it in one process, with ripple run or rp.run, "
                "or on a cluster"
            )


def need_no_idle(plan: Plan, where: str) -> None:
    """Raise PlanError for a source with ``idle``: ``where`` reads no markers of idle inputs."""
    for source in plan.sources:
        if source.idle_ns is not None:
            raise PlanError(
                f"source {source.name!r} has idle=, and {where} reads no markers of idle inputs: "
                "run it in one process, with ripple run or rp.run, or leave idle= out"
            )


def need_chain(plan: Plan, where: str) -> None:
    """Raise PlanError unless ``plan`` is a chain: ``where`` computes no other."""
    plan.need_one_source(where)
    if not plan.is_chain:
        raise PlanError(
            f"pipeline {plan.name!r} has branches, a flat_map or a sink of events, and {where} "
            "computes chains of folds alone: run it in one process, with ripple run or rp.run"
        )
