"""Transforms of another source's records; see docs/connectors.md.

steps       transforms of columns, one class each; no I/O
chain       several in order: the fields that they need of a source, and their result for a batch
opening     of the file that lists them, and of the source
"""
