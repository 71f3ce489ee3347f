"""The batch path: what becomes of a whole batch in one compiled call.

columns     what is left of a batch, read where it lies; screen: whether all of it counts
keyed       keys found, events added and noted; key_fields: keys, their hashes, their order
states      a fold's accumulators, compiled from its aggregates: a record a slot
feed        rows on their way from fold to fold
view        changes, digests, and what leaves by Arrow's C data interface or as made
"""
