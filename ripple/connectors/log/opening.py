"""Opens logs, ``DIR/TOPIC`` or ``DIR/TOPIC/PARTITION``, for reading and writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.log.grown import look_at_part, sink_of_part
from ripple.connectors.log.inputs import EndingLog, LogInputs
from ripple.connectors.log.sink import (
    LogSink,
    check_schema,
    committed_in,
    look_at,
    schema_of_output,
    topic_for,
    written_in,
)
from ripple.connectors.log.topic_fields import check_topic
from ripple.core.errors import InputError, OutputError
from ripple.storage.log import Topic, TopicError
from ripple.storage.log.epochs import newest_owner_of
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.world.live import LiveClock
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ripple.connectors.connector import Part, Reading, Writing
    from ripple.connectors.contract import Commit
    from ripple.connectors.record_shape import RecordShape
    from ripple.model.schema.types import Schema
    from ripple.world.ports import Disk


def open_source(path: str, reading: Reading) -> EndingLog:
    """Return the partitions up to their present ends.

    Raises InputError when there is no such log or partition, or there are several to choose from;
    SchemaError naming the field that it does not have.
    """
    topic, partitions = _partitions_at(path, reading)
    if len(partitions) > 1 and not reading.whole:
        text = f"{PREFIX}{path}"
        raise InputError(
            f"cannot read {text}: choose one of its {topic.partitions} partitions, as in {text}/0"
        )
    return EndingLog(topic, partitions, reading.shape, reading.batch_rows)


def open_inputs(path: str, reading: Reading) -> LogInputs:
    """Return all partitions of a part, or the named one; raises as ``open_source`` does."""
    topic, partitions = _partitions_at(path, reading)
    if reading.part is not None:
        number, of = reading.part
        check_divided(PREFIX + path, len(partitions), of)
        partitions = dict(list(partitions.items())[number::of])
    return LogInputs(
        topic,
        partitions,
        reading.shape,
        reading.batch_rows,
        follow=reading.follow,
        executor=reading.executor,
    )


def _partitions_at(path: str, reading: Reading) -> tuple[Topic, dict[str, int]]:
    """Return the topic at a place, and its partitions by the names of their inputs."""
    topic, partition = _topic_at(f"{PREFIX}{path}", reading.shape)
    if partition is not None or topic.partitions == 1:
        return topic, {reading.name: partition or 0}
    return topic, {f"{reading.name}/{number}": number for number in range(topic.partitions)}


def check_divided(place: str, count: int, of: int) -> None:
    """Raise InputError unless so many partitions of an input can be divided among ``of``."""
    if count % of:
        fitting = ", ".join(str(n) for n in range(1, count + 1) if count % n == 0)
        raise InputError(
            f"{place} has {count} partitions, and the pipeline has {of}, which must divide them: "
            f"{fitting} would fit, or an input of {of}, {2 * of}, {3 * of} ... partitions"
        )


def open_sink(path: str, writing: Writing) -> LogSink:
    """Return the sink that appends; its topic is made if there is none. Raises as LogSink does."""
    return _sink(path, writing, None)


def continue_sink(path: str, writing: Writing) -> LogSink:
    """Return the sink that records its cut; otherwise as ``open_sink``."""
    return _sink(path, writing, Owner(writing.plan.name, writing.output.name))


def reached(path: str, writing: Writing) -> Commit | None:
    """Return the commit of the sink of a part; None if there is none, or no topic yet."""
    place = LogUri.parse(f"{PREFIX}{path}")
    disk = LiveDisk(place.folder)
    if not disk.exists(f"{place.topic}/topic"):
        return None
    part = writing.part.number if writing.part is not None else place.partition or 0
    return committed_in(Topic.open(disk, place.topic), part)


def look(path: str, writing: Writing) -> int:
    """Raise as ``continue_sink`` does, with nothing changed; return the newest owner's epoch."""
    place, disk, is_new = _found(path, writing)
    if is_new:
        return 0
    text, schema = f"{PREFIX}{path}", schema_of_output(writing.plan, writing.output)
    topic = _opened(disk, place)
    check_schema(topic, place.topic, schema)
    owner = Owner(writing.plan.name, writing.output.name)
    if writing.part is not None:
        _check_parts(topic, place, writing.part)
        return look_at_part(topic, writing.part, owner, text, epoch=writing.epoch)
    partition = _chosen(topic, place, text)
    return look_at(topic, partition, owner, text, epoch=writing.epoch)


