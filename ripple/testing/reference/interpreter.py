"""The reference interpreter: a plan executed one event at a time, in plain Python, from scratch.

It exists to be believed. It keeps every event of every open window in a list, computes each
result from that list when it is shown, and each later fold from all rows of the fold before. It
shares no code with the engine, the windows or the aggregates that it is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from numbers import Real
from typing import Any, TypeAlias

from ripple.core.errors import InputError
from ripple.model.aggregate.custom import Custom
from ripple.model.aggregate.errors import IntegerRangeError
from ripple.model.pipeline.nodes import Fold, FoldAggregate, SourceSpec, type_of
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.waiting_nodes import LastScan
from ripple.model.schema.logical.values import values_of
from ripple.model.window.duration import duration_ns
from ripple.model.window.spec import (
    FUTURE_TOLERANCE_DEFAULT,
    Assigner,
    OnWatermark,
    Session,
    WindowSpec,
)
from ripple.testing.reference import aggregates
from ripple.testing.reference.aggregates import Entry
from ripple.testing.reference.expressions import (
    Failed,
    Items,
    evaluate,
    expression_kind,
    python_type,
)
from ripple.testing.reference.steps import (
    TIME_END_NS,
    FunctionFailed,
    RefusedRow,
    Row,
    kinds_of,
    number_of,
    refuse_invalid,
    refuse_nulls,
    run_steps,
)
from ripple.testing.reference.trading import refuse_outside
from ripple.testing.reference.windows import Event, Key, Window, due, windows_with

# Rows of one view by their identity: the key fields, then window_start_ns if windowed.
Table: TypeAlias = dict[Key, Row]

END_NS = (1 << 63) - 1  # the watermark of an ended input


@dataclass(frozen=True)
class Emit:
    """A new or corrected result."""

    output: str
    key: Key
    row: Row


@dataclass(frozen=True)
class Retract:
    """The withdrawal of a result that was emitted before."""

    output: str
    key: Key
    row: Row


Emission: TypeAlias = Emit | Retract


@dataclass
class View:
    """The rows of a fold, and for uncomputable ones, which are absent, why.

    unfolded: the rows, by key, that the fold above cannot take in, and why.
    """

    rows: Table = attribute(default_factory=dict)
    failed: dict[Key, RefusedRow] = attribute(default_factory=dict)
    unfolded: dict[Key, RefusedRow] = attribute(default_factory=dict)

    def put(self, key: Key, row: Row | RefusedRow | None) -> None:
        """Let the row at ``key`` be this one; None: there is none, and need not be."""
        self.withdraw(key)
        if isinstance(row, RefusedRow):
            self.failed[key] = row
        elif row is not None:
            self.rows[key] = row

    def withdraw(self, key: Key) -> None:
        """Let there be nothing at ``key``."""
        self.rows.pop(key, None)
        self.failed.pop(key, None)


@dataclass
class Input:
    """How far one input was read; before_end_ns: of one that has ended, its watermark before."""

    rank: int
    next_offset: int = 0
    watermark_ns: int | None = None
    before_end_ns: int | None = None

    def raise_watermark(self, watermark_ns: int) -> None:
        """Move the watermark by a marker."""
        if watermark_ns == END_NS != self.watermark_ns:
            self.before_end_ns = self.watermark_ns
        self.watermark_ns = latest(self.watermark_ns, watermark_ns)

    def move_past(self, row: Row, source: SourceSpec) -> int | None:
        """Move the watermark past a record; return it as it was. Raises RefusedRow."""
        time_ns, before_ns = row[source.time_field or ""], self.watermark_ns
        if not -TIME_END_NS <= time_ns < TIME_END_NS:
            reason = f"the event time {source.time_field!r} is outside [-2^62, 2^62) ns"
            raise RefusedRow(source.name, reason)
        ahead_ns = source.reject_future_ns
        if ahead_ns is not None and before_ns is not None and time_ns > before_ns + ahead_ns:
            raise RefusedRow(source.name, f"the event time {source.time_field!r} is too far ahead")
        self.watermark_ns = latest(before_ns, time_ns - source.out_of_order_ns)
        return before_ns


class Reference:
    """One partition of a pipeline, slow and obvious.

    >>> reference = Reference(pipeline.plan())
    >>> reference.apply({"symbol": "A", "price": 1.5, "size": 2, "timestamp_ns": 7})
    >>> reference.emissions()
    [Emit(output='rows', key=('A',), row={'symbol': 'A', 'vwap': 1.5})]

    counts: by the names of :class:`ripple.engine.machine.Counters`. counts_by_source: the same for
    each source. dead_letters: (input, offset, step, reason) of every refused event.
    """

    def __new__(cls, plan: Plan, *_: object, **__: object) -> Reference:
        """Make the reference of ``plan``: a GraphReference unless it is a chain."""
        if cls is Reference and not plan.is_chain:
            from ripple.testing.reference.graph import GraphReference  # noqa: PLC0415 - a subclass

            return super().__new__(GraphReference)
        return super().__new__(cls)

    def __init__(self, plan: Plan, inputs: Sequence[str] | None = None) -> None:
        self._begin(plan, inputs)
        self._fold = EventFold(plan.folds[0])

    def _begin(self, plan: Plan, inputs: Sequence[str] | None) -> None:
        names = tuple(inputs if inputs is not None else (one.name for one in plan.sources))
        self.plan = plan
        self.counts = dict.fromkeys(
            ("consumed", "applied", "mildly_late", "very_late", "future", "dead_lettered"), 0
        )
        self.counts_by_source = {plan.sources[0].name: self.counts}
        self.dead_letters: list[tuple[str, int, str, str]] = []
        self._inputs = {name: Input(rank) for rank, name in enumerate(names)}
        self._emitted: dict[str, Table] = {
            output.name: {} for output in plan.outputs if not output.is_stream
        }
        self._views: dict[str, View] | None = None
        """Per fold its view; None from an event or a marker on, until somebody asks for them."""

    # --- inputs ---

    def apply(self, event: Mapping[str, Any], source: str | None = None) -> None:
        """Consume the next event of an input, by default the only one."""
        name = source if source is not None else next(iter(self._inputs))
        given = self._input(name)
        offset, given.next_offset = given.next_offset, given.next_offset + 1
        before_ns = self.watermark_ns
        self.counts["consumed"] += 1
        accepted: Event | None = None
        try:
            row = typed(event, self.plan.source)
            refuse_invalid(row, self.plan.source)
            if self._judged(row, given):
                accepted = self._folded(row, offset, given)
                self.counts["applied"] += 1
            else:
                self.counts["very_late"] += 1
        except RefusedRow as refused:
            self.counts["dead_lettered"] += 1
            self.dead_letters.append((name, offset, refused.step, refused.reason))
        self._fold.step(accepted, before_ns, self.watermark_ns)
        self._views = None

    def skip(self, next_offset: int, source: str | None = None) -> None:
        """Pass a hole of an input: offsets up to ``next_offset`` that have no record."""
        given = self._input(source if source is not None else next(iter(self._inputs)))
        given.next_offset = max(given.next_offset, next_offset)

    def advance(self, source: str, watermark_ns: int) -> None:
        """Consume a marker: no event below ``watermark_ns`` follows in that input."""
        given = self._input(source)
        before_ns = self.watermark_ns
        given.raise_watermark(watermark_ns)
        self._fold.step(None, before_ns, self.watermark_ns)
        self._views = None

    def close(self) -> None:
        """Declare all inputs ended: every window ends."""
        for name in self._inputs:
            self.advance(name, END_NS)

    def _judged(self, row: Row, given: Input) -> bool:
        """Return False for a very late event; move the watermark of its input past any other."""
        source = self.plan.source
        if source.time_field is None:
            return True
        time_ns, watermark_ns = row[source.time_field], given.move_past(row, source)
        if watermark_ns is None:
            return True
        window = self.plan.folds[0].window
        future_ns = window.future_ns if window else duration_ns(FUTURE_TOLERANCE_DEFAULT)
        if window is not None and time_ns < watermark_ns - window.lateness_ns:
            return False
        self.counts["mildly_late"] += time_ns < watermark_ns
        self.counts["future"] += time_ns > watermark_ns + future_ns
        return True

    def _folded(self, row: Row, offset: int, given: Input) -> Event | None:
        """Return the event as the first fold takes it, None if a filter dropped it."""
        fold, time_field = self.plan.folds[0], self.plan.source.time_field
        time_ns = 0 if time_field is None else row[time_field]
        stepped = run_steps(self.plan.steps, row)
        if stepped is None:
            return None
        refuse_outside(fold.window, time_ns)
        refuse_nulls(stepped, fold.key, fold.partition)
        kinds = kinds_of(fold.fields_in)
        for member in fold.aggregates:
            inputs_of(member, stepped, fold, kinds)
        key = tuple(stepped[field.name] for field in fold.key)
        return Event(key, time_ns, (offset, given.rank), stepped)

    def _input(self, name: str) -> Input:
        if name not in self._inputs:
            raise InputError(f"no input {name!r} was declared: they are {list(self._inputs)}")
        return self._inputs[name]

    # --- results ---

    @property
    def cut(self) -> dict[str, int]:
        """Per input, the next offset to read."""
        return {name: given.next_offset for name, given in self._inputs.items()}

    @property
    def watermark_ns(self) -> int | None:
        """The merged watermark, None while an input has none."""
        known = [given.watermark_ns for given in self._inputs.values()]
        return None if None in known else min(ns for ns in known if ns is not None)

    def tables(self) -> dict[str, Table]:
        """Return per output of a fold every row that is shown, final ones included."""
        views = self.views()
        return {name: dict(views[self.plan.output(name).of].rows) for name in self._emitted}

    def streams(self) -> dict[str, dict[str, list[Row]]]:
        """Return per output of events, and input, the rows that it received, in their order."""
        return {}

    def uncomputable(self) -> dict[str, list[tuple[Key, str]]]:
        """Return per fold the rows that cannot be computed, or not be folded by the fold above.

        Each by its key, with the step or fold that cannot; final rows included, folds without such
        rows not.
        """
        found = {
            name: [(key, why.step) for key, why in (view.failed | view.unfolded).items()]
            for name, view in self.views().items()
        }
        return {name: rows for name, rows in found.items() if rows}

    def views(self) -> dict[str, View]:
        """Return the view of each fold, computed from scratch once for each state."""
        if self._views is None:
            self._views = self._computed()
        return self._views

    def _computed(self) -> dict[str, View]:
        first, *others = self.plan.folds
        views = {first.name: self._fold.view}
        for fold in others:
            views[fold.name] = folded_view(fold, views[fold.input])
        return views

    def emissions(self) -> list[Emission]:
        """Return the changes since the last call: a retraction before each correction.

        Called after every event, these are the emissions of an engine whose batches are single
        events. Per output, in the order of their keys.
        """
        emitted: list[Emission] = []
        tables = self.tables()
        for output, table in tables.items():
            before = self._emitted[output]
            for key in sorted({*before, *table}):
                if key in before and key in table and same_row(before[key], table[key]):
                    continue
                if key in before:
                    emitted.append(Retract(output, key, before[key]))
                if key in table:
                    emitted.append(Emit(output, key, table[key]))
        self._emitted = tables
        return emitted


class EventFold:
    """The first fold: its open windows, and the rows that it shows."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.view = View()
        self.open: list[Window] = []
        self.over: list[Window] = []
        """Windows that are over, and whose rows no stream of final rows has taken."""

    def step(self, event: Event | None, before_ns: int | None, after_ns: int | None) -> None:
        """Take an event, if there is one, and a watermark that may have moved."""
        spec = self.fold.window
        if spec is None:
            if self.fold.expiry is None:
                self._step_without_windows(event)
            else:
                self._step_with_keys_that_end(self.fold.expiry, event, after_ns)
            return
        touched = [] if event is None else self._assigned(spec.assigner, event)
        for window in due(spec.trigger, touched, self.open, before_ns, after_ns):
            self._show(window)
        if isinstance(spec.assigner, Session) and isinstance(spec.trigger, OnWatermark):
            # A late event can move the end of a session that was shown.
            for window in touched:
                self.view.withdraw((*window.key, window.start_ns))
        if after_ns is None:
            return
        for window in self.open:
            # Ended windows are up to date, except that they just changed or just ended.
            just_ended = before_ns is None or before_ns < window.end_ns
            if window.end_ns <= after_ns and (window in touched or just_ended):
                self._show(window)
        self.over += [w for w in self.open if w.end_ns + spec.lateness_ns <= after_ns]
        self.open = [w for w in self.open if w.end_ns + spec.lateness_ns > after_ns]

    def _assigned(self, assigner: Assigner, event: Event) -> list[Window]:
        """Put the event into its windows; withdraw the rows of sessions that others absorbed."""
        before = {(*window.key, window.start_ns) for window in self.open}
        touched = windows_with(self.open, assigner, event)
        for gone in before - {(*window.key, window.start_ns) for window in self.open}:
            self.view.withdraw(gone)
        return touched

    def _step_with_keys_that_end(
        self, spec: WindowSpec, event: Event | None, now_ns: int | None
    ) -> None:
        """Show each key over its newest session, unless that has ended.

        now_ns: the watermark, for which the end of inputs is no time.
        """
        if event is not None:
            windows_with(self.open, spec.assigner, event)
        if now_ns is not None:
            self.open = [one for one in self.open if one.end_ns + spec.lateness_ns > now_ns]
        self.view.rows.clear()
        self.view.failed.clear()
        newest = {one.key: one for one in sorted(self.open, key=lambda one: one.start_ns)}
        for window in newest.values():
            if now_ns is None or window.end_ns > now_ns:
                self._show(window)

    def _step_without_windows(self, event: Event | None) -> None:
        if event is None:
            return
        groups = [window for window in self.open if window.key == event.key]
        if not groups:
            groups = [Window(event.key, 0, END_NS)]
            self.open.extend(groups)
        groups[0].events.append(event)
        self._show(groups[0])

    def _show(self, window: Window) -> None:
        row: Row = dict(zip((field.name for field in self.fold.key), window.key, strict=True))
        identity = window.key
        if self.fold.window is not None:
            identity = (*window.key, window.start_ns)
            row |= {"window_start_ns": window.start_ns, "window_end_ns": window.end_ns}
        places = [(event.time_ns, *event.order) for event in window.events]
        rows = [event.row for event in window.events]
        self.view.put(identity, _result_row(self.fold, row, rows, places))


