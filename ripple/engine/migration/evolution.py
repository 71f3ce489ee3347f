"""State migration: verdicts on a checkpoint's state after a change of the pipeline's code.

State is found again by its fold's computation and inputs, never by a name alone. Other state is
computed again from rows that are still there, made by the user's migration, or computed again from
the log's first record; the last only on request, since it may take long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from ripple.engine.migration.lineage import (
    Lineage,
    Node,
    changed_libraries,
    changed_parts,
    first_change,
    has_function,
    lineage_of,
    refusal_change,
    source_change,
    written_lineage,
)
from ripple.engine.migration.narrowing import narrowing
from ripple.engine.snapshots.fitting import reads_alike
from ripple.engine.snapshots.snapshot import HELD
from ripple.model.canonical import digest_of
from ripple.model.pipeline.node_keys import rebuild_word, unknown_folds
from ripple.model.pipeline.nodes import Fold, RowTable, is_join, tables_below
from ripple.model.pipeline.plan import inputs_first
from ripple.model.pipeline.waiting_nodes import Holding, StepScan

if TYPE_CHECKING:
    from ripple.engine.migration.narrowing import Narrowing
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.nodes import Migration
    from ripple.model.pipeline.plan import Plan

_PLACES_MAX = 5  # of code that changed, in a message
_BEHIND = {
    "step": "the join {0!r} before it is narrower",
    "fold": "its state so far is of rows of the wider {0!r}, and stays",
    "sink": "its rows so far are of the wider {0!r}; final rows stay",
}


class Verdict(Enum):
    """The verdict on a node, or on its state.

    KEEP: as it was, perhaps under another name. REBUILD: its state has to be computed from the
    log's first record. MIGRATE: a migration makes it, or it is the state of a wider join. DROP: it
    is in the checkpoint alone. NEW, CHANGED: it has no state, or its state follows from the fold
    below.
    """

    KEEP = "keep"
    REBUILD = "rebuild"
    MIGRATE = "migrate"
    DROP = "drop"
    NEW = "new"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Judged:
    """A node and its verdict.

    old_key: the key under which the checkpoint has the node that it was, None if it was not there.
    same_rows: whether a fold shows the rows that it showed before. refused: why the pipeline cannot
    run with this node, "" if it can.
    """

    verdict: Verdict
    kind: str
    key: str
    old_key: str | None = None
    cause: str = ""
    migration: Migration | None = None
    same_rows: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All nodes of a plan in their order, then the checkpoint's former ones.

    remarks: further notes for the user, none a reason not to run.
    """

    nodes: tuple[Judged, ...]
    other_problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the pipeline cannot run, and the remedy; empty when it can."""
        return (*self.other_problems, *(node.refused for node in self.nodes if node.refused))

    @property
    def lasting_problems(self) -> dict[str, str]:
        """Shown events, by sink, that stay where the log is read from its first record."""
        changed = (one for one in self.nodes if one.kind == "sink" and one.old_key)
        return {Node("sink", one.key).name: one.refused for one in changed if one.refused}

    @property
    def rebuilds(self) -> bool:
        """Whether the log must be read from its first record."""
        return any(node.verdict is Verdict.REBUILD for node in self.nodes)

    @property
    def is_only_more(self) -> bool:
        """Whether there is state for all but new nodes, and only new outputs show these.

        Outputs that hold nothing lack all changes, so the log is read from its first record anyway,
        and the others hold the same rows at each cut.
        """
        sinks = [one for one in self.nodes if one.kind == "sink"]
        refused = (one for one in self.nodes if one.refused)
        return (
            not self.other_problems
            and any(one.old_key is None and one.verdict is not Verdict.DROP for one in sinks)
            and all(one.verdict is not Verdict.CHANGED for one in sinks)
            and all(one.old_key is None for one in refused)
        )

    @property
    def folds(self) -> tuple[Judged, ...]:
        """The folds of the plan, in their order."""
        return tuple(
            node for node in self.nodes if node.kind == "fold" and node.verdict is not Verdict.DROP
        )

    @property
    def kept_outputs(self) -> tuple[str, ...]:
        """The outputs with the same rows, and so digests, at every cut as before."""
        sinks = (node for node in self.nodes if node.kind == "sink")
        return tuple(Node("sink", n.key).name for n in sinks if n.verdict is Verdict.KEEP)


def compare(plan: Plan, snapshot: Snapshot, rebuild: Collection[str] = ()) -> Comparison:
    """Compare every node of ``plan`` with those of the writer of ``snapshot``.

    rebuild: the folds, by name or key, that may be computed from the log's first record, with those
    above them.
    """
    problems = unknown_folds(plan, rebuild)
    if problems or rebuild:
        return _compared(plan, snapshot, rebuild, problems)
    found = narrowing(plan, snapshot)
    if found.causes:
        narrowed = _behind_narrowed(plan, _compared(found.before, snapshot), found)
        if not narrowed.problems and not narrowed.rebuilds:
            return narrowed
    return _compared(plan, snapshot, reasons={**found.reasons, **found.causes})


def _compared(
    plan: Plan,
    snapshot: Snapshot,
    rebuild: Collection[str] = (),
    problems: Sequence[str] = (),
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> Comparison:
    """Compare every node by its own key. reasons: per key of a join its only change."""
    problems = [*problems]
    is_same = snapshot.topology_hash == plan.topology_hash
    written = lineage_of(plan) if is_same else written_lineage(snapshot)
    if written:
        problems += _other_sources(plan, [node.name for node in written.sources])
    judge = _Judge(plan, snapshot, written, frozenset(rebuild), reasons)
    return Comparison(judge.nodes(), tuple(problems), changed_libraries(plan, snapshot))


def _behind_narrowed(plan: Plan, former: Comparison, found: Narrowing) -> Comparison:
    """Return a comparison with the former spans as one of ``plan``.

    Final rows stay as they were shown, and so do the results of them. The other rows of an eager
    join are those of the narrower one.
    """
    now_of = {was: now for now, was in found.former_keys(plan).items()}
    joins = [one for one in plan.stream_joins if one.node_key in found.causes]
    held = {one.node_key for one in plan.holding}
    tables = {one.node_key for one in plan.row_tables if one.input in [it.name for it in joins]}

    def judged(one: Judged) -> Judged:
        key = one.key if one.verdict is Verdict.DROP else now_of[one.key]
        if key == one.key or one.verdict is not Verdict.KEEP:
            return replace(one, key=key)
        verdict = Verdict.MIGRATE if one.kind == "fold" or key in held else Verdict.CHANGED
        name = Node(one.kind, key).name
        below = plan.names_below(plan.output(name).of if one.kind == "sink" else name)
        by = next(it for it in joins if it.name in below)
        cause = found.causes.get(key, "")
        cause = f"{cause}: its rows are kept" if cause else _BEHIND[one.kind].format(by.name)
        if key in tables:
            cause = f"rows that are not final follow the narrower {by.name!r}"
        same_rows = one.same_rows and key not in tables
        return replace(one, verdict=verdict, key=key, cause=cause, same_rows=same_rows)

    return replace(former, nodes=tuple(map(judged, former.nodes)))


def _other_sources(plan: Plan, before: Sequence[str]) -> list[str]:
    """Return the reasons why a checkpoint of these sources does not fit the plan."""
    now = [source.name for source in plan.sources]
    if now == list(before):
        return []
    if sorted(now) == sorted(before):
        return [
            f"the sources were declared as {', '.join(before)} when the checkpoint was written, "
            f"and are as {plan.source_names}, which decides ties: declare them as before, or begin "
            "anew with another checkpoint folder and other outputs"
        ]
    if len(now) == len(before) == 1:
        return [
            f"source {now[0]!r} was called {before[0]!r} when the checkpoint was written, and "
            f"offsets in checkpoints and outputs stand under that name: call it {before[0]!r} "
            "again, or begin anew with another checkpoint folder and other outputs"
        ]
    return [
        f"the pipeline read the sources {', '.join(before)} when the checkpoint was written, and "
        f"reads {plan.source_names}, and offsets stand under their names: read the same, or begin "
        "anew with another checkpoint folder and other outputs"
    ]


class _Judge:
    """Goes through a plan from its source on, and takes the old nodes that it finds."""

    def __init__(
        self,
        plan: Plan,
        snapshot: Snapshot,
        written: Lineage | None,
        rebuild: frozenset[str],
        reasons: Mapping[str, str],
    ) -> None:
        self.plan = plan
        self.reasons = reasons
        self.snapshot = snapshot
        self.rebuild = rebuild
        self.asked = _with_above(plan, rebuild)
        self.now = lineage_of(plan)
        # Without a list of nodes, the folds are known, and nothing can be said of the rest.
        self.before = written or Lineage(tuple(Node("fold", key) for key in snapshot.tables), ())
        self.is_listed = written is not None
        self.migrations = _of_scans(plan, snapshot, self.asked)
        digests = [one.from_digest for one in self.migrations.values()]
        self.source_change = source_change(plan, snapshot)
        if self.source_change is None and written is not None:
            self.source_change = refusal_change(self.now, written, snapshot, digests)
        if self.source_change is not None:
            self.migrations = {}
        self.old = self._matched()

    def _matched(self) -> dict[Node, Node]:
        """Return the old node of each: of equal meaning, else of its name, else in its place.

        Of several that compute the same, each finds the one of its name.
        """
        left, old = [*self.before.chain], dict[Node, Node]()

        def take(fits: Callable[[Node, Node], bool]) -> None:
            for node in self.now.chain:
                found = next((one for one in left if fits(node, one)), None)
                if node not in old and found is not None:
                    old[node] = found
                    left.remove(found)

        take(lambda node, one: (one.digest, one.name) == (node.digest, node.name))
        take(lambda node, one: one.digest == node.digest)
        by_digest = {node.digest: node for node in self.before.chain}
        old = {n: by_digest[n.digest] for n in self.now.chain if n.digest in by_digest} | old
        take(lambda node, one: (one.kind, one.name) == (node.kind, node.name))
        names = {node.name for node in self.now.chain}
        for node, one in zip(self.now.folds, self.before.folds, strict=False):
            if node not in old and one in left and one.name not in names:
                old[node] = one
        sinks = {node.name: node for node in self.before.sinks}
        return old | {n: sinks[n.name] for n in self.now.sinks if n.name in sinks}

    def nodes(self) -> tuple[Judged, ...]:
        """Return the verdict on every node."""
        folds = self._folds()
        judged = []
        for node in (*self.now.chain, *self.now.sinks):
            if node.kind == "fold":
                judged.append(folds[node.name])
            elif node.kind == "sink":
                judged.append(self._sink(node, folds))
            else:
                judged.append(self._step(node))
        judged = self._named_once(judged)
        found = set(self.old.values())
        dropped = (n for n in (*self.before.chain, *self.before.sinks) if n not in found)
        return (*judged, *(Judged(Verdict.DROP, n.kind, n.key, n.key) for n in dropped))

    def _named_once(self, judged: Sequence[Judged]) -> list[Judged]:
        """Return verdicts without the refusals above a refused step: its rebuild includes them.

        A step has no other remedy. A fold may be migrated, and its refusal leaves others there.
        """
        steps = {Node("step", one.key).name for one in judged if one.kind == "step" and one.refused}
        rebuilt = _with_above(self.plan, steps)
        above = {node.of.name for node in self.plan.computed if not rebuilt.isdisjoint(node.inputs)}
        return [
            replace(one, refused="")
            if one.kind != "sink" and Node(one.kind, one.key).name in above
            else one
            for one in judged
        ]

    def _folds(self) -> dict[str, Judged]:
        folds: dict[str, Judged] = {}
        for fold in self.plan.folds:
            below = [folds[name] for name in tables_below(fold) if name in folds]
            folds[fold.name] = self._fold(fold, below)
        rebuilt = [name for name, one in folds.items() if one.verdict is Verdict.REBUILD]
        for name, one in folds.items():
            if rebuilt and one.verdict is Verdict.MIGRATE:
                also = f"{one.cause}; the log is read from its first record for {rebuilt[0]!r}"
                folds[name] = replace(one, verdict=Verdict.REBUILD, cause=also, migration=None)
        return folds

    # --- folds ---

    def _fold(self, fold: Fold, below: Sequence[Judged]) -> Judged:
        node = Node("fold", fold.node_key)
        old = self.old.get(node)
        judged = Judged(Verdict.KEEP, "fold", node.key, old.key if old else None)
        asked = fold.name in self.asked
        why = self._why_not_kept(fold, node, below)
        if why is None:
            same_rows = self._has_same_steps(node)
            if asked:
                cause = "asked for"
                return replace(judged, verdict=Verdict.REBUILD, cause=cause, same_rows=same_rows)
            cause = _named_before(node, self.old[node])
            if not same_rows:
                cause = "its state is as it was; the steps on its results have changed"
            return replace(judged, cause=cause, same_rows=same_rows)
        judged = replace(judged, cause=why)
        if asked:
            return replace(judged, verdict=Verdict.REBUILD)
        migration = self._migration(fold)
        if migration is not None:
            key = _key_from(migration, self.snapshot.tables)
            return replace(judged, verdict=Verdict.MIGRATE, old_key=key, migration=migration)
        if fold.input in self.migrations and old is not None and isinstance(fold, RowTable):
            cause = f"its rows follow from the migrated state of {fold.input!r}"
            return replace(judged, verdict=Verdict.MIGRATE, cause=cause)
        if self._follows(fold, below):
            verdict = Verdict.NEW if old is None else Verdict.CHANGED
            names = " and ".join(repr(name) for name in dict.fromkeys(tables_below(fold)))
            cause = f"{why}; computed from the rows of {names}"
            return replace(judged, verdict=verdict, cause=cause)
        refused = self._refusal(fold, old, why)
        return replace(judged, verdict=Verdict.REBUILD, refused=refused)

    def _why_not_kept(self, fold: Fold, node: Node, below: Sequence[Judged]) -> str | None:
        """Return why a fold's state in the checkpoint does not fit, None if it does."""
        old = self.old.get(node)
        if self.source_change is not None:
            return self.source_change
        if old is None:
            return "it is new"
        if old.digest != node.digest:
            return self._change(node, old)
        for one in below:
            if one.verdict is not Verdict.KEEP and not one.same_rows:
                return f"fold {Node('fold', one.key).name!r} below it does not keep its state"
        if self.plan.frees(fold):
            rows = "final rows" if isinstance(fold, RowTable) else "rows of windows that are over"
            gone = f"and {rows} are not there any more"
            if not self._has_same_steps(node):
                return f"the steps on its results have changed, {gone} to be shown again"
            if self._is_shown(fold) and old.name not in self.snapshot.digests:
                return f"a sink shows it now that none showed before, {gone}"
        return None

    def _change(self, node: Node, old: Node) -> str:
        if not self.is_listed:
            return "its key, window or aggregates, or something before it, has changed"
        why, changed = first_change(self.now.up_to(node), self.before.up_to(old), self.plan)
        python = self.snapshot.notes.get("python")
        if changed is None:
            return why
        if reason := self.reasons.get(changed.key):
            return reason if changed == node else f"join {changed.name!r} before it: {reason}"
        if python in (None, self.plan.notes["python"]):
            return f"{why}{self._where(changed)}"
        if has_function(self.plan, changed):
            why += (
                f"; the checkpoint was written by Python {python}, this is "
                f"{self.plan.notes['python']}, and the form of a function depends on the version: "
                "it may be the same function"
            )
        return why

    def _where(self, node: Node) -> str:
        """Return at which places the code of a node is another, "" if that is not known."""
        old = self.old.get(node)
        places = changed_parts(self.plan, node, self.snapshot, old) if old else ()
        more = len(places) - _PLACES_MAX
        shown = ", ".join(places[:_PLACES_MAX])
        return f", at {shown}{f' and {more} more' if more > 0 else ''}" if places else ""

    def _is_shown(self, fold: Fold) -> bool:
        return any(output.of == fold.name for output in self.plan.outputs)

    def _has_same_steps(self, node: Node) -> bool:
        steps = [step.digest for step in self.now.steps_on(node)]
        return steps == [step.digest for step in self.before.steps_on(self.old[node])]

    def _migration(self, fold: Fold) -> Migration | None:
        digests = {Node("fold", key).digest for key in self.snapshot.tables}
        fitting = (m for m in self.plan.migrations if m.fold == fold.name)
        return next((m for m in fitting if m.from_digest in digests), None)

    def _follows(self, fold: Fold, below: Sequence[Judged]) -> bool:
        """Tell whether it follows from the rows of the folds below, all of which are there."""
        if not below or any(one.verdict is Verdict.REBUILD for one in below):
            return False
        return not any(self.plan.frees(self.plan.fold(name)) for name in tables_below(fold))

    def _refusal(self, fold: Fold, old: Node | None, why: str) -> str:
        again = _again(self.plan, Node("fold", fold.node_key))
        if old is None:
            return f"there is no state for fold {fold.name!r} in the checkpoint ({why}): {again}"
        if is_join(fold):
            return f"the rows of {fold.name!r} are not those of the checkpoint ({why}): {again}"
        return (
            f"the state of fold {fold.name!r} in the checkpoint does not fit ({why}): {again}; or "
            f"make its state from the old one with .migrate({fold.name!r}, function, "
            f"from_digest='{old.digest}')"
        )

    # --- nodes without state ---

    def _step(self, node: Node) -> Judged:
        """Judge a step, which has no state unless it holds rows."""
        judged = self._stateless(node)
        if node.key not in (one.node_key for one in self.plan.holding):
            return judged
        asked = node.name in self.asked
        if migration := self.migrations.get(node.name):
            old_key = _key_from(migration, _held(self.snapshot))
            cause = judged.cause or "it is new"
            return replace(
                judged, verdict=Verdict.MIGRATE, old_key=old_key, cause=cause, migration=migration
            )
        if judged.verdict is Verdict.KEEP and self.source_change is not None:
            judged = replace(judged, cause=self.source_change)
        elif judged.verdict is Verdict.KEEP:
            cause = "asked for"
            return replace(judged, verdict=Verdict.REBUILD, cause=cause) if asked else judged
        why = judged.cause or "it is new"
        again = _again(self.plan, node)
        refused = f"there are no rows for {node.name!r} in the checkpoint ({why}): {again}"
        old = self.old.get(node)
        if old is not None and self.source_change is None and _is_step_scan(self.plan, node.name):
            refused += (
                f"; or make its state from the old one with .migrate({node.name!r}, "
                f"from_digest='{old.digest}')"
            )
        return replace(judged, verdict=Verdict.REBUILD, cause=why, refused="" if asked else refused)

    def _stateless(self, node: Node) -> Judged:
        old = self.old.get(node)
        if old is None:
            verdict = Verdict.NEW if self.is_listed else Verdict.CHANGED
            cause = "" if self.is_listed else "the checkpoint does not name its steps"
            return Judged(verdict, node.kind, node.key, None, cause)
        if old.digest != node.digest:
            return Judged(Verdict.CHANGED, node.kind, node.key, old.key, self._change(node, old))
        if node.kind == "source" and self.source_change is not None:
            return Judged(Verdict.CHANGED, node.kind, node.key, old.key, self.source_change)
        return Judged(Verdict.KEEP, node.kind, node.key, old.key, _named_before(node, old))

    def _sink(self, node: Node, folds: dict[str, Judged]) -> Judged:
        output = self.plan.output(node.name)
        if output.is_stream:
            return self._stream_sink(node)
        of, old = output.of, self.old.get(node)
        if old is None:
            verdict = Verdict.NEW if self.is_listed else Verdict.CHANGED
            return Judged(verdict, node.kind, node.key)
        if old.digest != node.digest or self._showed_other(old, folds[of]):
            cause = "its topic, or the fold that it shows, has changed"
        elif not folds[of].same_rows:
            cause = f"the rows of fold {of!r} have changed"
        elif folds[of].verdict is Verdict.REBUILD and self._reads_table(of):
            cause = "compaction may have removed records of its table, which is read again"
        else:
            return Judged(Verdict.KEEP, node.kind, node.key, old.key)
        return Judged(Verdict.CHANGED, node.kind, node.key, old.key, cause)

    def _reads_table(self, fold: str) -> bool:
        return any(source.table is not None for source in self.plan.sources_of(fold))

    def _showed_other(self, old: Node, fold: Judged) -> bool:
        """Tell whether a sink showed another fold that computes the same, but for its steps."""
        shown = self.before.reads.get(old.key)
        if shown is None:
            return False
        way = self.before.up_to(next(node for node in self.before.chain if node.key in shown))
        return [node.key for node in way if node.kind == "fold"][-1] != fold.old_key

    def _migrated_below(self, node: Node) -> str:
        """Return the scan with a migrated state from which a sink of events has its rows, or ""."""
        of = self.plan.output(node.name).of
        roots = [one.name for one in self.plan.scans if one.name in self.migrations]
        below = self.now.up_to(next(one for one in self.now.chain if one.name == of))
        names = {one.name for one in below}
        return next((name for name in roots if name in names), "")

    def _stream_sink(self, node: Node) -> Judged:
        """Judge a sink of events: shown events cannot be taken back, nor be found later."""
        old = self.old.get(node)
        if old is None and (of := self._migrated_below(node)):
            cause = f"it begins here: earlier events are of the former state of {of!r}"
            return Judged(Verdict.NEW, "sink", node.key, None, cause)
        if old is None:
            word = rebuild_word(self.plan, node.name, is_sink=True)
            again = (
                "give it a place that holds nothing, and the log is read from its first record, or "
                f"say --rebuild {word}; nothing is written to outputs that are ahead"
            )
            asked = bool(self.rebuild & {node.name, node.key})
            why = f"sink {node.name!r} of events is new, and earlier ones are in the log alone"
            refused = "" if asked else f"{why}: {again}"
            return Judged(Verdict.REBUILD, "sink", node.key, None, "it is new", refused=refused)
        if old.digest != node.digest:
            cause = "its topic, or a step before it, has changed"
        elif self.source_change is not None:
            cause = self.source_change
        elif not reads_alike(self.plan, self.snapshot):
            cause = "the source has other fields"
        else:
            return Judged(Verdict.KEEP, "sink", node.key, old.key)
        refused = (
            f"sink {node.name!r} holds events of other code, and they are not taken "
            f"back ({cause}): give it another name and an empty target"
        )
        return Judged(Verdict.CHANGED, "sink", node.key, old.key, cause, refused=refused)


