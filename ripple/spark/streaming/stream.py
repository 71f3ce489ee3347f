"""The common parameters of a query's tasks: pipeline, sources and sinks."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ripple.connectors.connector import Part
from ripple.connectors.inputs import keyed_by
from ripple.connectors.locate import check_sealed, open_inputs
from ripple.core.errors import InputError, PlanError
from ripple.engine.operators.division import Division
from ripple.model.pipeline.copartition import contradiction
from ripple.model.pipeline.division import divided_why, undivided_why
from ripple.model.pipeline.repartitioned import repartitioned_sources
from ripple.model.pipeline.topology import stages_of
from ripple.spark.fold import check_triggers
from ripple.spark.options import absolute, absolute_store
from ripple.task.arguments import sources_of
from ripple.task.grouping import commit_interval_ns, group_at
from ripple.task.settings import Settings
from ripple.task.several_sources import inputs_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.commit_group import ReadableGroup
    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.parcel import Parcel
    from ripple.world.ports import Executor

BEAT_NS_MIN = 10_000_000_000
"""The least time between two visits of a partition in silence, whatever its ``idle``."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A pipeline, with URIs that are valid on every machine.

    sources, sinks: names with their URIs. partitions: of the pipeline; 1 has all inputs, like
    ``ripple run``.
    """

    parcel: Parcel
    sources: tuple[tuple[str, str], ...]
    sinks: tuple[tuple[str, str], ...]
    store: str
    partitions: int
    batch_rows: int
    keep: int

    @classmethod
    def of(
        cls,
        parcel: Parcel,
        source: str | Mapping[str, str],
        sinks: Mapping[str, str],
        store: str,
        *,
        partitions: int | None,
        batch_rows: int,
        keep: int,
    ) -> Stream:
        """Examine sources and sinks; writes nothing. partitions: by default the sources'.

        Raises InputError, OutputError, PlanError and ConnectorError.
        """
        plan = parcel.plan()
        places = sources_of(plan, source)
        for place in sinks.values():
            check_sealed(place)
        made = cls(
            parcel,
            tuple(
                (one.name, absolute(places[one.name], "continued_source")) for one in plan.sources
            ),
            tuple((name, absolute(place, "continued_sink")) for name, place in sinks.items()),
            absolute_store(store),
            1,
            batch_rows,
            keep,
        )
        most = math.gcd(*(len(each.names) for each in made.opened(plan, None).values()))
        count = most if partitions is None else partitions
        if not 1 <= count <= most or most % count:
            one = len(made.sources) == 1
            have = f"{made.place} has" if one else "the sources can be read in"
            raise InputError(
                f"{have} {most} partitions, which cannot be divided among {count} of the "
                "pipeline: give a divisor"
            )
        made = replace(made, partitions=count)
        made.check(plan)
        return made

    def check(self, plan: Plan) -> None:
        """Raise PlanError and InputError if so many partitions are impossible."""
        opened = self.opened(plan, None)
        if any(len(each.names) > 1 for each in opened.values()) or len(opened) > 1:
            check_triggers(plan)
        if self.partitions == 1:
            return
        whole = "give 1 partition, which has all stages"
        cluster = ", or run it in a cluster"
        if len(stages_of(plan)) > 1:
            raise PlanError(
                f"{plan.name} has several stages, which tasks of Spark cannot connect: "
                f"{whole}{cluster}"
            )
        found = {name: keyed_by(each) for name, each in opened.items()}
        for source in plan.sources:
            contrary = contradiction(source, found[source.name])
            if contrary is not None:
                its = dict(self.sources)[source.name]
                raise InputError(
                    f"{its} cannot be read partition by partition: it {contrary}; {whole}"
                )
        apart = undivided_why(plan, found)
        why = apart or divided_why(plan, found[plan.sources[0].name])
        if why is not None:
            is_movable = apart is None or bool(repartitioned_sources(plan, found))
            remedy = f"{whole}{cluster}" if is_movable else whole
            raise InputError(f"{self.place} cannot be read partition by partition: {why}; {remedy}")

    def settings(self) -> Settings:
        """Return the settings of a task, which also commits between two micro-batches."""
        interval_ns = commit_interval_ns(place for _, place in self.sinks)
        return Settings(batch_rows=self.batch_rows, commit_interval_ns=interval_ns, keep=self.keep)

    @property
    def place(self) -> str:
        """The URIs of the sources, for people."""
        return ", ".join(place for _, place in self.sources)

    def opened(self, plan: Plan, part: Part | None) -> dict[str, Inputs]:
        """Return the inputs of each source, all of them or those of a partition."""
        places, rows = dict(self.sources), self.batch_rows
        return {
            one.name: open_inputs(places[one.name], plan, rows, follow=False, part=part, source=one)
            for one in plan.sources
        }

    def inputs(self, plan: Plan, part: Part | None) -> Inputs:
        """Return the inputs of all sources for one task: of a partition, or all.

        They are read in order of event time, so that few rows wait for a watermark.
        """
        return inputs_of(plan, self.opened(plan, part))

    def divisions(self, plan: Plan) -> tuple[Division, ...]:
        """Return the partitioning of each source, where it is declared and relevant."""
        if self.partitions == 1:
            return ()
        return tuple(
            Division(key, {name: at for at, name in enumerate(each.names)}, len(each.names))
            for each in self.opened(plan, None).values()
            if (key := keyed_by(each))
        )

    def outputs(self, plan: Plan, number: int, epoch: int, executor: Executor) -> ReadableGroup:
        """Return the outputs of a partition, for its owner of an epoch."""
        part = Part(number, self.partitions)
        # Offsets of several sources are not committed to a consumer group.
        only = self.sources[0][1] if len(self.sources) == 1 else None
        return group_at(dict(self.sinks), plan, executor, source=only, epoch=epoch, part=part)

    @property
    def beat_ns(self) -> int | None:
        """How often a partition is visited in silence, None for never.

        Its process goes on by the clock; where it has died, another one takes over.
        """
        idle = [one.idle_ns for one in self.parcel.plan().sources if one.idle_ns is not None]
        return max(min(idle), BEAT_NS_MIN) if idle else None

    def bounds(self) -> tuple[Cut, Cut]:
        """Return the present beginning and end of the inputs. Raises InputError and OSError."""
        return asyncio.run(self._bounds(self.inputs(self.parcel.plan(), None)))

    async def _bounds(self, inputs: Inputs) -> tuple[Cut, Cut]:
        try:
            return await inputs.bounds()
        finally:
            await inputs.close()
