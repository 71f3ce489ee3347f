"""The sources to repartition, so that the records of a key meet in one partition.

Pure: from the plan, and from the inputs' partitioners. See
docs/design/0007-records-divided-anew.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import PlanError
from ripple.model.pipeline.copartition import kind_of, other_keys_why
from ripple.model.pipeline.division import need_one_division, undivided_why
from ripple.model.pipeline.new_division import NewDivision
from ripple.model.pipeline.nodes import Fold
from ripple.model.pipeline.stages import (
    PARTITIONS_DEFAULT,
    key_of,
    meeting,
    shared_fields,
    staying_why,
)
from ripple.model.pipeline.topology import stage_folds

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ripple.model.pipeline.new_division import Key
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Holding
    from ripple.model.schema.types import Field

    Keyed = Fold | Holding


def repartitioned_sources(
    plan: Plan, keyed_by: Mapping[str, Key | None] | None
) -> dict[str, NewDivision]:
    """Return the sources to repartition, in their order, with the fields.

    keyed_by: per source the dividing fields of its input, () for none, None if unknown; None if one
    partition has all records. The result is empty for a chain, for sources that are divided alike,
    and where repartitioning is impossible: then ``need_one_division`` has the reason. It is
    impossible without fields for each node, for tables, for sources with idle=, with a source read
    directly whose keys a map may change, and below windows whose partial results depend on the
    order of reading.
    """
    if keyed_by is None or plan.is_idle or plan.asks or any(one.via_log for one in plan.folds):
        return {}
    if undivided_why(plan, keyed_by) is None:
        return {}
    found: dict[str, NewDivision] = {}
    keys = {one.name: keyed_by.get(one.name) or one.key for one in plan.sources}
    for sources, nodes in meeting(plan, _first_nodes(plan)):
        by = _fields_of(plan, nodes, {name: keys[name] for name in sources})
        if by is None:
            return {}
        moved = _moved(plan, sources, by, keys)
        if moved and other_keys_why(plan, sources - moved.keys()) is not None:
            return {}
        found |= moved
    stopped = {one.name for fold in plan.partial_folds for one in plan.sources_of(fold.name)}
    stopped |= {source.name for source in plan.sources if source.table is not None}
    if stopped & found.keys():
        return {}
    return {source.name: found[source.name] for source in plan.sources if source.name in found}


def repartitioned_into(plan: Plan, repartitioned: Mapping[str, object]) -> int:
    """Return the number of partitions of the first stage; 0 if a source read directly decides."""
    if len(repartitioned) < len(plan.sources):
        return 0
    first = next((node.partitions for node in plan.keyed if isinstance(node, Fold)), None)
    return first or PARTITIONS_DEFAULT


def need_division(
    plan: Plan, where: str, keyed_by: Mapping[str, Key | None] | None, *, is_one: bool
) -> dict[str, NewDivision]:
    """Return ``repartitioned_sources``, none where one partition has all records.

    Raises PlanError where ``where`` cannot divide the records as they must be.
    """
    repartitioned = {} if is_one else repartitioned_sources(plan, keyed_by)
    if not repartitioned:
        need_one_division(plan, where, keyed_by, is_one=is_one)
    for name in repartitioned:
        if (other := f"{name}.cuts") in repartitioned:
            raise PlanError(
                f"pipeline {plan.name!r}: the cuts of {name!r} and the records of {other!r} would "
                "be in one topic: give one of these sources another name"
            )
    return repartitioned


def fields_of_outputs(plan: Plan, repartitioned: Mapping[str, NewDivision]) -> dict[str, Key]:
    """Return the dividing fields, among their keys, of the outputs over these sources."""
    return {
        output.name: by
        for output in plan.outputs
        for source in plan.sources_of(output.of)
        if source.name in repartitioned
        and (by := repartitioned[source.name].of(output.of))
        and set(by) <= {field.name for field in plan.key_of(output)}
    }


def anew_text(source: str, division: NewDivision) -> str:
    """Return the sentence for people on a repartitioned source."""
    return f"records of {source} are repartitioned by {division}"


def _first_nodes(plan: Plan) -> list[Keyed]:
    """Return the nodes of the first stage that need all records of a key."""
    first = {node.name for node in (*plan.holding, *stage_folds(plan, 0))}
    return [node for node in plan.keyed if node.name in first]


def _moved(
    plan: Plan, sources: Collection[str], by: Mapping[str, Key], keys: Mapping[str, Key | None]
) -> dict[str, NewDivision]:
    """Return the new division of a group's sources: of those that differ, or of all.

    by: of each node. If all nodes have the same fields, one partition has all rows of a record. If
    not, every source is repartitioned, since a source read directly would be read twice.
    """
    is_one = len(set(by.values())) <= 1
    found = {}
    for source in sources:
        own = {name: key for name, key in by.items() if _reads(plan, name, source)}
        first = next(iter(own.values()))
        if not is_one or keys[source] != first:
            others = tuple((name, key) for name, key in own.items() if key != first)
            found[source] = NewDivision(first, others)
    return found


def _reads(plan: Plan, node: str, source: str) -> bool:
    return any(one.name == source for one in plan.sources_of(node))


def _fields_of(
    plan: Plan, nodes: Sequence[Keyed], keys: Mapping[str, Key | None]
) -> dict[str, Key] | None:
    """Return the dividing fields of each node of a group, None if some node has none.

    They are the same for all nodes, or else for each part of the folds: the first fold with all
    that fit it, then the first of the others, and so on. A fold over a fold is in its part.
    """
    whole = _fields(plan, nodes, keys)
    if whole is not None:
        return {node.name: whole for node in nodes}
    if staying_why(plan) is not None:
        return None
    parts: list[list[Keyed]] = []
    found: dict[str, Key] = {}
    for tree in _trees(nodes):
        if _fields(plan, tree, keys) is None:
            return None
        fitting = (part for part in parts if _fields(plan, [*part, *tree], keys) is not None)
        part = next(fitting, None)
        if part is None:
            parts.append(tree)
        else:
            part += tree
    for part in parts:
        by = _fields(plan, part, keys)
        assert by is not None, "it fits all of them"
        found |= {node.name: by for node in part}
    return {node.name: found[node.name] for node in nodes}


def _trees(nodes: Sequence[Keyed]) -> list[list[Keyed]]:
    """Return the nodes over events, each with the folds over it."""
    at: dict[str, list[Keyed]] = {}
    for node in nodes:
        below = at.get(node.input, []) if isinstance(node, Fold) else []
        below.append(node)
        at[node.name] = below
    return [tree for name, tree in at.items() if tree[0].name == name]


def _fields(plan: Plan, nodes: Sequence[Keyed], keys: Mapping[str, Key | None]) -> Key | None:
    """Return the common dividing fields of some nodes, None without any.

    They are the fields of the first source whose fields all keys have, with its types, else the
    fields that all keys have.
    """
    for source in plan.sources:
        key = keys.get(source.name)
        if key and all(_has(node, key, source.fields) for node in nodes):
            return key
    shared = shared_fields(map(key_of, nodes))
    first = nodes[0].key
    return shared if shared and all(_has(node, shared, first) for node in nodes) else None


def _has(node: Keyed, key: Key, fields: Sequence[Field]) -> bool:
    """Return whether a node's key has these fields, with the kinds by which they are hashed."""
    mine = {one.name: kind_of(one) for one in node.key if one.name in key_of(node)}
    return all(mine.get(one.name) == kind_of(one) for one in fields if one.name in key) and set(
        key
    ) <= set(mine)
