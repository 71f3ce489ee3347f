"""By which fields the rows of DataFrames may be divided among tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.types as kinds

from ripple.model.aggregate.custom import Custom
from ripple.model.pipeline.copartition import other_keys_why
from ripple.model.pipeline.division import undivided_why, waiting_why
from ripple.model.pipeline.nodes import Derive, Filter, FlatMap, LastTable, Map
from ripple.model.pipeline.stages import key_of, shared_fields
from ripple.model.pipeline.topology import several_stages_why
from ripple.model.schema.types import Date, Logical, Uuid, bare_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.types import FieldType


def calls_functions(plan: Plan) -> bool:
    """Return whether a plan may call functions of Python for its rows, or joins them."""
    steps = [*plan.steps, *(step for fold in plan.folds for step in fold.steps)]
    return not all(isinstance(step, Derive | Filter) for step in steps) or any(
        isinstance(one.aggregate, Custom) for fold in plan.folds for one in fold.aggregates
    )


def division_of(
    plan: Plan, columns: pa.Schema | None = None, *, is_open: bool = False
) -> tuple[tuple[str, ...], str | None]:
    """Return the fields that divide the rows of all sources, or () and why one task reads all.

    Each task then has all rows of its keys, in order. Its results equal the results of one task
    over all rows. columns: of the only source, by field; None where they are unknown. is_open:
    whether windows stay open at the end.
    """
    why = waiting_why(plan, is_open=is_open) or _reading_why(plan)
    if why is not None:
        return (), why
    nodes = plan.folds[:1] if plan.is_chain else plan.keyed
    if not nodes:  # each event is by itself
        return (plan.sources[0].fields[0].name,), None
    found = shared_fields(map(key_of, nodes))
    spelled: str | None = None
    for source in plan.sources:
        own = {field.name: bare_type(field.type) for field in source.fields}
        found = tuple(name for name in found if name in own)
        many = [name for name in found if _is_spelled(name, own[name], columns)]
        spelled = spelled or next(iter(many), None)
        found = tuple(name for name in found if name not in many)
    if not found and spelled is not None:
        return (), f"values of {spelled} may be written in several ways, in rows of one key"
    if not found:
        named = ", ".join(node.name for node in nodes)
        return (), f"no field of the records is in all keys of {named}"
    why = _chain_why(plan, found) if plan.is_chain else _graph_why(plan, found)
    return (found, None) if why is None else ((), why)


def uuids_in(source: SourceSpec, names: Sequence[str]) -> tuple[str, ...]:
    """Return the fields with UUIDs: their texts are one value in either case."""
    uuids = {one.name for one in source.fields if isinstance(bare_type(one.type), Uuid)}
    return tuple(name for name in names if name in uuids)


def _is_spelled(name: str, kind: FieldType, columns: pa.Schema | None) -> bool:
    """Tell whether a column may have one value of a type in several spellings.

    Values of one type of column that is no text have one, and UUIDs one in lower case.
    """
    if not isinstance(kind, Logical) or isinstance(kind, Date | Uuid):
        return False
    at = -1 if columns is None else columns.get_field_index(name)
    return columns is None or at < 0 or kinds.is_string(columns.field(at).type)


def numbered_why(plan: Plan) -> str | None:
    """Return which events have numbers among all rows, None where there are none.

    Several tasks give the same rows, but other digests than one task.
    """
    for output in plan.outputs:
        if output.is_stream:
            return (
                f"events of {output.name} have numbers in the order of all rows; with partitions= "
                "several tasks read, each with numbers of its own, so that digests differ"
            )
    return None


def _reading_why(plan: Plan) -> str | None:
    """Return why one task reads all: a result depends on a row's place in its source. Else None."""
    for source in plan.sources:
        if source.reject_future_ns is not None:
            return f"{source.name} rejects times by the watermark of all its records"
    for table in plan.row_tables:
        if isinstance(table, LastTable):
            continue  # its rows are named by their key
        return f"the rows of {table.input} are named by the offsets of records"
    for fold in plan.partial_folds:
        return f"partial results of {fold.name} depend on the order of reading"
    return None


def _chain_why(plan: Plan, found: tuple[str, ...]) -> str | None:
    is_told = bool(plan.source.key) and set(plan.source.key) <= set(found)
    for step in () if is_told else plan.steps:
        if isinstance(step, Map | FlatMap):
            return (
                f"{step.name} may make other keys: if it makes none, say "
                f".source({plan.source.name!r}, ..., key={list(found)!r})"
            )
    return None


def _graph_why(plan: Plan, found: tuple[str, ...]) -> str | None:
    known = {source.name: found for source in plan.sources}
    return undivided_why(plan, known) or several_stages_why(plan) or other_keys_why(plan)
