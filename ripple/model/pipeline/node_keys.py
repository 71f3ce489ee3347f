"""The keys of a plan's nodes: a path, and a digest of the computation and its inputs.

A key is ``path#digest``: the names on the way from the source to the node, and a BLAKE2b digest of
the node's computation and inputs. State is found again under that key, so it does not depend on
steps elsewhere: other sinks, later folds, fields that nothing upstream reads.

Code is looked into when the keys are made, which is when the plan is made and everything in the
user's modules is there; changes that a function makes while it runs are no part of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ripple.core.errors import PlanError
from ripple.model.canonical import canonical, digest_of, node_key
from ripple.model.code_fingerprint.owner import library_of_module
from ripple.model.pipeline.checks import blaming, blaming_field
from ripple.model.pipeline.nodes import (
    ConstantJoin,
    Derive,
    Explode,
    Filter,
    FlatMap,
    Fold,
    Map,
    Output,
    RowTable,
    SourceSpec,
    TableJoin,
    Union,
    type_of,
)
from ripple.model.pipeline.plan import inputs_first
from ripple.model.pipeline.waiting_nodes import (
    Ask,
    AsofJoin,
    BookScan,
    Distinct,
    Finals,
    IntervalJoin,
    LastScan,
    PositionScan,
    RunningScan,
    Scan,
    StepScan,
    StreamJoin,
)
from ripple.model.schema.notation import type_to_sexp

if TYPE_CHECKING:
    from ripple.core.sexp import Sexp
    from ripple.model.canonical import OfCode
    from ripple.model.code_fingerprint.form import CodeForm
    from ripple.model.pipeline.nodes import EventNode, Fields, FoldAggregate, NodeOf, Step
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Holding

_N = TypeVar("_N", "SourceSpec", "EventNode", "Step", "Fold", "Output")


def unknown_folds(plan: Plan, rebuild: Collection[str]) -> list[str]:
    """Return a problem for each text that names no node to recompute, or two of them."""
    computed, shown = _rebuilt(plan)
    known = {*computed, *shown, *computed.values(), *shown.values()}
    folds = ", ".join(dict.fromkeys((*computed, *shown)))
    problems = [
        f"there is no fold {text!r} to rebuild: the folds are {folds}"
        for text in rebuild
        if text not in known
    ]
    return problems + [
        f"a step and a sink of events are called {text!r}: say which one to rebuild, by its key: "
        f"--rebuild '{computed[text]}' is the step, --rebuild '{shown[text]}' the sink"
        for text in rebuild
        if text in computed and text in shown
    ]


def rebuild_word(plan: Plan, name: str, *, is_sink: bool = False) -> str:
    """Return the word of ``--rebuild`` for a step or a sink of events.

    It is the name, or the key if a step and a sink share the name.
    """
    computed, shown = _rebuilt(plan)
    if name in computed and name in shown:
        return f"'{(shown if is_sink else computed)[name]}'"
    return name


def _rebuilt(plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    """Return the keys of the steps and of the sinks of events that may be rebuilt, by name."""
    computed = {node.name: node.node_key for node in (*plan.folds, *plan.holding)}
    return computed, {one.name: one.node_key for one in plan.outputs if one.is_stream}


def keyed(plan: Plan) -> Plan:
    """Return ``plan`` with the keys of its nodes, which so far are their paths.

    Raises PlanError, naming the step, for parameters that cannot be compared between processes.
    """
    forms = _Forms()
    # An output may have the path of a source.
    keys = {(isinstance(node, Output), node.node_key): key for node, key in _keys(plan, forms)}

    def key(node: _N) -> _N:
        return replace(node, node_key=keys[isinstance(node, Output), node.node_key])

    return replace(
        plan,
        sources=tuple(key(source) for source in plan.sources),
        steps=tuple(key(step) for step in plan.steps),
        folds=tuple(
            replace(key(fold), steps=tuple(key(step) for step in fold.steps)) for fold in plan.folds
        ),
        outputs=tuple(key(output) for output in plan.outputs),
        code=forms.forms,
    )


class _Forms:
    """The forms of a plan's code, and of all that it reads. forms: per step or fold with code."""

    def __init__(self) -> None:
        self.forms: dict[str, CodeForm] = {}

    def of_map(self, step: Map | FlatMap) -> Sexp:
        roots: dict[str, object] = {"": step.function}
        if step.row is not None and not (isinstance(step, Map) and step.batch):
            roots["row"] = step.row  # it may have methods, which the function calls
        return self._note(step.name, roots)

    def of_scan(self, node: StepScan) -> Sexp:
        roots: dict[str, object] = {"": node.function, "state": node.state}
        if node.row is not None:
            roots["row"] = node.row  # both may have methods, which the function calls
        roots |= {f"timer {name}": function for name, function in node.timers}
        return self._note(node.name, roots)

    def of_aggregate(
        self, fold: Fold | LastScan, member: FoldAggregate
    ) -> tuple[OfCode, list[Sexp]]:
        kind = type(member.aggregate)
        is_ours = library_of_module(kind.__module__) == "ripple"
        more = [] if is_ours else [self._note(fold.name, {member.name: kind})]
        return lambda value: self._note(fold.name, {member.name: value}), more

    def _note(self, name: str, roots: Mapping[str, object]) -> Sexp:
        from ripple.model.code_fingerprint.form import code_form, joined  # noqa: PLC0415 - most plans have no code

        form = code_form(roots)
        self.forms[name] = joined(self.forms.get(name), form)
        return ["code", form.digest]


