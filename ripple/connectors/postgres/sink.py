"""Changes as rows of a table: the newest of each key, or each event, with their cut."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.connectors.contract import BasicSink
from ripple.connectors.files.text.sink import TextLines
from ripple.connectors.postgres.connector import ONCE
from ripple.connectors.postgres.record import Records
from ripple.connectors.postgres.session import claimed, connected, error_of, replaced
from ripple.connectors.target import WHOLE
from ripple.core.errors import OutputAwayError, OutputError
from ripple.core.extras import needed
from ripple.world.pauses import BRIEF_DELAYS_S

with needed("postgres", "a table of PostgreSQL"):
    import psycopg
    from psycopg import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ripple.connectors.connector import Part
    from ripple.connectors.contract import Commit
    from ripple.connectors.files.text.cut_record import Owner
    from ripple.connectors.postgres.table import Table

# The buffer of changes before they are sent.
PENDING_BYTES_MAX = 64 << 20
# A server that is away, is a copy of another one now, or lets us do nothing. A table that is
# not seen may be in a schema that we may not use; a new connection finds out whether it is gone.
AWAY = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.IdleInTransactionSessionTimeout,
    errors.InsufficientPrivilege,
    errors.InvalidSchemaName,
    errors.ReadOnlySqlTransaction,
    errors.UndefinedTable,
)


class _Pending:
    """Changes that the server does not have yet, as lines.

    Invariant: ``length_bytes`` is the sum of the lines' lengths.
    """

    def __init__(self, table: Table) -> None:
        self._lines_of = TextLines(table.format, str(table.place))
        self.lines: list[bytes] = []
        self.length_bytes = 0

    def add(self, changes: pa.RecordBatch) -> None:
        """Add changes. Raises OutputError."""
        lines = self._lines_of.of(changes, is_first=False)
        self.lines.append(lines)
        self.length_bytes += len(lines)

    def clear(self) -> None:
        """Forget all."""
        self.lines.clear()
        self.length_bytes = 0


class PostgresSink:
    """A Sink that goes on with its table: changes and their cut in one transaction.

    Changes are kept until the commit, which then takes one short transaction, and can be made again
    when the connection is lost: the record says whether it was made. A cut that is too large for
    that is sent in parts, and then a lost connection ends the sink; opened anew it goes on.

    Invariant: ``committed`` is the record's commit, unless the answer to a commit was lost.
    """

    records_cut = True
    unfinished: Mapping[str, int] | None = None
    cut_off_bytes = 0
    promise = ONCE

    def __init__(
        self,
        table: Table,
        owner: Owner,
        part: Part,
        epoch: int | None = None,
        *,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Become the only writer of the part. Raises OutputError, also without an answer."""
        self.name = str(table.place)
        self._table, self._owner, self._part = table, owner, part
        self._epoch = epoch
        self._taken: int | None = None
        self._records = Records(table.place)
        self._pending = _Pending(table)
        self._has_staged = False
        self._relation = 0
        self._wait = wait
        self._connection: psycopg.Connection | None = None
        try:
            self.committed = self._connect()
        except psycopg.Error as error:
            self.close()
            raise error_of(self.name, error) from error
        except OutputError:
            self.close()
            raise

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - the commit's
        """Keep changes for the commit; see Sink."""
        self._pending.add(changes)
        if self._pending.length_bytes > PENDING_BYTES_MAX:
            try:
                self._stage(self._open_connection())
            except psycopg.Error as error:
                raise error_of(self.name, error) from error

    def shown_keys(self, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the keys of the table, of all parts; see KnowingSink."""
        try:
            yield from self._table.keys(self._open_connection(), key)
        except psycopg.Error as error:
            raise error_of(self.name, error) from error

    @property
    def is_shared(self) -> bool:
        """Whether other parts have rows there, too."""
        return self._part.of > 1

    def commit(self, reached: Commit) -> None:
        """Bring the changes into the table, with the cut that they reach; see Sink."""
        delays = iter(BRIEF_DELAYS_S)
        while True:
            try:
                self._commit(reached)
                break
            except errors.ProgramLimitExceeded as error:
                raise self._too_long(error) from error
            except AWAY as error:
                self._disconnect()
                if self._has_staged:
                    raise error_of(self.name, error) from error
                delay_s = next(delays, None)
                if delay_s is None:
                    raise OutputAwayError(str(error_of(self.name, error))) from error
                self._wait(delay_s)
            except psycopg.Error as error:
                raise error_of(self.name, error) from error
        self.committed = reached
        self._pending.clear()
        self._has_staged = False

    def _commit(self, reached: Commit) -> None:
        if self._connection is None:
            found = self._connect()
            if _is_same(found, reached) and not _is_same(found, self.committed):
                return  # it was made, and the answer was lost
        connection = self._open_connection()
        self._stage(connection)
        assert self._taken is not None
        if not self._records.reach(connection, self._part, self._taken, self.committed, reached):
            raise OutputError(f"cannot write {self.name}: another run has written it meanwhile")
        self._table.apply(connection)
        # The written rows are locked: until the commit the checked state cannot change.
        there = self._table.found(connection.cursor())
        if there is None:
            raise OutputError(f"cannot write {self.name}: the table is gone")
        self._table.check(there, self._relation)
        connection.commit()

    def close(self) -> None:
        """Release the connection; uncommitted changes are lost."""
        self._disconnect()

    def _stage(self, connection: psycopg.Connection) -> None:
        """Send pending changes once they exceed the buffer."""
        self._table.stage(connection, self._pending.lines)
        if self._pending.length_bytes > PENDING_BYTES_MAX:
            self._has_staged = True
        if self._has_staged:
            self._pending.clear()

    def _connect(self) -> Commit | None:
        self._connection = connected(
            self._table.place, f"{self._owner.pipeline}/{self._part.number}"
        )
        found, self._taken, self._relation = claimed(
            self._connection,
            self._table,
            self._owner,
            self._part,
            self._epoch,
            held=self._taken,
        )
        self._table.prepare(self._connection)
        self._connection.commit()
        return found

    def _too_long(self, error: psycopg.Error) -> OutputError:
        """Return an error that names the key which no index takes, if it can be found."""
        key = ""
        with suppress(psycopg.Error, OutputError):
            self._disconnect()
            connection = self._open_connection()
            self._table.stage(connection, self._pending.lines)
            key = self._table.longest_key(connection)
        self._disconnect()
        return _too_long(self.name, error, key)

    def _open_connection(self) -> psycopg.Connection:
        if self._connection is None:
            self._connect()
        assert self._connection is not None
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class WholeTable(BasicSink):
    """A Sink that writes a table whole, or leaves it as it was: all is one transaction."""

    promise = WHOLE

    def __init__(self, table: Table, owner: Owner, part: Part) -> None:
        """Begin. Raises OutputError, also for a table that no plain run has made."""
        self.name = str(table.place)
        self._table = table
        self._pending = _Pending(table)
        try:
            self._connection = connected(table.place, owner.pipeline)
        except psycopg.Error as error:
            raise error_of(self.name, error) from error
        try:
            replaced(self._connection, table, owner, part)
            table.prepare(self._connection)
        except psycopg.Error as error:
            self.close()
            raise error_of(self.name, error) from error
        except OutputError:
            self.close()
            raise

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Send changes, some at a time; see Sink."""
        self._pending.add(changes)
        if self._pending.length_bytes > PENDING_BYTES_MAX:
            self._send()

    def commit(self, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Replace the table by the written rows."""
        self._send()
        try:
            with self._connection.transaction():  # a savepoint: staged rows outlive an error
                self._table.apply(self._connection)
            self._connection.commit()
        except errors.ProgramLimitExceeded as error:
            key = ""
            with suppress(psycopg.Error):
                key = self._table.longest_key(self._connection)
            raise _too_long(self.name, error, key) from error
        except psycopg.Error as error:
            raise error_of(self.name, error) from error

    def close(self) -> None:
        """Release the connection; uncommitted rows are discarded."""
        self._connection.close()

    def _send(self) -> None:
        try:
            self._table.stage(self._connection, self._pending.lines)
        except psycopg.Error as error:
            raise error_of(self.name, error) from error
        self._pending.clear()


def _too_long(name: str, error: psycopg.Error, key: str) -> OutputError:
    return OutputError(
        f"{error_of(name, error)}: the longest key is {key or 'not known any more'}. An index of "
        "PostgreSQL takes keys of up to 2,704 bytes: filter longer ones out in the pipeline, or "
        "write this output elsewhere"
    )


def _is_same(one: Commit | None, other: Commit | None) -> bool:
    """Whether two commits are of one cut; stored ones have no watermarks."""
    if one is None or other is None:
        return one is other
    return dict(one.cut) == dict(other.cut)
