"""Dead letters of trades, as a run leaves them."""

from __future__ import annotations

import pyarrow as pa

from ripple.engine.machine import RejectedRow
from ripple.model.batch import Batch, Rejected
from ripple.task.dead_letters.log import DeadLetterLog
from ripple.task.drive import refused
from ripple.world import LiveDisk
from tests.task.letter_places import owned

TRADES = [
    {"symbol": "AAPL", "price": 1.5, "size": 1, "timestamp_ns": 1, "venue": "X"},
    {"symbol": "GOOG", "price": -2.0, "size": 2, "timestamp_ns": 2, "venue": "X"},
    {"symbol": "MSFT", "price": -3.0, "size": 3, "timestamp_ns": 3, "venue": "X"},
]


def write_letters(disk: LiveDisk, pipeline: str, partition: int = 0, name: str = "trades") -> None:
    with owned(disk, pipeline, partition, version="f00d") as (log, *_):
        leave_letters(log, name)


def leave_letters(log: DeadLetterLog, name: str = "trades") -> None:
    """Offset 10 is refused by the source, 12 and 13 by a step."""
    malformed = Rejected(10, 4, "price is empty", b"\x1b[2JAMZN,,1")
    batch = Batch(pa.RecordBatch.from_pylist(TRADES), 14, (malformed,))
    failed = [RejectedRow(1, "check", "it is\x1b[2J negative"), RejectedRow(2, "check", "too low")]
    log.write(name, [malformed, *refused(batch, failed)], batch)
