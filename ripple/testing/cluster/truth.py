"""The expected state of partitions at each cut: a fresh evaluation by one process."""

from __future__ import annotations

import copy
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any

from ripple.connectors.log.sink import schema_of_output
from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.model.batch import Answers, Batch
from ripple.model.batch import Marker as BatchMarker
from ripple.model.pipeline.input_names import (
    answers_of,
    inputs_by_source,
    markers_of,
    of_sources,
    source_of,
)
from ripple.model.pipeline.topology import is_spread, outputs_of, stages_of
from ripple.model.schema.columns import records_of
from ripple.model.window import watermark
from ripple.task.asks.answer_objects import fitted
from ripple.task.drive import Drive
from ripple.testing.check import Follower as Reader
from ripple.testing.check import Marker
from ripple.testing.cluster.front import FIRST, Front
from ripple.testing.cluster.recorded import RecordedEntries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.model.batch import IdleMarker
    from ripple.model.pipeline.plan import Plan
    from ripple.testing.crash.source import CrashSource
    from ripple.testing.reference.interpreter import Table
    from ripple.testing.reference.steps import Row

KEPT = 20_000  # digests in memory
ENGINES_KEPT = 200  # of senders; several receivers are made from their tables


class Truth:
    """A pipeline over its whole input, and over any prefix."""

    def __init__(
        self, plan: Plan, source: CrashSource, *, has_broker: bool = False, is_one: bool = False
    ) -> None:
        """Compute the end: ``tables`` and ``digests`` by output, ``dead_letters`` by offset.

        is_one: whether one partition has all records. events: of each output of events, by input,
        in order; where nodes wait for the watermark ``rows`` has them, of all inputs. schemas: of
        the topic of each output.
        """
        self.plan = plan
        self.source = source
        self.has_broker = has_broker
        stages = stages_of(plan)
        edges = [stage.edge for stage in stages if stage.edge is not None]
        self.is_spread = is_spread(plan)
        # An event edge after a downstream stage: one engine computes all stages.
        self.is_one = bool(edges) and not self.is_spread
        self._stages = stages
        self.front = Front.of(plan, source, is_one=is_one)
        self._senders = {stage.before for stage in stages if self.is_spread}
        self.recorded = RecordedEntries()
        self._forget()
        reader, self.dead_letters = Reader(plan), set[tuple[str, int]]()
        engine = Engine(plan, inputs=source.inputs)
        self.dead_letters |= self._feed(engine, source.end)
        reader.follow(engine.stabilize())
        self.tables: dict[str, Table] = reader.tables
        self.identity = reader.identity
        waits = bool(plan.waiting)
        self.rows: dict[str, list[Row]] = reader.streams if waits else {}
        self.events = {} if waits else {name: self._events_of(name) for name in reader.streams}
        self._shares: dict[Any, dict[str, list[Row]]] = {}
        self.schemas = {one.name: schema_of_output(plan, one) for one in plan.outputs}
        self.digests = engine.digests

    def _forget(self) -> None:
        self._digests: OrderedDict[Any, dict[str, str]] = OrderedDict()
        self._engines: OrderedDict[Any, Engine | Follower] = OrderedDict()
        self._given: OrderedDict[Any, EdgeChanges] = OrderedDict()
        self._batches: OrderedDict[Any, Batch] = OrderedDict()

    def of_run(self) -> Truth:
        """Return the truth of one run: with its own markers of idle inputs, and its answers."""
        if not self._is_recorded:
            return self
        own = copy.copy(self)
        own.recorded = RecordedEntries()
        own._forget()
        return own

    def settle(self, cuts: Mapping[tuple[int, int], Mapping[str, int]], first: int) -> None:
        """Take tables and rows from the last cuts, by stage and number: entries are part of them.

        Without idle inputs and asks they are known before.
        """
        if not self._is_recorded:
            return
        reader = Reader(self.plan)
        for (stage, number), cut in cuts.items():
            reader.follow(self._fresh(stage, number, first, cut).stabilize())
        self.tables = reader.tables
        self.rows = {name: reader.streams[name] for name in self.rows}

    def is_over(self, stage: int, number: int, first: int, cut: Mapping[str, int]) -> bool:
        """Return whether nothing waits for the watermark or an answer after all records."""
        if not self._is_recorded:
            return True
        engine = self._engine(stage, number, first, cut)
        held = engine.asked_size[0] if isinstance(engine, Engine) else 0
        return not held and not (self.plan.is_idle and engine.waiting_count)

    @property
    def _is_recorded(self) -> bool:
        """Whether results depend on the entries of a run."""
        return self.plan.is_idle or bool(self.plan.asks)

    def _events_of(self, output: str) -> dict[str, list[Row]]:
        """Return an output's events, by input: none depends on another input."""
        found = {}
        by_source = inputs_by_source(self.plan, self.source.inputs).values()
        for name, end in self.source.end.items():
            others = [inputs[0] for inputs in by_source if name not in inputs]
            alone = Engine(self.plan, inputs=(name, *others))  # of others it reads nothing
            self._feed(alone, {name: end})
            found[name] = alone.stabilize().outputs[output].to_pylist()
        return found

    def share_of(self, output: str, number: int, first: int) -> dict[str, list[Row]]:
        """Return an output's events of a partition, by input: its part of repartitioned inputs."""
        found = self._shares.get((output, number, first))
        if found is None:
            names = self.front.inputs_of(FIRST, number, first)
            found = {name: self.events[output][name] for name in names}
            for name in filter(partial(self.front.is_divided, FIRST), names):
                alone = self._fresh(FIRST, number, first, {name: self.source.end[name]})
                found[name] = alone.stabilize().outputs[output].to_pylist()
            self._shares[output, number, first] = found
        return found

    def counts(self, first: int) -> dict[int, int]:
        """Return how many partitions each stage has. first: as coordinators are asked for."""
        later = self._stages[1:] if self.is_spread else ()
        counts = {stage.number: stage.partitions or first for stage in later}
        return self.front.counts(first) | counts

    def outputs_of(self, stage: int) -> list[str]:
        """Return the outputs that partitions of a stage write."""
        written = outputs_of(self.plan, stage)
        return [output.name for output in self.plan.outputs if output.name in written]

    def end_of(self, stage: int, number: int, first: int) -> dict[str, int]:
        """Return a partition's cut after everything."""
        if stage <= FIRST:
            names = self.front.inputs_of(stage, number, first)
            return {name: self.source.end[name] for name in names}
        return {
            f"{sender}/{name}": offset
            for sender in range(self.counts(first)[self._before(stage)])
            for name, offset in self.end_of(self._before(stage), sender, first).items()
        }

    def _before(self, stage: int) -> int:
        """Return the stage whose partitions a stage follows."""
        before = self._stages[stage].before
        assert before is not None
        return before

    def digests_at(
        self, stage: int, number: int, first: int, cut: Mapping[str, int]
    ) -> dict[str, str]:
        """Return a partition's digests by output at a cut: of each sender at its part of it."""
        key = stage, number, first, tuple(sorted(cut.items()))
        found = self._digests.get(key)
        if found is None:
            found = self._digests[key] = self._engine(stage, number, first, cut).digests
            if len(self._digests) > KEPT:
                self._digests.popitem(last=False)
        return found

    def _engine(
        self, stage: int, number: int, first: int, cut: Mapping[str, int]
    ) -> Engine | Follower:
        key = stage, number, first, tuple(sorted(cut.items()))
        if key in self._engines:
            self._engines.move_to_end(key)
            return self._engines[key]
        made = self._fresh(stage, number, first, cut)
        made.stabilize()
        if stage in self._senders:
            self._engines[key] = made
            if len(self._engines) > ENGINES_KEPT:
                self._engines.popitem(last=False)
        return made

    def _fresh(
        self, stage: int, number: int, first: int, cut: Mapping[str, int]
    ) -> Engine | Follower:
        """Return a partition that has taken everything before a cut."""
        made: Engine | Follower
        if stage <= FIRST:
            names, front = self.front.inputs_of(stage, number, first), self.front
            if stage < FIRST:
                made = front.sender(stage, number, names, first)
            else:
                logs = cut.keys() - set(of_sources(cut))
                made = front.engine(number, (*names, *sorted(logs)), first)
            marks = self.recorded.before(number, cut.get(markers_of(number), 0))
            direct = {name: at for name, at in cut.items() if not front.is_divided(stage, name)}
            self._feed(made, direct, marks)
            self._answer(made, cut.get(answers_of(number), 0))
            drive = Drive(made)
            for name in sorted(cut.keys() - direct.keys()):
                drive.apply(name, self._divided(number, name, cut[name], first))
        else:
            senders = [str(one) for one in range(self.counts(first)[self._before(stage)])]
            made = Follower(self.plan, stage, senders, number)
            for sender in senders:
                prefix = f"{sender}/"
                of = {n.removeprefix(prefix): at for n, at in cut.items() if n.startswith(prefix)}
                made.follow(sender, 1, self._sent(stage, number, int(sender), first, of))
        return made

    def _divided(self, number: int, name: str, end: int, first: int) -> Batch:
        """Return partition ``number``'s records of an input up to ``end``, by the first stage."""
        key = number, name, end, first
        if key not in self._batches:
            sender = self.front.sender(self.front.stage_of(name), 0, (name,), first)
            self._feed(sender, {name: end})
            self._batches[key] = self.front.sent(sender, number)
            if len(self._batches) > KEPT:
                self._batches.popitem(last=False)
        return self._batches[key]

    def _sent(
        self, stage: int, number: int, sender: int, first: int, cut: Mapping[str, int]
    ) -> EdgeChanges:
        """Return all rows of a sender for a partition of a stage at its cut."""
        key = stage, number, sender, first, tuple(sorted(cut.items()))
        if key not in self._given:
            upstream = self._engine(self._before(stage), sender, first, cut)
            self._given[key] = upstream.sending(stage).first_for(number)
            if len(self._given) > KEPT:
                self._given.popitem(last=False)
        return self._given[key]

    def _feed(
        self, engine: Engine, cut: Mapping[str, int], marks: Sequence[IdleMarker] = ()
    ) -> set[tuple[str, int]]:
        """Apply all inputs up to a cut, with markers at their places; return rejected records."""
        drive, refused = Drive(engine), set[tuple[str, int]]()
        read = dict.fromkeys(cut, 0)
        for mark in marks:
            refused |= self._feed_input(drive, mark.input, read[mark.input], mark.offset)
            read[mark.input] = mark.offset
            drive.apply(markers_of(engine.partition), mark)
        for name in of_sources(cut):
            refused |= self._feed_input(drive, name, read[name], cut[name])
        return refused

    def _answer(self, engine: Engine, offset: int) -> None:
        """Apply the answers of a partition before an offset, after all records: at any place."""
        asks = {ask.name: ask for ask in self.plan.asks}
        for one in self.recorded.answers_before(engine.partition, offset):
            rows = fitted(one.rows, asks[one.ask])
            entry = Answers(watermark.NONE, one.end, one.ask, rows)
            engine.answer(answers_of(engine.partition), entry)

    def _feed_input(self, drive: Drive, name: str, first: int, end: int) -> set[tuple[str, int]]:
        refused, rows = set[tuple[str, int]](), list[Any]()
        for at, event in enumerate([*self.source.events[name][first:end], None], first):
            if event is not None and not isinstance(event, Marker):
                rows.append(event)
                continue
            if rows:
                batch = Batch(records_of(rows, source_of(self.plan, name).fields), at)
                refused |= {(name, bad.offset) for bad in drive.apply(name, batch)}
                rows = []
            if event is not None:
                drive.apply(name, BatchMarker(event.watermark_ns, at + 1))
        return refused
