"""Streams of Redis as sources: the only importer of redis.

uri      of a stream, and settings of the connection; opening; session: the connection
page     of a stream: its state and its next entries, in one transaction, with their offsets
entry    to JSON
inputs   of a stream
"""
