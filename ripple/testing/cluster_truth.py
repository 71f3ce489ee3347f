"""What partitions must have at each cut: computed from nothing, by one process."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from ripple.batch import Batch
from ripple.batch import Marker as BatchMarker
from ripple.engine import Engine
from ripple.engine.follower import Follower
from ripple.ops import OP, OP_REMOVE
from ripple.partition.drive import Drive
from ripple.pipeline.stages import stages_of
from ripple.schema.columns import records_of
from ripple.testing.check import Follower as Reader
from ripple.testing.check import Marker
from worker.stages import is_spread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.engine.edge_changes import EdgeChanges
    from ripple.pipeline.plan import Plan
    from ripple.testing.crash_source import CrashSource
    from ripple.testing.reference import Table

KEPT = 20_000  # digests that are remembered
ENGINES_KEPT = 200  # of senders, whose tables several receivers are made of


class Truth:
    """A pipeline over its whole input, and over every prefix that somebody asks for."""

    def __init__(self, plan: Plan, source: CrashSource) -> None:
        """Compute the end: ``tables`` and ``digests`` by output, ``letters`` by (input, offset)."""
        self.plan = plan
        self.source = source
        stages = stages_of(plan)
        edges = [stage.edge for stage in stages if stage.edge is not None]
        self.is_spread = is_spread(plan)
        # An event edge behind a stage that follows others: one engine computes all stages.
        self.is_one = bool(edges) and not self.is_spread
        self._stages = stages
        self._digests: OrderedDict[Any, dict[str, str]] = OrderedDict()
        self._engines: OrderedDict[Any, Engine | Follower] = OrderedDict()
        self._logged: OrderedDict[Any, EdgeChanges] = OrderedDict()
        reader, self.letters = Reader(plan), set[tuple[str, int]]()
        engine = Engine(plan, inputs=source.inputs)
        self.letters |= self._feed(engine, source.end)
        for output, rows in engine.stabilize().outputs.items():
            for row in rows.to_pylist():
                key = tuple(row[part] for part in reader.identity[output])
                if row.pop(OP) == OP_REMOVE:
                    reader.tables[output].pop(key, None)
                else:
                    reader.tables[output][key] = row
        self.tables: dict[str, Table] = reader.tables
        self.identity = reader.identity
        self.digests = engine.digests

    def counts(self, first: int) -> list[int]:
        """Return how many partitions each stage has, of which the first has ``first``."""
        if not self.is_spread:
            return [first]
        return [stage.partitions or first for stage in self._stages]

    def outputs_of(self, stage: int) -> list[str]:
        """Return the outputs that partitions of a stage write."""
        if not self.is_spread:
            return [output.name for output in self.plan.outputs]
        folds = self._stages[stage].folds
        return [output.name for output in self.plan.outputs if output.of in folds]

    def inputs_of(self, number: int, first: int) -> tuple[str, ...]:
        """Return what partition ``number`` of the first stage reads."""
        return self.source.inputs[number::first]

    def end_of(self, stage: int, number: int, first: int) -> dict[str, int]:
        """Return a partition's cut after everything."""
        if stage == 0:
            return {name: self.source.end[name] for name in self.inputs_of(number, first)}
        return {
            f"{sender}/{name}": offset
            for sender in range(self.counts(first)[stage - 1])
            for name, offset in self.end_of(stage - 1, sender, first).items()
        }

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
        made: Engine | Follower
        if stage == 0:
            names = self.inputs_of(number, first)
            made = Engine(self.plan, number, names, staged=self.is_spread)
            self._feed(made, cut)
        else:
            senders = [str(sender) for sender in range(self.counts(first)[stage - 1])]
            made = Follower(self.plan, stage, senders, number)
            for sender in senders:
                prefix = f"{sender}/"
                of = {n.removeprefix(prefix): at for n, at in cut.items() if n.startswith(prefix)}
                made.follow(sender, 1, self._sent(stage, number, int(sender), first, of))
        made.stabilize()
        self._engines[key] = made
        if len(self._engines) > ENGINES_KEPT:
            self._engines.popitem(last=False)
        return made

    def _sent(
        self, stage: int, number: int, sender: int, first: int, cut: Mapping[str, int]
    ) -> EdgeChanges:
        """Return all that a sender has for a partition of a stage at its cut."""
        edge = self._stages[stage].edge
        assert edge is not None
        if edge.kind.is_state:
            return self._engine(stage - 1, sender, first, cut).table_for(number)
        # A table lacks what was freed, and what the engine tells of that it tells once.
        key = number, sender, first, tuple(sorted(cut.items()))
        if key not in self._logged:
            upstream = self._engine(stage - 1, sender, first, cut)
            self._logged[key] = upstream.outgoing_to([number])[number]
            if len(self._logged) > KEPT:
                self._logged.popitem(last=False)
        return self._logged[key]

    def _feed(self, engine: Engine, cut: Mapping[str, int]) -> set[tuple[str, int]]:
        """Apply all inputs up to a cut; return what is refused."""
        drive, refused = Drive(engine), set[tuple[str, int]]()
        for name, end in cut.items():
            rows: list[Any] = []
            for at, event in enumerate([*self.source.events[name][:end], None]):
                if event is not None and not isinstance(event, Marker):
                    rows.append(event)
                    continue
                if rows:
                    batch = Batch(records_of(rows, self.plan.source.fields), at)
                    refused |= {(name, bad.offset) for bad in drive.apply(name, batch)}
                    rows = []
                if event is not None:
                    drive.apply(name, BatchMarker(event.watermark_ns, at + 1))
        return refused