def written(path: str, writing: Writing, mark: str | None) -> Iterator[tuple[pa.RecordBatch, str]]:
    """Yield a part's changes after a mark, and marks after them, beside its active owner."""
    place, disk, is_new = _found(path, writing)
    if not is_new:
        topic = _opened(disk, place)
        part = writing.part
        yield from written_in(
            topic, _chosen(topic, place, f"{PREFIX}{path}") if part is None else part.number, mark
        )


def owners(path: str, _: Writing) -> int:
    """Return the highest epoch that an owner of any partition of a topic had, 0 for none."""
    place = LogUri.parse(f"{PREFIX}{path}")
    disk = LiveDisk(place.folder, make=False)
    return newest_owner_of(_opened(disk, place)) if disk.exists(f"{place.topic}/topic") else 0


def _found(path: str, writing: Writing) -> tuple[LogUri, LiveDisk, bool]:
    """Return a place that is written, its disk, and whether its topic is to be made."""
    text = f"{PREFIX}{path}"
    try:
        place = LogUri.parse(text)
    except InputError as error:
        raise OutputError(f"cannot write: {error}") from error
    disk = LiveDisk(place.folder, make=False)
    is_new = not disk.exists(f"{place.topic}/topic")
    if is_new and place.partition and writing.part is None:
        raise OutputError(f"cannot write {text}: a topic that is made for it has only partition 0")
    return place, disk, is_new


def _opened(disk: Disk, place: LogUri) -> Topic:
    try:
        return Topic.open(disk, place.topic)
    except TopicError as error:
        raise OutputError(f"cannot write: {error}") from error


def _sink(path: str, writing: Writing, owner: Owner | None) -> LogSink:
    text = f"{PREFIX}{path}"
    place, _, is_new = _found(path, writing)
    disk = LiveDisk(place.folder)
    schema = schema_of_output(writing.plan, writing.output)
    if writing.part is not None:
        topic = topic_of_part(disk, place, schema, writing.part)
        return sink_of_part(topic, writing.part, LiveClock(), owner, name=text, epoch=writing.epoch)
    topic = topic_for(disk, place.topic, schema)
    return LogSink(
        topic,
        _chosen(topic, place, text),
        LiveClock(),
        owner,
        name=text,
        is_new=is_new,
        epoch=writing.epoch,
    )


def _chosen(topic: Topic, place: LogUri, text: str) -> int:
    """Return the partition that a place names, or the only one."""
    if place.partition is None and topic.partitions > 1:
        raise OutputError(
            f"cannot write {text}: choose one of its {topic.partitions} partitions, as in {text}/0"
        )
    return place.partition or 0


def topic_of_part(disk: Disk, place: LogUri, schema: Schema, part: Part) -> Topic:
    """Return the topic in which each partition of the pipeline has one of its own.

    It is made if there is none. Raises OutputError where it does not have as many.
    """
    _check_whole(place)
    topic = topic_for(disk, place.topic, schema, part.of)
    _check_parts(topic, place, part)
    return topic


def _check_whole(place: LogUri) -> None:
    if place.partition is not None:
        raise OutputError(
            f"cannot write {PREFIX}{place.folder}/{place.topic}/{place.partition}: each partition "
            f"of the pipeline writes to one of its own; name the topic, without the number"
        )


def _check_parts(topic: Topic, place: LogUri, part: Part) -> None:
    _check_whole(place)
    if not topic.takes(part.of):
        raise OutputError(
            f"topic {place.topic} has {topic.partitions} partitions, and the pipeline has "
            f"{part.of}: name another topic, which is made with as many"
        )


def _topic_at(text: str, shape: RecordShape) -> tuple[Topic, int | None]:
    """Return the topic, and the partition if one is named."""
    place = LogUri.parse(text)
    try:
        topic = Topic.open(LiveDisk(place.folder, make=False), place.topic)
        topic.folder(place.partition or 0)
    except TopicError as error:
        raise InputError(f"cannot read {text}: {error}") from error
    check_topic(topic.schema, shape.schema, text)
    return topic, place.partition
