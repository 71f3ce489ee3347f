"""Streams of Redis as sources: all that imports redis.

place    which stream, and how a connection is made
page     what a stream says of itself and its next entries, in one transaction; where entries stand
entry    what one entry says
inputs   what a life reads
"""