def folded_view(fold: Fold, below: View) -> View:
    """Return the view of a fold over all rows of another one; note rejected ones."""
    groups: dict[Key, list[Row]] = {}
    kinds = kinds_of(fold.fields_in)
    below.unfolded.clear()
    for key, row in below.rows.items():
        try:
            for member in fold.aggregates:
                _try_to_add(member, inputs_of(member, row, fold, kinds), fold)
        except RefusedRow as refused:
            below.unfolded[key] = refused
            continue
        groups.setdefault(tuple(row[field.name] for field in fold.key), []).append(row)
    view = View()
    for key, members in groups.items():
        named = dict(zip((field.name for field in fold.key), key, strict=True))
        view.put(key, _result_row(fold, named, members, [()] * len(members)))
    return view


def _try_to_add(member: FoldAggregate, values: tuple[Any, ...], fold: Fold) -> None:
    """Raise RefusedRow if a user's aggregate cannot take these values."""
    if isinstance(member.aggregate, Custom) and None not in values:
        try:
            member.aggregate.step(member.aggregate.init(), *values)
        except Exception as error:  # any error of a user's function
            raise RefusedRow(fold.name, f"{type(error).__name__}: {error}") from error


def _result_row(
    fold: Fold, row: Row, rows: Sequence[Row], places: Sequence[tuple[int, ...]]
) -> Row | RefusedRow | None:
    """Return ``row`` with the aggregates over ``rows`` after the steps.

    None if a filter drops it, a RefusedRow if it cannot be computed.
    """
    try:
        for member in fold.aggregates:
            row |= results_of(member, rows, places, fold)
        stepped = run_steps(fold.steps, row)
    except RefusedRow as refused:
        return refused
    except FunctionFailed as failed:
        return RefusedRow(failed.step, failed.reason)
    return None if stepped is None else {field.name: stepped[field.name] for field in fold.row}


