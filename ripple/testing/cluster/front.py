"""The stages of a simulated cluster that repartition records, in front of the first one."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from ripple.connectors.connector import Part
from ripple.engine.machine import Engine
from ripple.engine.machine.divider import Divider
from ripple.engine.machine.receiver import receiver
from ripple.engine.machine.router import Router
from ripple.engine.machine.source_router import source_router
from ripple.engine.machine.targets import Targets
from ripple.engine.machine.waiting_rows import OFFSET, WATERMARK
from ripple.engine.operators.division import Division
from ripple.model.batch import Batch
from ripple.model.pipeline.division import divided_into, divided_why, undivided_why
from ripple.model.pipeline.input_names import inputs_by_source, is_markers, source_of
from ripple.model.pipeline.repartitioned import repartitioned_into, repartitioned_sources
from ripple.model.pipeline.topology import is_spread
from worker.engine.hosting import judged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.pipeline.new_division import NewDivision
    from ripple.model.pipeline.plan import Plan
    from ripple.testing.crash.source import CrashSource

FIRST = 0


def repartitioned_in_trials(plan: Plan) -> dict[str, NewDivision]:
    """Return the repartitioned sources of a trial, with their fields: its topics tell no key.

    A source without ``key=`` is spread by the key of the first fold.
    """
    return {} if undivided_why(plan) is None else repartitioned_sources(plan, {})


@dataclass(frozen=True, slots=True)
class Front:
    """The repartitioned sources of a plan. They have the stages before 0, in their order.

    keys: the fields, for each source; empty for a chain. is_chain: whether the one
    source of a chain is repartitioned, by the key of its first fold.
    """

    plan: Plan
    source: CrashSource
    keys: Mapping[str, NewDivision]
    is_chain: bool

    @classmethod
    def of(cls, plan: Plan, source: CrashSource, *, is_one: bool) -> Front:
        """Return the front of a plan. is_one: one partition has all records, and none are moved."""
        keys = {} if is_one else repartitioned_in_trials(plan)
        return cls(plan, source, keys, divided_why(plan) is not None)

    @property
    def sources(self) -> tuple[str, ...]:
        """The repartitioned sources."""
        return (self.plan.source.name,) if self.is_chain else tuple(self.keys)

    @property
    def reading(self) -> range:
        """The stages that judge all records of their inputs."""
        return self._stages if self.sources else range(1)

    @property
    def _stages(self) -> range:
        return range(-len(self.sources), 0)

    def counts(self, first: int) -> dict[int, int]:
        """Return the partitions of each stage up to the first. first: as coordinators are asked."""
        inputs = dict(self.source.counts)
        found = {stage: gcd(first, inputs[self.sources[stage]]) for stage in self._stages}
        return found | {FIRST: self.receivers(first)}

    def receivers(self, first: int) -> int:
        """Return the number of partitions of the first stage."""
        if self.is_chain:
            return divided_into(self.plan)
        return (repartitioned_into(self.plan, self.keys) if self.keys else 0) or first

    def inputs_of(self, stage: int, number: int, first: int) -> tuple[str, ...]:
        """Return the inputs of a partition: of a repartitioned source all."""
        part = Part(number, self.counts(first)[stage])
        if stage == FIRST:
            return self.source.of_part(part, whole=self.sources)
        own = self.sources[stage]
        return tuple(n for n in self.source.of_part(part) if source_of(self.plan, n).name == own)

    def is_divided(self, stage: int, name: str) -> bool:
        """Return whether lanes bring the records of an input to a stage."""
        if stage != FIRST or is_markers(name):
            return False
        return source_of(self.plan, name).name in self.sources

    def sender(self, stage: int, number: int, names: tuple[str, ...], first: int) -> Divider:
        """Return an empty partition of a stage in front."""
        if self.is_chain:
            return Router(self.plan, number, names)
        targets = self._targets(self.sources[stage], first)
        return source_router(targets)(self.plan, number, names, staged=True)

    def engine(self, number: int, names: tuple[str, ...], first: int) -> Engine:
        """Return an empty partition of the first stage."""
        plan, staged = judged(self.plan, self.sources), is_spread(self.plan) or bool(self.keys)
        made: type[Engine] = Engine
        if self.keys:
            made = receiver({name: self._targets(name, first) for name in self.keys}, number)
        return made(plan, number, names, staged=staged)

    def sent(self, sender: Divider, number: int) -> Batch:
        """Return the batch of a sender, of one input, for a partition of the first stage."""
        (name,) = sender.cut
        sender.stabilize()
        given = sender.outgoing_to([number])[number]
        offsets, watermarks_ns = (given.rows.column(n).to_numpy() for n in (OFFSET, WATERMARK))
        rows = given.rows.select([field.name for field in source_of(self.plan, name).fields])
        return Batch(rows, sender.cut[name], (), offsets, given.watermark_ns, watermarks_ns)

    def stage_of(self, name: str) -> int:
        """Return the stage in front that reads an input."""
        return self.sources.index(source_of(self.plan, name).name) - len(self.sources)

    @property
    def divisions(self) -> tuple[Division, ...]:
        """How the records of sources beside repartitioned ones are divided among their inputs."""
        direct = [one for one in self.plan.sources if self.keys and one.name not in self.keys]
        by_source = inputs_by_source(self.plan, self.source.inputs)
        return tuple(
            Division(one.key, {name: at for at, name in enumerate(names)}, len(names))
            for one in direct
            if one.key and (names := by_source[one.name])
        )

    def _targets(self, source: str, first: int) -> Targets:
        return Targets(self.keys[source], self.receivers(first))
