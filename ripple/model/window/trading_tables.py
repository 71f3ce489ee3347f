"""Tables of trading sessions, from users and from exchanges."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.calendar.trading_spans import TradingTable
from ripple.model.schema.text_columns import is_text
from ripple.model.window.instant import instant_ns, instant_text

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

COLUMNS = ("open", "close", "break_start", "break_end")
SESSIONS_MAX = 1_000_000  # of a table

_EVENT_TIME_NS = 1 << 62


def given_table(given: Any, start: Any, end: Any) -> TradingTable:
    """Return the sessions of a user's table; raises PlanError, with the row at fault.

    start, end: days that it covers, None for the first open or the last close.
    """
    rows = _read(given)
    if missing := [name for name in COLUMNS[:2] if name not in rows.column_names]:
        raise PlanError(
            f"table has no column {missing[0]!r}, it has {rows.column_names[:8]}: it takes open "
            "and close, and break_start and break_end where sessions have breaks"
        )
    if odd := [one for one in rows.column_names if one.startswith("break") and one not in COLUMNS]:
        raise PlanError(f"table: {odd[0]!r} is no column of it: {COLUMNS[2]} and {COLUMNS[3]} are")
    columns = [
        _instants(name, rows.column(name)) if name in rows.column_names else None
        for name in COLUMNS
    ]
    opens, closes = (_whole(name, one) for name, one in zip(COLUMNS, columns[:2], strict=False))
    _check_breaks(*columns[2:])
    bounds = np.stack([opens, closes, *(_filled(one, closes) for one in columns[2:])], axis=1)
    order = np.argsort(bounds[:, 0], kind="stable")
    bounds = bounds[order]
    if not len(bounds):
        raise PlanError("table has no rows: each is a session")
    _check(bounds, order)
    is_empty = bounds[:, 2] == bounds[:, 3]  # a break of no length is none
    bounds[is_empty, 2:] = bounds[is_empty, 1:2]
    first, last = (
        None if day is None else need_day(what, day)
        for what, day in (("start", start), ("end", end))
    )
    _check_order(first, last)
    start_ns, end_ns = (None if day is None else _midnight_ns(day) for day in (first, last))
    return _covering(bounds, start_ns, end_ns, "a table")


def exchange_table(name: str, start: Any, end: Any) -> TradingTable:
    """Return an exchange's sessions that are open from ``start`` until ``end``, midnights of UTC.

    start, end: a date, or a text such as "2015" or "2015-03-01". Raises PlanError for a name
    that the package has not, for days beyond its calendar, and if there is no package.
    """
    from ripple.model.calendar.exchange import exchange_sessions  # noqa: PLC0415 - with pandas

    first, last = need_day("start", start), need_day("end", end)
    _check_order(first, last)
    bounds, origin = exchange_sessions(name, first, last)
    if not len(bounds):
        raise PlanError(f"{name} has no session from {first} to {last}: take a longer span")
    return _covering(bounds, _midnight_ns(first), _midnight_ns(last), origin)


def _covering(bounds: Ints, start_ns: int | None, end_ns: int | None, origin: str) -> TradingTable:
    """Return the sessions, of a span that has all of them, and the given one."""
    first, last = int(bounds[0, 0]), int(bounds[-1, 1])
    start_ns = first if start_ns is None else min(start_ns, first)
    return TradingTable(bounds, start_ns, last if end_ns is None else max(end_ns, last), origin)


def _check_order(first: date | None, last: date | None) -> None:
    if first is not None and last is not None and first >= last:
        raise PlanError(f"end must be after start, {first}, not {last}")


def _midnight_ns(day: date) -> int:
    """Return where a day of UTC begins."""
    return instant_ns(day.isoformat())


def need_day(what: str, given: Any) -> date:
    """Return a day of 1678 to 2261, given as a date or a text. Raises PlanError."""
    day = None
    if type(given) is date:
        day = given
    elif isinstance(given, str):
        try:
            day = date.fromisoformat(f"{given}-01-01" if len(given) == 4 else given)
        except ValueError:
            day = None
    if day is None or not 1678 <= day.year <= 2261:
        raise PlanError(
            f"{what} must be a day or a year, such as '2015-03-01' or '2015', not {shown(given)}"
        )
    return day


def shown_table(bounds_ns: Ints) -> pa.Table:
    """Return sessions as a table that ``given_table`` takes."""
    has_break = bounds_ns[:, 2] < bounds_ns[:, 3]
    columns = [pa.array(bounds_ns[:, at], mask=~has_break if at > 1 else None) for at in range(4)]
    return pa.table(
        {
            name: column.cast(pa.timestamp("ns", "UTC"))
            for name, column in zip(COLUMNS, columns, strict=True)
        }
    )


def _read(given: Any) -> pa.Table:
    """Return a user's rows as a table. Raises PlanError."""
    try:
        if isinstance(given, list) and all(isinstance(row, dict) for row in given):
            rows = _listed(given)
        elif hasattr(given, "__arrow_c_stream__") or isinstance(given, pa.RecordBatch):
            rows = pa.table(given)
        else:
            raise PlanError(
                f"table must be an Arrow table, a frame or a list of dicts, not {shown(given)}"
            )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise PlanError(f"table: {error}") from None
    if rows.num_rows > SESSIONS_MAX:
        raise PlanError(
            f"table has {rows.num_rows:,} sessions, and at most {SESSIONS_MAX:,} are part of a plan"
        )
    return rows.combine_chunks()


