"""The embedded event log: a partitioned, durable log on one machine.

::

    topic = Topic.create(disk, "trades", schema, partitions=4, key=["symbol"])
    with PartitionWriter(topic, 0, clock) as writer:
        writer.append(records)                      # one frame, durable when it returns
    for batch in PartitionReader(topic, 0).read(from_offset=0):
        ...                                         # Batch or Marker, with exact offsets

docs/log.md has the format, the guarantees and the limits.
"""

from __future__ import annotations

from ripple.storage.log.errors import (
    LogChangedError,
    LogDamagedError,
    LogDivergedError,
    LogError,
    OffsetOutOfRangeError,
    SequenceError,
    StaleEpochError,
    TopicError,
    WriterFailedError,
)
from ripple.storage.log.group import GroupCommit
from ripple.storage.log.producers import Stamp
from ripple.storage.log.reader import PartitionReader
from ripple.storage.log.recovery import TornTail
from ripple.storage.log.router import TopicWriter
from ripple.storage.log.settings import LogSettings
from ripple.storage.log.topic import Topic
from ripple.storage.log.writer import Appended, PartitionWriter

__all__ = [
    "Appended",
    "GroupCommit",
    "LogChangedError",
    "LogDamagedError",
    "LogDivergedError",
    "LogError",
    "LogSettings",
    "OffsetOutOfRangeError",
    "PartitionReader",
    "PartitionWriter",
    "SequenceError",
    "StaleEpochError",
    "Stamp",
    "Topic",
    "TopicError",
    "TopicWriter",
    "TornTail",
    "WriterFailedError",
]
