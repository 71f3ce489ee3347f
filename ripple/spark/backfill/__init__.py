"""History becomes the state that live workers begin from: see docs/spark.md.

live         the log that goes on where history ends
history      what tasks read: records of both sides, with where they belong
identity     what tells a record from others
seam         the proof that there is neither gap nor overlap between the two
adopting     an engine over a partition's history, and its checkpoint
shelf        where all of that is laid down, under a fingerprint of what it is of
receipt      what was found, and can be checked again
backfilling  the driver
"""