def _listed(given: list[dict[str, Any]]) -> pa.Table:
    """Return rows as a table of all of their columns: Arrow itself takes the first row's."""
    columns = {}
    for name in dict.fromkeys(name for row in given for name in row):
        try:
            columns[str(name)] = pa.array([row.get(name) for row in given])
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise PlanError(
                f"table: the times of {name!r} are not of one kind, or too large: {error}"
            ) from None
    return pa.table(columns)


def _instants(name: str, chunked: pa.ChunkedArray) -> pa.Array:
    """Return times of a table as nanoseconds: int64, with nulls."""
    column, kind = pa.concat_arrays(chunked.chunks) if chunked.num_chunks else None, chunked.type
    if column is None:
        raise PlanError("table has no rows: each is a session")
    if pa.types.is_timestamp(kind) and kind.tz is None:
        raise PlanError(f"table: {name!r} has times without a zone: give them one, such as UTC")
    if pa.types.is_timestamp(kind) or pa.types.is_int64(kind):
        try:
            return column.cast(pa.timestamp("ns", "UTC")).cast(pa.int64())
        except pa.ArrowInvalid:
            raise PlanError(f"table: {name!r} has a time beyond the years 1678 to 2261") from None
    if is_text(kind):
        try:
            return column.cast(pa.string()).cast(pa.timestamp("ns", "UTC")).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise PlanError(
                f"table: {name!r} has a text that is no time with a zone, such as "
                f"'2026-01-02T14:30:00Z': {error}"
            ) from None
    if pa.types.is_null(kind):
        return column.cast(pa.int64())
    raise PlanError(f"table: {name!r} must be times, not {kind}")


def _whole(name: str, column: pa.Array | None) -> Ints:
    assert column is not None
    if column.null_count:
        at = np.flatnonzero(np.asarray(column.is_null()))[0]
        raise PlanError(f"table: row {at} has no {name}")
    found: Ints = column.to_numpy()
    return found


def _filled(column: pa.Array | None, closes: Ints) -> Ints:
    """Return a bound of breaks, the close where a session has none."""
    if column is None:
        return closes
    given: Ints = column.fill_null(0).to_numpy()
    return np.where(np.asarray(column.is_null()), closes, given)


def _check_breaks(begins: pa.Array | None, ends: pa.Array | None) -> None:
    """Raise PlanError for a break with one bound."""
    if (begins is None) is not (ends is None):
        raise PlanError("table: breaks take both columns, break_start and break_end")
    if begins is None or ends is None:
        return
    odd = np.asarray(begins.is_null()) != np.asarray(ends.is_null())
    if odd.any():
        at = int(np.flatnonzero(odd)[0])
        raise PlanError(f"table: row {at} has one of break_start and break_end: give both, or none")


def _check(bounds: Ints, order: Ints) -> None:
    """Raise PlanError for the first session that does not end after its begin, or overlaps."""
    opens, closes, break_starts, break_ends = bounds.T
    ok = (opens < closes) & (opens <= break_starts) & (break_starts <= break_ends)
    ok &= (break_ends <= closes) & (opens >= -_EVENT_TIME_NS) & (closes < _EVENT_TIME_NS)
    after = np.append(True, opens[1:] >= closes[:-1])
    for is_ok, rule in (
        (ok, "open < close, and breaks are within"),
        (after, "it opens after the session before has closed"),
    ):
        if not is_ok.all():
            at = int(np.flatnonzero(~is_ok)[0])
            times = ", ".join(instant_text(int(one)) for one in bounds[at, :2])
            raise PlanError(f"table: row {order[at]} ({times}) is no session: {rule}")
