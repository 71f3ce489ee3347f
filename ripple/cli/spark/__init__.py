"""``ripple spark``: replay, backfill, validate and run on Spark."""
