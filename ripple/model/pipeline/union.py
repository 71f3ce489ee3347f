"""The union of streams: one stream of all their rows, each with its identity and its place."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.pipeline.builder import Pipeline, pipeline_of
from ripple.model.pipeline.checks import blaming, check_name, type_text
from ripple.model.pipeline.draft import AS_EVENTS, Draft, Stage, united
from ripple.model.pipeline.nodes import Fields, Union, type_of
from ripple.model.schema.types import Field, Int, Int64, Option, bare_type

if TYPE_CHECKING:
    from collections.abc import Sequence


def union(name: str, *branches: Pipeline) -> Pipeline:
    """Return a branch with the rows of several streams: ``rp.union("all", trades, quotes)``.

    branches: two or more of one pipeline, with the same fields by name and type, in any order; a
    field that may be null in one of them may be null in the union. Raises PlanError, naming the
    step, the field and the remedy.
    """
    if not isinstance(name, str):
        way = 'write rp.union("NAME", branch, branch)'
        raise PlanError(f"union: the name of the step comes first, not {shown(name)}: {way}")
    with blaming("union", name):
        check_name(name)
        drafts = [_stream(branch) for branch in branches]
        if len(drafts) < 2:
            raise PlanError("it unites two streams or more: name another one, or leave it out")
        whole = reduce(united, drafts)
        _check_once([draft.at for draft in drafts])
        finals = finals_of(drafts)
        _check_apart(drafts)
        fields = reduce(_common, drafts[1:], drafts[0].fields)
        whole = whole.begun(name, "union")
        read = {source.name for draft in drafts for source in draft.read}
        sources = tuple(source for source in whole.sources if source.name in read)
        roots = "+".join(source.name for source in sources)
        node = Union(name, tuple(draft.at for draft in drafts), fields, f"{roots}/{name}")
        deleted = drafts[0].deleted
        are_versions = all(draft.deleted == deleted for draft in drafts)
        rows = [draft.row for draft in drafts if draft.fields == fields]
        is_one = len(rows) == len(drafts) and all(row is rows[0] for row in rows)
        return pipeline_of(
            replace(
                whole,
                steps=(*whole.steps, node),
                read=sources,
                root=name,
                origins=tuple(dict.fromkeys(one for draft in drafts for one in draft.origins)),
                fields=fields,
                row=rows[0] if is_one else None,
                finals=finals,
                deleted=deleted if are_versions else "",
                waits=any(draft.waits for draft in drafts),
                is_settled=all(draft.is_settled for draft in drafts),
                is_held=any(draft.is_held for draft in drafts),
                path=(roots, name),
                at=name,
            )
        )


def _stream(branch: Any) -> Draft:
    if not isinstance(branch, Pipeline):
        raise PlanError(f"it unites branches of a pipeline, not {shown(branch)}")
    draft = branch._draft
    if draft.stage in (Stage.KEYED, Stage.WINDOWED, Stage.REKEYED):
        raise PlanError(
            "rows on their way into a fold are not united: put .partition(...) after it"
        )
    if draft.is_table:
        raise PlanError(f"{draft.at!r} is of a table, and streams are united: {AS_EVENTS}")
    if draft.stage is Stage.RESULTS:
        raise PlanError(
            f"{draft.at!r} is a table: unite the events before the fold, or the rows of its "
            "windows once they are final, with .finals(name)"
        )
    if draft.stage is Stage.EMPTY:
        raise PlanError("a branch has nothing to read yet: start it with .source(...)")
    return draft


def finals_of(drafts: Sequence[Draft]) -> str:
    """Return the node of final rows among the roots of branches, "" for none. Raises PlanError."""
    names = list(dict.fromkeys(draft.finals for draft in drafts if draft.finals))
    if len(names) > 1:
        raise PlanError(
            f"{names[0]!r} and {names[1]!r} are final rows of two folds, and nothing orders those "
            "of one time: fold each of them, or give each a sink of its own"
        )
    return "".join(names)


def _check_apart(drafts: list[Draft]) -> None:
    """Raise PlanError where rows of one event may come by two branches at different watermarks."""
    for draft in (one for one in drafts if one.is_held):
        for other in drafts:
            common = [one for one in draft.origins if one in other.origins]
            if other is not draft and common:
                raise PlanError(
                    f"{draft.at!r} and {other.at!r} have rows of the same events, of "
                    f"{common[0]!r}, and {draft.root!r} gives them later: fold each, or give each "
                    "a sink of its own"
                )


def _check_once(nodes: list[str]) -> None:
    for node in nodes:
        if nodes.count(node) > 1:
            raise PlanError(f"{node!r} is named twice: leave one out")


def _common(fields: Fields, other: Draft) -> Fields:
    """Return fields that may be null where they may be in either of two streams."""
    theirs = {field.name: field for field in other.fields}
    for name in theirs:
        if all(field.name != name for field in fields):
            raise PlanError(f"{other.at!r} alone has the field {name!r}: {_ALIKE}")
    for field in fields:
        if field.name not in theirs:
            raise PlanError(f"{other.at!r} has no field {field.name!r}: {_ALIKE}")
    return tuple(_either(field, theirs[field.name], other.at) for field in fields)


_ALIKE = "give all of them the same fields, with .derive(...) or .map(..., into=...)"


def _either(one: Field, other: Field, node: str) -> Field:
    types = [type_of(field) for field in (one, other)]
    bare = [bare_type(found) for found in types]
    if bare[0] != bare[1] and not all(isinstance(found, Int | Int64) for found in bare):
        raise PlanError(
            f"the field {one.name!r} is {type_text(bare[1])} in {node!r}, and {type_text(bare[0])} "
            f"before: {_ALIKE}"
        )
    is_optional = any(isinstance(found, Option) for found in types)
    if is_optional == isinstance(types[0], Option):
        return one
    return replace(one, type=bare[0], optional=True)
