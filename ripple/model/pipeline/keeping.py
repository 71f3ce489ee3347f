"""The state of a plan's folds and waiting nodes: the lateness of their rows, and their contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.frozen import frozen
from ripple.model.pipeline.description import bound_text, span_text
from ripple.model.pipeline.nodes import Fold, LastTable, RowTable, TableJoin
from ripple.model.pipeline.plan import inputs_first
from ripple.model.pipeline.waiting_nodes import (
    Ask,
    AsofJoin,
    Distinct,
    Finals,
    IntervalJoin,
    LastScan,
    Scan,
    StreamJoin,
    sides_of,
)
from ripple.model.window.spec import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.model.pipeline.plan import Plan


@frozen
class Keeping:
    """The state of one node.

    lateness_ns: how far below the watermark a row still counts; None where every row does. ttl_ns:
    how long a key lasts after its last event; None where keys do not end by it. keeps: its
    contents, and until when, for people.
    """

    kind: str
    name: str
    lateness_ns: int | None
    ttl_ns: int | None
    keeps: str

    def as_values(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "kind": self.kind,
            "name": self.name,
            "lateness_ns": self.lateness_ns,
            "ttl_ns": self.ttl_ns,
            "keeps": self.keeps,
        }

    @property
    def text(self) -> str:
        """The same in a line, for people."""
        late = "no row is late"
        if self.lateness_ns is not None:
            late = f"lateness {span_text(self.lateness_ns)}"
        ends = "" if self.ttl_ns is None else f", ttl {span_text(self.ttl_ns)}"
        return f"{late}{ends}; {self.keeps}"


def keeping(plan: Plan) -> Iterator[Keeping]:
    """Yield the state of each fold, and of each node that waits, after that of its inputs."""
    for node, _ in inputs_first(plan):
        if isinstance(node, Distinct | Scan | Ask | StreamJoin):
            yield _waiting(plan, node)
        elif isinstance(node, Finals):
            keeps = f"nothing: a row is kept by {node.fold!r} until it is final"
            yield Keeping("finals", node.name, None, None, keeps)
        elif isinstance(node, RowTable):
            keeps = f"a row of {node.input!r} until it is final"
            if isinstance(node, LastTable):
                keeps = f"the last row of a key as long as its state in {node.input!r}"
            yield Keeping("rows", node.name, None, None, keeps)
        elif isinstance(node, TableJoin):
            yield Keeping("join", node.name, None, None, _of_table_join(node))
        elif isinstance(node, Fold):
            lateness_ns, ttl_ns = None, None
            if node.timing is not None:
                lateness_ns = _lateness_ns(plan, node.reads, node.timing.lateness_ns)
            if node.expiry is not None and isinstance(node.expiry.assigner, Session):
                ttl_ns = node.expiry.assigner.gap_ns
            yield Keeping("fold", node.name, lateness_ns, ttl_ns, _of_fold(plan, node))


def _waiting(plan: Plan, node: Distinct | Scan | Ask | StreamJoin) -> Keeping:
    if isinstance(node, Distinct):
        lateness_ns = _lateness_ns(plan, node.reads, node.lateness_ns)
        return Keeping("distinct", node.name, lateness_ns, None, _of_distinct(node))
    if isinstance(node, Scan):
        lateness_ns = _lateness_ns(plan, node.reads, node.lateness_ns)
        return Keeping("scan", node.name, lateness_ns, node.ttl_ns, _of_scan(node))
    if isinstance(node, Ask):
        keeps = "a row until it, and each before it in its input, has its answer or a failure"
        return Keeping("ask", node.name, None, None, keeps)
    spans_ns = [_lateness_ns(plan, one.reads, one.lateness_ns) for one in sides_of(node)]
    lateness_ns = max((span for span in spans_ns if span is not None), default=None)
    keeps = _of_interval(node) if isinstance(node, IntervalJoin) else _of_asof(node)
    return Keeping("join", node.name, lateness_ns, None, keeps)


def _lateness_ns(plan: Plan, stream: str, lateness_ns: int) -> int | None:
    """Return how late rows of a stream may be: rows in watermark order never are."""
    waiting = {node.name for node in plan.waiting if not isinstance(node, Ask)}
    return None if waiting.issuperset(plan.roots_of(stream)) else lateness_ns


def _of_scan(node: Scan) -> str:
    late = f"{span_text(node.lateness_ns)} " if node.lateness_ns else ""
    lasts = "for ever"
    if node.ttl_ns is not None:
        lasts = f"until then, {span_text(node.ttl_ns)} after its last row"
    state = f"the last {node.rows} rows" if isinstance(node, LastScan) else "the state"
    return f"a row until the watermark is {late}past it, and {state} of a key {lasts}"


def _of_distinct(node: Distinct) -> str:
    late = f"{span_text(node.lateness_ns)} " if node.lateness_ns else ""
    return (
        f"a row until the watermark is {late}past it, and the time of a key's last one "
        f"for {span_text(node.within_ns)} more"
    )


def _of_table_join(join: TableJoin) -> str:
    keeps = f"a row as long as {join.input!r} and {join.right!r} have those that it is made of"
    if join.is_by_key:
        return keeps
    if join.is_many:
        alone = " and each row without a partner" if join.has_sides else ""
        return f"{keeps}, one for each pair{alone}; a change of a row changes all its pairs"
    return f"{keeps}; a change of one row of {join.right!r} changes all rows that name it"


def _of_asof(node: StreamJoin) -> str:
    assert isinstance(node, AsofJoin), "no other joins"
    late = "past them"
    if any(node.latenesses_ns):
        late = f"{span_text(max(node.latenesses_ns))} past them"
    rows = f"rows of {node.left!r} and {node.right!r} until the watermarks of both are {late}"
    span = "" if node.tolerance_ns is None else span_text(node.tolerance_ns)
    if node.strategy == "backward":
        longer = f"for {span} more" if span else "for ever: it has no tolerance"
        return f"{rows}; of {node.right!r} a key's last one before that {longer}"
    further = f"{rows}, that of {node.right!r} by {span} more"
    return (
        further if node.strategy == "forward" else f"{further}; of {node.right!r} for as much more"
    )


def _of_interval(node: IntervalJoin) -> str:
    left_ns, right_ns = node.latenesses_ns
    if node.shows_right:
        before_ns, after_ns = max(0, -node.lo_ns), max(0, node.hi_ns)
        return (
            f"rows of both sides until the watermark of {node.left!r} is "
            f"{_past(before_ns + left_ns)}, and that of {node.right!r} "
            f"{_past(after_ns + right_ns)}; then a row of {node.left!r} for {span_text(after_ns)} "
            f"more, and one of {node.right!r} for {span_text(before_ns)}"
        )
    return (
        f"a row of {node.left!r} until its watermark is {_past(left_ns)}, and that of "
        f"{node.right!r} {_past(node.hi_ns + right_ns)}; a row of {node.right!r} until no row of "
        f"{node.left!r} up to {bound_text(-node.lo_ns)} is kept or may come"
    )


def _past(span_ns: int) -> str:
    if span_ns < 0:
        return f"past {bound_text(span_ns)}"
    return f"{span_text(span_ns)} past it" if span_ns else "past it"


def _of_fold(plan: Plan, fold: Fold) -> str:
    if fold.window is not None:
        late = fold.window.lateness_ns
        past = f"{span_text(late)} past its end" if late else "at its end"
        return f"a window until the watermark is {past}"
    if fold.expiry is not None and isinstance(fold.expiry.assigner, Session):
        gap, late = span_text(fold.expiry.assigner.gap_ns), fold.expiry.lateness_ns
        more = f", its state for {span_text(late)} more" if late else ""
        return f"a key's row until the watermark is {gap} past its last event{more}"
    key = "a key" if fold.key else "one row"
    table = next((one.table for one in plan.sources if one.name == fold.reads), None)
    if table is not None:
        return f"{key} until it is deleted; where several inputs are read, its deletion for ever"
    if fold in plan.event_folds:
        return f"{key} for ever"
    if plan.frees(fold):
        return f"{key} until its window in {fold.input!r} is over"
    if plan.frees(plan.fold(fold.input)) and isinstance(plan.fold(fold.input), RowTable):
        return f"{key} for ever: final rows stay in it"
    if plan.frees(plan.fold(fold.input)):
        return f"{key} for ever: rows of windows that are over stay in it"
    return f"{key} as long as {fold.input!r} has rows of it"
