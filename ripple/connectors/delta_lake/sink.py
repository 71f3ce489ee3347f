"""Changes as rows of a Delta Lake table: the newest of each key, or each event, with their cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.contract import BasicSink
from ripple.connectors.delta_lake.connector import ONCE
from ripple.connectors.delta_lake.events import PendingEvents
from ripple.connectors.delta_lake.table import Record, Table, plain
from ripple.connectors.target import WHOLE
from ripple.core.errors import OutputError
from ripple.core.row_ops import OP, place_of_op

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ripple.connectors.connector import Writing
    from ripple.connectors.contract import Commit
    from ripple.connectors.delta_lake.table import Rows

PENDING_BYTES_MAX = 64 << 20
# Other writers (to make many files one, say) commit rarely.
ATTEMPTS = 10
_POSITION = "ripple_position"


def open_table(path: str, writing: Writing) -> WholeTable:
    """Return the sink that writes a table whole; raises OutputError."""
    return WholeTable(Table(_folder(path), writing))


def continue_table(path: str, writing: Writing) -> DeltaSink:
    """Return the sink that goes on with its table; raises OutputError."""
    return DeltaSink(Table(_folder(path), writing), writing.epoch)


def look(path: str, writing: Writing) -> int:
    """Raise as ``continue_table`` does, with nothing changed; return the newest owner's epoch."""
    known = Table(_folder(path), writing).record()
    return 0 if known is None else known.epoch


def _folder(path: str) -> str:
    if not path or "://" in path:
        raise OutputError(f"cannot tell which folder delta:{path} is: it must be delta:FOLDER")
    return path


def _pending(table: Table) -> PendingEvents | _Pending:
    return PendingEvents(table.schema) if table.is_stream else _Pending(table)


class _Pending:
    """The newest change of each key since the last commit.

    So it is bounded by the state of the pipeline: a row a key.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._kept: list[pa.Table] = []
        self._bytes = self._folded_bytes = 0

    def add(self, changes: pa.RecordBatch) -> None:
        """Add changes; without ``op`` all rows are set."""
        if place_of_op(changes.schema) < 0:
            op = pa.array([0] * changes.num_rows, pa.int8())
            changes = changes.append_column(OP, op)
        columns = [*self._table.schema.names, OP]
        self._kept.append(pa.Table.from_batches([changes.select(columns)]))
        self._bytes += changes.nbytes
        if self._bytes > max(PENDING_BYTES_MAX, 2 * self._folded_bytes):
            self._kept = [self.taken()]
            self._bytes = self._folded_bytes = self._kept[0].nbytes

    def taken(self) -> pa.Table:
        """Return the newest change of each key."""
        fields = [*(f.with_nullable(True) for f in self._table.schema), pa.field(OP, pa.int8())]
        schema = pa.schema(fields)
        rows = pa.concat_tables([one.cast(schema) for one in self._kept] or [schema.empty_table()])
        if not self._table.key:
            return rows.slice(max(0, rows.num_rows - 1))
        at = pa.array(range(rows.num_rows), pa.int64())
        grouped = rows.select(self._table.key).append_column(_POSITION, at)
        last = grouped.group_by(self._table.key).aggregate([(_POSITION, "max")])
        return rows.take(last[f"{_POSITION}_max"].combine_chunks().sort())

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
        self._bytes = self._folded_bytes = 0

    close = clear


class DeltaSink:
    """A Sink that continues its table: changes and their cut are one commit of it.

    The table's log counts our commits, and rejects a second one of the same number: so of two
    writers one fails, and a commit whose answer was lost is found. Opening under an epoch takes a
    number too, which fences the previous owner.

    Invariant: ``_number`` is of our newest commit, as far as is known.
    """

    records_cut = True
    unfinished: Mapping[str, int] | None = None
    cut_off_bytes = 0
    promise = ONCE

    def __init__(self, table: Table, epoch: int | None) -> None:
        """Become the only writer. Raises OutputError.

        epoch: of the owner; None of a run without one, which is the owner after the newest.
        """
        self.name = table.name
        self._pending = _pending(table)
        known = table.record()
        if epoch is None:
            epoch = known.epoch + 1 if known is not None and known.epoch else 0
        self._table, self._epoch = table, epoch
        if known is None:
            first = Record(1, table.owner, epoch, None)
            table.make(first)
            known = first
        if known.epoch > epoch:
            raise OutputError(
                f"cannot write {self.name}: it has a newer owner than this one, of epoch {epoch}"
            )
        self.committed = known.commit
        self._number = known.number
        if epoch:  # of runs without one the first to commit continues; a rejected run fences none
            self._write(lambda: pa.table({}), self.committed)

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - the commit's
        """Keep changes for the commit; see Sink."""
        if changes.num_rows:
            self._pending.add(self._table.written(changes))

    def shown_keys(self, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the keys of the table; see KnowingSink."""
        yield from self._table.keys(key)

    def commit(self, reached: Commit) -> None:
        """Bring the changes into the table, with their cut; see Sink."""
        self._write(self._pending.taken, reached)
        self.committed = reached
        self._pending.clear()

    def close(self) -> None:
        """Discard uncommitted changes."""
        self._pending.close()

    def _write(self, taken: Callable[[], Rows], reached: Commit | None) -> None:
        record = Record(self._number + 1, self._table.owner, self._epoch, reached)
        for _ in range(ATTEMPTS):
            found = self._table.record()
            if found is None:
                raise OutputError(
                    f"cannot write {self.name}: the table was removed while it was written: bring "
                    "it back, or start over in another folder and with another --checkpoint-dir"
                )
            if found.number != self._number:
                raise OutputError(f"cannot write {self.name}: another run has written it meanwhile")
            if self._table.commit(taken(), record):
                break
        else:
            raise OutputError(f"cannot write {self.name}: others commit to it all the time")
        self._number = record.number


class WholeTable(BasicSink):
    """A Sink that writes a table whole, in one commit, or leaves it as it was."""

    promise = WHOLE

    def __init__(self, table: Table) -> None:
        """Begin. Raises OutputError, also for a table that a run goes on with."""
        self.name = table.name
        self._table = table
        self._pending = _pending(table)
        known = table.record()
        if known is not None and known.commit is not None:
            raise OutputError(
                f"cannot write {self.name}: a durable run writes it. Name another "
                "folder, or remove this one"
            )
        self._number = known.number if known is not None else 0

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Keep the newest row of each key."""
        if changes.num_rows:
            self._pending.add(self._table.written(changes))

    def commit(self, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Replace the table by the written rows."""
        rows = plain(self._pending.taken(), self._table.schema)
        self._table.replace(rows, Record(self._number + 1, self._table.owner, 0, None))
        self._pending.clear()

    def close(self) -> None:
        """Discard uncommitted changes."""
        self._pending.close()
