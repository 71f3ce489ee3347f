"""Parquet files as a source and as a sink.

files       one file, read or written as a whole; discovery: of its fields
parts       a folder of files as the sink of a durable run; opening: of it
"""
