"""Cut records: the cuts of a partition's transactions, of which the newest counts.

They lie in a compacted topic, one partition of it for each of the pipeline's, under one key each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.connectors.contract import Commit
from ripple.connectors.files.text.cut_record import from_json, to_json
from ripple.core.errors import OutputError
from ripple.world.broker import Record, TopicPartition
from ripple.world.together import together

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ripple.world.broker import Broker, Read

FORMAT = 1
_RECORDS = "records"
# After the last record is the marker of its transaction; before it, aborted records.
BACK = 8
READ_RECORDS = 4096
WAIT_S = 5.0


class Reached(NamedTuple):
    """The cut of an output, and the topic that holds it."""

    topic: str
    commit: Commit


class Held(NamedTuple):
    """The topic of an output as it was when that was begun. id: "" where brokers do not tell."""

    id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Cuts:
    """A cut record. epoch: of the owner that wrote it. number: grows with each record.

    watermarks_ns: of each input at the newest cut, for external readers; empty in records of older
    versions. topics: those of outputs, by name; likewise.
    """

    epoch: int
    number: int
    outputs: Mapping[str, Reached] = field(default_factory=dict)
    watermarks_ns: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, Held] = field(default_factory=dict)

    def record(self, partition: int, timestamp_ms: int) -> Record:
        """Return the record for partition ``partition`` of a stage."""
        held = {
            "format": FORMAT,
            "epoch": self.epoch,
            "number": self.number,
            "outputs": {
                name: {"topic": topic, **(to_json(commit) or {})}
                for name, (topic, commit) in self.outputs.items()
            },
            "watermarks_ns": dict(self.watermarks_ns),
            "topics": {name: held._asdict() for name, held in self.topics.items()},
        }
        return Record(b"%d" % partition, json.dumps(held, sort_keys=True).encode(), timestamp_ms)

    @classmethod
    def of(cls, record: Record, place: TopicPartition) -> Cuts:
        """Parse a cut record. Raises OutputError for one of no partition's."""
        try:
            held: dict[str, Any] = json.loads(record.value or b"")
            version = held["format"]
            if version > FORMAT:
                raise OutputError(
                    f"the cut records of {place} have format {version}, this version of Ripple "
                    f"reads up to {FORMAT}: upgrade it"
                )
            outputs = {name: _reached(one) for name, one in held["outputs"].items()}
            topics = {
                name: Held(str(one["id"]), int(one["partitions"]))
                for name, one in held.get("topics", {}).items()
            }
            watermarks_ns = held.get("watermarks_ns", {})
            return cls(held["epoch"], held["number"], outputs, watermarks_ns, topics)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise OutputError(
                f"{place} holds a record that is no cut: {record.value!r}. The topic belongs to "
                "the pipeline alone; give the pipeline another name, or remove the topic and the "
                "checkpoints to start over"
            ) from error


def _reached(held: dict[str, Any]) -> Reached:
    topic = held.pop("topic")
    commit = from_json(held)
    assert commit is not None
    return Reached(topic, commit)


def topic_of(pipeline: str, stage: int | str) -> str:
    """Return the topic of a stage's cuts."""
    return f"{pipeline}.cuts" if stage == 0 else f"{pipeline}.{stage}.cuts"


def stage_of(stage: int | str | None) -> int | str:
    """Return the name of a stage, as a Grouping has it; repartitioning ones have no number."""
    if isinstance(stage, int):
        return stage
    return _RECORDS if stage is None else f"{_RECORDS}.{stage}"


async def newest(broker: Broker, place: TopicPartition) -> Cuts | None:
    """Return the newest committed cut record, None if there is none.

    Raises BrokerError and OutputError. All other writers must have been fenced before.
    """
    asked = await together(broker.ends([place]), broker.earliest([place]))
    end, earliest = (found[place] for found in asked)
    start, back = end, BACK
    while start > earliest:
        start, before, back = max(earliest, end - back), start, 8 * back
        found = None
        async for read in committed(broker, place, start, before):
            for record in read.records:
                found = record
        if found is not None:
            return Cuts.of(found, place)
    if earliest:  # compaction leaves the newest, and where a partition begins
        raise OutputError(
            f"{place} begins at offset {earliest}, and holds no cut record: those of the outputs "
            "were removed, so all rows would be written to them again. Remove the "
            "topic, the outputs and the checkpoints to start over, or give the pipeline another "
            "name; and let nothing but compaction remove its records (cleanup.policy=compact)"
        )
    return None


class Looks:
    """Polls for the newest cut records of any partitions.

    If a partition's end is unchanged nothing is new, and only the end is asked for.
    """

    def __init__(self) -> None:
        self._seen: dict[TopicPartition, tuple[int, Cuts | None]] = {}

    async def newest(self, broker: Broker, place: TopicPartition) -> Cuts | None:
        """Return the result of ``newest``; raises as it does."""
        end = (await broker.ends([place]))[place]  # before it is looked: more may come meanwhile
        if place not in self._seen or self._seen[place][0] != end:
            self._seen[place] = end, await newest(broker, place)
        return self._seen[place][1]


async def committed(
    broker: Broker, place: TopicPartition, start: int, end: int
) -> AsyncIterator[Read]:
    """Yield the committed records between two offsets, as far as readers may read them."""
    consumer = broker.consumer(ahead=False)
    try:
        consumer.assign({place: start})
        while start < end:
            found = await consumer.read(records_max=READ_RECORDS, wait_s=WAIT_S)
            read = found.get(place)
            if read is not None:
                start = read.next_offset
                yield read
    finally:
        await consumer.close()
