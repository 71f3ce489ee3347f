"""The inputs and outputs of a pipeline in partitions: URIs, which the registry resolves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from ripple.connectors.connector import Part
from ripple.connectors.inputs import keyed_by
from ripple.connectors.locate import check_sealed, open_inputs, reached_at
from ripple.core.errors import InputError
from ripple.model.pipeline.topology import divided_why, need_one_division, outputs_of
from ripple.task.grouping import group_at
from ripple.task.retrying_inputs import RetryingInputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.commit_group import ReadableGroup
    from ripple.connectors.connector import Carried
    from ripple.connectors.contract import Commit
    from ripple.connectors.inputs import Inputs
    from ripple.model.pipeline.plan import Plan
    from ripple.task.standby import Look
    from ripple.world.ports import Executor


class Endpoints(Protocol):
    """The inputs and outputs of a pipeline."""

    def counts(self) -> tuple[tuple[str, int], ...]:
        """Return how many partitions each input has, by name; raises InputError and OSError."""
        ...

    def inputs(self, part: Part) -> Inputs:
        """Return a partition's inputs, which wait for more at their ends. Raises InputError."""
        ...

    def outputs(
        self,
        part: Part,
        epoch: int,
        stage: int | None = 0,
        *,
        carried: Carried | None = None,
        reads: bool = True,
    ) -> ReadableGroup:
        """Return the outputs of a stage's partition, for its owner of an epoch.

        stage: None for the tasks that repartition the source. carried: repartition topics that are
        committed together with the outputs. reads: whether offsets of its cut may be noted as read.
        """
        ...

    def reached(self, part: Part) -> Look | None:
        """Return a reader of the cut that a partition's outputs have committed, if any."""
        ...


class EndpointUris:
    """Endpoints given as URIs."""

    def __init__(
        self,
        plan: Plan,
        source: str,
        sinks: Mapping[str, str],
        *,
        batch_rows: int,
        executor: Executor,
    ) -> None:
        """Take the URIs of the input and of each wanted output.

        Raises OutputError for a sink that cannot be sealed, InputError for a source that cannot be
        read again, and the errors of opening them where those show at once.
        """
        self._plan = plan
        self._source = source
        self._sinks = dict(sinks)
        self._batch_rows = batch_rows
        self._executor = executor
        for place in self._sinks.values():
            check_sealed(place)
        self.counts()

    def counts(self) -> tuple[tuple[str, int], ...]:
        """Return how many partitions the input has."""
        inputs = open_inputs(self._source, self._plan, self._batch_rows, follow=True)
        return ((self._plan.source.name, len(inputs.names)),)

    @property
    def divides(self) -> bool:
        """Return whether the source is repartitioned, by the keys of pipeline and input.

        Raises InputError if both contradict each other, PlanError for branches that do not fit.
        """
        inputs = open_inputs(self._source, self._plan, self._batch_rows, follow=True)
        found = keyed_by(inputs)
        said = self._plan.source.key
        if found and said and not set(found) <= set(said):
            by, name = ", ".join(found), self._plan.source.name
            raise InputError(
                f"{self._source} is partitioned by {by}, but the pipeline says that {name} is "
                f"partitioned by {', '.join(said)}: say key={by!r}, and records are repartitioned "
                "where necessary, or leave it out"
            )
        need_one_division(self._plan, "a cluster", found)
        return divided_why(self._plan, found) is not None

    def inputs(self, part: Part) -> Inputs:
        """Return a partition's inputs."""
        inputs = open_inputs(
            self._source,
            self._plan,
            self._batch_rows,
            follow=True,
            part=part,
            executor=self._executor,
        )
        return RetryingInputs(inputs)

    def outputs(
        self,
        part: Part,
        epoch: int,
        stage: int | None = 0,
        *,
        carried: Carried | None = None,
        reads: bool = True,
    ) -> ReadableGroup:
        """Return the outputs of a stage's partition."""
        return group_at(
            {} if stage is None else self._sinks_of(stage),
            self._plan,
            self._executor,
            source=self._source if reads else None,
            epoch=epoch,
            part=part,
            stage=stage,
            carried=carried,
        )

    def reached(self, part: Part) -> Look | None:
        """Return a reader of the cut that a partition's outputs have committed, if any."""
        asked = {
            name: reached_at(place, self._plan, name, part)
            for name, place in self._sinks_of(0).items()
        }
        known = {name: ask for name, ask in asked.items() if ask is not None}
        if len(known) < len(asked):
            return None

        def look() -> Mapping[str, Commit | None]:
            return {name: ask() for name, ask in known.items()}

        # Brokers may take seconds to answer. Several threads may ask at once: the only shared state
        # is the connections, which have a lock, and what their one thread has seen.
        return lambda: asyncio.to_thread(look)

    def _sinks_of(self, stage: int) -> dict[str, str]:
        written = outputs_of(self._plan, stage)
        return {name: place for name, place in self._sinks.items() if name in written}
