"""A subscription to one output: its rows by partition, and its changes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ripple.client.outputs.event_rows import EventRows
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.core.frozen import frozen
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.columns import diff
from ripple.engine.changes.layout import Layout, layout_of
from ripple.model.schema.logical.showing import noted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.core.cut import Cut
    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.exchange.subscription import Arrival, Subscription


VALUE_CHARACTERS_MAX = 100  # of a requested value, in a message


class Position(NamedTuple):
    """The position of a partition: its owner's epoch, its cut, and its watermark there."""

    epoch: int
    cut: Cut
    watermark_ns: int


@frozen
class Change:
    """The changes of one partition. since: the cut before, None for a whole table.

    rows: the key, ``op`` (int8 of ``ripple.core.row_ops``), the values; each key once. Of an output
    of events they are the new rows, and ``since`` is None after missed rows, too. dropped: expired
    rows of events, in the same columns.
    """

    partition: int
    process: str
    since: Cut | None
    position: Position
    rows: pa.RecordBatch
    dropped: pa.RecordBatch | None = None


@frozen
class OutputRows:
    """An output's current rows, each partition at its own cut.

    A cut is committed, or, in an uncommitted subscription, computed. Final rows that were freed
    are absent. missing: partitions without rows so far. begins: of an output of events, per
    partition the cut after which no row is missing; earlier rows are in the sink only.
    """

    output: str
    table: pa.Table
    cuts: Mapping[int, Position]
    missing: tuple[int, ...]
    begins: Mapping[int, Cut] = field(default_factory=dict)


class _Part:
    """The rows of one partition."""

    def __init__(self, layout: Layout, table: ColumnTable | EventRows) -> None:
        self.layout = layout
        self.table = table
        self.position: Position | None = None


