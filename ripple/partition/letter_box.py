"""Where letters lie, as rows in the order in which they came: on a disk, a topic of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ripple.batch import Batch
from ripple.checkpoint.checkpoints import prefix_of
from ripple.log import LogSettings, PartitionReader, PartitionWriter, Topic
from ripple.log.settings import compression_of
from ripple.partition.letter import SCHEMA
from ripple.schema.arrow import to_arrow
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from ripple.world.ports import Clock, Disk

SETTINGS = LogSettings(
    sync_appends=0,  # only when asked: a life syncs before its sinks commit
    segment_bytes_max=8 << 20,
    retention_bytes_max=64 << 20,
    compression=compression_of("zstd"),
)
ARROW = to_arrow(SCHEMA)


class LetterBox(Protocol):
    """Rows of ``letter.SCHEMA``; one owner at a time."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield what is there, in order. Raises LogDamagedError."""
        ...

    def append(self, rows: pa.RecordBatch) -> None:
        """Keep rows behind all others. Raises OSError."""
        ...

    def sync(self) -> None:
        """Let the next ``Place.flush`` return only once all rows survive whatever happens.

        Where that takes no network it is so at once. Raises SyncFailedError; then the life is over.
        """
        ...

    def close(self) -> None:
        """Release the box; closing twice is allowed."""
        ...


def letters_path(pipeline: str, partition: int = 0) -> str:
    """Return the topic's folder on the disk of the checkpoints.

    Its name has a dot, so that a checkpoint store on the same disk does not look into it.
    """
    return f"{prefix_of(pipeline, partition)}dead-letters.topic"


class LetterTopic:
    """Letters in a topic of one partition."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        clock: Clock,
        *,
        holder: str = "a life",
        settings: LogSettings = SETTINGS,
        guards: Callable[[str], bool] = all_guards,
    ) -> None:
        """Open the log at ``path``, made if it is absent.

        settings: of a log that is made. Raises DiskLockedError, LogDamagedError, OSError.
        """
        self._topic = _open_or_create(disk, path, settings)
        self._writer = PartitionWriter(self._topic, 0, clock, holder=holder, guards=guards)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield what is there."""
        with PartitionReader(self._topic, 0) as reader:
            for batch in batches_of(reader):
                yield batch.records

    def append(self, rows: pa.RecordBatch) -> None:
        """Keep rows."""
        self._writer.append(rows)

    def sync(self) -> None:
        """Make all rows durable."""
        self._writer.sync()

    def close(self) -> None:
        """Make all rows durable and release the log."""
        self._writer.close()


def batches_of(
    reader: PartitionReader, from_offset: int | None = None, to_offset: int | None = None
) -> Iterator[Batch]:
    """Yield the batches of a log, and no markers."""
    return (entry for entry in reader.read(from_offset, to_offset) if isinstance(entry, Batch))


def _open_or_create(disk: Disk, path: str, settings: LogSettings) -> Topic:
    """Open the topic, or create it, or complete a creation that a crash cut short."""
    if disk.exists(f"{path}/topic"):
        return Topic.open(disk, path)
    return Topic.create(disk, path, SCHEMA, settings=settings)
