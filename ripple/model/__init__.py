"""Model: what a pipeline says, before anything runs.

schema, records, batch        types, declared record classes, batches of rows
expression, keys              column expressions; keys and their partitions
aggregate, window             exact aggregates; windows, watermarks, timers
canonical, code_fingerprint   what a node means, as text that is hashed
pipeline                      builder, plan, topology, pipeline files
"""