def results_of(
    member: FoldAggregate,
    rows: Sequence[Row],
    places: Sequence[tuple[int, ...]],
    fold: Fold | LastScan,
) -> Row:
    """Return the results of an aggregate over rows by their names; raises RefusedRow."""
    kinds = kinds_of(fold.fields_in)
    inputs = [inputs_of(member, one, fold, kinds) for one in rows]
    if isinstance(member.aggregate, Custom):  # its functions take dates, not their numbers
        inputs = [_outside(member, values) for values in inputs]
    given, needed = len(member.aggregate.inputs), member.aggregate.needed
    entries = [
        Entry(values[:given], place or values[given:])
        for values, place in zip(inputs, places, strict=True)
        if None not in values[:needed]
    ]
    types = [of for _, of in member.bound.results]
    try:
        found = aggregates.results(member.aggregate, types, entries)
    except (IntegerRangeError, aggregates.ResultFailed) as error:
        raise RefusedRow(fold.name, f"{member.name!r}: {error}") from error
    names = member.aggregate.result_names(member.name, member.bound)
    return dict(zip(names, found, strict=True))


def _outside(member: FoldAggregate, values: tuple[Any, ...]) -> tuple[Any, ...]:
    pairs = zip(values, member.inputs, strict=True)
    return tuple(values_of([value], bound.type)[0] for value, bound in pairs)


