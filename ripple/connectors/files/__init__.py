"""Files as sources and sinks.

CSV, JSON lines, Parquet; ``text`` is what both of the first share.
"""
