"""Opens topics for writing, for the connector."""

from __future__ import annotations

import atexit
import logging
import threading
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ripple.connectors.background import Background
from ripple.connectors.commit_group import Groups
from ripple.connectors.connector import Part
from ripple.connectors.contract import Commit
from ripple.connectors.kafka.batches import COMPRESSIONS, Compression
from ripple.connectors.kafka.broker import KafkaBroker
from ripple.connectors.kafka.cuts import Looks, stage_of, topic_of
from ripple.connectors.kafka.group import KafkaGroup
from ripple.connectors.kafka.group_partition import GroupPartition
from ripple.connectors.kafka.registry import registry_given
from ripple.connectors.kafka.row_values import FORMS, REGISTERED, ValueForm, row_values
from ripple.connectors.kafka.rows import Rows
from ripple.connectors.kafka.settings import security_given
from ripple.connectors.kafka.sink import KafkaSink
from ripple.connectors.kafka.topic_target import TopicTarget
from ripple.connectors.kafka.uri import PARTITION, PREFIX, SUBJECT, KafkaUri
from ripple.core.errors import InputError, OutputError
from ripple.core.setting import SettingsError
from ripple.model.pipeline.topology import stages_of
from ripple.world.broker import BrokerError, NoTopicError, TopicPartition
from ripple.world.live import LiveClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ripple.connectors.commit_group import ReadableGroup
    from ripple.connectors.connector import Grouping, Writing
    from ripple.connectors.kafka.cuts import Cuts
    from ripple.connectors.kafka.settings import Security
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan

T = TypeVar("T", bound=str)

OPTIONS = ("format", "compression", SUBJECT)

_log = logging.getLogger("ripple.kafka")


class _Target(NamedTuple):
    place: KafkaUri
    form: ValueForm
    compression: Compression

    @classmethod
    def parse(cls, path: str) -> _Target:
        """Parse a URI. Raises OutputError."""
        try:
            place = KafkaUri.parse(path)
        except (InputError, SettingsError) as error:
            raise OutputError(f"cannot write {PREFIX}{path}: {error}") from error
        try:
            place.check_options(OPTIONS)
        except InputError as error:
            raise OutputError(f"cannot write {place}: {error}") from error
        form = _one_of(place, "format", FORMS)
        return cls(place, form, _one_of(place, "compression", COMPRESSIONS))

    def written(self, plan: Plan, output: Output) -> TopicTarget:
        """Return the target of an output. Raises OutputError."""
        name = str(self.place)
        try:
            registry = registry_given() if self.form in REGISTERED else None
        except SettingsError as error:
            raise OutputError(f"cannot write {name}: {error}") from error
        values = row_values(self.form, output, name, registry, self.place.subject)
        return TopicTarget(self.place.topic, Rows(plan, output, name, values))


def _one_of(place: KafkaUri, option: str, known: tuple[T, ...]) -> T:
    said = place.options.get(option, known[0])
    for one in known:
        if one == said:
            return one
    raise OutputError(
        f"cannot write {place}: {option} is {said!r}, and there are {', '.join(known)}"
    )


def open_sink(path: str, asked: Writing) -> KafkaSink:
    """Return the sink that appends; its topic is made if there is none. Raises OutputError."""
    target = _Target.parse(path)
    written = target.written(asked.plan, asked.output)
    broker = _broker(target.place, target.compression)
    return KafkaSink(str(target.place), broker, written, LiveClock(), Background())


def open_group(paths: Mapping[str, str], asked: Grouping) -> ReadableGroup:
    """Return the joint commit of outputs: one transaction for all at the same brokers.

    Carried lanes join that of their brokers. No broker is asked yet. Raises OutputError.
    """
    by_brokers: dict[str, dict[str, _Target]] = {}
    for output, path in paths.items():
        target = _Target.parse(path)
        by_brokers.setdefault(target.place.brokers, {})[output] = target
    carried, lanes = asked.carried, None
    if carried is not None:
        lanes = _Target.parse(carried.place)
        by_brokers.setdefault(lanes.place.brokers, {})
    groups = []
    for brokers, targets in by_brokers.items():
        carries = carried is not None and lanes is not None and lanes.place.brokers == brokers
        first = next(iter(targets.values()), lanes)
        assert first is not None
        groups.append(
            KafkaGroup(
                _broker(first.place, first.compression),
                partition_of(asked),
                {
                    output: target.written(asked.plan, asked.plan.output(output))
                    for output, target in targets.items()
                },
                clock=LiveClock(),
                where=brokers,
                offsets=_offsets(brokers, asked),
                carried=carried if carries else None,
                waits=asked.waits,
            )
        )
    return Groups(groups)


