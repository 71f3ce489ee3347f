"""Joins with a narrower span of time than before: their rows in a checkpoint serve it, too.

A snapshot notes the spans of its joins. A plan with those spans in the place of its own has the
digests of the writer, unless more has changed; so it is compared with the snapshot, and nodes
behind a narrowed join are found again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from ripple.model.canonical import digest_of, name_of
from ripple.model.pipeline.description import bound_text, span_text
from ripple.model.pipeline.node_keys import keyed
from ripple.model.pipeline.waiting_nodes import AsofJoin, IntervalJoin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.nodes import EventNode, Fold, Output, SourceSpec, Step
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import StreamJoin

_N = TypeVar("_N", "SourceSpec", "EventNode", "Step", "Fold", "Output")


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A plan beside a checkpoint of the same one but for the spans of joins.

    before: the plan with the former spans of its narrowed joins. causes: per key of a narrowed join
    how it differs, as a text. reasons: per key of a join with another span why its rows do not
    serve, although nothing else has changed.
    """

    before: Plan
    causes: Mapping[str, str]
    reasons: Mapping[str, str]

    def former_keys(self, plan: Plan) -> dict[str, str]:
        """Return the former key of each node of ``plan``, if all else is as it was."""
        return dict(zip(plan.node_keys, self.before.node_keys, strict=True))


def narrowing(plan: Plan, snapshot: Snapshot) -> Narrowing:
    """Return the joins of ``plan`` that have another span than in ``snapshot``, and no more."""
    before, causes, reasons = plan, dict[str, str](), dict[str, str]()
    spans: dict[str, list[int | None]] = json.loads(snapshot.notes.get("spans", "{}"))
    known = {(digest_of(key), name_of(key)) for key in snapshot.nodes}
    for join in plan.stream_joins if snapshot.topology_hash != plan.topology_hash else ():
        for digest, span in spans.items():
            if (digest, join.name) not in known or tuple(span) == join.span_ns:
                continue
            was = _with_span(_named(before, join.name), span)
            tried = _with_join(before, was)
            if digest_of(_named(tried, join.name).node_key) != digest:
                continue
            of = "within" if isinstance(join, IntervalJoin) else "tolerance"
            change = f"its {of} was {_text(was)}, and is {_text(join)}"
            if why := _why_not(plan, was, join):
                reasons[join.node_key] = f"{change}: {why}"
            else:
                before, causes[join.node_key] = tried, change
    return Narrowing(before, causes, reasons)


def _why_not(plan: Plan, was: StreamJoin, join: StreamJoin) -> str:
    """Return why rows held by ``was`` do not serve ``join``, "" if they do."""
    if isinstance(was, IntervalJoin) and isinstance(join, IntervalJoin):
        is_wider = join.lo_ns < was.lo_ns or join.hi_ns > was.hi_ns
        is_sooner = _waits_ns(join) != _waits_ns(was)
    else:
        assert isinstance(was, AsofJoin), "of one kind"
        assert isinstance(join, AsofJoin), "of one kind"
        now_ns, was_ns = join.tolerance_ns, was.tolerance_ns
        is_wider = was_ns is not None and (now_ns is None or now_ns > was_ns)
        is_sooner = join.strategy != "backward"
    if is_wider:
        return "rows that the wider one needs are not there any more"
    if is_sooner:
        return "rows would follow sooner, and some from before this cut in no output"
    return _why_not_behind(plan, join)


def _waits_ns(join: IntervalJoin) -> tuple[int, ...]:
    """Return how long rows of either side wait for partners; see ``bounds_ns`` of its operators."""
    if not join.shows_right:
        return (join.hi_ns,)
    return max(0, -join.lo_ns), max(0, join.hi_ns)


def _why_not_behind(plan: Plan, join: StreamJoin) -> str:
    """Return the node behind a join with state of other rows, as a reason; "" without one."""
    for ask in plan.asks:
        if join.name in plan.names_below(ask.name):
            return f"rows by the former one were asked at {ask.name!r}"
    rows = {table.name for table in plan.row_tables if table.input == join.name}
    for fold in plan.folds:
        if fold.input in rows:
            return f"the fold {fold.name!r} has rows by the former one"
    return ""


def _with_join(plan: Plan, join: StreamJoin) -> Plan:
    """Return ``plan`` with another node of that name, and with the keys that follow from it."""
    steps = [join if one.name == join.name else one for one in plan.steps]

    def unkeyed(nodes: Sequence[_N]) -> tuple[_N, ...]:
        return tuple(replace(one, node_key=one.node_key.rpartition("#")[0]) for one in nodes)

    return keyed(
        replace(
            plan,
            sources=unkeyed(plan.sources),
            steps=unkeyed(steps),
            folds=tuple(replace(one, steps=unkeyed(one.steps)) for one in unkeyed(plan.folds)),
            outputs=unkeyed(plan.outputs),
        )
    )


def _with_span(join: StreamJoin, span: list[int | None]) -> StreamJoin:
    if isinstance(join, IntervalJoin):
        lo_ns, hi_ns = span
        assert lo_ns is not None, "an interval has both bounds"
        assert hi_ns is not None, "an interval has both bounds"
        return replace(join, lo_ns=lo_ns, hi_ns=hi_ns)
    assert isinstance(join, AsofJoin), "no other joins"
    return replace(join, tolerance_ns=span[0])


def _named(plan: Plan, name: str) -> StreamJoin:
    return next(one for one in plan.stream_joins if one.name == name)


def _text(join: StreamJoin) -> str:
    if isinstance(join, IntervalJoin):
        return f"from {bound_text(join.lo_ns)} to {bound_text(join.hi_ns)}"
    assert isinstance(join, AsofJoin), "no other joins"
    return "none" if join.tolerance_ns is None else span_text(join.tolerance_ns)
