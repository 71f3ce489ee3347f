"""The validated plan of a pipeline: an acyclic graph of sources, computations and outputs.

Each node names its input nodes: a union several, any other step, a fold or an output one. Rows of
sources, and of steps on them, are a stream: they never change. Those of a fold are a table. In a
chain there is a source, steps on its events, a first fold by key (and window), steps on its result
rows, and any number of further folds, each over the result rows of the one before. Everything in a
plan has been checked; the engine only executes.

Every node has a key, under which its state is found again; ``node_keys`` makes them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ripple.core.errors import OutputError, PlanError
from ripple.core.frozen import frozen
from ripple.core.sexp import dumps
from ripple.model.canonical import digest, digest_of
from ripple.model.code_fingerprint.owner import version_of
from ripple.model.schema import notation
from ripple.model.schema.checks import Checks, checks_to_sexp
from ripple.model.schema.fingerprint import canonical, fingerprint
from ripple.model.schema.types import Bool, Field, FieldType, Option, Schema
from ripple.model.window.spec import Session

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.core.sexp import Sexp
    from ripple.model.code_fingerprint.form import CodeForm
    from ripple.model.expression.bound import Bound
    from ripple.model.window.spec import WindowSpec

INTERNAL_PREFIX = "ripple."  # of the engine's own columns in tables of state

DELETED = f"{INTERNAL_PREFIX}deleted"  # the mark of a deletion, where no field of the record is it

FORMAT_VERSION = 1  # of the canonical form; a change of it changes every hash

Fields: TypeAlias = tuple[Field, ...]

DELETED_FIELD = Field(DELETED, Bool(), optional=True)


@frozen
class TableSpec:
    """How the records of a source become a table: per key the one with the greatest offset.

    key: the names of the fields that identify a row. fields: of a record that is no deletion.
    deleted: the field that is true in a deletion; DELETED where a record without a value is one.
    format: of the values, "debezium" for its envelopes, "" for records as they are. truncate: what
    follows from a truncated table, "stop" or "letter": the run stops, or the record is rejected.
    """

    key: tuple[str, ...]
    fields: Fields
    deleted: str = DELETED
    format: str = ""
    truncate: str = "stop"


@frozen
class SourceSpec:
    """The source of events, or of a table's changes.

    time_field: the ``int`` field with the event time in nanoseconds, or None without event time.
    out_of_order_ns: how much older than the latest event time an event may be and still be on time.
    reject_future_ns: how far ahead of the watermark an event may be and still count, None for any.
    record: the class that the schema was derived from, or None. checks: conditions on fields for
    their record to count, fitted to the fields' types. key: the fields by which their writer
    chooses the partition, () if unknown. ordinal: orders the sources of a pipeline. idle_ns: how
    long an input is silent until a marker raises its watermark, None for ever; not in the node key,
    since results follow from the markers. table: how its records become a table, None for a stream;
    then fields that a deletion may lack are optional.
    """

    name: str
    schema: Schema
    topic: str | None
    time_field: str | None
    out_of_order_ns: int
    record: type | None
    node_key: str
    checks: Mapping[str, Checks] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    reject_future_ns: int | None = None
    key: tuple[str, ...] = ()
    ordinal: int = field(default=0, compare=False)
    idle_ns: int | None = None
    table: TableSpec | None = None

    @property
    def fields(self) -> Fields:
        """The fields of a record."""
        return self.schema.fields

    @property
    def fields_taken(self) -> Fields:
        """The fields of a record in an engine: with the mark of deletions, if no other is it."""
        if self.table is None or self.table.deleted != DELETED:
            return self.schema.fields
        return (*self.schema.fields, DELETED_FIELD)

    @property
    def fields_needed(self) -> Fields:
        """The fields of a record that counts and is no deletion."""
        return self.schema.fields if self.table is None else self.table.fields


@frozen
class Derive:
    """Adds fields computed from those before, all from the same input row.

    A row in which an expression fails is not passed on: an event is dead-lettered, a result row is
    absent. reads: the name of the node whose rows it takes, as in every step.
    """

    name: str
    exprs: tuple[tuple[str, Bound], ...]
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str


@frozen
class Filter:
    """Passes on the rows for which the condition is true: neither false nor null."""

    name: str
    condition: Bound
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str


@frozen
class Map:
    """Replaces each row by the result of a Python function.

    batch=False: called with one row, an instance of ``row`` (attributes are the fields), returns
    an instance of ``into``. batch=True: called with a dict of read-only NumPy arrays, one per
    field, returns such a dict for the fields of ``into``. On result rows, ``kept`` names the key
    and window fields, which are carried over past the function.
    """

    name: str
    function: Callable[[Any], Any]
    batch: bool
    row: type | None
    into: type | None
    schema: Schema
    kept: tuple[str, ...]
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str


# Invariant: of one record, all steps together make at most FLAT_ROWS_MAX rows.
@frozen
class FlatMap:
    """Replaces each event by the rows that a Python function returns: none, one or many.

    Called with one row, an instance of ``row``; returns an iterable of instances of ``into``. The
    rows of one record have its offset, and an index each, from 0 on.
    """

    name: str
    function: Callable[[Any], Any]
    row: type | None
    into: type | None
    schema: Schema
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str

    @property
    def kept(self) -> tuple[str, ...]:
        """The fields that are carried over: none."""
        return ()


FLAT_ROWS_MAX = 10_000
SOURCES_MAX = 16

Step: TypeAlias = Derive | Filter | Map | FlatMap


@frozen
class Union:
    """The rows of several streams with the same fields, each with its identity and its place.

    reads: the names of its input nodes. Where one record comes by several of them, its rows are
    numbered anew, in this order.
    """

    name: str
    reads: tuple[str, ...]
    fields_out: Fields
    node_key: str


@frozen
class Finals:
    """The final rows of a windowed fold, as a stream: each enters it when its window is over.

    Their event time is the last nanosecond of the window. fold: its name. reads: its last node.
    """

    name: str
    fold: str
    lateness_ns: int
    fields_out: Fields
    node_key: str
    reads: str


@frozen
class Distinct:
    """The rows of a stream without those that another one of their key precedes too closely.

    A row follows once it is final, ``lateness_ns`` above it by the watermark, unless one of its key
    with a smaller place is at most ``within_ns`` before it.
    """

    name: str
    key: Fields
    within_ns: int
    lateness_ns: int
    fields_out: Fields
    node_key: str
    reads: str


Waiting: TypeAlias = Finals | Distinct
"""Nodes that give rows by the watermark: streams begin anew with them."""
EventNode: TypeAlias = Step | Union | Waiting


@frozen
class FoldAggregate:
    """One named aggregate of a fold, with its inputs bound to the rows that are folded.

    The key of a table's rows follows them where it decides between equal rows. bound: the aggregate
    bound to the types of its inputs, which makes states.
    """

    name: str
    aggregate: Any
    inputs: tuple[Bound, ...]
    bound: Any


# Invariants: ``row`` begins with the fields of ``key``, then window_start_ns and window_end_ns
# exactly if there is a window, and no name is in it twice. A fold over a fold has no window and no
# ordered aggregate but those by value.
@frozen
class Fold:
    """A keyed view: per key (and window) the aggregates over its rows, then ``steps`` on that.

    reads: the name of its input node. input: the source or union of the rows, or the fold below: a
    new row is added, the replaced one removed. partition: the name of the step that chose ``key``,
    which is empty for one total over everything. partitions, via_log: how its stage is spread, if
    it begins one (:mod:`ripple.model.pipeline.stages`); no part of its results. expiry: the
    sessions of its keys, of which each shows the newest until it ends; None where keys do not end.
    """

    name: str
    input: str
    partition: str
    key: Fields
    window: WindowSpec | None
    aggregates: tuple[FoldAggregate, ...]
    steps: tuple[Step, ...]
    row: Fields
    fields_in: Fields
    node_key: str
    reads: str
    partitions: int | None = None
    via_log: bool = False
    expiry: WindowSpec | None = None

    @property
    def timing(self) -> WindowSpec | None:
        """What judges its events by their times: its window, or the sessions that its keys last."""
        return self.window or self.expiry

    @property
    def fields_read(self) -> tuple[str, ...]:
        """The names of the fields of its input that it reads: of the key, then of aggregates."""
        read = [member.name for member in self.key]
        read += [name for one in self.aggregates for bound in one.inputs for name in bound.columns]
        return tuple(dict.fromkeys(read))

    @property
    def ends_with_window(self) -> bool:
        """Whether a group of rows, having their window in its key, is over when that is."""
        return any(member.name == "window_start_ns" for member in self.key)

    @property
    def identity(self) -> tuple[str, ...]:
        """The names of the fields that identify a result row."""
        window = WINDOW_FIELD_NAMES if self.window is not None else ()
        return (*(member.name for member in self.key), *window)

    @property
    def row_key(self) -> Fields:
        """The fewest fields that identify a result row: the key, and a window's start.

        A session's end may move, and its start identifies it already.
        """
        if self.window is None:
            return self.key
        return (*self.key, *(one for one in self.row if one.name == WINDOW_FIELD_NAMES[0]))


WINDOW_FIELD_NAMES = ("window_start_ns", "window_end_ns")


@frozen
class Output:
    """A sink: the rows of a fold or of a stream, under a name and perhaps a topic.

    is_stream: whether ``of`` is a stream: its rows have no key, and never change. key: of a stream,
    the fields of the record key, in systems with keys.
    """

    name: str
    of: str
    topic: str | None
    fields: Fields
    node_key: str
    is_stream: bool = False
    key: Fields = ()


NodeOf: TypeAlias = SourceSpec | EventNode | Fold | Output


class Node(NamedTuple):
    """A node of the graph, and the names of those whose rows it takes; a source takes none."""

    of: NodeOf
    inputs: tuple[str, ...]


@frozen
class Migration:
    """Makes the state of ``fold`` from that of a fold with other code, a table of leaf state.

    from_digest: 32 hexadecimal digits, the end of that fold's node key.
    """

    fold: str
    from_digest: str
    function: Callable[[pa.Table], pa.Table]


@frozen
class Plan:
    """A complete pipeline. ``steps`` are those on streams: on events, and on final rows.

    sources: in the order of their declarations, which decides ties. Steps, folds and outputs stand
    each after those of their kind that they need. is_chain: whether there is one source, and each
    node is read by one other, from the source through the steps and the folds, and outputs show
    folds.

    migrations: functions applied once to older state; they are no part of the plan's results.
    code: per step or fold with a user's code, its form.
    """

    name: str
    sources: tuple[SourceSpec, ...]
    steps: tuple[EventNode, ...]
    folds: tuple[Fold, ...]
    outputs: tuple[Output, ...]
    migrations: tuple[Migration, ...] = field(default=(), compare=False)
    code: Mapping[str, CodeForm] = field(default_factory=dict, compare=False)
    topology_hash: str = field(init=False)
    is_chain: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topology_hash", self._hash(self.node_keys))
        object.__setattr__(self, "is_chain", self._is_chain())

    @property
    def source(self) -> SourceSpec:
        """The only source; raises PlanError where there are several."""
        self.need_one_source("this")
        return self.sources[0]

    @property
    def is_idle(self) -> bool:
        """Whether inputs of a source may be idle, so that markers are recorded."""
        return any(source.idle_ns is not None for source in self.sources)

    def need_one_source(self, where: str) -> None:
        """Raise PlanError unless there is one source: ``where`` takes no other."""
        if len(self.sources) > 1:
            raise PlanError(
                f"pipeline {self.name!r} has the sources {self.source_names}, and {where} takes "
                "pipelines of one: run it in one process, with ripple run or rp.run"
            )

    @property
    def source_names(self) -> str:
        """The names of the sources, for messages."""
        return ", ".join(source.name for source in self.sources)

    def fold(self, name: str) -> Fold:
        """Return the fold of that name; raises ``KeyError`` if there is none."""
        return next((fold for fold in self.folds if fold.name == name), None) or _missing(name)

    def output(self, name: str) -> Output:
        """Return the output of that name; raises OutputError, which names those there are."""
        for output in self.outputs:
            if output.name == name:
                return output
        names = ", ".join(output.name for output in self.outputs)
        raise OutputError(f"no output {name!r}: the pipeline has {names}")

    def key_of(self, output: Output) -> Fields:
        """Return the fewest fields that identify a row of an output: none of a stream's."""
        return () if output.is_stream else self.fold(output.of).row_key

    @property
    def event_folds(self) -> tuple[Fold, ...]:
        """The folds over events, rather than over the rows of a fold."""
        return tuple(fold for fold in self.folds if self._is_over_events(fold))

    def _is_over_events(self, fold: Fold) -> bool:
        return all(below.name != fold.input for below in self.folds)

    def sources_of(self, name: str) -> tuple[SourceSpec, ...]:
        """Return the sources of a node's records, in the order of their declarations."""
        found = self.above(name)
        return tuple(source for source in self.sources if source.name in found)

    def above(self, name: str) -> set[str]:
        """Return the names of the nodes whose rows come to a node, and its own."""
        reads = {node.of.name: node.inputs for node in self.nodes}
        found, left = set(), [name]
        while left:
            found.add(one := left.pop())
            left += reads[one]
        return found

    def roots_of(self, name: str) -> tuple[str, ...]:
        """Return where the rows of a stream, or those that a fold over one takes, come from.

        That is from sources, in their order, and from nodes that wait for the watermark.
        """
        reads = {node.of.name: node.inputs for node in self.nodes}
        roots = [source.name for source in self.sources] + [node.name for node in self.waiting]
        found, left = set(), [name]
        while left:
            found.add(one := left.pop())
            left += () if one in roots else reads[one]
        return tuple(root for root in roots if root in found)

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The nodes that give rows by the watermark."""
        return tuple(step for step in self.steps if isinstance(step, Waiting))

    @property
    def finals(self) -> tuple[Finals, ...]:
        """The nodes of final rows."""
        return tuple(step for step in self.steps if isinstance(step, Finals))

    @property
    def distincts(self) -> tuple[Distinct, ...]:
        """The nodes of distinct rows."""
        return tuple(step for step in self.steps if isinstance(step, Distinct))

    def finals_of(self, fold: str) -> tuple[Finals, ...]:
        """Return the nodes of a fold's final rows."""
        return tuple(node for node in self.finals if node.fold == fold)

    @property
    def has_windows(self) -> bool:
        """Whether some fold is over windows of events, or its keys end, so that state is freed."""
        return any(fold.timing is not None for fold in self.folds)

    @property
    def frees_rows(self) -> bool:
        """Whether a stabilization frees rows: of closed windows, or of events."""
        return self.has_windows or any(output.is_stream for output in self.outputs)

    def _is_chain(self) -> bool:
        if len(self.sources) > 1:
            return False
        line = [self.sources[0].name, *(step.name for step in self.steps)]
        reads = [*(step.reads for step in self.steps), *(fold.reads for fold in self.folds[:1])]
        above = [fold.input for fold in self.folds[1:]]
        return (
            reads == line
            and above == [fold.name for fold in self.folds[:-1]]
            and not any(fold.expiry is not None for fold in self.folds)
            and not any(isinstance(step, FlatMap | Union | Waiting) for step in self.steps)
            and not any(output.is_stream for output in self.outputs)
        )

    def frees(self, fold: Fold) -> bool:
        """Tell whether rows of ``fold`` become final, when their window is over, and are freed."""
        if fold.window is not None or self._is_over_events(fold):
            return fold.window is not None
        return fold.ends_with_window and self.frees(self.fold(fold.input))

    def closes_after_ns(self, fold: Fold) -> int:
        """Return how long after their start windows of ``fold`` are over, by the watermark.

        Sessions are over then at the earliest; only aligned windows may be a further fold's key.
        """
        first = fold
        while not self._is_over_events(first):
            first = self.fold(first.input)
        window = first.window
        assert window is not None
        assigner = window.assigner
        size_ns = assigner.gap_ns if isinstance(assigner, Session) else assigner.size_ns
        return size_ns + window.lateness_ns

    @property
    def notes(self) -> dict[str, str]:
        """Notes of a snapshot with the node keys, to name later changes.

        ``reads``: of a plan with branches, per node the key of its input, of a union a
        list. ``python``: the version, on which the forms of functions depend. ``source``: the
        schema. ``checks``: of its fields, if there are any. ``sources``: of several sources both,
        by name. ``code``: per digest of a node with a user's code, the parts of that code, where
        they are not too many to keep. ``libraries``: those that code takes by their names.
        """
        major, minor = sys.version_info[:2]
        sources = {source.name: _source_notes(source) for source in self.sources}
        only = sources[self.sources[0].name]
        read = only if len(sources) == 1 else {"sources": json.dumps(sources)}
        notes = {"python": f"{major}.{minor}", **read, **self._code_notes()}
        return notes if self.is_chain else notes | {"reads": json.dumps(self.reads)}

    @property
    def reads(self) -> dict[str, str | list[str]]:
        """Return per node the key of its input: a list of keys alone lacks it.

        Of a union a list.
        """
        keys = {node.of.name: node.of.node_key for node in self.nodes}
        found: dict[str, str | list[str]] = {}
        for node, inputs in self.nodes:
            read = [keys[name] for name in inputs]
            if read:
                found[node.node_key] = read if isinstance(node, Union) else read[0]
        return found

    def _code_notes(self) -> dict[str, str]:
        if not self.code:
            return {}
        noted = {
            digest_of(node.of.node_key): dict(self.code[node.of.name].parts)
            for node in self.nodes
            if node.of.name in self.code
        }
        return {"code": json.dumps(noted), "libraries": json.dumps(self.libraries)}

    @property
    def libraries(self) -> dict[str, str]:
        """The libraries that the user's code takes by their names, and their versions."""
        found = {name: None for form in self.code.values() for name in form.libraries}
        return {name: version_of(name) for name in sorted(found)}

    def _hash(self, keys: tuple[str, ...]) -> str:
        """Return the digest of everything that two workers must agree on."""
        about: list[Sexp] = [self.name]
        for source in self.sources:
            about.append(fingerprint(source.schema))
            if source.checks:
                about.append(["checks", checks_to_sexp(source.checks)])
        return digest(["ripple-plan", str(FORMAT_VERSION), *about, *keys])

    def describe(self) -> str:
        """Return a readable text: the stages, the edges between them, and the node keys."""
        from ripple.model.pipeline.description import describe  # noqa: PLC0415  # only people ask

        return describe(self)

    @property
    def node_keys(self) -> tuple[str, ...]:
        """The keys of all nodes, from the sources to the outputs."""
        return tuple(node.of.node_key for node in self.nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes: sources, steps on streams, folds with the steps on results, outputs."""
        found = [Node(source, ()) for source in self.sources]
        found += [Node(step, reads_of(step)) for step in self.steps]
        ends = {node.of.name: node.of.name for node in found}
        for fold in self.folds:
            found += [Node(node, (node.reads,)) for node in (fold, *fold.steps)]
            ends[fold.name] = found[-1].of.name
        found += [Node(output, (ends[output.of],)) for output in self.outputs]
        return tuple(found)


def inputs_first(plan: Plan) -> tuple[Node, ...]:
    """Return the nodes of a plan, each after those that it reads."""
    found: dict[str, Node] = {}
    left = plan.nodes
    while left:
        for node in left:
            if all(name in found for name in node.inputs):
                found[node.of.name] = node
        left = tuple(node for node in left if node.of.name not in found)
    return tuple(found.values())


def reads_of(step: EventNode) -> tuple[str, ...]:
    """Return the names of the input nodes of a step on events."""
    return step.reads if isinstance(step, Union) else (step.reads,)


def type_of(member: Field) -> FieldType:
    """Return the type of a field's values, an ``Option`` if the field may be absent."""
    optional = member.optional and not isinstance(member.type, Option)
    return Option(member.type) if optional else member.type


def types_of(fields: Fields) -> dict[str, FieldType]:
    """Return name to type, as expressions are bound to."""
    return {member.name: type_of(member) for member in fields}


def _source_notes(source: SourceSpec) -> dict[str, str]:
    checks = {"checks": dumps(checks_to_sexp(source.checks))} if source.checks else {}
    return {"source": _noted(source.schema), **checks}


@lru_cache(maxsize=16)  # each snapshot asks
def _noted(schema: Schema) -> str:
    return notation.dumps(canonical(schema))


def _missing(name: str) -> Fold:
    raise KeyError(name)
