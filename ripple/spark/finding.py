"""Findings of a check: the first differences of two evaluations, with their events."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.errors import InputError
from ripple.engine.machine import Engine
from ripple.model.batch import Batch
from ripple.model.pipeline.input_names import source_of
from ripple.model.pipeline.nodes import WINDOW_FIELD_NAMES
from ripple.spark import packets
from ripple.spark.oracle import Table, all_differences
from ripple.spark.packets import Packet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.shares import Share

OUR_ENGINE = "ripple.engine.machine:Engine"
"""The engine under test, as ``MODULE:CLASS``, so that a broken one can be tried."""

EVENTS_MAX = 10
KEYS_MAX = 5
"""Keys that a finding shows at most."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two evaluations. key, expected, found, events: of the first key, if known.

    events: those of that key, as records of the source with their offset.
    """

    what: str
    output: str = ""
    key: str = ""
    expected: Mapping[str, Any] | None = None
    found: Mapping[str, Any] | None = None
    events: Sequence[Mapping[str, Any]] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON fields; other values as text."""
        return {
            "what": self.what,
            "output": self.output,
            "key": self.key,
            "expected": _plain(self.expected),
            "found": _plain(self.found),
            "fields": _fields(self.expected, self.found),
            "events": [_plain(one) for one in self.events],
        }


def _fields(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> list[str]:
    """Return the differing fields, with both values, doubles with their bits."""
    if one is None or other is None:
        return []
    return [
        f"{name}: {_bits(one[name])}, not {_bits(other[name])}"
        for name in one
        if name in other and repr(one[name]) != repr(other[name])
    ]


def _bits(value: Any) -> str:
    return f"{value!r} ({value.hex()})" if isinstance(value, float) else repr(value)


def _plain(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    kept = (str, int, bool, type(None))
    return {name: v if isinstance(v, kept) else repr(v) for name, v in row.items()}


@dataclass(slots=True)
class Finding:
    """The result of a job.

    cases: number of comparisons. differing: of rows, of which ``differences`` has the first few.
    at: positions for plots (0 to 1).
    """

    check: str
    of: str
    cases: int = 0
    rows: int = 0
    differences: list[Difference] = field(default_factory=list)
    differing: int = 0
    at: list[float] = field(default_factory=list)
    note: str = ""

    def add(self, differences: Sequence[Difference], count: int) -> None:
        """Add the first differences of ``count`` rows."""
        self.differences += differences
        self.differing += count

    def refuse(self, problems: Sequence[str], output: str) -> None:
        """Add the problems of rows, as differences without a key."""
        self.differences += [Difference(one, output) for one in problems[:KEYS_MAX]]
        self.differing += len(problems)

    def packet(self) -> Packet:
        """Return it as a packet."""
        about = {
            "check": self.check,
            "of": self.of,
            "cases": self.cases,
            "rows": self.rows,
            "differences": [one.as_dict() for one in self.differences],
            "differing": self.differing,
            "at": self.at,
            "note": self.note,
        }
        return Packet(packets.FINDING, self.check, about=about)


def engine_class(name: str) -> type[Engine]:
    """Import the class ``MODULE:CLASS``. Raises InputError."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"there is no engine {name!r}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Engine)):
        raise InputError(f"{name!r} is not an engine")
    return found


class EventTable:
    """Events by their fields, and each by its number among equal ones: they have no key."""

    def __init__(self) -> None:
        self.rows: Table = {}
        self._counts: Counter[str] = Counter()

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add events."""
        for row in rows:
            text = repr(list(row.items()))  # which distinguishes -0.0, and shows nan
            self.rows[text, self._counts[text]] = dict(row)
            self._counts[text] += 1


def identity_of(plan: Plan, output: Output) -> list[str]:
    """Return the names of the fields that identify an output's rows: none of events."""
    return [] if output.is_stream else [one.name for one in plan.fold(output.of).row_key]


def table_of(rows: pa.Table | pa.RecordBatch, plan: Plan, output: Output) -> Table:
    """Return rows by identity: the key, and the window's start if there is one."""
    if output.is_stream:
        events = EventTable()
        events.add(rows.to_pylist())
        return events.rows
    names = identity_of(plan, output)
    return {tuple(row[name] for name in names): row for row in rows.to_pylist()}


def difference(
    plan: Plan,
    output: Output,
    where: str,
    tables: tuple[Table, Table],
    read: tuple[Sequence[Share], Mapping[str, int]],
) -> Difference:
    """Return the first key that differs, and its events.

    tables: the expected and the found one. read: the inputs, and their cut.
    """
    found, _ = differences(plan, output, where, tables, read, most=1)
    if not found:
        return Difference(f"{where}: rows that were final before differ", output.name)
    return found[0]


def differences(
    plan: Plan,
    output: Output,
    where: str,
    tables: tuple[Table, Table],
    read: tuple[Sequence[Share], Mapping[str, int]],
    *,
    most: int = KEYS_MAX,
) -> tuple[list[Difference], int]:
    """Return the first keys that differ, the first of all with its events, and how many do."""
    (expected, found), (shares, cut) = tables, read
    differing = all_differences(expected, found)
    listed: list[Difference] = []
    for key in differing[:most]:
        one, other = expected.get(key), found.get(key)
        events = () if listed else events_behind(plan, output, one or other or {}, shares, cut)
        listed.append(Difference(where, output.name, repr(key), one, other, events))
    return listed, len(differing)


def events_behind(
    plan: Plan,
    output: Output,
    row: Mapping[str, Any],
    shares: Sequence[Share],
    cut: Mapping[str, int],
) -> Sequence[Mapping[str, Any]]:
    """Return the first events of a row of an output, of its sources alone."""
    sources = plan.sources_of(output.of)
    own = [share for share in shares if source_of(plan, share.name) in sources]
    return events_of(plan, row, own, cut, is_event=output.is_stream)


def events_of(
    plan: Plan,
    row: Mapping[str, Any],
    shares: Sequence[Share],
    cut: Mapping[str, int],
    *,
    is_event: bool = False,
) -> list[Mapping[str, Any]]:
    """Return the first events of the row's key, in its window.

    is_event: whether the row is one itself, whose fields are those of its record.
    """
    keys = {member.name for fold in plan.folds for member in fold.key}
    start, end = (row.get(name) for name in WINDOW_FIELD_NAMES)
    events: list[Mapping[str, Any]] = []
    for share in shares:
        if share.name not in cut:
            continue
        source = source_of(plan, share.name)
        time_field = source.time_field
        given = {
            field.name: row[field.name]
            for field in source.fields
            if field.name in row and (is_event or field.name in keys)
        }
        for entry in share.entries(plan, until=cut[share.name]):
            if not isinstance(entry, Batch):
                continue
            chosen = pa.array([True] * entry.records.num_rows)
            for name, value in given.items():
                chosen = pc.and_(chosen, pc.equal(entry.records.column(name), value))
            if time_field is not None and start is not None and end is not None:
                times = entry.records.column(time_field)
                inside = pc.and_(pc.greater_equal(times, start), pc.less(times, end))
                chosen = pc.and_(chosen, inside)
            rows = entry.records.append_column("offset", pa.array(entry.offsets()))
            events += rows.filter(chosen).slice(0, EVENTS_MAX - len(events)).to_pylist()
            if len(events) >= EVENTS_MAX:
                return events
    return events
