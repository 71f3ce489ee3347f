"""Errors of a log: faults of the caller, of the disk, or of another process."""

from __future__ import annotations

from ripple.core.errors import InputError, RippleError


class LogError(RippleError):
    """The root of the log's errors: a topic or partition cannot be used as asked."""


class TopicError(LogError, InputError):
    """A topic is missing, exists already, or its description cannot be read."""


class LogDamagedError(LogError, InputError):
    """Durable bytes are not as they were written. Nothing was skipped or changed.

    ``file`` is the path on the log's disk, ``position`` the byte where the damage begins, and
    ``offset`` that of the first record that cannot be read.
    """

    def __init__(self, file: str, position: int, offset: int, reason: str) -> None:
        self.file = file
        self.position = position
        self.offset = offset
        self.reason = reason
        super().__init__(
            f"{file} is damaged at byte {position} (offset {offset}): {reason}; "
            "restore the file from a copy, or give up the lost records by ripple log repair "
            "(ripple log verify says how)"
        )


class OffsetOutOfRangeError(LogError, InputError):
    """An offset that the partition does not hold, or no longer holds.

    Readable are ``first_offset <= offset <= next_offset``; the last one waits for new records.
    """

    def __init__(self, partition: str, offset: int, first_offset: int, next_offset: int) -> None:
        self.offset = offset
        self.first_offset = first_offset
        self.next_offset = next_offset
        if offset < first_offset:
            why = f"was removed by retention; the first one available is {first_offset}"
        else:
            why = f"does not exist: the log ends at {next_offset}"
        super().__init__(f"{partition}: offset {offset} {why}")


class LogDivergedError(LogError, InputError):
    """Records that a reader has read were cut off and rewritten after a failed sync.

    The records from the reader's last durable offset up to ``offset`` may have been replaced.
    """

    def __init__(self, file: str, position: int, offset: int) -> None:
        self.file = file
        self.position = position
        self.offset = offset
        super().__init__(
            f"{file}: the bytes from {position} on do not continue the records read up to offset "
            f"{offset}: the writer lost unsynced records; read again from a durable offset"
        )


class LogChangedError(LogError, InputError):
    """A log is another one than before; see ``ripple.storage.log.identity``."""


class StaleEpochError(LogError):
    """A producer, or the owner of a partition, was replaced by one of a higher epoch.

    Its append was not acknowledged, and is valid only if the successor had seen it.
    """


class SequenceError(LogError):
    """A producer's sequence numbers have a gap, or one stands for two different batches.

    Nothing was stored.
    """


class WriterFailedError(LogError):
    """A write or sync failed earlier, so this writer accepts nothing more: open a new one."""
