"""Ripple on Spark: data sources, replay, backfill, validation of live runs, Structured Streaming.

environment     what the driver needs: PySpark, Java
session, jvm    the Spark session and its JVM; driver, sealed: messages between tasks and driver
log_table, log_stream, checkpoint_table, options, sources   data sources; merging: into tables
shares, kafka_shares    inputs, divided; portions: those of a task, read in order of event time
merge           inputs by event time; markers, marks: of idle inputs, read, and at their places
answers, run_cut   recorded answers of services; the cut of a run, as the end of a replay
parcel, packets         a pipeline for executors; their results
fold, gather    engines in tasks: of a portion, of a later stage
task_results, packet_output, draft   the output of engines in tasks
work, replaying, report   replay as jobs; progress: of tasks
checks          of a validation, as jobs: crashes, checkpoint_check, output_check, oracle_check,
    table_check (tables of other programs), feed_check (changes); sampling
validating      these jobs on Spark; ripple validate has them in process
    starting_point, fresh, oracle: the expected results; state, finding, verdict: the comparison
dataframe       DataFrames of Spark as sources
backfill        history as the starting point of live partitions
streaming       micro-batches that advance tasks of partitions

Modules with pyspark are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.lazy import imported

if TYPE_CHECKING:
    from ripple.spark.backfill.backfilling import Backfill
    from ripple.spark.backfill.receipt import BackfillError
    from ripple.spark.dataframe.applying import apply
    from ripple.spark.merging import merge_into
    from ripple.spark.replaying import Replay, replay
    from ripple.spark.session import register
    from ripple.spark.streaming.running import run, stream
    from ripple.spark.validating import validate

__all__ = [
    "Backfill",
    "BackfillError",
    "Replay",
    "apply",
    "merge_into",
    "register",
    "replay",
    "run",
    "stream",
    "validate",
]

_HOME_OF = {
    "Backfill": "ripple.spark.backfill.backfilling",
    "BackfillError": "ripple.spark.backfill.receipt",
    "Replay": "ripple.spark.replaying",
    "apply": "ripple.spark.dataframe.applying",
    "merge_into": "ripple.spark.merging",
    "register": "ripple.spark.session",
    "replay": "ripple.spark.replaying",
    "run": "ripple.spark.streaming.running",
    "stream": "ripple.spark.streaming.running",
    "validate": "ripple.spark.validating",
}


if not TYPE_CHECKING:
    __getattr__ = imported(__name__, _HOME_OF)
