"""Ripple on Spark: tables, replays, and the proof that what runs live is right.

session, jvm    Spark itself; driver, sealed: what tasks tell it and each other
log_table, checkpoint_table, options, sources   what tables are read
shares, kafka_shares    what one task reads; parcel: a pipeline on its way; packets: what comes back
fold, gather   an engine over a share, or over what such have sent: giving, sending, draft
work, replaying, report   as jobs; progress
crashes, against, written, exact, sampling   checks as jobs; validating
    beginning, fresh, oracle; state, finding, verdict
backfill    history as what live partitions begin from
streaming   micro-batches as slices of lives

What imports pyspark is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.lazy import imported

if TYPE_CHECKING:
    from ripple.spark.backfill.backfilling import Backfill
    from ripple.spark.backfill.receipt import BackfillError
    from ripple.spark.replaying import Replay, replay
    from ripple.spark.session import register
    from ripple.spark.streaming.running import run, stream
    from ripple.spark.validating import validate

__all__ = ["Backfill", "BackfillError", "Replay", "register", "replay", "run", "stream", "validate"]

_HOME_OF = {
    "Backfill": "ripple.spark.backfill.backfilling",
    "BackfillError": "ripple.spark.backfill.receipt",
    "Replay": "ripple.spark.replaying",
    "register": "ripple.spark.session",
    "replay": "ripple.spark.replaying",
    "run": "ripple.spark.streaming.running",
    "stream": "ripple.spark.streaming.running",
    "validate": "ripple.spark.validating",
}


if not TYPE_CHECKING:
    __getattr__ = imported(__name__, _HOME_OF)
