"""Discovery of the topics in the folder of an event log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ripple.connectors.record_shape import arrow_schema_of
from ripple.connectors.settings import Stream
from ripple.core.errors import InputError
from ripple.storage.log import Topic, TopicError
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Iterator


def check(path: str) -> str:
    """Return the streams; raises InputError."""
    place = LogUri.parse(f"{PREFIX}{path}")
    try:
        topic = Topic.open(LiveDisk(place.folder, make=False), place.topic)
        topic.folder(place.partition or 0)
    except TopicError as error:
        raise InputError(f"cannot read {PREFIX}{path}: {error}") from error
    return f"a topic of {topic.partitions} partitions, {len(topic.schema.fields)} fields"


def discover(path: str) -> Iterator[Stream]:
    """Yield the topics of a folder, or the named one. Raises InputError."""
    disk = LiveDisk(path, make=False)
    names = disk.list("") if disk.exists("") else []
    if disk.exists("topic"):
        path, name = os.path.split(path.rstrip("/"))
        disk, names = LiveDisk(path, make=False), [name]
    for name in sorted(names):
        if disk.exists(f"{name}/topic"):
            topic = Topic.open(disk, name)
            columns = arrow_schema_of(topic.schema.fields)
            yield Stream(f"{PREFIX}{path}/{name}", columns, topic.partitions, topic.key or (), True)
