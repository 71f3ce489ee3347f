"""``ripple spark``: replay, backfill, validate and run on Spark.

backfill    ``backfill`` and ``receipt``
input       options of the pipeline, the source and its range
replay      ``replay``
run         ``run``
session     options of a Spark session, signals, progress
spark       the command
validate    ``validate``
watch       ``validate --watch``
"""
