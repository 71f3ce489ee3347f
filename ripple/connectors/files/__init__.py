"""Files as sources and sinks.

csv, json (lines), parquet   formats; text: the common part of CSV and JSON sinks
folder      several files as one input, of one-shot and of durable runs
remote      files of object stores and web servers
names       of files of data; version: of a file, which tells whether it has changed
"""
