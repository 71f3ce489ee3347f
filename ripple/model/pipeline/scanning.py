"""Nodes with a state by key, of ``.scan(...)``: a user's function, or running values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.arguments import need_bool, shown
from ripple.core.errors import PlanError
from ripple.model.aggregate import Aggregate
from ripple.model.aggregate.contract import call_of
from ripple.model.pipeline.checks import (
    blaming_field,
    check_new_field,
    check_result_field,
    dividing_fields,
    field_of,
    record_of,
    type_text,
)
from ripple.model.pipeline.draft import lateness_of, need_time
from ripple.model.pipeline.folding import aggregate_of, results_of
from ripple.model.pipeline.market_scans import book_scan, need_none, position_scan
from ripple.model.pipeline.nodes import ROW_KEY, type_of, types_of
from ripple.model.pipeline.row_table import last_table, row_table
from ripple.model.pipeline.state_class import state_of
from ripple.model.pipeline.timers import timers_of
from ripple.model.pipeline.waiting_nodes import BookScan, LastScan, RunningScan, StepScan
from ripple.model.running.functions import Bar, Running
from ripple.model.running.order_book import OrderBook
from ripple.model.running.position import Position
from ripple.model.schema.types import KEY_TYPES, Field, Int, Int64, bare_type
from ripple.model.window.duration import duration_ns
from ripple.model.window.spec import Last

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.model.expression.expr import Operand
    from ripple.model.pipeline.draft import Draft
    from ripple.model.pipeline.nodes import Fields, FoldAggregate, RowTable
    from ripple.model.schema.types import FieldType, Schema


def scan_of(
    name: str,
    draft: Draft,
    key: Operand | Sequence[Operand],
    columns: Mapping[str, Running],
    *,
    state: type | None,
    step: Callable[[Any, Any], Any] | OrderBook | Position | None,
    into: type | Schema | None,
    settled: bool,
    show: str,
    version_of: Operand,
    lateness: str | int | None,
    ttl: str | int | None,
    timers: Mapping[str, Callable[[Any, int], Any]] | None,
    window: Last | None,
) -> StepScan | RunningScan | LastScan | BookScan:
    """Return the node of a ``.scan(...)`` over the draft's rows.

    Raises PlanError for rows without an order in time, and for arguments at fault.
    """
    common = _common(name, draft, key, settled=settled, lateness=lateness, ttl=ttl)
    shows: dict[str, Any] = {
        "is_eager": not settled,
        "is_last": _is_last(show, settled=settled),
        "version_of": _version_of(version_of, draft, step),
    }
    given = {"state": state, "step": step, "into": into}
    if isinstance(step, OrderBook | Position):
        taken = {**columns, **given, "timers": timers, "window": window, "step": None}
        need_none(step, [what for what, value in taken.items() if value is not None])
        if isinstance(step, OrderBook):
            is_last = shows["is_last"]
            return book_scan(step, common, is_eager=not settled, is_last=is_last)
        return position_scan(step, draft, common, shows)
    if isinstance(window, Running):  # a running value of that name
        columns, window = {"window": window, **columns}, None
    missing = [what for what, value in given.items() if value is None]
    if len(missing) == len(given) and (columns or window is not None):
        if timers is not None:
            raise PlanError("timers is given, and running values have no state: leave it out")
        if not settled:
            raise PlanError(
                "settled is False, but these values are given once, when no row can precede theirs "
                "any more: say settled=True"
            )
        if window is not None:
            return _last_scan(window, draft, common, columns)
        return _running_scan(draft, common, columns)
    _need_step(columns, missing, window)
    assert state is not None
    assert into is not None
    if not callable(step):
        raise PlanError(f"step takes a function of a state and a row, not {shown(step)}")
    state_fields, initial = state_of(state)
    into_class, schema = record_of(into, "into")
    return StepScan(
        **common,
        fields_out=_fields_out(common["key"], schema),
        function=step,
        state=state,
        state_fields=state_fields,
        initial=initial,
        row=draft.row,
        into=into_class,
        schema=schema,
        **shows,
        timers=timers_of(timers, (state, state_fields, initial), draft, is_last=shows["is_last"]),
    )


def _need_step(columns: Mapping[str, Any], missing: Sequence[str], window: Last | None) -> None:
    """Raise PlanError where columns, or a window of these, are given beside a step, or no step."""
    if window is not None:
        raise PlanError("window takes aggregates, and step= makes the rows: take two scans")
    if columns:
        raise PlanError(
            f"{next(iter(columns))} is a running value, and step= makes the rows: take two scans"
        )
    if missing:
        raise PlanError(
            f"{missing[0]} is missing: it takes state=, step= and into=, or running values, as "
            "previous=rp.lag('price')"
        )


def _running_scan(draft: Draft, common: dict[str, Any], columns: Mapping[str, Any]) -> RunningScan:
    """Return the node of running values. Raises PlanError."""
    bound = _bound(columns, draft.fields)
    added = tuple(field for field, _, _ in bound)
    of = tuple((field.name, function, read) for field, function, read in bound)
    return RunningScan(**common, fields_out=(*draft.fields, *added), columns=of)


def _last_scan(
    window: Last, draft: Draft, common: dict[str, Any], columns: Mapping[str, Any]
) -> LastScan:
    """Return the node of aggregates over the last rows. Raises PlanError."""
    if not isinstance(window, Last):
        raise PlanError(f"window takes rp.Last(20), or another number of rows, not {shown(window)}")
    if not columns:
        raise PlanError("window takes aggregates of its rows, as mean=rp.mean('price')")
    members = tuple(_member(name, given, draft) for name, given in columns.items())
    names = {bound.tree.value for member in members for bound in member.inputs}
    added = tuple(results_of(members))
    taken = list(types_of(draft.fields))
    for field in added:
        check_new_field(field.name, taken)
        taken.append(field.name)
    return LastScan(
        **common,
        fields_out=(*draft.fields, *added),
        rows=window.rows,
        aggregates=members,
        read=tuple(field for field in draft.fields if field.name in names),
        added=added,
    )


def _member(name: str, given: Any, draft: Draft) -> FoldAggregate:
    """Return an aggregate of fields. Raises PlanError."""
    if isinstance(given, Running):
        raise PlanError(f"{name} is a running value, which takes no window=: take two scans")
    member = aggregate_of(name, given, draft, over_table=False)
    if any(bound.tree.operation != "col" for bound in member.inputs):
        raise PlanError(
            f"{name}: an input of {member.aggregate.name} is computed, and a row whose computation "
            "fails was counted already: .derive it before the scan, which refuses that row"
        )
    return member


def _version_of(
    given: Operand, draft: Draft, step: Callable[[Any, Any], Any] | OrderBook | Position | None
) -> Field | None:
    """Return the field that identifies rows of which others are versions. Raises PlanError."""
    if given is None:
        return None
    if step is None or isinstance(step, OrderBook):
        raise PlanError("version_of takes a step of rows one by one: leave it out")
    found = field_of(given, draft.fields, "version_of")
    if not isinstance(bare_type(found.type), KEY_TYPES):
        raise PlanError(
            f"version_of: {found.name!r} is {type_text(found.type)}: name a text, an integer or a "
            "bool"
        )
    return found


def _is_last(show: str, *, settled: bool) -> bool:
    """Return whether a scan shows the last row of each key. Raises PlanError."""
    if not isinstance(show, str) or show not in ("rows", "last"):
        raise PlanError(
            f"show is {shown(show)}: it must be 'rows', a row for each row read, or 'last', one "
            "for each key"
        )
    if show == "last" and settled:
        raise PlanError(
            "show='last' is a table of rows from their reading on, and settled=True makes a "
            "stream: leave one of them out, or fold the stream by its key, as "
            ".partition('by-key', key=...).fold('last', of=rp.last_row([...]))"
        )
    return show == "last"


def table_of(node: StepScan | BookScan) -> RowTable:
    """Return the table of a scan's rows from their reading on. Raises PlanError."""
    if isinstance(node, StepScan) and node.is_last:
        return last_table(node)
    return row_table(node, ROW_KEY, "a scan without settled=True", "settled=True")


