"""The validated plan of a pipeline: an acyclic graph of sources, computations and outputs.

Each node names its input nodes: a union several, a join two, any other node one. Rows of sources,
and of steps on them, are a stream: they never change. Those of a fold are a table. In a chain there
is a source, steps on its events, a first fold by key (and window), steps on its result rows, and
any number of further folds, each over the result rows of the one before. Everything in a plan has
been checked; the engine only executes.

Every node has a key, under which its state is found again; ``node_keys`` makes them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from ripple.core.errors import OutputError, PlanError
from ripple.core.frozen import frozen
from ripple.core.sexp import dumps
from ripple.model.canonical import digest, digest_of
from ripple.model.code_fingerprint.owner import version_of
from ripple.model.pipeline.nodes import (
    EventNode,
    Explode,
    Fields,
    FlatMap,
    Fold,
    LastTable,
    Migration,
    Node,
    Output,
    RowTable,
    SourceSpec,
    TableJoin,
    Union,
    Versions,
    reads_of,
)
from ripple.model.pipeline.waiting_nodes import (
    Ask,
    Distinct,
    Finals,
    Holding,
    Scan,
    StreamJoin,
    Waiting,
)
from ripple.model.schema import notation
from ripple.model.schema.checks import checks_to_sexp
from ripple.model.schema.fingerprint import canonical, fingerprint
from ripple.model.schema.types import Schema
from ripple.model.window.spec import ends_ns

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ripple.core.sexp import Sexp
    from ripple.model.code_fingerprint.form import CodeForm

    Ints = npt.NDArray[np.int64]

FORMAT_VERSION = 1  # of the canonical form; a change of it changes every hash


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
                "pipelines of one: run it in one process, with ripple run or rp.run, or on a "
                "cluster; ripple spark replay, backfill, validate and run read several"
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
        return not isinstance(fold, RowTable) and all(one.name != fold.input for one in self.folds)

    @property
    def partial_folds(self) -> tuple[Fold, ...]:
        """The folds of events whose windows show partial results by the order of reading."""
        return tuple(
            fold
            for fold in self.event_folds
            if fold.window is not None and fold.window.shows_partial
        )

    @property
    def row_tables(self) -> tuple[RowTable, ...]:
        """The rows of joins from their reading on, which stand among the folds."""
        return tuple(fold for fold in self.folds if isinstance(fold, RowTable))

    @property
    def keyed(self) -> tuple[Fold | Holding, ...]:
        """The nodes that need all records of a key; a row table is in its join's partition."""
        folds = (fold for fold in self.folds if not isinstance(fold, RowTable))
        return (*self.holding, *folds)

    def sources_of(self, name: str) -> tuple[SourceSpec, ...]:
        """Return the sources of a node's records, in the order of their declarations."""
        found = self.above(name)
        return tuple(source for source in self.sources if source.name in found)

    def above(self, name: str) -> set[str]:
        """Return the names of the nodes whose rows come to a node, and its own."""
        reads = {node.of.name: node.inputs for node in self.computed}
        found, left = set(), [name]
        while left:
            found.add(one := left.pop())
            left += reads[one]
        return found

    def roots_of(self, name: str) -> tuple[str, ...]:
        """Return the origins of the rows of a stream, or of a fold over one.

        That is from sources, in their order, and from nodes that wait for the watermark.
        """
        reads = {node.of.name: node.inputs for node in self.computed}
        roots = [source.name for source in self.sources] + [node.name for node in self.waiting]
        found, left = set(), [name]
        while left:
            found.add(one := left.pop())
            left += () if one in roots else reads[one]
        return tuple(root for root in roots if root in found)

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The nodes that give rows later than they come, by the watermark or by answers."""
        return tuple(step for step in self.steps if isinstance(step, Waiting))

    @property
    def finals(self) -> tuple[Finals, ...]:
        """The nodes of final rows."""
        return tuple(step for step in self.steps if isinstance(step, Finals))

    @property
    def distincts(self) -> tuple[Distinct, ...]:
        """The nodes of distinct rows."""
        return tuple(step for step in self.steps if isinstance(step, Distinct))

    @property
    def scans(self) -> tuple[Scan, ...]:
        """The nodes with a state by key that a function changes."""
        return tuple(step for step in self.steps if isinstance(step, Scan))

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The nodes that wait for answers."""
        return tuple(step for step in self.steps if isinstance(step, Ask))

    @property
    def stream_joins(self) -> tuple[StreamJoin, ...]:
        """The joins of two streams."""
        return tuple(step for step in self.steps if isinstance(step, StreamJoin))

    @property
    def holding(self) -> tuple[Holding, ...]:
        """The nodes that hold rows until the watermark decides."""
        return tuple(step for step in self.steps if isinstance(step, Holding))

    def has_versions_of(self, source: SourceSpec) -> bool:
        """Whether the versions of a table are a stream, which every record is part of."""
        return any(isinstance(one, Versions) and one.reads == source.name for one in self.steps)

    @property
    def table_joins(self) -> tuple[TableJoin, ...]:
        """The joins of tables, which stand among the folds."""
        return tuple(fold for fold in self.folds if isinstance(fold, TableJoin))

    def finals_of(self, fold: str) -> tuple[Finals, ...]:
        """Return the nodes of a fold's final rows."""
        return tuple(node for node in self.finals if node.fold == fold)

    @property
    def has_windows(self) -> bool:
        """Whether some fold is over windows of events, or its keys end, so that state is freed."""
        return any(fold.timing is not None for fold in self.folds)

    @property
    def flags_future(self) -> bool:
        """Whether events counted as future are news: windows depend on them.

        They are none where out_of_order= is above the tolerance: each event in order is as far
        ahead of the watermark then.
        """
        spans_ns = [one.future_ns for one in self.folds if one.future_ns is not None]
        out_of_order_ns = max((one.out_of_order_ns for one in self.sources), default=0)
        return self.has_windows and out_of_order_ns <= min(spans_ns, default=out_of_order_ns)

    @property
    def frees_rows(self) -> bool:
        """Whether a stabilization frees rows: of closed windows, joins, events or answers."""
        shows_rows = any(output.is_stream for output in self.outputs)
        return self.has_windows or shows_rows or bool(self.row_tables or self.asks)

    def _is_chain(self) -> bool:
        if len(self.sources) > 1:
            return False
        source = self.sources[0]
        line = [source.name, *(step.name for step in self.steps)]
        reads = [*(step.reads for step in self.steps), *(fold.reads for fold in self.folds[:1])]
        above = [fold.input for fold in self.folds[1:]]
        return (
            reads == line
            and (source.table is None or source.time_field is None)
            and above == [fold.name for fold in self.folds[:-1]]
            and not any(fold.expiry is not None for fold in self.folds)
            and not self.table_joins
            and not any(
                isinstance(step, FlatMap | Explode | Union | Waiting) for step in self.steps
            )
            and not any(output.is_stream for output in self.outputs)
        )

    def frees(self, fold: Fold) -> bool:
        """Tell whether rows of ``fold`` become final, and are freed.

        That is when their window is over, or when a join gives them.
        """
        if isinstance(fold, RowTable):
            return not isinstance(fold, LastTable)
        if fold.window is not None or self._is_over_events(fold):
            return fold.window is not None
        return fold.ends_with_window and self.frees(self.fold(fold.input))

    def closes_ns(self, fold: Fold, starts_ns: Ints) -> Ints:
        """Return when windows of ``fold`` that start then are over, by the watermark.

        Sessions are over then at the earliest; only aligned windows may be a further fold's key.
        """
        first = fold
        while not self._is_over_events(first):
            first = self.fold(first.input)
        window = first.window
        assert window is not None
        return ends_ns(window.assigner, starts_ns) + window.lateness_ns

    @property
    def notes(self) -> dict[str, str]:
        """Notes of a snapshot with the node keys, to name later changes.

        ``reads``: of a plan with branches, per node the key of its input, of a union or a join a
        list. ``python``: the version, on which the forms of functions depend. ``source``: the
        schema. ``checks``: of its fields, if there are any. ``sources``: of several sources both,
        by name. ``code``: per digest of a node with a user's code, the parts of that code, where
        they are not too many to keep. ``libraries``: the ones that code takes by their names.
        ``spans``: per digest of a join of streams its tolerance, or its bounds.
        """
        major, minor = sys.version_info[:2]
        sources = {source.name: _source_notes(source) for source in self.sources}
        only = sources[self.sources[0].name]
        read = only if len(sources) == 1 else {"sources": json.dumps(sources)}
        notes = {"python": f"{major}.{minor}", **read, **self._code_notes()}
        if self.stream_joins:
            spans = {digest_of(join.node_key): join.span_ns for join in self.stream_joins}
            notes["spans"] = json.dumps(spans)
        return notes if self.is_chain else notes | {"reads": json.dumps(self.reads)}

    @property
    def reads(self) -> dict[str, str | list[str]]:
        """Return per node the key of its input: a list of keys alone lacks it.

        Of a union or a join a list.
        """
        keys = {node.of.name: node.of.node_key for node in self.computed}
        found: dict[str, str | list[str]] = {}
        for node, inputs in self.nodes:
            read = [keys[name] for name in inputs]
            if read:
                has_several = isinstance(node, Union | StreamJoin | TableJoin)
                found[node.node_key] = read if has_several else read[0]
        return found

    def names_below(self, name: str) -> set[str]:
        """Return the names of the nodes that a node has its rows from, and its own."""
        inputs = {node.of.name: node.inputs for node in self.computed}
        found, left = set[str](), [name]
        while left:
            if (one := left.pop()) not in found:
                found.add(one)
                left += inputs[one]
        return found

    def _code_notes(self) -> dict[str, str]:
        if not self.code:
            return {}
        noted = {
            digest_of(node.of.node_key): dict(self.code[node.of.name].parts)
            for node in self.computed
            if node.of.name in self.code
        }
        return {"code": json.dumps(noted), "libraries": json.dumps(self.libraries)}

    @property
    def libraries(self) -> dict[str, str]:
        """The libraries that the user's code takes by their names, and their versions."""
        found = {name: None for form in self.code.values() for name in form.libraries}
        return {name: version_of(name) for name in sorted(found)}

    def _hash(self, keys: tuple[str, ...]) -> str:
        """Return the digest of all facts that two workers must agree on."""
        about: list[Sexp] = [self.name]
        for source in self.sources:
            about.append(fingerprint(source.schema))
            if source.checks:
                about.append(["checks", checks_to_sexp(source.checks)])
            about += (["optional", one.path, list(one.required)] for one in source.optional_records)
        return digest(["ripple-plan", str(FORMAT_VERSION), *about, *keys])

    def describe(self) -> str:
        """Return a readable text: the stages, the edges between them, and the node keys."""
        from ripple.model.pipeline.description import describe  # noqa: PLC0415  # only people ask

        return describe(self)

    def svg(self) -> str:
        """Return a picture of the graph, from its sources to its outputs."""
        from ripple.model.pipeline.picture import svg  # noqa: PLC0415  only people ask

        return svg(self)

    def _repr_html_(self) -> str:
        """Return the picture for notebooks."""
        return self.svg()

    @property
    def node_keys(self) -> tuple[str, ...]:
        """The keys of all nodes, from the sources to the outputs."""
        return tuple(node.of.node_key for node in self.nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes: the computed ones, then the outputs."""
        return (*self.computed, *self.shown)

    @property
    def computed(self) -> tuple[Node, ...]:
        """The nodes that others read, each under a unique name.

        They are the sources, the steps on streams, and the folds with the steps on their results.
        """
        found = [Node(source, ()) for source in self.sources]
        found += [Node(step, reads_of(step)) for step in self.steps]
        for fold in self.folds:
            found += [Node(node, reads_of(node)) for node in (fold, *fold.steps)]
        return tuple(found)

    @property
    def shown(self) -> tuple[Node, ...]:
        """The outputs, which no node reads: one may have the name of a computed node."""
        ends = {fold.name: fold.steps[-1].name for fold in self.folds if fold.steps}
        return tuple(Node(one, (ends.get(one.of, one.of),)) for one in self.outputs)


def inputs_first(plan: Plan) -> tuple[Node, ...]:
    """Return the computed nodes of a plan, each after its inputs."""
    found: dict[str, Node] = {}
    left = plan.computed
    while left:
        for node in left:
            if all(name in found for name in node.inputs):
                found[node.of.name] = node
        left = tuple(node for node in left if node.of.name not in found)
    return tuple(found.values())


def _source_notes(source: SourceSpec) -> dict[str, str]:
    checks = {"checks": dumps(checks_to_sexp(source.checks))} if source.checks else {}
    return {"source": _noted(source.schema), **checks}


@lru_cache(maxsize=16)  # each snapshot asks
def _noted(schema: Schema) -> str:
    return notation.dumps(canonical(schema))


def _missing(name: str) -> Fold:
    raise KeyError(name)
