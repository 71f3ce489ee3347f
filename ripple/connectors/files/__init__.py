"""Files as sources and sinks.

csv, json (lines), parquet; text: the common part of CSV and JSON sinks.
"""
