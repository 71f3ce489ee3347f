"""A pipeline as a query of Spark Structured Streaming, over the same state as everywhere."""