def inputs_of(
    member: FoldAggregate, row: Row, fold: Fold | LastScan, kinds: Mapping[str, type]
) -> tuple[Any, ...]:
    """Return an aggregate's inputs from a row; raises RefusedRow."""
    values = tuple(evaluate(bound.expr, row, kinds) for bound in member.inputs)
    for value in values:
        if isinstance(value, Failed):
            raise RefusedRow(fold.name, value.reason)
    return values


def typed(event: Mapping[str, Any], source: SourceSpec) -> Row:
    """Return the declared fields, whole numbers as floats where a float is declared."""
    row: Row = {}
    for field in source.fields_taken:
        value = event.get(field.name)
        if value is None and not field.optional and field.name not in event:
            raise InputError(
                f"an event has no field {field.name!r}, it has {', '.join(event) or 'none'}: give "
                "None for one that is empty"
            )
        if isinstance(value, Real) and python_type(field.type) is float:
            value = float(value)
        if isinstance(value, (list, tuple)) and expression_kind(field.type) == Items(float):
            value = [float(item) for item in value]
        row[field.name] = number_of(value, type_of(field))
    return row


def latest(before_ns: int | None, after_ns: int) -> int:
    """Return the later of two watermarks, of which the first may be none."""
    return after_ns if before_ns is None else max(before_ns, after_ns)


def same_row(one: Row, other: Row) -> bool:
    """Return whether two rows are equal to the bit, all NaNs alike."""
    # repr distinguishes 0.0 from -0.0 and 1 from 1.0, writes doubles so that they read back, and
    # NaN as one word.
    return repr(sorted(one.items())) == repr(sorted(other.items()))
