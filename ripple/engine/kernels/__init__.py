"""Compiled loops over batches.

columns     columns of a batch, read in place; screen: whether all of its rows pass the checks
keyed       keys found, events added and noted; key_fields: keys, their hashes, their order
states      a fold's accumulators, compiled from its aggregates: a record a slot
feed        rows on their way from fold to fold
stored      rows in memory that grows at the end, in the order of their times; runs: by key; intake:
            whole batches on their way there
row_order   rows by key and time among which others may come, and those that match or are near
open_rows   rows of an as-of join that are not final, shown with their matches so far
beside      rows of two columns in one; postings: which rows name which other row
identities  the records that rows are of, by their places; the rows' part in a digest
view        changes, digests, and their export; arrow_batch: by Arrow's C data interface
"""