def _common(
    name: str,
    draft: Draft,
    key: Operand | Sequence[Operand],
    *,
    settled: bool,
    lateness: str | int | None,
    ttl: str | int | None,
) -> dict[str, Any]:
    """Return the arguments that all scan nodes have. Raises PlanError."""
    need_time(draft, "rows are taken in the order of event time")
    fields = dividing_fields(key, draft.fields)
    if not fields:
        raise PlanError(
            "key is missing: name the field, or fields, whose rows have one state; for one state "
            "of all rows, .derive('one', one=rp.lit(1)) before it and key='one'"
        )
    need_bool("settled", settled)
    lateness_ns = duration_ns(lateness_of(draft, lateness), "lateness")
    ttl_ns = None if ttl is None else duration_ns(ttl, "ttl")
    if ttl_ns == 0:
        raise PlanError("ttl is 0, and no state would last until the next row: take .map instead")
    return {
        "name": name,
        "key": fields,
        "ttl_ns": ttl_ns,
        "lateness_ns": lateness_ns,
        "fields_in": draft.fields,
        "node_key": draft.below(name),
        "reads": draft.at,
        "finals": draft.finals,
    }


def _bound(
    columns: Mapping[str, Running], fields: Fields
) -> list[tuple[Field, Running, Field | None]]:
    """Return the new fields, their functions, and the fields that these read. Raises PlanError."""
    types = types_of(fields)
    found = []
    for name, function in columns.items():
        check_new_field(name, types)
        if isinstance(function, Aggregate):
            raise PlanError(
                f"window is None, and {name} is an aggregate, {call_of(function)}: say of which "
                "rows, as window=rp.Last(20)"
            )
        if not isinstance(function, Running):
            raise PlanError(
                f"{name} takes a running value, as rp.lag('price') or rp.ema('price', span=20), "
                f"not {shown(function)}"
            )
        with blaming_field(name):
            read = None
            if function.x is not None or not isinstance(function, Bar):
                read = field_of(function.x, fields, "x")
            kind = function.bind(Int64() if read is None else type_of(read))
        found.append((Field(name, kind), function, read))
    splits = [
        one.name for one, function, _ in found if isinstance(function, Bar) and function.split
    ]
    if len(splits) > 1:
        raise PlanError(f"{' and '.join(splits)} both split rows: take two scans")
    return found


def _fields_out(key: Fields, schema: Schema) -> Fields:
    """Return the fields of the rows: the key, then the others of ``into``. Raises PlanError."""
    types = types_of(key)
    for field in schema.fields:
        check_result_field(field.name)
        check_new_field(field.name, ())
        if field.name in types and _kind(type_of(field)) != _kind(types[field.name]):
            raise PlanError(
                f"into: {field.name!r} is the key, which is {type_text(types[field.name])} and not "
                f"{type_text(type_of(field))}: leave it out, since each row has its key anyway, or "
                "choose another name"
            )
    return (*key, *(field for field in schema.fields if field.name not in types))


def _kind(of: FieldType) -> FieldType:
    """Return the type of a key's values: integers are of one, whatever they are declared as."""
    return Int64() if isinstance(of, Int) else of
