"""Parquet files as a source and as a sink."""
