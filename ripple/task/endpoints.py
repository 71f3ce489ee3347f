"""The inputs and outputs of a pipeline in partitions: URIs, which the registry resolves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cached_property
from math import gcd
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from ripple.connectors.connector import Part
from ripple.connectors.inputs import keyed_by, keyed_by_source
from ripple.connectors.locate import check_sealed, open_inputs, reached_at
from ripple.core.errors import InputError
from ripple.engine.operators.division import Division
from ripple.model.pipeline.copartition import contradiction
from ripple.model.pipeline.division import divided_why, needs_one
from ripple.model.pipeline.repartitioned import fields_of_outputs, need_division
from ripple.model.pipeline.stages import key_of
from ripple.model.pipeline.topology import outputs_of
from ripple.task.grouping import group_at
from ripple.task.retrying_inputs import RetryingInputs
from ripple.task.several_sources import inputs_of
from ripple.world.ports import INLINE

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from ripple.connectors.commit_group import ReadableGroup
    from ripple.connectors.connector import Carried
    from ripple.connectors.contract import Commit
    from ripple.connectors.inputs import Inputs
    from ripple.model.pipeline.new_division import NewDivision
    from ripple.model.pipeline.plan import Plan
    from ripple.task.standby import Look
    from ripple.world.ports import Executor


NONE_DIVIDED: Mapping[str, Inputs] = MappingProxyType({})


class Endpoints(Protocol):
    """The inputs and outputs of a pipeline."""

    def counts(self) -> tuple[tuple[str, int], ...]:
        """Return how many partitions each source has, by name; raises InputError and OSError."""
        ...

    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Return the inputs of each source, by name; raises as ``counts``."""
        ...

    def divisions(self) -> tuple[Division, ...]:
        """Return how the records of each source that tells it are divided among its partitions."""
        ...

    @property
    def repartitioned(self) -> Mapping[str, NewDivision]:
        """The repartitioned sources with their fields."""
        ...

    def inputs(self, part: Part, divided: Mapping[str, Inputs] = NONE_DIVIDED) -> Inputs:
        """Return a partition's inputs, which wait for more at their ends. Raises InputError.

        divided: the inputs of repartitioned sources.
        """
        ...

    def inputs_of(self, source: str, part: Part) -> Inputs:
        """Return the inputs of one source for a partition that divides its records anew."""
        ...

    def outputs(
        self,
        part: Part,
        epoch: int,
        stage: int | str | None = 0,
        *,
        carried: Carried | None = None,
        reads: bool = True,
    ) -> ReadableGroup:
        """Return the outputs of a stage's partition, for its owner of an epoch.

        stage: None for tasks that repartition the source of a chain, the name of one of several.
        carried: repartition topics, committed together with the outputs. reads: whether offsets of
        its cut may be noted as read.
        """
        ...

    def reached(self, part: Part) -> Look | None:
        """Return a reader of the cut that a partition's outputs have committed, if any."""
        ...


def check_keys(plan: Plan, places: Mapping[str, str], opened: Mapping[str, Inputs]) -> None:
    """Raise InputError where the inputs of a source contradict the key that a pipeline declares.

    places: URIs by source, for people.
    """
    for source in plan.sources:
        found = keyed_by(opened[source.name])
        why = contradiction(source, found)
        if why is not None:
            by = ", ".join(found or ())
            then = ", and records are repartitioned where necessary" if plan.is_chain else ""
            raise InputError(f"{places[source.name]} {why}: say key={by!r}{then}, or leave it out")


def has_one(counts: Iterable[int]) -> bool:
    """Return whether one partition alone can share sources with so many partitions each."""
    return gcd(*counts) == 1