def _keys(plan: Plan, forms: _Forms) -> Iterator[tuple[NodeOf, str]]:
    """Yield each node, still with its path for a key, and its key: inputs first."""
    digests = {"": ""}
    for node, inputs in (*inputs_first(plan), *plan.shown):
        # An output is one of its fold, whatever steps are on the results: they are found apart.
        of = node.of if isinstance(node, Output) else "".join(inputs[:1])
        meaning = _meaning(node, forms)
        if isinstance(node, Union):
            # Ties are decided by the order of the sources, and rows numbered by that of the nodes.
            ranked: list[Sexp] = [digests[source.name] for source in plan.sources_of(node.name)]
            meaning = ["union", [digests[name] for name in inputs], ranked]
        elif isinstance(node, StepScan) and not isinstance(node, PositionScan):
            meaning = ["scan", *_parameters(node), forms.of_scan(node)]
        elif isinstance(node, LastScan):
            with blaming("scan", node.name):
                members = [_member(node, member, forms) for member in node.aggregates]
                meaning = ["last-rows", *_parameters(node), *members]
        elif isinstance(node, TableJoin):
            meaning = [*_join_meaning(node), digests[node.reads_right]]
        elif isinstance(node, StreamJoin):
            meaning = [type(node).__name__.lower(), *_parameters(node), digests[node.right]]
        elif isinstance(node, SourceSpec) and node is not plan.sources[0]:
            # Sources with equal declarations have different records; the first is as an only one.
            meaning = ["named", node.name, meaning]
        key = node_key(node.node_key, digests[of], meaning)
        if not isinstance(node, Output):
            digests[node.name] = digest_of(key)
        yield node, key


def _meaning(node: NodeOf, forms: _Forms) -> Sexp:
    match node:
        case SourceSpec():
            return _source_meaning(node)
        case Union() | Finals() | Distinct() | Scan() | StreamJoin() | Ask():
            return [type(node).__name__.lower(), *_parameters(node)]
        case Derive() | Filter() | Explode() | ConstantJoin():
            return _row_meaning(node)
        case Map() | FlatMap():
            kind: list[Sexp] = ["map" if isinstance(node, Map) else "flat-map", forms.of_map(node)]
            if isinstance(node, Map):
                kind.append("batch" if node.batch else "rows")
            return [*kind, _shape(node.fields_in), _shape(node.fields_out)]
        case TableJoin():
            return _join_meaning(node)
        case RowTable():
            return ["rows"]
        case Fold():
            with blaming("fold", node.name):
                window = None if node.window is None else replace(node.window, name="")
                members = [_member(node, member, forms) for member in node.aggregates]
                fold = ["fold", _shape(node.key), canonical(window, _no_code), *members]
                return [*fold, *_ends(node)]
        case Output():
            by: list[Sexp] = [["key", *(one.name for one in node.key)]] if node.key else []
            return ["sink", node.topic or "", *by]


def _row_meaning(step: Derive | Filter | Explode | ConstantJoin) -> list[Sexp]:
    """Return the meaning of a step in which each row is for itself, without a user's code."""
    if isinstance(step, Filter):
        return ["filter", step.condition.canonical]
    if isinstance(step, Derive):
        derived: list[Sexp] = [[name, bound.canonical] for name, bound in step.exprs]
        return ["derive", *derived]
    if isinstance(step, Explode):
        return [
            "explode",
            step.column,
            list(step.into),
            _shape(step.fields_in),
            _shape(step.fields_out),
        ]
    added = zip(step.taken, step.added, strict=True)
    shown: list[Sexp] = [[name, field.name] for name, field in added]
    pairs: list[Sexp] = [list(pair) for pair in zip(step.on, step.constant.key, strict=True)]
    return ["constant", step.constant.digest, pairs, step.how, shown]


