"""Lag of the outputs of a local cluster, in records of the input, from their commits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ripple.connectors.connector import Writing
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.inputs import keyed_by, keyed_by_source
from ripple.connectors.installed import load
from ripple.connectors.locate import open_inputs
from ripple.connectors.log.sink import committed_in
from ripple.connectors.registry import find
from ripple.core.errors import InputError
from ripple.model.pipeline.division import divided_why
from ripple.model.pipeline.input_names import answers_of
from ripple.storage.log import Topic
from ripple.storage.log.errors import LogError
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.task.endpoints import check_keys
from ripple.world import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.connectors.contract import Commit
    from ripple.connectors.inputs import Inputs
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan

    _Commits = Callable[[Owner], list[Commit | None]]


@dataclass(frozen=True, slots=True)
class Reached:
    """The number of input records that are in every output, and of answers, by partition."""

    records: int
    of: int
    answers: Mapping[str, int] = field(default_factory=dict)
    where: str = "outputs"

    @property
    def is_all(self) -> bool:
        """Whether all records are in the outputs."""
        return self.records == self.of

    def __str__(self) -> str:
        share = 100 * self.records // self.of if self.of else 100
        return f"{self.records:,} of {self.of:,} records are in the {self.where} ({share} %)"


class Reach:
    """Compares the end of a pipeline's input with its outputs' commits."""

    def __init__(
        self,
        plan: Plan,
        sources: Mapping[str, str],
        sinks: Mapping[str, str],
        where: str = "outputs",
    ) -> None:
        """Open sources and sinks. sources, sinks: URIs by name. where: what sinks are, for people.

        Raises InputError for a source that cannot be resumed, or is divided by other fields than
        the pipeline says, and for sinks that report no commits.
        """
        self._plan = plan
        self._where = where
        self._sources = sources
        for source in sources.values():
            if source.startswith(PREFIX):
                _parsed(source)
        opened = {source.name: self._opened(source) for source in plan.sources}
        check_keys(plan, sources, opened)
        # A log's input continues from its last position; connections belong to one event loop.
        self._kept = {
            name: each for name, each in opened.items() if sources[name].startswith(PREFIX)
        }
        self.counts = {name: len(each.names) for name, each in opened.items()}
        """The number of each source's partitions."""
        self.keyed_by = keyed_by_source(opened)
        """The dividing fields by source; None where the division does not matter."""
        self.divides = divided_why(plan, keyed_by(next(iter(opened.values())))) is not None
        """Whether a chain's records are repartitioned by the key of its fold."""
        self._sinks = {
            Owner(plan.name, name): _commits(plan, name, place) for name, place in sinks.items()
        }

    def look(self) -> Reached:
        """Return the position of the slowest output.

        Not to be called from an event loop. Raises OutputError for a topic of another output.
        """
        ends = asyncio.run(self._ends())
        whole = sum(ends.values())
        found = [commits(owner) for owner, commits in self._sinks.items()]
        records = min((_sum_of(one, ends) for one in found), default=whole)
        return Reached(records, whole, _answers_in(found), self._where)

    def _opened(self, source: SourceSpec) -> Inputs:
        place = self._sources[source.name]
        return open_inputs(place, self._plan, 1, follow=False, source=source)

    async def _ends(self) -> Mapping[str, int]:
        """Return the present end of each input."""
        found: dict[str, int] = {}
        for source in self._plan.sources:
            kept = self._kept.get(source.name)
            inputs = kept or self._opened(source)
            try:
                found |= (await inputs.bounds())[1]
            finally:
                if inputs is not kept:
                    await inputs.close()
        return found


def _commits(plan: Plan, output: str, place: str) -> _Commits:
    """Return a function that returns the commits of an output's partitions."""
    found = find(place, "continued_sink")
    if place.startswith(PREFIX) or not found.use.reached:
        return partial(_in_log, _parsed(place))
    ask = load(found.connector.scheme, found.connector.package, found.use.reached)
    asked = Writing(plan, plan.output(output))
    return lambda _: [ask(found.path, asked)]


def _in_log(place: LogUri, owner: Owner) -> list[Commit | None]:
    try:
        topic = Topic.open(LiveDisk(place.folder, make=False), place.topic)
    except (LogError, OSError):
        return []
    return [committed_in(topic, partition, owner) for partition in range(topic.partitions)]


def _sum_of(commits: list[Commit | None], ends: Mapping[str, int]) -> int:
    reached: dict[str, int] = {}
    for commit in commits:
        for name, offset in ({} if commit is None else commit.cut).items():
            # A later stage's cut has its senders' names before the inputs' names.
            of = next((end for end in ends if name == end or name.endswith(f"/{end}")), name)
            reached[of] = min(offset, reached.get(of, offset))
    return sum(min(reached.get(name, 0), end) for name, end in ends.items())


def _answers_in(outputs: list[list[Commit | None]]) -> dict[str, int]:
    """Return the number of answers that are in every output, by the partition of their log."""
    found: list[dict[str, int]] = []
    for commits in outputs:
        own: dict[str, int] = {}
        for commit in commits:
            for name, offset in ({} if commit is None else commit.cut).items():
                # A later stage's cut has its senders' names before the logs' names.
                _, answers, partition = name.rpartition(answers_of(""))
                if answers:
                    own[partition] = min(offset, own.get(partition, offset))
        found.append(own)
    first, *others = found or [{}]
    return {name: min([at, *(one.get(name, 0) for one in others)]) for name, at in first.items()}


def _parsed(place: str) -> LogUri:
    if not place.startswith(PREFIX):
        raise InputError(
            f"{place} does not report its commits: a local cluster writes "
            "log:DIR/TOPIC, kafka:BROKERS/TOPIC or postgres:TABLE"
        )
    return LogUri.whole(place)
