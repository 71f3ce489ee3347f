"""From messages to changes of one table, each with the place behind it; no connection, no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.errors import InputError
from ripple.postgres.messages import Begin, Change, End, Relation, message_of
from ripple.postgres.position import Position, lsn_text
from ripple.postgres.row import Rows

if TYPE_CHECKING:
    from ripple.connectors.record_shape import RecordShape


class Refused(NamedTuple):
    """Why no record can be made of a change, and what is kept of it."""

    reason: str
    raw: bytes


class Changes:
    """Takes the messages of a stream from ``at`` on.

    Invariants: ``at`` is behind the last change, or in the log behind its transaction; of the
    transaction that comes first ``_skipped`` changes are before where the stream was begun.
    """

    def __init__(self, name: str, shape: RecordShape, relation: int, at: Position) -> None:
        """Take what comes of the table of this number; name: of its place, for people."""
        self._name, self._shape, self._relation = name, shape, relation
        self._rows: Rows | None = None
        self._begun: Begin | None = None
        self._skipped = at.within
        self._count = 0
        self.at = at

    def take(self, data: bytes) -> bytes | Refused | None:
        """Return the document of a change of the table; None where a message is of none.

        Raises InputError where the table is not any more what the records need.
        """
        message = message_of(data)
        if isinstance(message, Change):
            return self._change(message) if self._relation in message.relations else None
        if isinstance(message, Begin):
            if self._skipped and message.lsn != self.at.lsn:
                raise InputError(
                    f"{self._name}: the transaction at {lsn_text(self.at.lsn)}, of which "
                    f"{self._skipped} changes were read, does not come again: the server has lost "
                    "what it had, or the publication was changed"
                )
            self._begun, self._count = message, 0
            self.passed(message.lsn)
        elif isinstance(message, End):
            self.passed(message.lsn)
            self._skipped = 0
        elif isinstance(message, Relation) and message.number == self._relation:
            self._relate(message)
        return None

    def passed(self, lsn: int) -> None:
        """Note that nothing of the table is between where it is and a place in the log."""
        self.at = max(self.at, Position(lsn))

    def _change(self, change: Change) -> bytes | Refused | None:
        if self._begun is None or self._rows is None:
            raise InputError(f"{self._name}: a change comes in no transaction, or of no table")
        self._count += 1
        if self._count <= self._skipped:
            return None
        self.at = Position(self._begun.lsn, self._count)
        try:
            return self._rows.document(change, self._begun.committed_ns)
        except InputError as error:
            return Refused(str(error), self._rows.raw(change))

    def _relate(self, relation: Relation) -> None:
        before = self._rows.columns if self._rows is not None else frozenset()
        try:
            self._rows = Rows(self._name, relation.columns, self._shape)
        except InputError as error:
            raise InputError(f"{error}; so it is behind {self.at} in its log") from error
        gone = sorted(before - self._rows.columns)
        if gone:
            raise InputError(
                f"{self._name} has no column {gone[0]!r} any more behind {self.at} in its log: "
                "what was before is read; go on with a record without it"
            )
