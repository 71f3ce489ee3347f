"""Parquet files as a source and as a sink.

files       one file, read or written as a whole; discovery: of its fields
rows        changes as they are written, in either form
part        one file of a folder that a durable run writes: its name, and the cut in it
parts       such a folder as a sink; objects: the same in S3; opening: of both
"""
