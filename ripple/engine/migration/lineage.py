"""The nodes of a run, as its snapshot names them, in their order, and the changes in them.

The way to a node from its source is a chain, so that two plans agree up to some node on it and
differ from there on. That node, or the missing one, is why state does not fit.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ripple.core.sexp import dumps, loads
from ripple.model.canonical import digest_of, name_of
from ripple.model.pipeline.nodes import ConstantJoin, TableJoin, Union
from ripple.model.pipeline.waiting_nodes import Ask, AsofJoin, Distinct, IntervalJoin, Scan
from ripple.model.schema import notation
from ripple.model.schema.fingerprint import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.types import Field, Schema


@dataclass(frozen=True, slots=True)
class Node:
    """A node by its key. kind: source, step, fold or sink."""

    kind: str
    key: str

    @property
    def name(self) -> str:
        """The step's name in the pipeline."""
        return name_of(self.key)

    @property
    def digest(self) -> str:
        """Its computation and inputs."""
        return digest_of(self.key)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The nodes of a plan: ``chain`` from the sources to the last step on results, and the sinks.

    reads: of a plan with branches, per node the keys of its inputs.
    """

    chain: tuple[Node, ...]
    sinks: tuple[Node, ...]
    reads: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def source(self) -> Node:
        """The beginning of the chain."""
        return self.chain[0]

    @property
    def sources(self) -> tuple[Node, ...]:
        """The nodes without inputs."""
        return tuple(node for node in self.chain if node.kind == "source")

    @property
    def folds(self) -> tuple[Node, ...]:
        """The nodes with state."""
        return tuple(node for node in self.chain if node.kind == "fold")

    def up_to(self, node: Node) -> tuple[Node, ...]:
        """Return the chain that ends with ``node``."""
        if not self.reads:
            return self.chain[: self.chain.index(node) + 1]
        found, left = set[str](), [node.key]
        while left:
            found.add(key := left.pop())
            left += self.reads.get(key, ())
        return tuple(one for one in self.chain if one.key in found)

    @property
    def of_events(self) -> tuple[Node, ...]:
        """The nodes that take events, each of which may refuse a record."""
        if not self.reads:
            folds = [at for at, node in enumerate(self.chain) if node.kind == "fold"]
            return self.chain[1 : folds[0] + 1] if folds else self.chain[1:]
        return tuple(
            node
            for node in self.chain
            if node.kind != "source" and all(n.kind != "fold" for n in self.up_to(node)[:-1])
        )

    def steps_on(self, fold: Node) -> tuple[Node, ...]:
        """Return the steps on the results of ``fold``."""
        rest = self.chain[self.chain.index(fold) + 1 :]
        ends = (at for at, node in enumerate(rest) if node.kind == "fold")
        return rest[: next(ends, len(rest))]


def lineage_of(plan: Plan) -> Lineage:
    """Return the nodes of ``plan``."""
    reads = {} if plan.is_chain else plan.reads
    folds = {fold.node_key for fold in plan.folds}
    return _lineage(plan.node_keys, folds, reads, len(plan.sources))


def written_lineage(snapshot: Snapshot) -> Lineage | None:
    """Return the nodes of the plan that wrote ``snapshot``; None if it does not name them."""
    if not snapshot.nodes:
        return None
    reads = _loaded(snapshot.notes, "reads")
    return _lineage(snapshot.nodes, snapshot.tables.keys(), reads, source_count(snapshot))


def source_count(snapshot: Snapshot) -> int:
    """Return how many of a snapshot's nodes are sources: they are its first ones."""
    return max(1, len(_loaded(snapshot.notes, "sources")))


