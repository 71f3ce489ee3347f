"""The judge of a partition at each cut: the reference's tables, and the same in every run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ripple.core.row_ops import OP, OP_NAMES, OP_REMOVE
from ripple.engine.operators.answer_names import INDEX, INPUT, OFFSET, REASON, ROW
from ripple.model.pipeline.input_names import of_sources
from ripple.testing.check import Divergence, Follower, Marker, as_text
from ripple.testing.reference.graph import GraphReference
from ripple.testing.reference.interpreter import Reference, Table, same_row

if TYPE_CHECKING:
    from ripple.engine.machine import Engine
    from ripple.model.batch import IdleMarker
    from ripple.model.pipeline.plan import Plan
    from ripple.task.asks.answer_objects import Recorded
    from ripple.testing.crash.source import CrashSource
    from ripple.testing.reference.steps import Row
    from ripple.testing.reference.windows import Key

# Small, so that few events make many cuts.
BATCH_ROWS = 4

Cut: TypeAlias = tuple[tuple[str, int], ...]


class State(NamedTuple):
    """The state that must be the same whenever a cut is reached."""

    digest: str
    watermark_ns: int
    counters: tuple[int, ...]
    uncomputable: tuple[tuple[str, int, int], ...]


class Judge:
    """Learns from one undisturbed run, which it holds to the reference, and judges all others."""

    def __init__(self, plan: Plan, source: CrashSource) -> None:
        self._plan = plan
        self._source = source
        self._reference = Reference(plan, source.inputs)
        self._identity = Follower(plan).identity
        self._events: dict[str, list[str]] = {}
        self._tables: dict[str, Table] = {}
        self._known: dict[Cut, State] = {}
        self._answered: set[tuple[Any, ...]] = set()
        self._applied = dict.fromkeys(source.inputs, 0)
        self._markers = {
            name: [isinstance(event, Marker) for event in events]
            for name, events in source.events.items()
        }

    def learn(self, engine: Engine) -> None:
        """Take the state of an undisturbed engine; raise Divergence."""
        if cut_of(engine) in self._known:
            self.check(engine)
            return
        for name, offset in read_of(engine.cut).items():
            self._apply_to_reference(name, offset)
        self.hold(engine)
        self._known[cut_of(engine)] = _state_of(engine)

    def hold(self, engine: Engine) -> None:
        """Raise Divergence unless the engine is at the reference's cut as the reference is."""
        self._check_accounts(engine)
        counts = engine.counters.as_dict()
        if counts != self._reference.counts:
            raise self._divergence("counters", None, counts, self._reference.counts)
        by_source = {name: each.as_dict() for name, each in engine.counters_by_source.items()}
        if by_source != self._reference.counts_by_source:
            expected_by_source = self._reference.counts_by_source
            raise self._divergence("counters by source", None, by_source, expected_by_source)
        absent = {name: one.count for name, one in engine.uncomputable.items()}
        expected = {name: len(rows) for name, rows in self._reference.uncomputable().items()}
        if absent != expected:
            raise self._divergence("rows that cannot be computed", None, absent, expected)
        for output, table in self._reference.tables().items():
            rows = engine.table(output).to_pylist()
            held = {self._key_of(output, row): row for row in rows}
            of_reference = {key: row for key, row in table.items() if key in held}
            self._compare(f"output {output!r}", held, of_reference)

    def check(self, engine: Engine, *, on_grid: bool = True) -> None:
        """Raise AssertionError unless the engine, just stabilized, is as it must be at its cut.

        on_grid: whether it must have come to a cut of the undisturbed run.
        """
        self._check_accounts(engine)
        known = self._known.get(cut_of(engine))
        assert known or not on_grid, f"{engine.cut} is no cut of an undisturbed run"
        found = _state_of(engine)
        assert known in (None, found), f"at {engine.cut} the state is {found}, not {known}"

    def check_digest(self, cut: Mapping[str, int], digest: str) -> None:
        """Raise AssertionError unless a restored state has the digest of its cut."""
        known = self._known.get(tuple(sorted(cut.items())))
        assert known is None or known.digest == digest, f"{cut} was restored with {digest}"

    def hold_log(self, output: str, rows: Iterable[Row]) -> None:
        """Follow an output's changes to the end; raise unless that is the reference's table."""
        if output in self._events:
            found = [as_text(row) for row in rows]
            if sorted(found) != sorted(self._events[output]):
                raise self._divergence(
                    f"the events written to output {output!r}", None, found, self._events[output]
                )
            return
        table: Table = {}
        for row in rows:
            values = {name: value for name, value in row.items() if name != OP}
            key = self._key_of(output, values)
            if row[OP] == OP_NAMES[OP_REMOVE]:
                assert key in table, f"{output}: {key} was removed, but it was not there"
                del table[key]
            else:
                unchanged = key in table and same_row(table[key], values)
                assert not unchanged, f"{output}: {key} did not change"
                table[key] = values
        self._compare(f"the rows written to output {output!r}", table, self._tables[output])

    def take(self, marker: IdleMarker) -> None:
        """Take a recorded marker, after the records of its input before it."""
        self._apply_to_reference(marker.input, marker.offset)
        self._reference.advance(marker.input, marker.watermark_ns)

    def take_answers(self, recorded: Recorded) -> None:
        """Take recorded answers, after all records: results do not depend on their positions."""
        assert isinstance(self._reference, GraphReference), "a plan with an ask is no chain"
        self._apply_rest()
        for row in recorded.rows.to_pylist():
            at = tuple(row.pop(name) for name in (INPUT, OFFSET, INDEX))
            assert at not in self._answered, f"the log has two answers to {at}"
            self._answered.add(at)
            reason, _ = row.pop(REASON) or "", row.pop(ROW)
            self._reference.answer(recorded.ask, at, None if reason else row, reason)

    def _apply_rest(self) -> None:
        for name, offset in self._source.end.items():
            self._apply_to_reference(name, offset)

    def close(self) -> None:
        """Note the reference's final tables: the undisturbed run has ended."""
        self._apply_rest()
        self._tables = self._reference.tables()
        for output, inputs in self._reference.streams().items():
            self._events[output] = [as_text(row) for rows in inputs.values() for row in rows]

    def _apply_to_reference(self, name: str, offset: int) -> None:
        # A marker takes an offset of the log; the reference does not count it.
        for event in self._source.events[name][self._applied[name] : offset]:
            if isinstance(event, Marker):
                self._reference.advance(name, event.watermark_ns)
            else:
                self._reference.apply(event, name)
        self._applied[name] = max(offset, self._applied[name])

    def _check_accounts(self, engine: Engine) -> None:
        engine.counters.check_invariants()
        cut = read_of(engine.cut)
        markers = sum(sum(self._markers[name][:offset]) for name, offset in cut.items())
        consumed = engine.counters.consumed + markers
        assert consumed == sum(cut.values()), f"{engine.counters} at {engine.cut}"

    def _key_of(self, output: str, row: Row) -> Key:
        return tuple(row[part] for part in self._identity[output])

    def _compare(self, what: str, engine: Table, reference: Table) -> None:
        for key in sorted({*engine, *reference}):
            one, other = engine.get(key), reference.get(key)
            if one is None or other is None or not same_row(one, other):
                raise self._divergence(what, key, one, other)

    def _divergence(self, what: str, key: Key | None, engine: Any, reference: Any) -> Divergence:
        events = sum(self._applied.values())
        return Divergence(events, BATCH_ROWS, what, key, engine=engine, reference=reference)


def read_of(cut: Mapping[str, int]) -> dict[str, int]:
    """Return a cut without the logs of markers and of answers."""
    return {name: cut[name] for name in of_sources(cut)}


def cut_of(engine: Engine) -> Cut:
    """Return a cut as a key."""
    return tuple(sorted(engine.cut.items()))


def _state_of(engine: Engine) -> State:
    return State(
        engine.digest,
        engine.watermark_ns,
        tuple(engine.counters.as_dict().values()),
        tuple((name, one.count, one.final) for name, one in engine.uncomputable.items()),
    )
