"""Backfill of history as the state with which live workers begin: see docs/spark.md.

given        the given history, by source
live         the log that continues where history ends; live_input: one partition of it
frame_history    history that Spark reads
history      reading of records on both sides, with their partitions
identity     hashes that identify records
seam         the proof that there is neither gap nor overlap between the two sides
adopting     an engine over a partition's history, and its checkpoint
shelf        storage of results, under a fingerprint of the backfill
receipt      the report, which can be checked again
backfilling  the driver
"""