def _lineage(
    keys: Sequence[str],
    folds: AbstractSet[str],
    reads: Mapping[str, str | list[str]],
    sources: int,
) -> Lineage:
    nodes = [Node("source", key) for key in keys[:sources]]
    for key in keys[sources:]:
        # The path of a sink is its name alone; everything else stands below the source.
        kind = "fold" if key in folds else "step" if "/" in key else "sink"
        nodes.append(Node(kind, key))
    chain = tuple(node for node in nodes if node.kind != "sink")
    read = {key: [of] if isinstance(of, str) else of for key, of in reads.items()}
    return Lineage(chain, tuple(node for node in nodes if node.kind == "sink"), read)


def source_change(plan: Plan, snapshot: Snapshot) -> str | None:
    """Return how the records that count differ from those of the snapshot's plan, or None.

    Which records were refused is part of every state. Optional fields may come and go: a record
    without them is the same record, unless they are checked.
    """
    if snapshot.topology_hash == plan.topology_hash:
        return None
    if not snapshot.nodes or snapshot.notes.keys().isdisjoint(("source", "sources")):
        return "the checkpoint was written by a version of Ripple that did not note of what"
    only = plan.sources[0].name
    before, now = _read(snapshot.notes, only), _read(plan.notes, only)
    if before.keys() != now.keys():
        return f"the pipeline had the sources {', '.join(before)}, and has {', '.join(now)}"
    changes = (_change_of(name, before[name], now[name]) for name in now)
    return next((change for change in changes if change is not None), None)


def _read(notes: Mapping[str, str], only: str) -> Mapping[str, Mapping[str, str]]:
    """Return per source the notes of its records; only: the name of an only source."""
    return _loaded(notes, "sources") or {only: notes}


def _change_of(source: str, was_read: Mapping[str, str], read: Mapping[str, str]) -> str | None:
    """Return the difference in the accepted records of a source, None if there is none."""
    before, now = (_fields(notation.loads(notes["source"])) for notes in (was_read, read))
    for name in dict.fromkeys((*before, *now)):
        change = _change(before.get(name), now.get(name))
        if change is not None:
            return f"the field {name!r} of source {source!r} {change}"
    checked_before, checked_now = _checks(was_read), _checks(read)
    for name in dict.fromkeys((*checked_before, *checked_now)):
        was_checked, is_checked = (c.get(name, "nothing") for c in (checked_before, checked_now))
        if was_checked != is_checked:
            return (
                f"the field {name!r} of source {source!r} was checked for {was_checked} "
                f"and is checked for {is_checked}"
            )
    return None


def refusal_change(
    now: Lineage, before: Lineage, snapshot: Snapshot, but: Container[str] = ()
) -> str | None:
    """Return why records that were refused may count now, None if none was or they do not.

    but: digests of nodes that refuse the same records in another form.
    A record that one branch refuses counts in none, so that the state of a branch depends on which
    others there were.
    """
    if not (now.reads or before.reads) or not snapshot.counters.get("dead_lettered"):
        return None
    digests, rejected = {node.digest for node in now.of_events}, snapshot.rejected
    for gone in before.of_events:
        if (
            gone.digest not in digests
            and gone.digest not in but
            and (rejected is None or gone.digest in rejected)
        ):
            by = "perhaps by " if rejected is None else "by "
            return (
                f"records were rejected before, {by}{gone.kind} {gone.name!r}, which is gone or "
                "has changed: they would count now"
            )
    return None


def _checks(notes: Mapping[str, str]) -> dict[str, str]:
    return dict(loads(notes.get("checks", "()")))  # type: ignore[arg-type]


def _fields(schema: Schema) -> dict[str, Field]:
    return {field.name: field for field in canonical(schema).fields}


def _change(was: Field | None, is_now: Field | None) -> str | None:
    if was is None:
        assert is_now is not None, "it is in one of them"
        return None if is_now.optional else "is new and not optional: records without it are none"
    if is_now is None:
        return None if was.optional else "is gone: records without it were none before"
    if was.type != is_now.type:
        before, now = (dumps(notation.type_to_sexp(field.type)) for field in (was, is_now))
        return f"was {before} and is {now}"
    if was.optional != is_now.optional:
        return "is optional now" if is_now.optional else "is not optional any more"
    return None