def _parameters_of_scan(node: Scan) -> list[Sexp]:
    spans: list[Sexp] = ["" if node.ttl_ns is None else str(node.ttl_ns), str(node.lateness_ns)]
    common = [_shape(node.key), *spans]
    if isinstance(node, RunningScan):
        columns: list[Sexp] = [
            [name, of.name, of.parameters, "" if read is None else read.name]
            for name, of, read in node.columns
        ]
        return [*common, _shape(node.fields_in), columns]
    if isinstance(node, BookScan):
        roles: list[Sexp] = [[role, field.name] for role, field in node.roles]
        at_once: list[Sexp] = ["eager"] if node.is_eager else []
        return [*common, _shape(node.fields_in), ["book", roles, node.book.parameters], *at_once]
    if isinstance(node, LastScan):
        return [*common, _shape(node.read), str(node.rows)]
    assert isinstance(node, StepScan), "no other scans"
    versions: list[Sexp] = [] if node.version_of is None else [["version", node.version_of.name]]
    if isinstance(node, PositionScan) and node.position is not None:
        shows: list[Sexp] = ["last" if node.is_last else "rows" if node.is_eager else "settled"]
        return [*common, *node.position.parameters, _shape(node.fields_in), *shows, *versions]
    defaults: list[Sexp] = [canonical(value, _no_code) for value in node.initial]
    shapes = [_shape(node.state_fields), _shape(node.fields_in), _shape(node.fields_out)]
    eager: list[Sexp] = ["eager"] if node.is_eager else []
    last: list[Sexp] = ["last"] if node.is_last else []
    timers: list[Sexp] = [["timers", *(name for name, _ in node.timers)]] if node.timers else []
    return [*common, *shapes, defaults, *eager, *last, *versions, *timers]


def _join_meaning(join: TableJoin) -> list[Sexp]:
    pairs: list[Sexp] = [list(pair) for pair in join.pairs]
    # Which fields there are follows from both sides, but not what the suffix makes of their names.
    return ["join", join.how, pairs, _shape(join.fields_in)]


def _ends(fold: Fold) -> list[Sexp]:
    return [] if fold.expiry is None else [["ttl", canonical(fold.expiry, _no_code)]]


def _parameters(node: Union | Finals | Holding | Ask) -> list[Sexp]:
    # Of the fields all are state; how those of a join are called in its result is no part of it.
    if isinstance(node, Distinct):
        spans = [str(node.within_ns), str(node.lateness_ns)]
        return [_shape(node.key), *spans, _shape(node.fields_out)]
    if isinstance(node, Scan):
        return _parameters_of_scan(node)
    if isinstance(node, Ask):  # another function asks nothing anew
        return [_shape(node.fields_in), _shape(node.schema.fields)]
    if not isinstance(node, StreamJoin):
        return []
    late: list[Sexp] = [str(late_ns) for late_ns in node.latenesses_ns]
    keys: list[Sexp] = [_shape(pair) for pair in node.on]
    sides = [_shape(node.left_fields), _shape(node.right_fields)]
    deleted = "" if node.deleted is None else node.deleted.name
    assert isinstance(node, AsofJoin | IntervalJoin), "no other joins"
    eager: list[Sexp] = ["eager"] if node.is_eager else []
    if isinstance(node, IntervalJoin):
        return [node.how, str(node.lo_ns), str(node.hi_ns), late, keys, *sides, *eager]
    tolerance = "" if node.tolerance_ns is None else str(node.tolerance_ns)
    matches = [node.strategy, "strict" if node.is_strict else "", tolerance]
    return [node.how, *matches, late, keys, *sides, deleted, *eager]


def _source_meaning(source: SourceSpec) -> Sexp:
    more: list[Sexp] = []
    if source.reject_future_ns is not None:
        more.append(["reject-future", str(source.reject_future_ns)])
    if source.table is not None:
        of = source.table
        says: list[Sexp] = [list(of.key), of.deleted, of.format, of.truncate]
        more.append(["table", *says, _shape(of.fields)])
    delay = str(source.out_of_order_ns)
    return ["source", source.topic or "", source.time_field or "", delay, *more]


def _member(fold: Fold | LastScan, member: FoldAggregate, forms: _Forms) -> Sexp:
    of_code, more = forms.of_aggregate(fold, member)
    # Inputs count by their computation over these fields, in any spelling.
    inputs: list[Sexp] = [item.canonical for item in member.inputs]
    with blaming_field(member.name):
        parameters: list[Sexp] = [
            [option.name, canonical(getattr(member.aggregate, option.name), of_code)]
            for option in fields(member.aggregate)
            if option.name != "inputs"
        ]
    return [member.name, member.aggregate.name, inputs, parameters, *more]


def _shape(members: Fields) -> Sexp:
    return [[member.name, type_to_sexp(type_of(member))] for member in members]


def _no_code(value: Any) -> Sexp:
    raise PlanError(f"{value!r} cannot be part of a window: windows and triggers hold plain values")