class OutputSubscription:
    """A subscription to an output; for one caller at a time.

    ``changes`` and ``whole`` consume the received messages; until then a partition costs its
    connection's window, and its publisher one bit a row.
    """

    def __init__(
        self,
        name: str,
        following: Subscription,
        partitions: int,
        arrived: asyncio.Event,
        place_of: Callable[[int], str],
    ) -> None:
        """Consume the messages of ``following``. place_of: the owner of a partition."""
        self.name = name
        self.partitions = partitions
        self.layout: Layout | None = None
        self._schema: pa.Schema | None = None
        self._following = following
        self._arrived = arrived
        self._place_of = place_of
        self._parts: dict[int, _Part] = {}
        self._shown: OutputRows | None = None  # as of the last consumed message

    @property
    def missing(self) -> tuple[int, ...]:
        """Partitions without rows so far."""
        return tuple(n for n in range(self.partitions) if n not in self._parts)

    async def changes(self, timeout_s: float | None = None) -> list[Change]:
        """Wait for changes and return them; [] after ``timeout_s``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while True:
                    if found := self.take():
                        return found
                    await self._arrived.wait()
        return []

    async def whole(self, timeout_s: float | None = None) -> OutputRows:
        """Return the rows once all partitions have sent theirs, or after ``timeout_s``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.missing:
                    await self.changes()
        self.take()
        return self.shown()

    async def arrived(self) -> None:
        """Wait for a message."""
        await self._arrived.wait()

    def take(self) -> list[Change]:
        """Consume the received messages, and return their changes."""
        self._arrived.clear()
        found = (self._taken(arrival) for arrival in self._following.take())
        return [change for change in found if change is not None]

    def shown(self, key: Mapping[str, Any] | None = None) -> OutputRows:
        """Return the rows as of the last consumed message. key: only rows with these key fields."""
        if self._shown is None:
            rows = [self._parts[number].table.rows() for number in sorted(self._parts)]
            table = pa.table({}) if self.layout is None else self.layout.table.empty_table()
            if rows:
                table = pa.Table.from_batches(rows)
            table = noted(table)
            positions = {n: p.position for n, p in sorted(self._parts.items()) if p.position}
            tables = {number: part.table for number, part in sorted(self._parts.items())}
            begins = {n: t.begins for n, t in tables.items() if isinstance(t, EventRows)}
            self._shown = OutputRows(self.name, table, positions, self.missing, begins)
        if not key:
            return self._shown
        whole = self._shown
        return OutputRows(
            self.name,
            of_key(self.layout, whole.table, key),
            whole.cuts,
            whole.missing,
            whole.begins,
        )

    def _taken(self, arrival: Arrival) -> Change | None:
        changes, part = arrival.changes, self._parts.get(arrival.sender)
        position = None if part is None else part.position
        if position is not None and arrival.epoch < position.epoch:
            self._following.dropped(arrival)
            return None
        is_events = self._following.edge.is_events
        if position is not None and not (is_events or self._goes_on(position, changes)):
            self._following.refused(arrival)
            return None
        if self.layout is None:
            self.layout, self._schema = layout_of(changes.rows.schema), changes.rows.schema
        rows = changes.rows
        self._shown = None
        if is_events:
            return self._came(arrival)
        if part is None or changes.since is None:
            before, table = part, ColumnTable(self.layout)
            part = self._parts[arrival.sender] = _Part(self.layout, table)
            table.apply(rows)
            if before is not None:  # present rows are not reported as new
                rows = self._difference(before.table.rows(), table.rows())
        else:
            assert isinstance(part.table, ColumnTable)
            part.table.apply(rows)
        part.position = Position(arrival.epoch, dict(changes.cut), changes.watermark_ns)
        self._following.applied(arrival)
        since = None if position is None else position.cut
        process = self._place_of(arrival.sender)
        return Change(arrival.sender, process, since, part.position, rows)

    def _came(self, arrival: Arrival) -> Change:
        """Return the change by rows of events, which follow the present rows or replace them.

        A sender with an older cut sends none, see ``Publication``.
        """
        changes = arrival.changes
        assert self.layout is not None
        assert changes.since is not None, "rows of events are between two cuts"
        part = self._parts.get(arrival.sender)
        if part is None:
            rows = EventRows(self.layout, changes.rows.schema, changes.since)
            part = self._parts[arrival.sender] = _Part(self.layout, rows)
        assert isinstance(part.table, EventRows)
        position = part.position
        came = part.table.add(None if position is None else position.cut, changes)
        part.position = Position(arrival.epoch, dict(changes.cut), changes.watermark_ns)
        self._following.applied(arrival)
        process = self._place_of(arrival.sender)
        return Change(
            arrival.sender, process, came.since, part.position, came.rows, dropped=came.dropped
        )

    def _goes_on(self, position: Position, changes: EdgeChanges) -> bool:
        """Return whether changes begin at the partition's cut, or a table is not older.

        In an uncommitted subscription an older table takes back uncommitted changes.
        """
        if changes.since is not None:
            return dict(changes.since) == position.cut
        may_go_back = self._following.edge.is_uncommitted
        return may_go_back or cuts.is_within(position.cut, changes.cut)

    def _difference(self, before: pa.RecordBatch, now: pa.RecordBatch) -> pa.RecordBatch:
        """Return the changes from one table to another, as whole rows."""
        assert self.layout is not None
        assert self._schema is not None
        deltas = diff(self.layout, before, now, patch_threshold=len(self.layout.table))
        columns = [deltas.column(name) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def of_key(layout: Layout | None, rows: Any, key: Mapping[str, Any]) -> Any:
    """Return the rows of a table or batch with these values of key fields.

    Raises InputError for a field that is not part of the key.
    """
    for name, value in key.items():
        names = () if layout is None else layout.keys
        if name not in names:
            raise InputError(f"{name!r} is not part of the key, which is {', '.join(names)}")
        column = rows.column(name)
        try:
            wanted = pa.scalar(value, column.type)
            if wanted.as_py() != value:  # 1.5 would be 1
                raise ValueError("it has no such value")
            rows = rows.filter(pc.equal(column, wanted))
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            given = repr(value)[:VALUE_CHARACTERS_MAX]
            raise InputError(f"{name}={given}: the field is {column.type}: {error}") from error
    return rows