def first_change(
    now: Sequence[Node], before: Sequence[Node], plan: Plan
) -> tuple[str, Node | None]:
    """Return why the last node of ``now`` is not that of ``before``, and the changed node of now.

    plan: of ``now``. The node is None where one was removed. At least one pair of nodes differs.
    """
    pairs = zip(now, before, strict=False)
    at = next(i for i, (new, old) in enumerate(pairs) if new.digest != old.digest)
    new, old = now[at], before[at]
    itself = new is now[-1]
    # The last of both are one node under any name.
    was_called = {node: node.name for node in before} | {before[-1]: now[-1].name}
    if new.name == was_called[old]:
        if itself:
            return f"{_parts_of(plan, new)[1]} changed", new
        kind, parts = _parts_of(plan, new)
        return f"{kind} {new.name!r} before it changed: {parts}", new
    was_there = new.name in was_called.values()
    is_there = was_called[old] in {node.name for node in now}
    if was_there and not is_there:
        return f"{old.kind} {old.name!r} before it was removed", None
    if is_there and not was_there:
        return f"{new.kind} {new.name!r} was put before it", new
    if is_there:
        return f"{new.kind} {new.name!r} stands where {old.name!r} stood", new
    return f"{new.kind} {new.name!r} before it has replaced {old.name!r}", new


_PARTS = {
    "source": "its topic, event time, out_of_order or reject_future",
    "step": "what it does",
    "fold": "its key, window or aggregates",
    "sink": "its topic or its fold",
}


def _parts_of(plan: Plan, node: Node) -> tuple[str, str]:
    """Return a node's name for people, and the parts that may have changed."""
    of = next((one.of for one in plan.nodes if one.of.node_key == node.key), None)
    match of:
        case TableJoin():
            return "join", "its compared fields, how, suffix or the fields of its sides"
        case ConstantJoin():
            return (
                "join",
                "its constant, compared fields, how, suffix or the fields of its left side",
            )
        case IntervalJoin():
            return "join", "its keys, within, how, lateness or the fields of its sides"
        case AsofJoin():
            return "join", "its keys, strategy, tolerance, how, lateness or the fields of its sides"
        case Distinct():
            return "distinct", "its key, within, lateness or its fields"
        case Scan():
            return "scan", "its step, state, key, ttl, lateness, into or the fields of its rows"
        case Ask():
            return "ask", "into or the fields of its rows"
        case Union():
            return "union", "the streams that it unites"
        case _:
            return node.kind, _PARTS[node.kind]


def has_function(plan: Plan, node: Node) -> bool:
    """Return whether a user's Python code is part of ``node``'s meaning."""
    return node.kind in ("step", "fold") and node.name in plan.code


def changed_parts(plan: Plan, node: Node, snapshot: Snapshot, old: Node) -> tuple[str, ...]:
    """Return the places in the code of ``node`` at which it is not that of ``old``.

    Empty if neither has code, or one has so much that its parts were not noted.
    """
    now, before = _noted(plan.notes, node), _noted(snapshot.notes, old)
    if not now or not before:
        return ()
    places = dict.fromkeys((*now, *before))
    return tuple(place or "its own code" for place in places if now.get(place) != before.get(place))


def _noted(notes: Mapping[str, str], node: Node) -> dict[str, str]:
    """Return the parts of a node's code, by place."""
    found: dict[str, str] = _loaded(notes, "code").get(node.digest, {})
    return found


def changed_libraries(plan: Plan, snapshot: Snapshot) -> tuple[str, ...]:
    """Return which libraries that code takes by name had another version, as sentences."""
    before = _loaded(snapshot.notes, "libraries")
    return tuple(
        f"{name} was {before[name]} when the checkpoint was written, and is {version}: its code is "
        "known by its name alone"
        for name, version in plan.libraries.items()
        if before.get(name, version) != version
    )


def _loaded(notes: Mapping[str, str], name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(notes.get(name, "{}"))
    return found
