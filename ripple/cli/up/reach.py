"""How far the outputs of a cluster are behind its input, as their logs say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.connectors.log.sink import committed_in
from ripple.connectors.text.cut_record import Owner
from ripple.errors import InputError
from ripple.log import PartitionReader, Topic
from ripple.log.errors import LogError
from ripple.log_place import PREFIX, LogPlace
from ripple.world import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.pipeline.plan import Plan


@dataclass(frozen=True, slots=True)
class Reached:
    """So many of the input's records are in every output."""

    records: int
    of: int

    @property
    def is_all(self) -> bool:
        """Whether nothing is left."""
        return self.records == self.of

    def __str__(self) -> str:
        share = 100 * self.records // self.of if self.of else 100
        return f"{self.records:,} of {self.of:,} records are in the outputs ({share} %)"


class Reach:
    """Looks at the logs of a pipeline's input and its outputs."""

    def __init__(self, plan: Plan, source: str, sinks: Mapping[str, str]) -> None:
        """Connect places as users write them; sinks: by output.

        Raises InputError for places that are no topics.
        """
        self._source = open_topic(source)
        self._input = plan.source.name
        self._sinks = {Owner(plan.name, name): _parsed(place) for name, place in sinks.items()}

    def look(self) -> Reached:
        """Return how far the slowest output is.

        Raises OutputError for a topic that holds the changes of another output.
        """
        ends = {}
        count = self._source.partitions
        for partition in range(count):
            with PartitionReader(self._source, partition) as reader:
                # The only one has no number, as where it is read.
                name = f"{self._input}/{partition}" if count > 1 else self._input
                ends[name] = reader.range()[1]
        whole = sum(ends.values())
        return Reached(
            min((self._of(*sink, ends) for sink in self._sinks.items()), default=whole), whole
        )

    def _of(self, owner: Owner, place: LogPlace, ends: dict[str, int]) -> int:
        try:
            topic = Topic.open(LiveDisk(place.folder, make=False), place.topic)
        except (LogError, OSError):
            return 0
        reached: dict[str, int] = {}
        for partition in range(topic.partitions):
            commit = committed_in(topic, partition, owner)
            for name, offset in ({} if commit is None else commit.cut).items():
                # A later stage's cut has the names of its senders before those of the inputs.
                of = next((end for end in ends if name == end or name.endswith(f"/{end}")), name)
                reached[of] = min(offset, reached.get(of, offset))
        return sum(min(reached.get(name, 0), end) for name, end in ends.items())


def open_topic(place: str) -> Topic:
    """Return the topic at ``log:DIR/TOPIC``. Raises InputError."""
    parsed = _parsed(place)
    try:
        return Topic.open(LiveDisk(parsed.folder, make=False), parsed.topic)
    except (LogError, OSError) as error:
        raise InputError(f"cannot read {place}: {error}") from error


def _parsed(place: str) -> LogPlace:
    if not place.startswith(PREFIX):
        raise InputError(f"{place} is no topic: a cluster reads and writes log:DIR/TOPIC")
    parsed = LogPlace.parse(place)
    if parsed.partition is not None:
        raise InputError(
            f"{place} is one partition: name the topic, log:{parsed.folder}/{parsed.topic}"
        )
    return parsed
