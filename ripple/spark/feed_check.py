"""The changes of an output, cut by cut, against a fresh evaluation.

Readers of an output's log see each version of a row. So the rows that its changes touch are
compared at each cut, and no cut may show a version that is neither the one before nor the one after
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ripple.connectors.log.sink import changes_in
from ripple.core import cut as cuts
from ripple.core.row_ops import OP, OP_NAMES, OP_REMOVE, with_named_ops
from ripple.spark.finding import Difference, EventTable, events_behind, identity_of
from ripple.spark.fresh import Fresh
from ripple.spark.oracle import all_differences, same_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    import pyarrow as pa

    from ripple.engine.machine import Changes
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.finding import Finding
    from ripple.spark.oracle import Table
    from ripple.spark.progress import Reporter
    from ripple.spark.shares import Share
    from ripple.storage.log import Topic

    Row: TypeAlias = dict[str, Any] | None

CUTS_MAX = 1000
"""Cuts at which rows are compared at most, evenly chosen."""


class Versions:
    """The rows of a feed of changes, those changed since the last look, and its ghosts.

    ghosts: versions, by key, that a cut neither began nor ended with.
    """

    def __init__(self, plan: Plan, output: Output) -> None:
        self._names, self._is_stream = identity_of(plan, output), output.is_stream
        self.rows: Table = {}
        self.ghosts: list[tuple[Any, dict[str, Any]]] = []
        self._changed: dict[Any, None] = {}
        self._events = EventTable()

    def take(self, changes: pa.RecordBatch) -> None:
        """Take changes of one cut."""
        if self._is_stream:
            self._events.add(changes.to_pylist())
            return
        shown: dict[Any, list[Row]] = {}
        for key, now in versions_in(changes, self._names):
            shown.setdefault(key, []).append(now)
        for key, versions in shown.items():
            before, last = self.rows.get(key), versions[-1]
            self.ghosts += [
                (key, one)
                for one in versions[:-1]
                if one is not None and not _same(one, before) and not _same(one, last)
            ]
            self._changed[key] = None
            if last is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = last

    def changed(self) -> list[Any]:
        """Return the keys changed since the last call."""
        found = list(self._changed)
        self._changed.clear()
        return found

    def events(self) -> Table:
        """Return the events since the last look."""
        found, self._events = self._events.rows, EventTable()
        return found


def versions_in(changes: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[Any, Row]]:
    """Yield each change's key and row, None for a removed one. names: of the key."""
    for row in changes.to_pylist():
        op = row.pop(OP)
        key = tuple(row[name] for name in names)
        yield key, None if op == OP_NAMES[OP_REMOVE] else row


class FreshFeed(Fresh):
    """A fresh evaluation, and the changes of one output."""

    followed: tuple[str, Versions] | None = None

    def keep(self, changes: Changes) -> None:
        """Keep the rows that became final, and take the changes."""
        super().keep(changes)
        if self.followed is not None:
            name, versions = self.followed
            rows = changes.outputs[name]
            versions.take(rows if self.plan.output(name).is_stream else with_named_ops(rows))


@dataclass(slots=True)
class _Differing:
    """A differing key: its first difference, the rows there, and the number of differences."""

    where: str
    key: Any
    cut: Mapping[str, int]
    expected: Row
    found: Row
    count: int = 0


@dataclass(slots=True)
class FeedCheck:
    """Comparison of the changes in one partition of an output's log. fresh: at its beginning."""

    plan: Plan
    output: Output
    fresh: FreshFeed
    shares: Sequence[Share]
    found: dict[Any, _Differing] = field(default_factory=dict)

    def run(
        self,
        topic: Topic,
        partition: int,
        end: int,
        last: Mapping[str, int],
        reporter: Reporter | None = None,
    ) -> None:
        """Compare all cuts in the log before offset ``end``. last: the newest cut."""
        ours, theirs = Versions(self.plan, self.output), Versions(self.plan, self.output)
        self.fresh.followed = self.output.name, ours
        ends = [
            at for at, (*_, is_whole) in enumerate(changes_in(topic, partition, end)) if is_whole
        ]
        chosen = set(ends[:: max(1, -(-len(ends) // CUTS_MAX))])
        for at, (cut, rows, _) in enumerate(changes_in(topic, partition, end)):
            theirs.take(rows)
            where = f"the changes up to the cut {cuts.text(cut)}"
            if at in chosen and self._is_ahead(cut):
                self.fresh.go_to(cut, reporter, last=last)
                self._compare(where, ours, theirs, cut)
            for key, row in theirs.ghosts:
                what = f"{where} show a version of a row that is neither the one before nor after"
                self._note(_Differing(what, key, cut, None, row))
            theirs.ghosts.clear()
        self.fresh.followed = None

    def add_to(self, finding: Finding, known: Sequence[Any]) -> None:
        """Add the findings. known: keys with differing last rows, already reported."""
        told = {self._identity(key) for key in known}
        own = [one for identity, one in self.found.items() if identity not in told]
        finding.add(list(map(self._shown, own[:1])), sum(one.count for one in own))

    def _note(self, one: _Differing) -> None:
        self.found.setdefault(self._identity(one.key), one).count += 1

    def _shown(self, one: _Differing) -> Difference:
        row = one.expected or one.found or {}
        events = events_behind(self.plan, self.output, row, self.shares, one.cut)
        return Difference(
            one.where, self.output.name, repr(one.key), one.expected, one.found, events
        )

    def _identity(self, key: Any) -> Any:
        return key[0] if self.output.is_stream else key  # without its number among equal ones

    def _is_ahead(self, cut: Mapping[str, int]) -> bool:
        return all(cut.get(name, at) >= at for name, at in self.fresh.cut.items())

    def _compare(
        self, where: str, ours: Versions, theirs: Versions, cut: Mapping[str, int]
    ) -> None:
        ours.ghosts.clear()  # of the points at which it stabilized
        if self.output.is_stream:
            tables = ours.events(), theirs.events()
        else:
            keys = dict.fromkeys([*ours.changed(), *theirs.changed()])
            tables = _at(ours, keys), _at(theirs, keys)
        expected, found = tables
        for key in all_differences(expected, found):
            self._note(_Differing(where, key, cut, expected.get(key), found.get(key)))


def _at(versions: Versions, keys: Mapping[Any, None]) -> Table:
    return {key: versions.rows[key] for key in keys if key in versions.rows}


def _same(one: Row, other: Row) -> bool:
    return one is other if one is None or other is None else same_row(one, other)