class EndpointUris:
    """Endpoints given as URIs."""

    def __init__(
        self,
        plan: Plan,
        sources: Mapping[str, str],
        sinks: Mapping[str, str],
        *,
        batch_rows: int,
        executor: Executor,
        partitions: int = 0,
        present: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        """Take the URIs of each source and of each wanted output, by name.

        partitions: how many the first stage is to have, 0 where only coordinators know. present:
        returns the URIs of the outputs that partitions open now; by default all of sinks. Raises
        OutputError for a sink that cannot be sealed, InputError for a source that cannot be read
        again, and the errors of opening them where those show at once.
        """
        self._plan = plan
        self._sources = dict(sources)
        self._sinks = dict(sinks)
        self._batch_rows = batch_rows
        self._executor = executor
        self._partitions = partitions
        self._present = present or (lambda: self._sinks)
        for place in self._sinks.values():
            check_sealed(place)
        self.counts()

    def counts(self) -> tuple[tuple[str, int], ...]:
        """Return how many partitions each source has, by name."""
        return tuple((name, len(each)) for name, each in self.names().items())

    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Return the inputs of each source, by name."""
        return {name: each.names for name, each in self._opened().items()}

    @cached_property  # it opens all inputs, and is asked per source and receiver
    def repartitioned(self) -> Mapping[str, NewDivision]:
        """The repartitioned sources with their fields. Raises as ``inputs`` does."""
        opened = self._opened()
        check_keys(self._plan, self._sources, opened)
        keyed = keyed_by_source(opened)
        return need_division(self._plan, "a cluster", keyed, is_one=self._has_one(opened))

    @cached_property  # as repartitioned
    def divides(self) -> bool:
        """Return whether the source of a chain is repartitioned, by the keys of both.

        Raises InputError if both contradict each other, PlanError for branches or sources that do
        not fit several partitions.
        """
        if self.repartitioned:
            return False
        opened = self._opened()
        return divided_why(self._plan, keyed_by(next(iter(opened.values())))) is not None

    @property
    def needs_one(self) -> bool:
        """Return whether the first stage has one partition since its records are not divided."""
        opened = self._opened()
        return self._has_one(opened) and needs_one(self._plan, keyed_by_source(opened))

    def _has_one(self, opened: Mapping[str, Inputs]) -> bool:
        return self._partitions == 1 or has_one(len(each.names) for each in opened.values())

    def divisions(self) -> tuple[Division, ...]:
        """Return how the records of each source that tells it are divided among its partitions.

        With repartitioned sources in the plan this includes sources with ``keyed_by`` only: their
        records must be in the partitions of Kafka's hash, as the repartitioned ones are.
        """
        opened, repartitioned = self._opened(), self.repartitioned
        check_keys(self._plan, self._sources, opened)
        said = {one.name: one.key for one in self._plan.sources if repartitioned}
        return tuple(
            Division(key, {one: at for at, one in enumerate(each.names)}, len(each.names))
            for name, each in opened.items()
            if name not in repartitioned and (key := keyed_by(each) or said.get(name))
        )

    def inputs(self, part: Part, divided: Mapping[str, Inputs] = NONE_DIVIDED) -> Inputs:
        """Return a partition's inputs; divided: those of repartitioned sources."""
        opened = self._opened(part, self._executor, but=divided)
        own = {name: RetryingInputs(each) for name, each in opened.items()}
        return inputs_of(self._plan, {**own, **divided})

    def inputs_of(self, source: str, part: Part) -> Inputs:
        """Return the inputs of one source for a partition that divides its records anew."""
        others = [name for name in self._sources if name != source]
        return RetryingInputs(self._opened(part, self._executor, but=others)[source])

    def _opened(
        self,
        part: Part | None = None,
        executor: Executor = INLINE,
        but: Container[str] = (),
    ) -> dict[str, Inputs]:
        """Return the inputs of each source but some, all of them or those of a partition."""
        return {
            source.name: open_inputs(
                self._sources[source.name],
                self._plan,
                self._batch_rows,
                follow=True,
                part=part,
                executor=executor,
                source=source,
            )
            for source in self._plan.sources
            if source.name not in but
        }

    def outputs(
        self,
        part: Part,
        epoch: int,
        stage: int | str | None = 0,
        *,
        carried: Carried | None = None,
        reads: bool = True,
    ) -> ReadableGroup:
        """Return the outputs of a stage's partition."""
        return group_at(
            self._sinks_of(stage) if isinstance(stage, int) else {},
            self._plan,
            self._executor,
            source=self._only if reads else None,
            epoch=epoch,
            part=part,
            stage=stage,
            carried=carried,
            divided_by=self._divided_by(part) if stage == 0 else {},
        )

    def _divided_by(self, part: Part) -> dict[str, tuple[str, ...]]:
        """Return the dividing fields of the first stage's outputs, where they are known.

        They are unknown for sources read directly: their writers may have used fewer fields, the
        fields before a map, or another hash.
        """
        if part.of == 1:
            return {}
        if self._plan.is_chain and self.divides:
            by = key_of(self._plan.folds[0])
            return {output.name: by for output in self._plan.outputs if not output.is_stream}
        return fields_of_outputs(self._plan, self.repartitioned)

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

    @property
    def _only(self) -> str | None:
        """The only source; offsets of several are not committed to a consumer group."""
        return next(iter(self._sources.values())) if len(self._sources) == 1 else None

    def _sinks_of(self, stage: int) -> dict[str, str]:
        written = outputs_of(self._plan, stage)
        return {name: place for name, place in self._present().items() if name in written}
