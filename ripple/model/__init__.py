"""Model: a pipeline's declaration, before anything runs.

schema, records, batch        types, declared record classes, batches of rows
calendar                      time zones, and spans of their calendar
expression, keys              column expressions; keys and their partitions
other_names                   names in other libraries, each with the way to write it here
aggregate, window             exact aggregates; windows, watermarks, timers
canonical, code_fingerprint   the meaning of a node, as text that is hashed
pipeline                      builder, plan, topology, pipeline files
"""
