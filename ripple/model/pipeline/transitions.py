"""Transitions of a draft: the one after each kind of step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import check_result_field
from ripple.model.pipeline.draft import TRANSITIONS, Draft, Stage, check_count, united
from ripple.model.pipeline.nodes import (
    FlatMap,
    Fold,
    Map,
    RowTable,
    SourceSpec,
    Step,
    TableJoin,
    Versions,
)
from ripple.model.pipeline.waiting_nodes import BookScan, StepScan, StreamJoin, Waiting

RAW: dict[str, Any] = {
    "fold": None,
    "finals": "",
    "waits": False,
    "is_settled": False,
    "is_held": False,
    "is_table": False,
    "deleted": "",
}
"""The members of a draft at rows that come straight from a source."""


def grown(draft: Draft, verb: str, **changes: Any) -> Draft:
    """Return the draft after a step. changes: of its members."""
    return replace(draft, stage=TRANSITIONS[draft.stage, verb], **changes)


def with_source(draft: Draft, source: SourceSpec) -> Draft:
    """Return the draft with the events of a source. Raises PlanError for one source too many."""
    sources, name = (*draft.sources, source), source.name
    check_count(sources)
    raw = RAW | {"origins": (name,), "row": source.record}
    return grown(
        draft,
        "source",
        **raw,
        sources=sources,
        read=(source,),
        root=name,
        fields=source.schema.fields,
        path=(name,),
        at=name,
    )


def with_table(draft: Draft, source: SourceSpec, fold: Fold) -> Draft:
    """Return the draft with a table from a topic. fold: of its rows. Raises PlanError."""
    sources, name = (*draft.sources, source), source.name
    check_count(sources)
    raw = RAW | {"is_table": True, "origins": (name,), "fold": fold, "row": None}
    for own in (fold.partition, fold.name, fold.steps[0].name):
        draft = draft.begun(own, "table")
    return grown(
        draft,
        "table",
        **raw,
        sources=sources,
        read=(source,),
        root=name,
        folds=(*draft.folds, fold),
        fields=fold.row,
        path=(name, fold.partition, fold.name),
        at=fold.steps[0].name,
    )


def with_versions(draft: Draft, node: Versions) -> Draft:
    """Return the draft with the versions of its table, whose fold goes if nothing reads it."""
    read = {*(one.of for one in draft.outputs), *(one.input for one in draft.folds)}
    folds = tuple(one for one in draft.folds if one is not draft.fold or one.name in read)
    raw = RAW | {"deleted": node.deleted, "row": None}
    return grown(
        draft,
        "versions",
        **raw,
        steps=(*draft.steps, node),
        folds=folds,
        fields=node.fields_out,
        path=(draft.root,),
        at=node.name,
    )


def with_fold(draft: Draft, fold: Fold) -> Draft:
    """Return the draft with the result rows of a fold."""
    return grown(
        draft,
        "fold",
        folds=(*draft.folds, fold),
        fold=fold,
        partition="",
        key=(),
        partitions=None,
        via_log=False,
        window=None,
        fields=fold.row,
        row=None,
        path=(*draft.path, fold.name),
        at=fold.name,
    )


def with_joined_tables(left: Draft, right: Draft, join: TableJoin) -> Draft:
    """Return the draft with the joined rows of two tables. Raises PlanError."""
    whole = united(left, right)
    read = {source.name for source in (*left.read, *right.read)}
    return grown(
        whole,
        "join",
        read=tuple(source for source in whole.sources if source.name in read),
        folds=(*whole.folds, join),
        fold=join,
        fields=join.row,
        row=None,
        path=(*left.path, join.name),
        at=join.name,
    )


def with_stream(
    draft: Draft, verb: str, node: Waiting, *, is_settled: bool = True, **changes: Any
) -> Draft:
    """Return the draft with a stream that begins anew, of a node that waits."""
    return grown(
        draft,
        verb,
        steps=(*draft.steps, node),
        waits=True,
        is_settled=is_settled,
        root=node.name,
        path=(*draft.path, node.name),
        at=node.name,
        **changes,
    )


def with_joined(both: Draft, verb: str, node: StreamJoin) -> Draft:
    """Return the draft with a stream of joined rows."""
    return with_stream(both, verb, node, is_held=True, fields=node.fields_out, row=None, deleted="")


def with_row_table(both: Draft, node: StreamJoin | StepScan | BookScan, fold: RowTable) -> Draft:
    """Return the draft with a table of the rows of a join or a scan."""
    whole = both.begun(fold.name, "rows")
    raw = RAW | {"fold": fold, "stage": Stage.RESULTS}
    return replace(
        whole,
        **raw,
        steps=(*whole.steps, node),
        folds=(*whole.folds, fold),
        fields=fold.row,
        row=None,
        path=(*both.path, node.name, fold.name),
        at=fold.name,
    )


def with_step(draft: Draft, verb: str, step: Step, row: type | None) -> Draft:
    """Return the draft with a step of single rows. row: their class. Raises PlanError."""
    seen: dict[str, Any] = {"fields": step.fields_out, "row": row, "at": step.name}
    if isinstance(step, Map | FlatMap):
        seen["deleted"] = ""
    last = draft.fold
    if last is None:
        return grown(draft, verb, steps=(*draft.steps, step), **seen)
    if any(output.of == last.name for output in draft.outputs):
        raise PlanError(f"the rows of {last.name!r} are shown already: put it before .sink(...)")
    for field in step.fields_out:
        check_result_field(field.name)
    fold = replace(last, steps=(*last.steps, step), row=step.fields_out)
    folds = tuple(fold if one is last else one for one in draft.folds)
    return grown(draft, verb, folds=folds, fold=fold, **seen)
