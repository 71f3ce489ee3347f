"""Plans as readable text."""

from __future__ import annotations

from collections.abc import Iterator

from ripple.model.pipeline.division import divided_into, divided_why, undivided_why
from ripple.model.pipeline.nodes import (
    DELETED,
    ConstantJoin,
    Derive,
    EventNode,
    Explode,
    Fields,
    Filter,
    FlatMap,
    Fold,
    FoldAggregate,
    LastTable,
    Map,
    RowTable,
    SourceSpec,
    TableJoin,
    TableSpec,
    Union,
    Versions,
    reads_of,
    type_of,
)
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.stages import Stage, Transport
from ripple.model.pipeline.topology import stages_of
from ripple.model.pipeline.waiting_nodes import (
    Ask,
    AsofJoin,
    BookScan,
    Distinct,
    Finals,
    IntervalJoin,
    LastScan,
    RunningScan,
    Scan,
    StepScan,
    StreamJoin,
)
from ripple.model.running.functions import Running
from ripple.model.schema.types import DECIMALS, Field, FieldType, Option
from ripple.model.window.spec import Session, Sliding, Tumbling, WindowSpec, ZonedTumbling
from ripple.model.window.trading_sessions import TradingSessions

_UNITS = (("h", 3600 * 10**9), ("min", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("us", 10**3))
_UNSEEN_MAX = 10  # per step, in texts for people


def describe(plan: Plan) -> str:
    """Return the stages of ``plan`` in their order, the edges between them, and all node keys."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    yield f"pipeline {plan.name}  topology {plan.topology_hash}"
    for source in plan.sources:
        yield from _source_lines(source)
    for step in plan.steps:
        yield from _step_lines(plan, step)
        if not plan.is_chain:
            yield from _details(("reads", ", ".join(reads_of(step))))
    why = divided_why(plan)
    if why is not None:
        yield "stage repartition: as many partitions as are configured, divides records anew"
        yield f"event edge {plan.source.name} -> {plan.folds[0].name}: {why}"
        yield f"    through repartition topic {plan.name}.records"
    for stage in stages_of(plan):
        yield from _stage_lines(plan, stage, divided=why is not None)
        for name in stage.folds:
            yield from _fold_lines(plan, plan.fold(name))
    for output in plan.outputs:
        yield f"sink {output.name}: {fields_text(output.fields)}"
        key = ", ".join(field.name for field in output.key)
        yield from _details(
            ("of", output.of), ("topic", output.topic), ("key", key), ("node", output.node_key)
        )


def _source_lines(source: SourceSpec) -> Iterator[str]:
    checks = (f"{name} {checks}" for name, checks in source.checks.items())
    table = source.table
    kind = "source" if table is None else "table"
    disorder = span_text(source.out_of_order_ns)
    yield f"{kind} {source.name}: {fields_text(source.fields_needed)}"
    yield from _details(
        ("topic", source.topic),
        ("key", None if table is None else ", ".join(table.key)),
        ("deleted", None if table is None else _deletion_text(table)),
        ("keyed by", ", ".join(source.key)),
        ("time", source.time_field and f"{source.time_field}, {disorder} late"),
        ("rejects", _rejects_text(source.reject_future_ns)),
        ("idle", _idle_text(source.idle_ns)),
        ("checks", "; ".join(checks)),
        ("node", source.node_key),
    )


def _deletion_text(table: TableSpec) -> str:
    if table.format:
        is_letter = table.truncate == "letter"
        ends = "is a dead letter" if is_letter else "stops the run"
        return f"by op 'd' of {table.format}'s envelopes; a truncation {ends}"
    if table.deleted == DELETED:
        return "by a record without a value"
    return f"where {table.deleted} is true, and by a record without a value"


def _rejects_text(ahead_ns: int | None) -> str | None:
    return None if ahead_ns is None else f"events over {span_text(ahead_ns)} ahead of the watermark"


def _idle_text(idle_ns: int | None) -> str | None:
    if idle_ns is None:
        return None
    return f"after {span_text(idle_ns)} of silence, by recorded markers"


def blind_spots(plan: Plan, name: str) -> str | None:
    """Return the values read by a step's or fold's code outside of its key, None if nothing."""
    unseen = plan.code[name].unseen if name in plan.code else ()
    more = len(unseen) - _UNSEEN_MAX
    shown = ", ".join(unseen[:_UNSEEN_MAX])
    return (f"{shown} and {more} more" if more > 0 else shown) or None


def _code_lines(plan: Plan, name: str) -> Iterator[str]:
    libraries = plan.code[name].libraries if name in plan.code else ()
    named = ", ".join(f"{each} {plan.libraries[each]}".rstrip() for each in libraries)
    yield from _details(("known by name:", named), ("cannot see:", blind_spots(plan, name)))


def _step_lines(plan: Plan, step: EventNode) -> Iterator[str]:
    if isinstance(step, Union):
        yield f"union {step.name}: {fields_text(step.fields_out)}"
    elif isinstance(step, Finals):
        yield f"finals {step.name}: {fields_text(step.fields_out)}"
    elif isinstance(step, Distinct | Scan):
        yield _by_key_text(step)
    elif isinstance(step, Ask):
        yield f"ask {step.name}: {_function_text(step)} -> {fields_text(step.schema.fields)}"
    elif isinstance(step, Versions):
        yield f"versions {step.name}: {fields_text(step.fields_out)}"
    elif isinstance(step, StreamJoin):
        yield f"join {step.name}: {stream_join_text(step)}"
    elif isinstance(step, Derive):
        yield f"derive {step.name}: {', '.join(f'{name} = {e.expr!r}' for name, e in step.exprs)}"
    elif isinstance(step, Filter):
        yield f"filter {step.name}: {step.condition.expr!r}"
    elif isinstance(step, ConstantJoin):
        yield f"join {step.name}: {constant_join_text(step)}"
    else:
        verb = "map" if isinstance(step, Map) else "flat_map"
        yield f"{verb} {step.name}: {_function_text(step)} -> {fields_text(step.fields_out)}"
    yield from _code_lines(plan, step.name)
    yield from _details(*_entries(step), ("node", step.node_key))


def _by_key_text(step: Distinct | Scan) -> str:
    key = ", ".join(field.name for field in step.key)
    if isinstance(step, Distinct):
        return f"distinct {step.name}: by {key}, within {span_text(step.within_ns)}"
    if isinstance(step, StepScan):
        made = f"{_function_text(step)}, by {key} -> {fields_text(step.fields_out)}"
        return f"scan {step.name}: {made}"
    if isinstance(step, BookScan):
        return f"scan {step.name}: {step.book.text}, by {key} -> {fields_text(step.fields_out)}"
    if isinstance(step, LastScan):
        members = (f"{one.name} = {_last_text(one)}" for one in step.aggregates)
        return f"scan {step.name}: by {key}, last {step.rows} rows: {', '.join(members)}"
    assert isinstance(step, RunningScan), "no other scans"
    columns = (_running_text(*column) for column in step.columns)
    return f"scan {step.name}: by {key}, {', '.join(columns)}"


def _is_eager(step: Scan) -> bool:
    return isinstance(step, StepScan | BookScan) and step.is_eager


def _last_text(member: FoldAggregate) -> str:
    """Return an aggregate with the names of the fields that it reads, and its parameters."""
    of = member.aggregate
    return f"{of.name}({', '.join([*map(str, of.inputs), *of.parameters])})"


def _running_text(name: str, of: Running, read: Field | None) -> str:
    reads = [] if read is None else [read.name]
    said = of.parameters if isinstance(of.parameters, list) else []
    return f"{name} = {of.name}({', '.join([*reads, *map(str, said)])})"


def _entries(step: EventNode) -> Iterator[tuple[str, str]]:
    """Yield the lines of a node on the rows that enter it."""
    if isinstance(step, Finals):
        late = f" and {span_text(step.lateness_ns)}" if step.lateness_ns else ""
        yield "of", step.fold
        yield "rows enter", f"at their window's end{late}"
    elif isinstance(step, Distinct):
        yield "rows enter", f"once the watermark is {span_text(step.lateness_ns)} past them"
    elif isinstance(step, Scan):
        if isinstance(step, StepScan):
            yield "state", fields_text(step.state_fields)
            if step.timers:
                yield "timers", ", ".join(name for name, _ in step.timers)
        final = "rows are final" if _is_eager(step) else "rows enter"
        yield final, f"once the watermark is {span_text(step.lateness_ns)} past them"
    elif isinstance(step, Ask):
        yield "a call", f"at most {span_text(step.timeout_ns)}, and {step.retries} more if it fails"
        yield "calls at a time", str(step.concurrency)
        yield "rows enter", "once they and those before them in their input have their answers"
    elif isinstance(step, Versions):
        yield "of", step.reads
        yield "deleted where", f"{step.deleted} is true"
    elif isinstance(step, ConstantJoin):
        yield "shows", fields_text(step.added)
    elif isinstance(step, StreamJoin):
        yield "how", step.how
        yield "rows enter", "once no row on time can change their match"


def _stage_lines(plan: Plan, stage: Stage, *, divided: bool) -> Iterator[str]:
    if stage.edge is not None:
        edge = stage.edge
        yield f"{edge.kind.value} edge {edge.of} -> {edge.to}: {edge.why}"
        if edge.kind.transport is Transport.LOG:
            yield f"    through repartition topic {plan.name}.stage-{stage.number}"
    count = "as many partitions as are configured"
    partitions = stage.partitions
    if stage.number == 0 and divided:
        partitions = divided_into(plan)
    if partitions is not None:
        count = f"{partitions} partition{'s' if partitions > 1 else ''}"
    alone = undivided_why(plan)
    if alone is not None:
        yield f"one process computes all: {alone}"
        return
    by = ", ".join(stage.key) or (
        "() (one total)" if plan.is_chain or stage.number else "the source's partitioning"
    )
    yield f"stage {stage.number}: {count}, by {by}"


def _fold_lines(plan: Plan, fold: Fold) -> Iterator[str]:
    key = ", ".join(member.name for member in fold.key) or "() (one total)"
    if isinstance(fold, TableJoin):
        yield f"join {fold.name}: {fields_text(fold.row)}"
        yield from _details(
            ("left", fold.reads), ("right", fold.reads_right), ("how", join_text(fold))
        )
        yield from _results_lines(plan, fold)
        return
    if isinstance(fold, RowTable):
        kind = "scan" if any(one.name == fold.input for one in plan.scans) else "join"
        enter = f"once read, final as the {kind} says"
        if isinstance(fold, LastTable):
            enter = "once read, and stay while no newer row of their key is made"
        yield f"rows {fold.name}: {fields_text(fold.row)}"
        yield from _details(("of", fold.input), ("rows enter", enter))
        yield from _results_lines(plan, fold)
        return
    yield f"fold {fold.name}: {fields_text(fold.row)}"
    yield from _details(
        ("key", f"{key} (partition {fold.partition})"),
        ("window", window_text(fold.window) if fold.window is not None else None),
        ("ttl", _ttl_text(fold)),
    )
    for member in fold.aggregates:
        inputs = [repr(item.expr) for item in member.inputs[: len(member.aggregate.inputs)]]
        arguments = ", ".join([*inputs, *member.aggregate.parameters])
        yield f"    {member.name} = {member.aggregate.name}({arguments})"
    yield from _code_lines(plan, fold.name)
    yield from _results_lines(plan, fold)
    if not plan.is_chain:
        yield from _details(("reads", fold.reads))


def _results_lines(plan: Plan, fold: Fold) -> Iterator[str]:
    yield from _details(("node", fold.node_key))
    for step in fold.steps:
        yield from _step_lines(plan, step)


def join_text(join: TableJoin) -> str:
    """Return how a join finds the partners of a row, in a line."""
    pairs = ", ".join(f"{left} = {right}" for left, right in join.pairs)
    by = "the key of both" if join.is_by_key else f"the key of {join.reads_right}"
    if join.is_many:
        keys = [
            ", ".join(one.name for one in key) or "()" for key in (join.left_key, join.right_key)
        ]
        by = (
            f"many to many, a row for each pair, since it names neither the key of {join.reads}, "
            f"{keys[0]}, nor that of {join.reads_right}, {keys[1]}"
        )
    return f"{join.how}, {pairs}: {by}"


def constant_join_text(step: ConstantJoin) -> str:
    """Return a join with a constant in a line, with the digest of its rows."""
    constant = step.constant
    pairs = zip(step.on, constant.key, strict=True)
    on = ", ".join(mine if mine == theirs else f"{mine} = {theirs}" for mine, theirs in pairs)
    count = constant.rows.num_rows
    held = f"constant {constant.name}, {count} row{'' if count == 1 else 's'} of {constant.digest}"
    return f"{step.how}, on {on}, with {held}"


def stream_join_text(node: StreamJoin) -> str:
    """Return a join in a line: its keys, and which rows match."""
    keys = [(mine.name, theirs.name) for mine, theirs in node.on]
    on = ", ".join(mine if mine == theirs else f"{mine} = {theirs}" for mine, theirs in keys)
    if isinstance(node, IntervalJoin):
        bounds = f"from {bound_text(node.lo_ns)} to {bound_text(node.hi_ns)}"
        return f"on {on}, {node.left} with {node.right} {bounds}"
    assert isinstance(node, AsofJoin), "no other joins"
    strictly = "strictly " if node.is_strict else ""
    near = "" if node.tolerance_ns is None else f" within {span_text(node.tolerance_ns)}"
    return f"on {on}, {node.left} with {node.right} {strictly}{node.strategy}{near}"


def bound_text(bound_ns: int) -> str:
    """Return a bound of an interval in words."""
    if not bound_ns:
        return "its time"
    return f"{span_text(abs(bound_ns))} {'before' if bound_ns < 0 else 'after'} it"


def _ttl_text(fold: Fold) -> str | None:
    if fold.expiry is None or not isinstance(fold.expiry.assigner, Session):
        return None
    return span_text(fold.expiry.assigner.gap_ns)


def _details(*pairs: tuple[str, str | None]) -> Iterator[str]:
    for name, text in pairs:
        if text:
            yield f"    {name} {text}"


def window_text(window: WindowSpec) -> str:
    """Return a window in a line."""
    match window.assigner:
        case Tumbling(size_ns=size_ns):
            text = f"tumbling {span_text(size_ns)}"
        case ZonedTumbling(size=size, zone=zone, offset_s=offset_s):
            text = f"tumbling {size} of {zone}"
            if offset_s:
                text += f" at {'-' * (offset_s < 0)}{span_text(abs(offset_s) * 10**9)}"
        case TradingSessions(text=sessions):
            text = sessions
        case Sliding(size_ns=size_ns, slide_ns=slide_ns):
            text = f"sliding {span_text(size_ns)} every {span_text(slide_ns)}"
        case Session(gap_ns=gap_ns):
            text = f"sessions with gaps of {span_text(gap_ns)}"
    return f"{window.name}: {text}, lateness {span_text(window.lateness_ns)}, {window.trigger!r}"


def _function_text(step: Map | FlatMap | Explode | Ask | StepScan) -> str:
    if isinstance(step, Explode):
        return f"items of {step.column}"
    name = getattr(step.function, "__qualname__", repr(step.function))
    return f"{name} per {'batch' if isinstance(step, Map) and step.batch else 'row'}"


def fields_text(fields: Fields) -> str:
    """Return fields with their types."""
    return ", ".join(f"{member.name} {type_text(type_of(member))}" for member in fields)


def type_text(field_type: FieldType) -> str:
    """Return a type in a word."""
    if isinstance(field_type, Option):
        return f"{type_text(field_type.of)}?"
    if isinstance(field_type, DECIMALS):
        return f"decimal({field_type.precision}, {field_type.scale})"
    return type(field_type).__name__.lower()


def span_text(span_ns: int) -> str:
    """Return a span of time in its largest unit."""
    for unit, size_ns in _UNITS:
        if span_ns and span_ns % size_ns == 0:
            return f"{span_ns // size_ns}{unit}"
    return f"{span_ns}ns"
