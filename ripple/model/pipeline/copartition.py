"""Several sources divided alike, so that each partition of a pipeline reads its inputs of all.

Partition p of P reads the inputs i of each source with i mod P = p. Records of one key meet in it
if each source is divided by Kafka's hash of that key and P divides the number of its partitions,
since then (hash mod M) mod P is hash mod P, for each such M.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.model.pipeline.nodes import FlatMap, Fold, Map, type_of
from ripple.model.pipeline.stages import key_of, staying_why
from ripple.model.schema.types import Int, Int64, Option

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Holding
    from ripple.model.schema.types import Field


def unlike_why(
    plan: Plan,
    nodes: Sequence[Fold | Holding],
    keyed_by: Mapping[str, tuple[str, ...] | None] | None = None,
) -> str | None:
    """Return why several sources are not divided alike, with a remedy; None where they are.

    nodes: of the first stage, which need all records of a key. keyed_by: per source the dividing
    fields of its input, () for none, None if unknown; they take precedence over the pipeline's
    ``keyed_by``, which may have additional fields. Without it the inputs are not known yet, and
    sources without declared fields are skipped.
    """
    found = keyed_by or {}
    keys = {one.name: found.get(one.name) or one.key or found.get(one.name) for one in plan.sources}
    for fold in plan.folds:
        if fold.via_log:
            return (
                f"{fold.name} asks for via='log', and there is no log between several sources and "
                "a fold: leave it out"
            )
    for node in nodes:
        first: SourceSpec | None = None
        for source in plan.sources_of(node.name):
            key = keys[source.name]
            if key is None:
                if keyed_by is not None:
                    return _untold(node, source)
                continue
            for why in _outside(plan, node, source, key):
                return why
            first = first or source
            if key != keys[first.name]:
                others = ", ".join(keys[first.name] or ())
                return (
                    f"records of {first.name} are divided by {others} and those of {source.name} "
                    f"by {', '.join(key)}, and {node.name} reads both: divide both by the same "
                    "fields, in the same order"
                )
    return None


def other_keys_why(plan: Plan, sources: Collection[str] | None = None) -> str | None:
    """Return the map or flat_map before a keyed node that may make other keys, if any.

    sources: of records of any of these, of all by default.

    Such a key may be in several partitions. Only the function's author knows, so a cluster relies
    on it that none is made, as ``docs/stages.md`` says.
    """
    above = {name for node in (*plan.folds, *plan.holding) for name in plan.above(node.name)}
    for node in plan.nodes:
        if not isinstance(node.of, Map | FlatMap) or node.of.name not in above:
            continue
        if sources is None or any(one.name in sources for one in plan.sources_of(node.of.name)):
            return f"{node.of.name} may make other keys"
    return None


def contradiction(source: SourceSpec, found: tuple[str, ...] | None) -> str | None:
    """Return how an input that is divided by other fields than its source says is, None if not.

    found: the dividing fields of the input, () for none, None if unknown.
    """
    if not found or not source.key or set(found) <= set(source.key):
        return None
    return (
        f"is partitioned by {', '.join(found)}, but the pipeline says that {source.name} is "
        f"partitioned by {', '.join(source.key)}"
    )


def _untold(node: Fold | Holding, source: SourceSpec) -> str:
    key = node.key[0].name if node.key else "FIELD"
    say = f".source({source.name!r}, ..., key={key!r})"
    if source.table is not None:
        say = f"?key={key} in the URI of its topic"
    return (
        f"nothing tells by which fields records of {source.name} are divided, and {node.name} "
        f"needs all of one {_text_of(node)}: if their writer divides them by {key}, say {say}"
    )


def _outside(
    plan: Plan, node: Fold | Holding, source: SourceSpec, key: tuple[str, ...]
) -> Iterator[str]:
    """Yield why a source that is divided by a key does not fit a node, once at most."""
    of_node = {field.name: field for field in node.key if field.name in key_of(node)}
    of_source = {field.name: field for field in source.fields}
    if not key or not set(key) <= of_node.keys():
        remedy = f"write them to a topic that is divided by fields of the key of {node.name}"
        if isinstance(node, Fold) and not _events_of_sources(plan, node):
            remedy = f"fold the rows of {node.input} in a pipeline of its own, from their sink"
            if key and not staying_why(plan):
                say = f".source({source.name!r}, ..., key={list(key)!r})"
                remedy = f"say {say}, and it gets its own stage"
        yield (
            f"records of {source.name} are divided by {', '.join(key) or 'nothing'}, and "
            f"{node.name} needs all of one {_text_of(node)}: {remedy}"
        )
        return
    for name in key:
        theirs, ours = kind_of(of_source[name]), kind_of(of_node[name])
        if theirs != ours:
            yield (
                f"records of {source.name} are divided by {name}, which is {theirs} there and "
                f"{ours} in the key of {node.name}, and their hashes differ: declare {name} with "
                "one type in all sources"
            )


def _events_of_sources(plan: Plan, fold: Fold) -> bool:
    """Return whether a fold takes records as they come, rather than rows of a fold or node."""
    roots = plan.roots_of(fold.name)
    return fold in plan.event_folds and any(source.name in roots for source in plan.sources)


def kind_of(field: Field) -> str:
    """Return the kind of values by which they are hashed."""
    kind = type_of(field)
    if isinstance(kind, Option):
        kind = kind.of
    return "an integer" if isinstance(kind, Int | Int64) else type(kind).__name__.lower()


def _text_of(node: Fold | Holding) -> str:
    return ", ".join(key_of(node)) or "total"