def partition_of(asked: Grouping) -> GroupPartition:
    """Return the partition that a group belongs to, with the fields that divide its rows."""
    part, stage = asked.part or Part(0, 1), asked.stage
    key = stages_of(asked.plan)[stage].key if isinstance(stage, int) and stage else ()
    return GroupPartition(asked.plan.name, part, stage_of(stage), key, asked.divided_by)


def reached(path: str, asked: Writing) -> Commit | None:
    """Return the commit of the sink of a part; without a part, that of all of them.

    None if nothing. Raises OutputError.
    """
    target = _Target.parse(path)
    background, broker, looks = _connections.at(target.place)
    stages = range(1) if asked.part else range(len(stages_of(asked.plan)))

    only = None if asked.part is None else asked.part.number
    try:
        found = background.call(_newest_of(broker, looks, asked.plan.name, stages, only))
    except BrokerError as error:
        raise OutputError(f"cannot look into {target.place}: {error}") from error
    name = asked.output.name
    commits = [one.outputs[name].commit for one in found if one and name in one.outputs]
    if len(commits) < 2:
        return commits[0] if commits else None
    lowest: dict[str, int] = {}
    for commit in commits:
        for each, offset in commit.cut.items():
            lowest[each] = min(offset, lowest.get(each, offset))
    return Commit(lowest, "")


def owners(path: str, asked: Writing) -> int:
    """Return the highest epoch that an owner of any partition of any stage had, 0 for none.

    Raises OutputError.
    """
    target = _Target.parse(path)
    background, broker, looks = _connections.at(target.place)
    is_chain = asked.plan.is_chain
    stages = [stage_of(None if is_chain else one.name) for one in asked.plan.sources]
    stages += range(len(stages_of(asked.plan)))

    async def look() -> int:
        found = await _newest_of(broker, looks, asked.plan.name, stages)
        return max((one.epoch for one in found if one is not None), default=0)

    try:
        return background.call(look())
    except BrokerError as error:
        raise OutputError(f"cannot look into {target.place}: {error}") from error


async def _newest_of(
    broker: KafkaBroker,
    looks: Looks,
    pipeline: str,
    stages: Iterable[int | str],
    only: int | None = None,
) -> list[Cuts | None]:
    """Return the newest cut records of all partitions of stages, or of one of each."""
    found = []
    for stage in stages:
        topic = topic_of(pipeline, stage)
        try:
            count = await broker.partitions(topic)
        except NoTopicError:
            continue
        numbers = range(count) if only is None else [only]
        found += [await looks.newest(broker, TopicPartition(topic, number)) for number in numbers]
    return found


class _Connections:
    """A connection to each cluster of brokers that is looked into again and again.

    All are in one thread, which ends with the process.
    """

    def __init__(self) -> None:
        self._opening = threading.Lock()  # followers look in threads
        self._background: Background | None = None
        self._brokers: dict[str, tuple[KafkaBroker, Looks]] = {}

    def at(self, place: KafkaUri) -> tuple[Background, KafkaBroker, Looks]:
        """Return the connection to the brokers of a URI, its thread, and the poller."""
        with self._opening:
            if self._background is None:
                self._background = Background()
                atexit.register(self.close)
            if place.brokers not in self._brokers:
                self._brokers[place.brokers] = _broker(place, "none", keeps_ids=False), Looks()
            return self._background, *self._brokers[place.brokers]

    def close(self) -> None:
        """Let go of the connections, and end the thread."""
        background, self._background = self._background, None
        if background is not None:
            atexit.unregister(self.close)
            for broker, _ in self._brokers.values():
                background.call(broker.close())
            self._brokers.clear()
            background.close()


_connections = _Connections()


def _broker(place: KafkaUri, compression: Compression, *, keeps_ids: bool = True) -> KafkaBroker:
    return KafkaBroker(
        place.brokers,
        _security(place),
        compression=compression,
        keeps_ids=keeps_ids,
        warn=_log.warning,
    )


def _security(place: KafkaUri) -> Security:
    try:
        return security_given()
    except SettingsError as error:
        raise OutputError(f"cannot write {place}: {error}") from error


def _offsets(
    brokers: str, asked: Grouping
) -> Callable[[Mapping[str, int]], Mapping[TopicPartition, int]]:
    """Return a function that finds the offsets of these brokers' topics in a cut."""
    source = asked.source or ""
    if not source.startswith(PREFIX):
        return lambda _: {}
    place = KafkaUri.parse(source)
    if place.brokers != brokers:
        return lambda _: {}
    name, only = asked.plan.source.name, int(place.options.get(PARTITION, 0))

    def places(cut: Mapping[str, int]) -> Mapping[TopicPartition, int]:
        found = {}
        for one, offset in cut.items():
            of, _, number = one.partition("/")
            if of == name and (number.isdigit() or not number):
                found[TopicPartition(place.topic, int(number) if number else only)] = offset
        return found

    return places
