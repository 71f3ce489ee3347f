"""The common parameters of a query's tasks: pipeline, source and sinks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ripple.connectors.connector import Part
from ripple.connectors.inputs import keyed_by
from ripple.connectors.locate import check_sealed, open_inputs
from ripple.core.errors import InputError, PlanError
from ripple.engine.operators.division import Division
from ripple.model.pipeline.copartition import contradiction
from ripple.model.pipeline.division import divided_why, undivided_why, waiting_why
from ripple.model.pipeline.topology import stages_of
from ripple.spark.fold import check_triggers
from ripple.spark.options import absolute, absolute_store
from ripple.task.grouping import commit_interval_ns, group_at
from ripple.task.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.commit_group import ReadableGroup
    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.parcel import Parcel
    from ripple.world.ports import Executor

WHERE = "streaming on Spark"


@dataclass(frozen=True, slots=True)
class Stream:
    """A pipeline, with URIs that are valid on every machine.

    sinks: outputs with their URIs. partitions: of the pipeline; 1 has all inputs, like ``ripple
    run``.
    """

    parcel: Parcel
    source: str
    sinks: tuple[tuple[str, str], ...]
    store: str
    partitions: int
    batch_rows: int
    keep: int

    @classmethod
    def of(
        cls,
        parcel: Parcel,
        source: str,
        sinks: Mapping[str, str],
        store: str,
        *,
        partitions: int | None,
        batch_rows: int,
        keep: int,
    ) -> Stream:
        """Examine source and sinks; writes nothing. partitions: by default the source's.

        Raises InputError, OutputError, PlanError and ConnectorError.
        """
        plan = parcel.plan()
        plan.need_one_source(WHERE)
        for place in sinks.values():
            check_sealed(place)
        made = cls(
            parcel,
            absolute(source, "continued_source"),
            tuple((name, absolute(place, "continued_sink")) for name, place in sinks.items()),
            absolute_store(store),
            1,
            batch_rows,
            keep,
        )
        names = made.inputs(plan, None).names
        count = len(names) if partitions is None else partitions
        if not 1 <= count <= len(names) or len(names) % count:
            raise InputError(
                f"{source} has {len(names)} partitions, which cannot be divided among {count} of "
                "the pipeline: give a divisor"
            )
        made = replace(made, partitions=count)
        made.check(plan)
        return made

    def check(self, plan: Plan) -> None:
        """Raise PlanError and InputError if so many partitions are impossible."""
        if len(self.inputs(plan, None).names) > 1:
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
        found = keyed_by(self.inputs(plan, None))
        contrary = contradiction(plan.source, found)
        apart = waiting_why(plan, is_open=True) or undivided_why(plan, {plan.source.name: found})
        anew = divided_why(plan, found)
        why = apart or anew if contrary is None else f"it {contrary}"
        if why is not None:
            # A cluster divides anew the records of a chain alone.
            remedy = whole if contrary or apart else f"{whole}{cluster}"
            raise InputError(
                f"{self.source} cannot be read partition by partition: {why}; {remedy}"
            )

    def settings(self) -> Settings:
        """Return the settings of a task, which also commits between two micro-batches."""
        interval_ns = commit_interval_ns(place for _, place in self.sinks)
        return Settings(batch_rows=self.batch_rows, commit_interval_ns=interval_ns, keep=self.keep)

    def inputs(self, plan: Plan, part: Part | None) -> Inputs:
        """Return the inputs of a partition, or all."""
        return open_inputs(self.source, plan, self.batch_rows, follow=False, part=part)

    def division(self, plan: Plan) -> Division | None:
        """Return the input's partitioning, if declared and relevant."""
        whole = self.inputs(plan, None)
        key = keyed_by(whole)
        if self.partitions == 1 or not key:
            return None
        return Division(key, {name: at for at, name in enumerate(whole.names)}, len(whole.names))

    def outputs(self, plan: Plan, number: int, epoch: int, executor: Executor) -> ReadableGroup:
        """Return the outputs of a partition, for its owner of an epoch."""
        part = Part(number, self.partitions)
        return group_at(
            dict(self.sinks), plan, executor, source=self.source, epoch=epoch, part=part
        )

    def bounds(self) -> tuple[Cut, Cut]:
        """Return the present beginning and end of the inputs. Raises InputError and OSError."""
        return asyncio.run(self._bounds(self.inputs(self.parcel.plan(), None)))

    async def _bounds(self, inputs: Inputs) -> tuple[Cut, Cut]:
        try:
            return await inputs.bounds()
        finally:
            await inputs.close()
