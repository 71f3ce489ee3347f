"""From messages to changes of one table, each with the position after it; no connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.postgres.messages import Begin, Change, End, Relation, message_of
from ripple.connectors.postgres.position import Mark, Position, lsn_text
from ripple.connectors.postgres.row import Rows
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from ripple.connectors.record_shape import RecordShape


class Published(NamedTuple):
    """A table as the publication describes it: its number, and its names there."""

    relation: int
    schema: str
    name: str


class Refused(NamedTuple):
    """The reason why a change is no record, and its text for a dead letter."""

    reason: str
    raw: bytes


class Changes:
    """Takes the messages of a stream from ``at`` on.

    Invariants: ``at`` is after the last change, or in the log after its transaction; of the
    transaction that comes first ``_skipped`` changes are before the first position.
    """

    has_relation: bool = False
    """Whether the server has told of the table since this was last set to False."""

    def __init__(self, name: str, shape: RecordShape, table: Published, begin: Mark) -> None:
        """Take the changes of a table; name: of its URI, for people. begin: the first position."""
        self._name, self._shape, self._table = name, shape, table
        self._rows: Rows | None = None
        self._begun: Begin | None = None
        self._awaited = begin if begin.at.within else None
        self._skipped = begin.at.within
        self._count = 0
        self.at = begin.at
        self.mark = begin

    @property
    def is_awaiting(self) -> bool:
        """Whether the transaction that was read last is still to come once more."""
        return self._awaited is not None

    def take(self, data: bytes) -> bytes | Refused | None:
        """Return the document of a change of the table; None where a message is of none.

        Raises InputError where the table does not fit the records any more.
        """
        message = message_of(data)
        if isinstance(message, Change):
            is_ours = self._table.relation in message.relations
            return self._change(message) if is_ours else None
        if isinstance(message, Begin):
            self._check_awaited(Mark(Position(message.lsn), message.committed_ns, message.xid))
            self._begun, self._count = message, 0
            self.passed(message.lsn)
        elif isinstance(message, End):
            self.passed(message.lsn)
            self._skipped = 0
        elif isinstance(message, Relation):
            is_named = (message.schema, message.name) == (self._table.schema, self._table.name)
            if is_named != (message.number == self._table.relation):
                raise InputError(
                    f"{self._name} is another table after {self.at} in its log: it was renamed, "
                    "or recreated, and the records so far are of the one before"
                )
            if is_named:
                self.has_relation = True
                self._relate(message)
        return None

    def passed(self, lsn: int) -> None:
        """Note that nothing of the table is between where it is and a place in the log.

        Raises InputError where something is known to have been there.
        """
        if self._awaited is not None and lsn > self._awaited.at.lsn:
            self._check_awaited(Mark(Position(lsn)))
        self.at = max(self.at, Position(lsn))

    def _check_awaited(self, found: Mark) -> None:
        """Raise InputError unless the transaction that was read last comes once more."""
        awaited, self._awaited = self._awaited, None
        if awaited is None:
            return
        is_same = found.at.lsn == awaited.at.lsn
        if awaited.xid:
            is_same &= found[1:] == awaited[1:]
        if not is_same:
            raise InputError(
                f"{self._name}: the transaction at {lsn_text(awaited.at.lsn)}, of which "
                f"{awaited.at.within} changes were read, does not come again: the server has lost "
                "log, or the publication was changed. Make a new slot, and name another "
                "--checkpoint-dir and other outputs, to start over"
            )

    def _change(self, change: Change) -> bytes | Refused | None:
        if self._begun is None or self._rows is None:
            raise InputError(f"{self._name}: a change comes in no transaction, or of no table")
        self._count += 1
        if self._count <= self._skipped:
            return None
        self.at = Position(self._begun.lsn, self._count)
        self.mark = Mark(self.at, self._begun.committed_ns, self._begun.xid)
        try:
            return self._rows.document(change, self._begun.committed_ns)
        except InputError as error:
            return Refused(str(error), self._rows.raw(change))

    def _relate(self, relation: Relation) -> None:
        before = self._rows.columns if self._rows is not None else frozenset()
        try:
            self._rows = Rows(self._name, relation.columns, self._shape)
        except InputError as error:
            raise InputError(f"{error}; so it is after {self.at} in its log") from error
        gone = sorted(before - self._rows.columns)
        if gone:
            raise InputError(
                f"{self._name} has no column {gone[0]!r} any more after {self.at} in its log: "
                "all changes before are read; continue with a record without it"
            )