def _held(snapshot: Snapshot) -> Iterator[str]:
    """Yield the keys of nodes with states of keys, such as scans."""
    prefix = HELD[1]
    return (name.removeprefix(prefix) for name in snapshot.tables if name.startswith(prefix))


def _key_from(migration: Migration, keys: Iterable[str]) -> str:
    """Return the key of the state that a migration takes."""
    return next(key for key in keys if digest_of(key) == migration.from_digest)


def _is_step_scan(plan: Plan, name: str) -> bool:
    return any(one.name == name and isinstance(one, StepScan) for one in plan.scans)


def _of_scans(plan: Plan, snapshot: Snapshot, asked: Set[str]) -> dict[str, Migration]:
    """Return the migrations of scans that are of other code in the checkpoint."""
    digests = {digest_of(key) for key in _held(snapshot)}
    scans = {one.name: digest_of(one.node_key) for one in plan.scans if isinstance(one, StepScan)}
    return {
        one.fold: one
        for one in plan.migrations
        if scans.get(one.fold, one.from_digest) != one.from_digest
        and scans[one.fold] not in digests
        and one.from_digest in digests
        and one.fold not in asked
    }


def _with_above(plan: Plan, named: Set[str]) -> set[str]:
    """Return the names of some folds and steps, given by name or key, and of all above them."""
    found: set[str] = set()
    for node, inputs in inputs_first(plan):
        is_named = isinstance(node, Fold | Holding) and named & {node.name, node.node_key}
        if is_named or not found.isdisjoint(inputs):
            found.add(node.name)
    return found


def _again(plan: Plan, node: Node) -> str:
    return (
        f"say --rebuild {rebuild_word(plan, node.name)} to compute it again from the first record "
        "of the log, with nothing written to outputs that are ahead (to ripple run; workers have "
        "no such flag: name another store and other outputs)"
    )


def _named_before(node: Node, old: Node) -> str:
    """Return the former key of an unchanged node, "" for its own."""
    return "" if old.key == node.key else f"it was {old.key}"
