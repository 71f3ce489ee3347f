"""Tables as sinks: one that a restarted run continues, and one that is written whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.contract import BasicSink
from ripple.connectors.tables.pending import pending_of, plain
from ripple.connectors.tables.promise import EACH_CUT_ONCE
from ripple.connectors.tables.record import Record
from ripple.connectors.target import WHOLE
from ripple.core.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ripple.connectors.contract import Commit
    from ripple.connectors.tables.table import OutputTable, Rows

# Other writers (to make many files one, say) commit rarely.
ATTEMPTS = 10


class ContinuedTable:
    """A Sink that continues its table: changes and their cut are one commit of it.

    The table's log counts our commits, and rejects a second one of the same number: so of two
    writers one fails, and a commit with a lost answer is found. Opening under an epoch takes a
    number too, which fences the previous owner.

    Invariant: ``_number`` is of our newest commit, as far as is known.
    """

    records_cut = True
    takes_maps = True  # see OutputStatus
    unfinished: Mapping[str, int] | None = None
    cut_off_bytes = 0
    promise = EACH_CUT_ONCE

    def __init__(self, table: OutputTable, epoch: int | None) -> None:
        """Become the only writer. Raises OutputError.

        epoch: of the owner; None of a run without one, which is the owner after the newest.
        """
        self.name = table.name
        self._pending = pending_of(table)
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
                    f"it back, or start over in another {self._table.kind} and with another "
                    "--checkpoint-dir"
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
    takes_maps = True  # see OutputStatus

    def __init__(self, table: OutputTable) -> None:
        """Begin. Raises OutputError, also for a table that a run goes on with."""
        self.name = table.name
        self._table = table
        self._pending = pending_of(table)
        known = table.record()
        if known is not None and known.commit is not None:
            raise OutputError(
                f"cannot write {self.name}: a durable run writes it. Name another {table.kind}, "
                "or remove this one"
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
