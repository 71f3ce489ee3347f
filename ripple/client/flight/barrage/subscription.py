"""One subscriber: its request, the version it has, and its next update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ripple.client.flight.barrage.batches import Update
from ripple.client.flight.barrage.messages import UpdateMetadata
from ripple.client.flight.barrage.rowset import RowSet
from ripple.client.flight.errors import FlightError, Why

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.client.flight.barrage.messages import Asked
    from ripple.client.flight.barrage.rows import Rows, Version

    Numbers = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

# Updates shared by several subscribers, until the next change.
SHARED_MAX = 16
SHARED_BYTES_MAX = 4 << 20
_NOBODY: Numbers = np.zeros(0, np.int64)


class Subscription:
    """The rows that a subscriber has, as of a stamp.

    A subscriber of all rows has our row numbers. A subscriber of a viewport counts 0, 1, 2 within
    it: a row that enters the viewport is added, and a row that leaves it is removed.
    """

    def __init__(self) -> None:
        self._asked: Asked | None = None
        self._stamp = 0
        # Its rows; for a subscriber of all rows a mask, the version's own.
        self._mask: Mask = np.zeros(0, bool)
        self._seen: Numbers = _NOBODY
        self._anew = False

    @property
    def asked(self) -> Asked:
        """The current request."""
        assert self._asked is not None
        return self._asked

    @property
    def stamp(self) -> int:
        """The request of the last update."""
        return self._stamp

    @property
    def is_anew(self) -> bool:
        """Whether the current request has had no update yet."""
        return self._anew

    def ask(self, asked: Asked, columns: int) -> None:
        """Change the request. columns: of the table. Raises FlightError."""
        beyond = [column for column in sorted(asked.columns or ()) if column >= columns]
        if beyond:
            raise FlightError(Why.WRONG, f"there is no column {beyond[0]}: the table has {columns}")
        before = self._asked
        if before is not None and (asked.viewport is None) != (before.viewport is None):
            raise FlightError(
                Why.WRONG, "a stream has all rows or a viewport, and cannot change between them"
            )
        if before is not None and asked.options.as_list != before.options.as_list:
            raise FlightError(Why.WRONG, "the column options of a stream cannot change")
        self._asked, self._anew = asked, True

    def news(self, rows: Rows, shared: dict[Any, Update]) -> Update | None:
        """Return the next update, which counts as sent; None if nothing changed.

        After a new request the update replaces all rows. shared: updates of others at the
        present rows; takes those that may be shared.
        """
        now = rows.version()
        if not self._anew and now.stamp == self._stamp:
            return None
        if self.asked.viewport is None:
            update = self._of_all(rows, now, shared)
        else:
            update = self._of_view(rows, now)
        is_empty = not (len(update.metadata.added) or len(update.metadata.removed) or _any(update))
        if is_empty and not self._anew:
            self._stamp = now.stamp
            return None
        self._stamp, self._anew = now.stamp, False
        return update

    def _of_all(self, rows: Rows, now: Version, shared: dict[Any, Update]) -> Update:
        # Subscribers of all rows at the same stamp have the same rows.
        key = (self._stamp, self._anew, self.asked.columns, self.asked.once)
        if key in shared:
            self._mask = now.mask
            return shared[key]
        mask, known = now.mask, np.zeros(len(now.mask), bool)
        known[: len(self._mask)] = self._mask
        stays = np.zeros(len(mask), bool)
        if not self._anew:
            both = np.flatnonzero(known & mask)
            stays[both] = rows.older(both, self._stamp)
        removed, added = np.flatnonzero(known & ~stays), np.flatnonzero(mask & ~stays)
        kept = np.flatnonzero(stays)
        kept = kept[rows.touched(kept, self._stamp)]
        self._mask = mask
        update = self._update(rows, now, added, removed, kept=kept)
        if len(shared) < SHARED_MAX and update.nbytes <= SHARED_BYTES_MAX:
            shared[key] = update
        return update

    def _of_view(self, rows: Rows, now: Version) -> Update:
        seen = now.rows[self._positions(len(now.rows))]
        before = self._seen
        if self._anew:
            old, new = np.zeros(len(before), bool), np.zeros(len(seen), bool)
        else:
            new = np.isin(seen, before, assume_unique=True) & rows.older(seen, self._stamp)
            old = np.isin(before, seen[new], assume_unique=True)
        self._seen = seen
        kept = seen[new]
        kept = kept[rows.touched(kept, self._stamp)]
        views = before, seen
        return self._update(rows, now, seen[~new], before[~old], kept=kept, views=views)

    def _positions(self, size: int) -> Numbers:
        """Return the positions in view, for a table of so many rows."""
        assert self.asked.viewport is not None
        view = self.asked.viewport.within(size)
        return (view.mirrored(size) if self.asked.reverse else view).numbers()

    def _update(
        self,
        rows: Rows,
        now: Version,
        added: Numbers,
        removed: Numbers,
        *,
        kept: Numbers,
        views: tuple[Numbers, Numbers] | None = None,
    ) -> Update:
        """Return an update. kept: rows that may have changed. views: the old one and the new."""
        asked, width = self.asked, len(rows.schema)
        wanted = frozenset(range(width)) if asked.columns is None else asked.columns
        modified = [
            kept[rows.changed(at, kept, self._stamp)] if at in wanted else _NOBODY
            for at in range(width)
        ]

        def counted(numbers: Numbers, view: int) -> RowSet:
            if views is None or not len(numbers):
                return RowSet.of(numbers)
            return RowSet.of(np.searchsorted(views[view], numbers))

        metadata = UpdateMetadata(
            seqs=(self._stamp + 1, now.stamp),
            is_snapshot=self._anew,
            added=counted(added, 1),
            removed=counted(removed, 0),
            modified=None if asked.once else [counted(each, 1) for each in modified],
            rows=len(now.rows),
            columns=asked.columns if self._anew else None,
            viewport=asked.viewport if self._anew else None,
            reverse=asked.reverse and self._anew,
        )
        return Update(
            metadata,
            [rows.values(at, added if at in wanted else _NOBODY) for at in range(width)],
            [rows.values(at, each) for at, each in enumerate(modified)],
        )


def _any(update: Update) -> bool:
    return any(len(column) for column in update.modified)
