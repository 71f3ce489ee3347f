"""Routes records to a topic's partitions, each with its writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ripple.core.errors import LimitError
from ripple.model.keys.partitioner import partitioned
from ripple.storage.log.writer import Appended, PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ripple.storage.log.topic import Topic
    from ripple.world.ports import Clock

STICKY_ROWS = 16_384


class Router:
    """Chooses partitions: by Kafka's murmur2 of the key, so that ours and Kafka's agree.

    Without a key a whole batch goes to the present partition; after ``sticky_rows`` records the
    next one follows. The partition depends on the records alone, never on time.
    """

    def __init__(
        self, partitions: int, key: Sequence[str] = (), *, sticky_rows: int = STICKY_ROWS
    ) -> None:
        self._partitions = partitions
        self._key = tuple(key)
        self._sticky_rows = sticky_rows
        self._present = 0
        self._rows = 0

    def route(self, records: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        """Return (partition, its records in their order), ascending; raises SchemaError."""
        if self._key:
            return partitioned(records, self._key, self._partitions)
        if not records.num_rows:
            return []
        chosen = self._present
        self._rows += records.num_rows
        if self._rows >= self._sticky_rows:
            self._present, self._rows = (chosen + 1) % self._partitions, 0
        return [(chosen, records)]


class TopicWriter:
    """Appends to a topic: the router chooses, one writer per partition stores.

    Takes the locks of all partitions. An append is one frame in each partition that gets some of
    its records; it is not atomic over several partitions.
    """

    def __init__(
        self,
        topic: Topic,
        clock: Clock,
        *,
        holder: str = "a writer",
        sticky_rows: int = STICKY_ROWS,
    ) -> None:
        """Open all partitions; raises as PartitionWriter does."""
        self.topic = topic
        self.writers: list[PartitionWriter] = []
        self._router = Router(topic.partitions, topic.key, sticky_rows=sticky_rows)
        try:
            for partition in range(topic.partitions):
                self.writers.append(PartitionWriter(topic, partition, clock, holder=holder))
        except BaseException:
            self.close()
            raise

    def append(self, records: pa.RecordBatch) -> list[tuple[int, Appended]]:
        """Append records; return (partition, where) ascending. Raises as PartitionWriter does.

        Records beyond the limit of one frame become several frames; LimitError is raised only for a
        single record.
        """
        return [
            (partition, _append(self.writers[partition], part))
            for partition, part in self._router.route(records)
        ]

    @property
    def rows(self) -> int:
        """The number of records ever appended to all partitions."""
        return sum(writer.next_offset for writer in self.writers)

    def mark(self, watermark_ns: int) -> None:
        """Append the promise that no event below ``watermark_ns`` follows, to all partitions."""
        for writer in self.writers:
            writer.mark(watermark_ns)

    def sync(self) -> None:
        """Make all appends durable."""
        for writer in self.writers:
            writer.sync()

    def close(self) -> None:
        """Close all partitions, also after an error of one; closing twice is allowed."""
        failure: BaseException | None = None
        for writer in self.writers:
            try:
                writer.close()
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _append(writer: PartitionWriter, records: pa.RecordBatch) -> Appended:
    """Append records as one frame, or as several where they exceed the topic's limit."""
    try:
        return writer.append(records)
    except LimitError:
        half = records.num_rows // 2
        if not half:
            raise
    first = _append(writer, records.slice(0, half))
    return first._replace(next_offset=_append(writer, records.slice(half)).next_offset)
