"""A pipeline as a query of Spark Structured Streaming, on the same state as elsewhere."""
